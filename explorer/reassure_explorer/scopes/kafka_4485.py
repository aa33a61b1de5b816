"""The model of logs, high watermarks and elections (KAFKA-4485) as an explorer model.

As in `kip_236`, the model's own `step` runs on views. The version of the stored in-sync set grows
without end and is only compared with the leader's copy of it, so a state here says whether that
copy is stale. Records, elections, lags and the controller's removals are limited; fetching, joining
and following are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from reassure_explorer.engine.interface import (
    Action,
    Choice,
    Domain,
    Flag,
    Goal,
    Int,
    Invariant,
    Model,
    Noted,
    SequenceOf,
    SetOf,
    Symmetry,
    rename_whole,
)
from reassure_explorer.engine.views import View, get_changes
from reassure_model.environment import NotPossible
from reassure_model.kafka_4485 import replication
from reassure_model.kafka_4485.invariants import GOALS, INVARIANTS
from reassure_model.kafka_4485.replication import ACTIONS, Replication, Request
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings

LIMITED = {"lag": "lags_left", "remove": "removals_left"}
UNFAIR = ("append", "lag", "remove", "elect")


@dataclass(frozen=True, slots=True)
class LogWorld:
    """How much there is, and how much may go wrong."""

    brokers: int
    records: int
    """Longest log."""
    elections: int
    lags: int
    removals: int = 0
    """How often the controller takes a follower out of the stored in-sync set."""
    members: frozenset[int] | None = None
    """Stored in-sync set at the start; without it all brokers."""


@dataclass(frozen=True)
class Logs:
    """The model of logs within a world, under a choice of readings."""

    world: LogWorld
    readings: Readings

    # Views -----------------------------------------------------------------------------------

    def view(self, state: Any) -> Replication:
        """Return the explorer's state as the model sees it."""
        return cast("Replication", View(partial(self._look_up, state)))

    def _look_up(self, state: Any, name: str) -> Any:
        match name:
            case "replicas":
                brokers = range(self.world.brokers)
                return tuple(View(partial(self._look_up_replica, state, b)) for b in brokers)
            case "term":
                return View(partial(self._look_up_term, state))
            case "version":
                return int(state.stale)
        return getattr(state, name)

    def _look_up_replica(self, state: Any, broker: int, name: str) -> Any:
        value = getattr(state, f"{_REPLICA[name]}_{broker}")
        return Request(*value) if name == "request" and value is not None else value

    def _look_up_term(self, state: Any, name: str) -> Any:
        if name == "offsets":
            return tuple(getattr(state, f"offset_{b}") for b in range(self.world.brokers))
        return 0 if name == "version" else getattr(state, _TERM[name])

    def _store(self, state: Any, after: Any) -> Any:
        changes: dict[str, Any] = {}
        for name, value in (get_changes(after) or {}).items():
            match name:
                case "replicas":
                    for broker, replica in enumerate(value):
                        changes |= _store_replica(broker, replica)
                case "term":
                    stored = get_changes(value)
                    names = _TERM if stored is None else [n for n in stored if n in _TERM]
                    changes |= {_TERM[n]: getattr(value, n) for n in names}
                    if stored is None or "offsets" in stored:
                        changes |= _store_offsets(value.offsets)
                    if stored is None or "version" in stored:
                        changes["stale"] = after.version != value.version
                case "version":
                    changes["stale"] = after.version != after.term.version
                case _:
                    changes[name] = value
        return state.replace(**changes)

    # Actions ---------------------------------------------------------------------------------

    def take(self, verb: str, state: Any, broker: int) -> Any:
        """Take a step of the model; None where it cannot be, is rejected, or is used up."""
        limit = LIMITED.get(verb)
        if limit is not None and getattr(state, limit) == 0:
            return None
        if verb == "elect" and state.leader_epoch == self.world.elections:
            return None
        if verb == "append":
            full = state.leader == broker and len(getattr(state, f"log_{broker}"))
            if full == self.world.records:
                return None
        try:
            action = ACTIONS[verb](broker)
            outcome = replication.step(self.view(state), action, self.readings)
        except NotPossible:
            return None
        if isinstance(outcome, Rejected):
            return None
        after = self._store(state, outcome.state)
        if limit is not None:
            after = after.replace(**{limit: getattr(state, limit) - 1})
        return Noted(after, outcome.clauses) if outcome.clauses else after

    # The model -------------------------------------------------------------------------------

    def _make_fields(self) -> dict[str, Domain]:
        world = self.world
        brokers, ends = SetOf(tuple(range(world.brokers))), Int(0, world.records)
        epochs = Int(0, world.elections)
        log = SequenceOf(epochs, world.records)
        requests = [
            (epoch, offset, served)
            for epoch in range(world.elections + 1)
            for offset in range(world.records + 1)
            for served in (False, True)
        ]
        fields: dict[str, Domain] = {
            "leader": Int(0, world.brokers - 1),
            "leader_epoch": epochs,
            "isr": brokers,
            "stale": Flag(),
            "term_isr": brokers,
            "pseudo_isr": brokers,
            "end_at_election": ends,
            "shown": Choice((None, *range(world.records + 1))),
            "committed": log,
        }
        for broker in range(world.brokers):
            fields |= {
                f"log_{broker}": log,
                f"offset_{broker}": ends,
                f"mark_{broker}": ends,
                f"epoch_{broker}": epochs,
                f"request_{broker}": Choice((None, *requests)),
            }
        return fields | {"lags_left": Int(0, world.lags), "removals_left": Int(0, world.removals)}

    def _make_initial(self) -> dict[str, Any]:
        first = replication.make_replication(self.world.brokers, members=self.world.members)
        values: dict[str, Any] = {
            name: getattr(first, name)
            for name in ("leader", "leader_epoch", "isr", "shown", "committed")
        }
        values |= {"stale": False, **{_TERM[name]: getattr(first.term, name) for name in _TERM}}
        values |= _store_offsets(first.term.offsets)
        for broker, replica in enumerate(first.replicas):
            values |= _store_replica(broker, replica)
        return values | {"lags_left": self.world.lags, "removals_left": self.world.removals}

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        brokers = tuple(range(self.world.brokers))
        return Model(
            name=name,
            fields=self._make_fields(),
            initial=(self._make_initial(),),
            actions=tuple(
                Action(verb, partial(self.take, verb), brokers, fair=verb not in UNFAIR)
                for verb in ACTIONS
            ),
            invariants=tuple(
                Invariant(clause, partial(_find, find, self)) for clause, find in INVARIANTS.items()
            ),
            goals=tuple(Goal(goal, partial(_find, test, self)) for goal, test in GOALS.items()),
            faults=tuple(LIMITED.values()),
            symmetries=(self._make_symmetry(),),
        )

    def _make_symmetry(self) -> Symmetry:
        """Declare that brokers may change places; each takes its log and its marks with it."""
        brokers = tuple(range(self.world.brokers))
        own = ("log", "offset", "mark", "epoch", "request")
        return Symmetry(
            "broker",
            brokers,
            values=dict.fromkeys(("leader", "isr", "term_isr", "pseudo_isr"), rename_whole),
            families=tuple(tuple(f"{name}_{broker}" for broker in brokers) for name in own),
            parameters=dict.fromkeys(ACTIONS, rename_whole),
        )


_REPLICA: Mapping[str, str] = {
    "log": "log",
    "high_watermark": "mark",
    "leader_epoch": "epoch",
    "request": "request",
}
_TERM: Mapping[str, str] = {
    "end_at_election": "end_at_election",
    "isr": "term_isr",
    "pseudo_isr": "pseudo_isr",
}


def _find(find: Any, logs: Logs, state: Any) -> Any:
    return find(logs.view(state))


def _store_offsets(offsets: tuple[int, ...]) -> dict[str, Any]:
    return {f"offset_{broker}": offset for broker, offset in enumerate(offsets)}


def _store_replica(broker: int, replica: Any) -> dict[str, Any]:
    stored = get_changes(replica)
    changes = {}
    for name in _REPLICA if stored is None else stored:
        value = getattr(replica, name)
        if name == "request" and value is not None:
            value = (value.leader_epoch, value.offset, value.served)
        changes[f"{_REPLICA[name]}_{broker}"] = value
    return changes
