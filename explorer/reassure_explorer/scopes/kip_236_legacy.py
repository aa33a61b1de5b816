"""The old znode in front of the request protocol, both routes at once, as an explorer model.

Partitions are looked at as `kip_236` does; here the znode and what the acting controller
remembers of it come on top. What is limited: writes and deletions of the znode, requests, deaths,
lags and failovers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast

from reassure_explorer.engine.interface import (
    Choice,
    Domain,
    Goal,
    Invariant,
    Model,
    Option,
    SequenceOf,
)
from reassure_explorer.engine.views import View, get_changes
from reassure_explorer.scopes.copies import Adapter
from reassure_explorer.scopes.kip_236 import Limits, Reference, Target, World
from reassure_model import kip_236_legacy
from reassure_model.environment import Controller, Die, Failover, Join, Leave, Return
from reassure_model.kip_236 import invariants
from reassure_model.kip_236.batch import On
from reassure_model.kip_236.state import Partition
from reassure_model.kip_236_legacy import PROMISES, Ask, DeleteLegacy, Entries, Legacy, WriteLegacy
from reassure_spec.readings import Readings
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

TOPIC: Final = "t"


class LegacyView(View):
    """A view of `Legacy`."""

    __slots__ = ()
    get = Legacy.get
    having = Legacy.having
    as_system = Legacy.as_system


@dataclass(frozen=True, slots=True)
class LegacyWorld:
    """What a scope holds, and how often what is not healing may happen."""

    assigned: tuple[ReplicaList, ...]
    """Assigned replicas of each partition at the start; all brokers are alive."""
    brokers: int
    entries: tuple[tuple[ReplicaList, ...], ...]
    """Targets of the partitions, from the first on, that clients may write into the znode."""
    targets: tuple[ReplicaList, ...]
    """Requests that clients may make of any partition by the new route."""
    writes: int = 1
    """Writes and deletions of the znode."""
    requests: int = 1
    deaths: int = 0
    lags: int = 0
    failovers: int = 0
    promises: bool = True
    """Whether what a reader takes for granted is an invariant; as written it is broken."""


@dataclass(frozen=True)
class OldZnode(Adapter):
    """Both routes within a world, under a choice of readings."""

    world: LegacyWorld
    readings: Readings
    _reference: Reference = field(init=False)
    fair: ClassVar[tuple[str, ...]] = ("controller", "join", "return")
    counted: ClassVar[Mapping[type, str]] = {
        WriteLegacy: "writes_left",
        DeleteLegacy: "writes_left",
        Ask: "requests_left",
        Die: "deaths_left",
        Failover: "failovers_left",
    }

    def __post_init__(self) -> None:
        world = self.world
        wanted = {target for entries in world.entries for target in entries}
        listed = (*((target, True) for target in sorted(wanted)), *self._asked)
        limits = Limits(world.requests, world.deaths, world.lags, world.failovers)
        inner = World(
            world.brokers, world.assigned, listed, limits, queue=world.writes + world.requests + 1
        )
        object.__setattr__(self, "_reference", Reference(inner, self.readings))

    @property
    def _asked(self) -> tuple[Target, ...]:
        return tuple((target, False) for target in self.world.targets)

    @property
    def limits(self) -> Mapping[str, int]:
        """How often the znode is written, requests are made, and things fail."""
        world = self.world
        return {
            "writes_left": world.writes,
            "requests_left": world.requests,
            "deaths_left": world.deaths,
            "lags_left": world.lags,
            "failovers_left": world.failovers,
        }

    @property
    def _keys(self) -> tuple[PartitionKey, ...]:
        return tuple((TOPIC, number) for number in range(len(self.world.assigned)))

    def list_entries(self) -> tuple[Entries, ...]:
        """Return every content of the znode that a client may write."""
        return tuple(
            tuple(
                LegacyEntry(key, target, None)
                for key, target in zip(self._keys, targets, strict=False)
            )
            for targets in self.world.entries
        )

    # Views -----------------------------------------------------------------------------------

    def view(self, state: Any) -> Legacy:
        """Return the explorer's state as the model sees it."""
        return cast("Legacy", LegacyView(partial(self._look_up, state)))

    def _look_up(self, state: Any, name: str) -> Any:
        match name:
            case "partitions":
                view = self._reference.view_partition
                return tuple((key, view(state, at)) for at, key in enumerate(self._keys))
            case "known":
                return frozenset(range(1, self.world.brokers + 1))
            case "min_insync_replicas":
                return 1
            case "controller_epoch":
                return 0
            case "next_sequence":
                return sum(len(p.requests) for _, p in self._look_up(state, "partitions"))
        return getattr(state, name)

    def store(self, state: Any, after: Any) -> Any:
        """Return the explorer's state after a step of the model on a view."""
        changes: dict[str, Any] = {}
        for name, value in (get_changes(after) or {}).items():
            match name:
                case "partitions":
                    for at, (_, partition) in enumerate(value):
                        changes |= self._reference.store_partition(partition, at)
                case "known" | "controller_epoch" | "next_sequence":
                    pass  # the same in every state, or counted from 0 again
                case _:
                    changes[name] = value
        return state.replace(**changes)

    def step(self, view: Any, action: Any) -> Any:
        """Take a step of the model."""
        return kip_236_legacy.step(view, action, self.readings)

    # Checks ----------------------------------------------------------------------------------

    def find_broken(self, invariant: invariants.Invariant[Any], state: Any) -> str | None:
        """Say why an invariant of the model is broken in one of the partitions."""
        if (
            invariant.at_rest
            and kip_236_legacy.next_effect(self.view(state), self.readings) is not None
        ):
            return None
        return self._reference.find_broken(invariant, state)

    def _find_promise(
        self, find: Callable[[Legacy, Readings], str | None], view: Legacy
    ) -> str | None:
        return find(view, self.readings)

    def is_settled(self, state: Any) -> bool:
        """Whether no reassignment is in flight but those that wait for a dead broker."""
        return self._reference.is_settled(state)

    # The model -------------------------------------------------------------------------------

    def _make_fields(self) -> dict[str, Domain]:
        entries = tuple(dict.fromkeys(e for written in self.list_entries() for e in written))
        listed = Option(SequenceOf(Choice(entries), len(entries)))
        return {
            **self._reference.make_partition_fields(),
            "entries": listed,
            "seen": listed,
            **self.make_counters(),
        }

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        brokers = tuple(range(1, self.world.brokers + 1))
        replicas = tuple((key, broker) for key in self._keys for broker in brokers)
        asked = tuple((key, target) for key in self._keys for target in self.world.targets)
        promises = PROMISES if self.world.promises else {}
        return Model(
            name=name,
            fields=self._make_fields(),
            initial=(
                {
                    **self._reference.make_initial_partitions(),
                    "entries": None,
                    "seen": None,
                    **self.limits,
                },
            ),
            actions=(
                self.make_action("write", WriteLegacy, self.list_entries(), _describe_entries),
                self.make_action("delete", lambda _: DeleteLegacy()),
                self.make_action(
                    "ask", lambda pair: Ask((pair,)), asked, partial(_describe, "ask")
                ),
                self.make_action(
                    "join",
                    lambda pair: On(pair[0], Join(pair[1])),
                    replicas,
                    partial(_describe, "join"),
                ),
                *self._make_lag(replicas),
                self.make_action("die", Die, brokers),
                self.make_action("return", Return, brokers),
                self.make_action("failover", lambda _: Failover()),
                self.make_action("controller", lambda _: Controller()),
            ),
            invariants=(
                *(Invariant(i.clause, partial(self.find_broken, i)) for i in invariants.INVARIANTS),
                *self.make_invariants(
                    {clause: partial(self._find_promise, find) for clause, find in promises.items()}
                ),
            ),
            goals=tuple(Goal(goal, self.ask(reached)) for goal, reached in GOALS.items()),
            settled=self.is_settled,
            faults=("deaths_left", "lags_left", "failovers_left"),
        )

    def _make_lag(self, replicas: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.world.lags:
            return ()
        make, words = lambda pair: On(pair[0], Leave(pair[1])), partial(_describe, "leave")
        return (self.make_action("leave", make, replicas, words),)


def _describe(name: str, pair: tuple[PartitionKey, Any]) -> str:
    (topic, number), what = pair
    return f"{name} {list(what) if isinstance(what, tuple) else what}, {topic}-{number}"


def _describe_entries(entries: Entries) -> str:
    words = (f"{e.key[0]}-{e.key[1]} to {list(e.target)}" for e in entries)
    return f"write {', '.join(words)}"


def _is_any(legacy_state: Legacy, test: Callable[[Partition], bool]) -> bool:
    return any(test(partition) for _, partition in legacy_state.partitions)


GOALS: Final[Mapping[str, Callable[[Legacy], bool]]] = MappingProxyType(
    {
        "the old znode is there": lambda s: s.entries is not None,
        "a request was made of an entry": lambda s: s.seen is not None and len(s.seen) > 0,
        "a reassignment by the old route is in flight": lambda s: _is_any(
            s, lambda p: p.reassignment is not None and p.reassignment.legacy
        ),
        "a reassignment by the new route is in flight": lambda s: _is_any(
            s, lambda p: p.reassignment is not None and not p.reassignment.legacy
        ),
        "requests by both routes are pending": lambda s: _is_any(
            s, lambda p: len({r.legacy for r in p.requests}) == 2
        ),
        "a new controller finds the old znode": lambda s: (
            s.entries is not None
            and s.seen is None
            and _is_any(s, lambda p: p.reassignment is not None)
        ),
    }
)
