"""What shipped controllers did (KIP-455) as an explorer model.

As in `kip_236`, the model's own `step` runs on views. The plan that a controller remembers is a
sequence of effects; which effects there can be follows from the targets of the world, so that they
are listed before anything is explored. What is limited: calls, writes of the old znode, deaths and
failovers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast

from reassure_explorer.engine.interface import Choice, Domain, Flag, Goal, Model, SequenceOf
from reassure_explorer.engine.views import View, get_changes
from reassure_explorer.scopes.copies import Adapter, CopiesWorld, make_copies, make_copies_fields
from reassure_model import kafka_zk
from reassure_model.copies import Append
from reassure_model.environment import Controller, Die, Failover, Join, Return
from reassure_model.kafka_zk import (
    GOALS,
    PROBLEMS,
    Alter,
    Announce,
    Assignment,
    CutIsr,
    DeleteLog,
    Effect,
    Elect,
    Look,
    Record,
    RemoveEntry,
    Shipped,
    StartReplica,
    WriteEntry,
    reassign_to,
)
from reassure_spec.readings import Readings

INVARIANTS: Final[Mapping[str, Callable[[Shipped], str | None]]] = MappingProxyType(
    {
        "shipped.isr.without-deleted": PROBLEMS["deleted-in-sync"],
        "shipped.leader.holds-committed": PROBLEMS["empty-leader"],
        "shipped.isr.within-assigned": PROBLEMS["outside-assigned"],
        "shipped.assigned.holds-committed": PROBLEMS["emptied-assignment"],
        "shipped.change.led": PROBLEMS["leaderless"],
        "shipped.cancel.no-strays": PROBLEMS["stray"],
        "shipped.entry.not-for-ever": PROBLEMS["entry-for-ever"],
        "shipped.assignment.original-derivable": PROBLEMS["bad-lists"],
    }
)
"""By clause."""

LONGEST_PLAN: Final = 10


class ShippedView(View):
    """A view of `Shipped`."""

    __slots__ = ()
    assignment = Shipped.assignment


def list_assignments(world: CopiesWorld) -> tuple[Assignment, ...]:
    """Return every assignment that a topic's znode can come to hold, the first one first."""
    found = [Assignment(world.assigned)]
    for now in found:
        asked = (*world.targets, *world.entries, now.original)
        after = [reassign_to(now, target) for target in asked]
        found += dict.fromkeys(a for a in (*after, Assignment(now.target)) if a not in found)
    return tuple(found)


def list_effects(world: CopiesWorld) -> tuple[Effect, ...]:
    """Return every effect that a plan can hold."""
    assignments = list_assignments(world)
    targets = tuple(dict.fromkeys(now.target for now in assignments))
    removals = [RemoveEntry(None, "a call counts")]
    return (
        Look(),
        Announce("A1"),
        Announce("B3"),
        Elect(),
        *(Elect(target) for target in targets),
        *(RemoveEntry(target, "B7") for target in targets),
        *removals,
        *(Record(now, at) for now in assignments for at in ("U1", "B6")),
        *(CutIsr(replica, at) for replica in world.members for at in ("U3", "B4", "death")),
        *(DeleteLog(replica, at) for replica in world.members for at in ("U3", "B5")),
        *(StartReplica(replica) for replica in world.members),
    )


@dataclass(frozen=True)
class Shipments(Adapter):
    """The model of shipped controllers within a world."""

    world: CopiesWorld
    readings: Readings
    fair: ClassVar[tuple[str, ...]] = ("controller", "join", "return")
    counted: ClassVar[Mapping[type, str]] = {
        Alter: "calls_left",
        WriteEntry: "writes_left",
        Die: "deaths_left",
        Failover: "failovers_left",
    }

    @property
    def limits(self) -> Mapping[str, int]:
        """How often calls, writes of the old znode, deaths and failovers may happen."""
        world = self.world
        often = (world.requests, world.writes, world.deaths, world.failovers)
        return dict(zip(self.counted.values(), often, strict=True))

    @cached_property
    def _lists(self) -> Choice:
        found = list_assignments(self.world)
        return Choice(tuple(dict.fromkeys((a.adding, a.removing) for a in found)))

    def view(self, state: Any) -> Shipped:
        """Return the explorer's state as the model sees it."""
        return cast("Shipped", ShippedView(partial(self._look_up, state)))

    def _look_up(self, state: Any, name: str) -> Any:
        match name:
            case "leader_epoch":
                return 0
            case "deleting":
                return False
            case "adding":
                return state.lists[0]
            case "removing":
                return state.lists[1]
        return getattr(state, name)

    def store(self, state: Any, after: Any) -> Any:
        """Return the explorer's state after a step of the model on a view."""
        changes = dict(get_changes(after) or {})
        changes.pop("leader_epoch", None)
        if "adding" in changes:
            changes["lists"] = (tuple(changes.pop("adding")), tuple(changes.pop("removing")))
        return state.replace(**changes)

    def step(self, view: Any, action: Any) -> Any:
        """Take a step of the model."""
        return kafka_zk.step(view, action)

    def is_settled(self, shipped: Shipped) -> bool:
        """Whether nothing is in flight but what waits for a dead broker."""
        now = shipped.assignment
        return not now.is_reassigning or any(r not in shipped.live for r in now.target)

    def _write_entry(self, target: Any) -> WriteEntry:
        return WriteEntry(target)

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        world, members = self.world, self.world.members
        longest = max(len(now.replicas) for now in list_assignments(world))
        fields: dict[str, Domain] = {
            **make_copies_fields(world, longest),
            "lists": self._lists,
            "entry": Choice((None, *world.entries)),
            "unread": Flag(),
            "resume": Flag(),
            "overlooked": Flag(),
            "plan": SequenceOf(Choice(list_effects(world)), LONGEST_PLAN),
            **self.make_counters(),
        }
        first = kafka_zk.make_shipped(world.assigned, frozenset(members))
        initial = {
            **make_copies(first),
            "lists": ((), ()),
            "entry": None,
            "unread": False,
            "resume": False,
            "overlooked": False,
            "plan": (),
        }
        writes = (self.make_action("write", self._write_entry, world.entries),)
        return Model(
            name=name,
            fields=fields,
            initial=({**initial, **self.limits},),
            actions=(
                self.make_action("alter", Alter, (*world.targets, *((None,) * world.cancels))),
                *(writes if world.entries else ()),
                self.make_action("controller", lambda _: Controller()),
                self.make_action("join", Join, members),
                self.make_action("append", lambda _: Append()),
                self.make_action("die", Die, members),
                self.make_action("return", Return, members),
                self.make_action("failover", lambda _: Failover()),
            ),
            invariants=self.make_invariants(INVARIANTS),
            goals=tuple(Goal(goal, self.ask(reached)) for goal, reached in GOALS.items()),
            settled=self.ask(self.is_settled),
            faults=("deaths_left", "failovers_left"),
        )
