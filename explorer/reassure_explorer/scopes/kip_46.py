"""KIP-46, brokers that are replaced when they stay away, as an explorer model.

As in `kip_236`, the model's own `step` runs on views. Two numbers of the model grow without end.
The clock is only compared with the times of failure records, and only by the failure interval: a
record here says whether its interval has passed, and a tick lets it pass for all. Tasks are
numbered by their place. What is limited: deaths and failovers; brokers return, partitions finish
and time passes as often as you like. As written the queue of tasks grows as long as two brokers
stay away, and is cut off at a length; so nothing is claimed of fair runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations
from typing import Any, ClassVar, Final, cast

from reassure_explorer.engine.interface import (
    Choice,
    Domain,
    Goal,
    Int,
    Model,
    Option,
    SequenceOf,
    SetOf,
)
from reassure_explorer.engine.views import View, get_changes
from reassure_explorer.scopes.copies import Adapter
from reassure_model import kip_46
from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.kip_46 import (
    Assignments,
    CatchUp,
    Cluster,
    Finish,
    Generation,
    HealingConfig,
    Hosted,
    StartTask,
    Task,
    Tick,
    make_cluster,
    next_effect,
)
from reassure_model.kip_46.machine import list_properties
from reassure_model.outcome import Accepted
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList

TOPIC: Final = "t"
WAITING: Final = "waiting"
DUE: Final = "due"
ALWAYS: Final = (
    "heal.task.one-at-a-time",
    "heal.target.no-duplicate",
    "heal.generate.replaces-failed",
)
"""The clauses of what holds whatever the readings."""


def _find(find: Any, readings: Readings, cluster: Cluster) -> str | None:
    found: str | None = find(cluster, readings)
    return found


@dataclass(frozen=True, slots=True)
class HealingWorld:
    """What a scope holds, and how often what is not healing may happen."""

    brokers: int
    """Brokers are numbered from 1; each has a rack of its own, all are alive at the start."""
    partitions: tuple[ReplicaList, ...]
    deaths: int = 1
    failovers: int = 0
    tasks: int = 4
    """Most tasks that are persisted at a time."""
    promises: bool = True
    """Whether what a reader takes for granted is an invariant; as written it is broken."""


@dataclass(frozen=True)
class Healing(Adapter):
    """The model of healing within a world, under a choice of readings."""

    world: HealingWorld
    readings: Readings
    config: ClassVar[HealingConfig] = HealingConfig()
    counted: ClassVar[Mapping[type, str]] = {Die: "deaths_left", Failover: "failovers_left"}

    @property
    def limits(self) -> Mapping[str, int]:
        """How often brokers die and controllers fail over."""
        return {"deaths_left": self.world.deaths, "failovers_left": self.world.failovers}

    @property
    def _members(self) -> tuple[int, ...]:
        return tuple(range(1, self.world.brokers + 1))

    @property
    def _keys(self) -> tuple[PartitionKey, ...]:
        return tuple((TOPIC, number) for number in range(len(self.world.partitions)))

    @cached_property
    def _tasks(self) -> Choice:
        """Every task that can be: one partition each, and as many replicas as it has."""
        found: list[Assignments] = []
        for key, replicas in zip(self._keys, self.world.partitions, strict=True):
            found += [((key, target),) for target in permutations(self._members, len(replicas))]
        return Choice(tuple(found))

    # Views -----------------------------------------------------------------------------------

    def view(self, state: Any) -> Cluster:
        """Return the explorer's state as the model sees it."""
        return cast("Cluster", View(partial(self._look_up, state)))

    def _look_up(self, state: Any, name: str) -> Any:
        match name:
            case "racks":
                return tuple((broker, f"rack-{broker}") for broker in self._members)
            case "partitions":
                return tuple(
                    View(partial(self._look_up_hosted, state, number), {"key": key})
                    for number, key in enumerate(self._keys)
                )
            case "now_ms":
                return self.config.failure_interval_ms
            case "failed":
                return self._look_up_failed(state)
            case "tasks":
                return tuple(Task(number, made) for number, made in enumerate(state.tasks))
            case "next_number":
                return len(state.tasks)
            case "generation":
                broker = state.generating
                return None if broker is None else Generation(broker, tuple(state.pending))
        return getattr(state, name)

    def _look_up_failed(self, state: Any) -> tuple[tuple[int, int], ...]:
        since = {WAITING: self.config.failure_interval_ms, DUE: 0}
        ages = ((broker, getattr(state, f"failed_{broker}")) for broker in self._members)
        return tuple((broker, since[age]) for broker, age in ages if age is not None)

    def _look_up_hosted(self, state: Any, number: int, name: str) -> Any:
        return getattr(state, f"{name}_{number}")

    def store(self, state: Any, after: Any) -> Any:
        """Return the explorer's state after a step of the model on a view."""
        changes: dict[str, Any] = {}
        for name, value in (get_changes(after) or {}).items():
            match name:
                case "partitions":
                    for number, hosted in enumerate(value):
                        changes |= _store_hosted(number, hosted)
                case "now_ms":
                    # Time passes by the interval, after which every record is due.
                    changes |= self._store_failed(tuple((b, 0) for b, _ in after.failed))
                case "failed":
                    changes |= self._store_failed(value)
                case "tasks":
                    changes["tasks"] = tuple(task.assignments for task in value)
                case "next_number":
                    pass  # tasks are numbered by their place
                case "generation":
                    changes["generating"] = None if value is None else value.broker
                    changes["pending"] = () if value is None else value.pending
                case _:
                    changes[name] = value
        return state.replace(**changes)

    def _store_failed(self, failed: tuple[tuple[int, int], ...]) -> dict[str, Any]:
        ages = {broker: DUE if since == 0 else WAITING for broker, since in failed}
        return {f"failed_{broker}": ages.get(broker) for broker in self._members}

    def step(self, view: Any, action: Any) -> Any:
        """Take a step of the model; no task is persisted beyond those that the scope holds."""
        outcome = kip_46.step(view, action, self.config, self.readings)
        if isinstance(outcome, Accepted) and len(outcome.state.tasks) > self.world.tasks:
            raise NotPossible("the queue of tasks is full within this scope")
        return outcome

    # Checks ----------------------------------------------------------------------------------

    def _starts(self, cluster: Cluster) -> bool:
        return isinstance(next_effect(cluster, self.config, self.readings), StartTask)

    # The model -------------------------------------------------------------------------------

    def _make_fields(self) -> dict[str, Domain]:
        world, members = self.world, self._members
        fields: dict[str, Domain] = {"live": SetOf(members)}
        broker = Int(1, world.brokers)
        for number, replicas in enumerate(world.partitions):
            listed = SequenceOf(broker, len(replicas))
            fields |= {f"assigned_{number}": listed, f"isr_{number}": listed}
            fields[f"target_{number}"] = Option(listed)
        fields |= {f"failed_{b}": Choice((None, WAITING, DUE)) for b in members}
        return {
            **fields,
            "tasks": SequenceOf(self._tasks, world.tasks),
            "generating": Choice((None, *members)),
            "pending": SequenceOf(self._tasks, len(world.partitions)),
            **self.make_counters(),
        }

    def _make_initial(self) -> dict[str, Any]:
        first = make_cluster({}, dict(zip(self._keys, self.world.partitions, strict=True)))
        values: dict[str, Any] = {"live": frozenset(self._members)}
        for number, hosted in enumerate(first.partitions):
            values |= _store_hosted(number, hosted)
        values |= self._store_failed(())
        return {**values, "tasks": (), "generating": None, "pending": (), **self.limits}

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        wanted = {
            each.clause: partial(_find, each.find, self.readings)
            for each in list_properties(self.config)
            if self.world.promises or each.clause in ALWAYS
        }
        return Model(
            name=name,
            fields=self._make_fields(),
            initial=(self._make_initial(),),
            actions=(
                self.make_action("controller", lambda _: Controller()),
                self.make_action("tick", lambda _: Tick(self.config.failure_interval_ms)),
                self.make_action("finish", Finish, self._keys),
                self.make_action("catch-up", CatchUp, self._keys),
                self.make_action("die", Die, self._members),
                self.make_action("return", Return, self._members),
                self.make_action("failover", lambda _: Failover()),
            ),
            invariants=self.make_invariants(wanted),
            goals=(
                Goal("a failure is recorded", self.ask(lambda c: len(c.failed) > 0)),
                Goal("a task is made", self.ask(lambda c: len(c.tasks) > 0)),
                Goal("a task is due to start", self.ask(self._starts)),
                Goal("a partition is moved", self.ask(_is_moving)),
                Goal("a failed broker is replaced", self.ask(self._is_replaced)),
            ),
            faults=("deaths_left", "failovers_left"),
        )

    def _is_replaced(self, cluster: Cluster) -> bool:
        pairs = zip(cluster.partitions, self.world.partitions, strict=True)
        return any(set(hosted.assigned) != set(first) for hosted, first in pairs)


def _is_moving(cluster: Cluster) -> bool:
    return any(hosted.target is not None for hosted in cluster.partitions)


def _store_hosted(number: int, hosted: Hosted) -> dict[str, Any]:
    stored = get_changes(hosted)
    names = ("assigned", "isr", "target") if stored is None else stored
    return {f"{name}_{number}": getattr(hosted, name) for name in names}
