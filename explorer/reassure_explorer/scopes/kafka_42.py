"""KAFKA-42 as an explorer model: seven steps, and at any moment the controller may be gone.

As in `kip_236`, the model's own `step` runs on views. What is limited: commands, deaths,
failovers and interruptions of the command. Brokers return, replicas join and records are written
as often as they can.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast

from reassure_explorer.engine.interface import Choice, Domain, Flag, Goal, Int, Model
from reassure_explorer.engine.views import View, get_changes
from reassure_explorer.scopes.copies import (
    NAMES,
    Adapter,
    CopiesWorld,
    make_copies,
    make_copies_fields,
)
from reassure_model import kafka_42
from reassure_model.copies import Append, is_led
from reassure_model.kafka_42 import (
    PROBLEMS,
    Command,
    Interrupt,
    Move,
    Observe,
    Task,
    find_started_unassigned,
    find_stop_too_early,
)
from reassure_model.kip_236.system import Controller, Die, Failover, Join, Return
from reassure_spec.readings import Readings

INVARIANTS: Final[Mapping[str, Callable[[Move], str | None]]] = MappingProxyType(
    {
        "move.isr.without-deleted": PROBLEMS["deleted-in-sync"],
        "move.leader.holds-committed": PROBLEMS["empty-leader"],
        "move.leader.not-stopped": PROBLEMS["stopped-leader"],
        "move.isr.within-assigned": PROBLEMS["outside-assigned"],
        "move.assigned.holds-committed": PROBLEMS["emptied-assignment"],
        "move.cancel.no-strays": PROBLEMS["stray"],
        "move.start.expand-first": find_started_unassigned,
    }
)
"""By clause."""

GOALS: Final[Mapping[str, Callable[[Move], bool]]] = MappingProxyType(
    {
        "a replica of the target leads": lambda m: m.task is not None and m.leader in m.task.target,
        "nobody leads": lambda m: not is_led(m),
        "the assignment is written, the path is there": lambda m: (
            m.task is not None and m.task.step == 7
        ),
        "a new controller begins again": lambda m: (
            m.task is None and m.path is not None and m.leader in m.path
        ),
    }
)


@dataclass(frozen=True)
class Moves(Adapter):
    """The model of KAFKA-42 within a world, under a choice of readings."""

    world: CopiesWorld
    readings: Readings
    fair: ClassVar[tuple[str, ...]] = ("controller", "join", "return", "observe")
    counted: ClassVar[Mapping[type, str]] = {
        Command: "commands_left",
        Die: "deaths_left",
        Failover: "failovers_left",
        Interrupt: "interrupts_left",
    }

    @property
    def limits(self) -> Mapping[str, int]:
        """How often commands, deaths, failovers and interruptions may happen."""
        world = self.world
        often = (world.requests, world.deaths, world.failovers, world.interrupts)
        return dict(zip(self.counted.values(), often, strict=True))

    def view(self, state: Any) -> Move:
        """Return the explorer's state as the model sees it."""
        return cast("Move", View(partial(self._look_up, state)))

    def _look_up(self, state: Any, name: str) -> Any:
        match name:
            case "leader_epoch":
                return 0
            case "beside":
                return False
            case "task":
                return None if state.doing is None else Task(state.doing, state.at_step)
        return getattr(state, name)

    def store(self, state: Any, after: Any) -> Any:
        """Return the explorer's state after a step of the model on a view."""
        changes = dict(get_changes(after) or {})
        changes.pop("leader_epoch", None)
        if "task" in changes:
            task = changes.pop("task")
            changes["doing"] = None if task is None else task.target
            changes["at_step"] = 2 if task is None else task.step
        return state.replace(**changes)

    def step(self, view: Any, action: Any) -> Any:
        """Take a step of the model."""
        return kafka_42.step(view, action, self.readings)

    def _find_early(self, move: Move) -> str | None:
        return find_stop_too_early(move, self.readings)

    def is_settled(self, move: Move) -> bool:
        """Whether nothing is asked for, or what is asked for waits for a dead broker."""
        asked = move.path if move.task is None else move.task.target
        return asked is None or any(replica not in move.live for replica in asked)

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        world, members = self.world, self.world.members
        asked = Choice((None, *world.targets))
        fields: dict[str, Domain] = {
            **make_copies_fields(world, world.brokers),
            "path": asked,
            "wanted": asked,
            "doing": asked,
            "at_step": Int(2, 7),
            "found": Flag(),
            **self.make_counters(),
        }
        first = kafka_42.make_move(world.assigned, frozenset(members))
        initial = {**make_copies(first), "path": None, "wanted": None, "doing": None, "at_step": 2}
        initial["found"] = False
        return Model(
            name=name,
            fields=fields,
            initial=({**initial, **self.limits},),
            actions=(
                self.make_action("command", Command, world.targets),
                self.make_action("controller", lambda _: Controller()),
                self.make_action("join", Join, members),
                self.make_action("append", lambda _: Append()),
                self.make_action("die", Die, members),
                self.make_action("return", Return, members),
                self.make_action("failover", lambda _: Failover()),
                self.make_action("interrupt", lambda _: Interrupt()),
                self.make_action("observe", lambda _: Observe()),
            ),
            invariants=self.make_invariants({**INVARIANTS, "move.step.stop-old": self._find_early}),
            goals=tuple(Goal(goal, self.ask(reached)) for goal, reached in GOALS.items()),
            settled=self.ask(self.is_settled),
            faults=tuple(field for field in self.limits if field != "commands_left"),
        )


assert set(NAMES) <= set(Move.__dataclass_fields__)
