"""The reference model as an explorer model: its own rules, run on states that note what is read.

No rule is repeated here. An action calls `kip_236.system.step` of the model on a view (`views`): an
object that answers to the field names of the model's records and looks each field up in the
explorer's state when a rule first asks.

Three numbers of the model grow without end and are only ever compared with their like: leader
epochs, controller epochs and the sequence numbers of requests. Each state here stands for all that
differ in these alone: epochs count from 0 in every step, requests are numbered by their place.

Faults are limited, each kind by a field that counts down: requests, deaths, lags, failovers. What
heals (the controller's writes, catching up, a broker's return) is never limited.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Final, cast

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
    Rename,
    SequenceOf,
    SetOf,
    Symmetry,
    rename_whole,
)
from reassure_explorer.engine.views import View, get_changes
from reassure_model.environment import Controller, Die, Failover, Join, Leave, NotPossible, Return
from reassure_model.kip_236 import invariants, system
from reassure_model.kip_236.obligations import find_drop, next_write
from reassure_model.kip_236.promises import PROMISES, Memory, Moment
from reassure_model.kip_236.requests import is_remembered
from reassure_model.kip_236.state import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
)
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

Target = tuple[ReplicaList, bool]
"""What a request asks for, and whether it comes by the legacy route."""

Promise = Callable[[Moment], str | None]

FAIR: Final = ("join", "return", "controller")
"""What heals, and so is bound to happen in the end where it stays possible."""
SELF_CONSISTENCY: Final = "model.owed-is-allowed"
"""Name of the invariant that the rules accept every write that is owed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How often each fault may happen, in all; None is without limit."""

    requests: int | None
    deaths: int | None = 0
    lags: int | None = 0
    failovers: int | None = 0
    term: int = 0
    """Writes that every controller makes at least before another takes over.

    Where failovers are without limit and each new controller first writes something again, none
    would ever come to its second write.
    """


@dataclass(frozen=True, slots=True)
class World:
    """What a scope holds: brokers, partitions, what is asked for, and how much may go wrong."""

    brokers: int
    """Brokers are numbered from 1."""
    assigned: tuple[ReplicaList, ...]
    """Assigned replicas of each partition at the start; all brokers are alive."""
    targets: tuple[Target, ...]
    """Requests that clients may make of any partition."""
    limits: Limits
    queue: int = 2
    """Requests that may be pending for one partition at a time."""
    min_insync_replicas: int = 1
    online: bool = True
    """Whether the partitions have a leader at the start, their first replica."""
    promises: bool = False
    """Whether what a reader takes for granted is an invariant; as written it is broken."""
    calm: bool = False
    """Whether everything else waits until the controller owes nothing.

    Any controller that keeps the rules can follow such traces, whatever the order of its writes.
    """


class RequestsView(Sequence[Request]):
    """The pending requests of one partition, numbered by their place."""

    def __init__(self, stored: Sequence[Target]) -> None:
        self._stored = stored

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        return Request(index, *self._stored[index])

    def __iter__(self) -> Any:
        return (Request(place, *stored) for place, stored in enumerate(self._stored))


class ReassignmentView(View):
    """A view of `Reassignment`. What it asks for is known; top is looked up only when asked for."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reassignment | ReassignmentView):
            return NotImplemented
        same = (self.target, self.legacy) == (other.target, other.legacy)
        return same and bool(self.top == other.top)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Reference:
    """The reference model within a world, under a choice of readings."""

    world: World
    readings: Readings
    _members: frozenset[int] = field(init=False)
    _is_alone: bool = field(init=False)
    """Whether there is one partition, whose fields then bear no number."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_members", frozenset(range(1, self.world.brokers + 1)))
        object.__setattr__(self, "_is_alone", len(self.world.assigned) == 1)

    # Views -----------------------------------------------------------------------------------

    def _name(self, name: str, at: int) -> str:
        return name if self._is_alone else f"{name}_{at}"

    @cached_property
    def _is_remembered(self) -> bool:
        return is_remembered(self.readings)

    @cached_property
    def _lookups(self) -> tuple[Callable[[Any, str], Any], ...]:
        """For each partition the function that looks up a field of its record in a state."""
        return tuple(map(self._make_lookup, range(len(self.world.assigned))))

    def _make_lookup(self, at: int) -> Callable[[Any, str], Any]:
        get_leader, get_isr, get_requests = (
            attrgetter(self._name(name, at)) for name in ("leader", "isr", "requests")
        )

        def look_up_state(state: Any) -> LeaderAndIsr | None:
            leader = get_leader(state)
            return None if leader is None else LeaderAndIsr(leader, 0, 0, get_isr(state))

        found: dict[str, Callable[[Any], Any]] = {
            "state": look_up_state,
            "reassignment": self._make_lookup_of_record("flight", "top", at),
            "requests": lambda state: RequestsView(get_requests(state)),
            # Under most readings a controller remembers nothing, and there is no such field.
            "taken": self._make_lookup_of_record("taken", "taken_top", at)
            if self._is_remembered
            else lambda state: None,
        }
        for name in ("assigned", "drop_due", "announce_due", "completing"):
            found[name] = attrgetter(self._name(name, at))
        return lambda state, name: found[name](state)

    def _make_lookup_of_record(self, flight: str, top: str, at: int) -> Callable[[Any], Any]:
        get_flight = attrgetter(self._name(flight, at))
        found = {"top": attrgetter(self._name(top, at))}

        def look_up(state: Any) -> Reassignment | None:
            stored = get_flight(state)
            if stored is None:
                return None
            known = {"target": stored[0], "legacy": stored[1]}
            view = ReassignmentView(lambda name: found[name](state), known)
            return cast("Reassignment", view)

        return look_up

    def view_partition(self, state: Any, at: int) -> Partition:
        """Return partition number `at` of an explorer's state, as the rules see it."""
        return cast("Partition", View(partial(self._lookups[at], state)))

    @cached_property
    def _around(self) -> Mapping[str, Any]:
        """What is the same in the environment at all times."""
        around = Environment(frozenset(), self._members, self.world.min_insync_replicas, 0)
        names = (each.name for each in fields(around) if each.name != "live")
        return {name: getattr(around, name) for name in names}

    def view_surroundings(self, state: Any) -> Environment:
        """Return the environment, as the rules see them."""
        known = {**self._around, "live": state.live}
        return cast("Environment", View(known.__getitem__, known))

    def view_system(self, state: Any, at: int) -> system.System:
        """Return one partition with its environment, as the model's `step` sees it."""
        known = {
            "partition": self.view_partition(state, at),
            "live": state.live,
            "known": self._members,
            "min_insync_replicas": self.world.min_insync_replicas,
            "controller_epoch": 0,
            "next_sequence": 0,
            "around": self.view_surroundings(state),
        }
        return cast("system.System", View(known.__getitem__, known))

    def _store(self, state: Any, after: Any, at: int) -> Any:
        """Return the explorer's state after a step of the model on a view."""
        changes: dict[str, Any] = {}
        for name, value in (get_changes(after) or {}).items():
            match name:
                case "partition":
                    changes |= self.store_partition(value, at)
                case "live":
                    changes["live"] = value
                case "known" | "controller_epoch" | "next_sequence":
                    pass  # the same in every state, or counted from 0 again
                case _:
                    raise KeyError(f"the model's System has a field {name!r}; give it a place here")
        return state.replace(**changes)

    def store_partition(self, after: Any, at: int) -> dict[str, Any]:
        """Return the fields that a step of the model on a view of partition `at` has changed."""
        changes: dict[str, Any] = {}
        for name, value in (get_changes(after) or {}).items():
            match name:
                case "state":
                    changes |= {"leader": value.leader, "isr": value.isr}
                case "reassignment" if value is None:
                    changes |= {"flight": None, "top": 0}
                case "reassignment":
                    changes |= {"flight": (value.target, value.legacy), "top": value.top}
                case "taken":
                    changes["taken"] = None if value is None else (value.target, value.legacy)
                    changes["taken_top"] = 0 if value is None else value.top
                case "requests":
                    changes["requests"] = tuple((r.target, r.legacy) for r in value)
                case _:
                    changes[name] = value
        return {self._name(name, at): value for name, value in changes.items()}

    # Actions ---------------------------------------------------------------------------------

    def _step(self, state: Any, at: int, action: system.Action, limit: str | None = None) -> Any:
        """Take a step of the model; None where it cannot be, or the rules reject it."""
        if self._has_to_wait(state):
            return None
        try:
            outcome = system.step(self.view_system(state, at), action, self.readings)
        except NotPossible:
            return None
        if isinstance(outcome, Rejected):
            return None
        after = self._store(state, outcome.state, at)
        if limit is not None and limit in self._limited:
            after = after.replace(**{limit: getattr(state, limit) - 1})
        return Noted(after, outcome.clauses) if outcome.clauses else after

    @cached_property
    def _limited(self) -> dict[str, int]:
        limits = self.world.limits
        named = {
            "requests_left": limits.requests,
            "deaths_left": limits.deaths,
            "lags_left": limits.lags,
            "failovers_left": limits.failovers,
        }
        return {name: limit for name, limit in named.items() if limit is not None}

    def _is_spent(self, state: Any, limit: str) -> bool:
        return limit in self._limited and getattr(state, limit) == 0

    def _has_to_wait(self, state: Any) -> bool:
        """Whether the world is calm and the controller owes something."""
        places = range(len(self.world.assigned))
        return self.world.calm and not all(self.is_at_rest(state, at) for at in places)

    def submit(self, state: Any, parameter: tuple[int, Target]) -> Any:
        """Let a client ask for a target, unless too many requests are pending."""
        at, (target, legacy) = parameter
        if self._is_spent(state, "requests_left"):
            return None
        if len(getattr(state, self._name("requests", at))) == self.world.queue:
            return None
        return self._step(state, at, system.Submit(target, legacy), "requests_left")

    def join(self, state: Any, parameter: tuple[int, int]) -> Any:
        """Let the leader take a replica in."""
        at, replica = parameter
        return self._step(state, at, Join(replica))

    def leave(self, state: Any, parameter: tuple[int, int]) -> Any:
        """Let the leader take a replica out that lags."""
        at, replica = parameter
        if self._is_spent(state, "lags_left"):
            return None
        if replica not in getattr(state, self._name("isr", at)):
            return None
        return self._step(state, at, Leave(replica), "lags_left")

    def die(self, state: Any, broker: int) -> Any:
        """Take a broker's registration away."""
        if self._is_spent(state, "deaths_left"):
            return None
        return self._step(state, 0, Die(broker), "deaths_left")

    def come_back(self, state: Any, broker: int) -> Any:
        """Register a broker again."""
        return self._step(state, 0, Return(broker))

    def fail_over(self, state: Any, _: None) -> Any:
        """Let another controller take over, for all partitions at once."""
        term = self.world.limits.term
        if self._is_spent(state, "failovers_left") or (term and state.written < term):
            return None
        after = self._step(state, 0, Failover(), "failovers_left")
        if after is None:
            return None
        for at in range(1, len(self.world.assigned)):
            after = self._step(after, at, Failover())
        if self.world.promises:
            after = after.replace(**self._note_drops(state, after))
        return after.replace(written=0) if term else after

    def write(self, state: Any, at: int) -> Any:
        """Let the acting controller make the next write that it owes a partition.

        Where the rules forbid what is owed the model contradicts itself, and the state says so.
        """
        try:
            outcome = system.step(self.view_system(state, at), Controller(), self.readings)
        except NotPossible:
            return None
        if isinstance(outcome, Rejected):
            return state.replace(contradiction=True)
        after = self._store(state, outcome.state, at)
        if self.world.promises:
            after = after.replace(**self._remember(state, after, at))
        if self.world.limits.term:
            after = after.replace(written=min(state.written + 1, self.world.limits.term))
        return Noted(after, outcome.clauses)

    # What the promises look back at ------------------------------------------------------------

    def _remember(self, before: Any, after: Any, at: int) -> dict[str, Any]:
        """Return what is to be remembered after a write of the controller."""
        flight, due, assigned, original, was, lost, again = (
            self._name(name, at)
            for name in ("flight", "drop_due", "assigned", "original", "before", "lost", "again")
        )
        begun, now = getattr(after, flight), tuple(getattr(before, assigned))
        if begun is None and getattr(before, flight) is not None:
            return {original: (), was: (), lost: False, again: False}
        if begun is None and self._is_remembered:
            begun = getattr(after, self._name("taken", at))
        if begun is None:
            return {}
        if not getattr(before, original):
            return {original: now, was: now}
        changed = getattr(after, flight) != getattr(before, flight)
        if changed or (getattr(after, due) and not getattr(before, due)):
            return {was: now, lost: False, again: False}
        return {}

    def _note_drops(self, before: Any, after: Any) -> dict[str, Any]:
        """Return where a failover hides a drop that was due, or asks for one that was not."""
        notes = {}
        for at in range(len(self.world.assigned)):
            due = self._name("drop_due", at)
            was, now = getattr(before, due), getattr(after, due)
            if was != now:
                # Whoever knows of the drop says whether there is anything to drop.
                knowing = self.view_partition(before if was else after, at)
                if find_drop(knowing, self.readings):
                    notes[self._name("lost" if was else "again", at)] = True
        return notes

    def find_promise_broken(self, find: Promise, state: Any) -> str | None:
        """Say why what a reader takes for granted is broken in one of the partitions."""
        for at in range(len(self.world.assigned)):
            memory = Memory(
                getattr(state, self._name("original", at)),
                getattr(state, self._name("before", at)),
                getattr(state, self._name("lost", at)),
                getattr(state, self._name("again", at)),
            )
            around = self.view_surroundings(state)
            moment = Moment(self.view_partition(state, at), around, memory, self.readings)
            reason = find(moment)
            if reason is not None:
                return reason if len(self.world.assigned) == 1 else f"partition {at}: {reason}"
        return None

    def describe(self, name: str, parameter: Any) -> str:
        """Return an action in words; the partition is named where there are several."""
        at, what = parameter if isinstance(parameter, tuple) else (0, parameter)
        if name == "controller":
            at, what = parameter, None
        words = name if what is None else f"{name} {what}"
        if name == "submit":
            words = f"{name} {list(what[0])}" + (" by the legacy route" if what[1] else "")
        alone = len(self.world.assigned) == 1 or name in ("die", "return", "failover")
        return words if alone else f"{words}, partition {at}"

    def explain(self, name: str, state: Any, parameter: Any) -> str:
        """Say why an action is not possible: the clause that forbids it, or what is lacking."""
        at = parameter[0] if isinstance(parameter, tuple) else 0
        action: system.Action
        match name:
            case "submit":
                return "no more requests within this scope, or too many are pending"
            case "join":
                action = Join(parameter[1])
            case "leave":
                action = Leave(parameter[1])
            case "die" | "return":
                action = Die(parameter) if name == "die" else Return(parameter)
            case "failover":
                return "no more failovers within this scope"
            case _:
                at, action = parameter, Controller()
        try:
            outcome = system.step(self.view_system(state, at), action, self.readings)
        except NotPossible:
            return "there is nothing to act upon"
        if isinstance(outcome, Rejected):
            return f"{outcome.clause}: {outcome.reason}"
        return "no more of these within this scope, or it changes nothing"

    # Checks ----------------------------------------------------------------------------------

    def is_at_rest(self, state: Any, at: int) -> bool:
        """Whether the controller owes the partition nothing."""
        around = self.view_surroundings(state)
        return next_write(self.view_partition(state, at), around, self.readings) is None

    def find_contradiction(self, state: Any) -> str | None:
        """Say so when the rules rejected a write that was owed."""
        if not state.contradiction:
            return None
        for at in range(len(self.world.assigned)):
            now = self.view_system(state, at)
            owed = next_write(now.partition, now.around, self.readings)
            if owed is not None:
                outcome = system.step(now, Controller(), self.readings)
                if isinstance(outcome, Rejected):
                    return f"{owed.clause} asks for what {outcome.clause} forbids: {outcome.reason}"
        return "the rules forbade a write that was owed"

    def find_broken(self, invariant: invariants.Invariant[Any], state: Any) -> str | None:
        """Say why an invariant of the model is broken in one of the partitions."""
        for at in range(len(self.world.assigned)):
            reason = invariant.find(self.view_partition(state, at))
            if reason is not None and not (invariant.at_rest and not self.is_at_rest(state, at)):
                return reason if len(self.world.assigned) == 1 else f"partition {at}: {reason}"
        return None

    def is_reached(self, goal: invariants.Goal, state: Any) -> bool:
        """Whether one of the partitions is at a goal of the model."""
        places = range(len(self.world.assigned))
        return any(goal.reached(self.view_partition(state, at)) for at in places)

    def is_settled(self, state: Any) -> bool:
        """Whether no reassignment is in flight but those that wait for a dead broker."""
        for at in range(len(self.world.assigned)):
            flight = getattr(state, self._name("flight", at))
            if flight is not None and all(replica in state.live for replica in flight[0]):
                return False
        return True

    # The model -------------------------------------------------------------------------------

    def make_partition_fields(self) -> dict[str, Domain]:
        """Return the fields of brokers and partitions."""
        world = self.world
        broker = Int(1, world.brokers)
        longest = max(len(target) for target, _ in world.targets) if world.targets else 1
        fields: dict[str, Domain] = {"live": SetOf(tuple(range(1, world.brokers + 1)))}
        for at in range(len(world.assigned)):
            partition: dict[str, Domain] = {
                "flight": Choice((None, *world.targets)),
                "requests": SequenceOf(Choice(world.targets), world.queue),
                "drop_due": Flag(),
                "announce_due": Flag(),
                "completing": Flag(),
                "leader": Choice((None, NO_LEADER, *range(1, world.brokers + 1))),
                "isr": SequenceOf(broker, world.brokers),
                "assigned": SequenceOf(broker, max(world.brokers, longest)),
                "top": Int(0, world.brokers),
            }
            if self._is_remembered:
                taken = {
                    "taken": Choice((None, *world.targets)),
                    "taken_top": Int(0, world.brokers),
                }
                partition |= taken
            if world.promises:
                replicas = SequenceOf(broker, max(world.brokers, longest))
                partition |= {"original": replicas, "before": replicas}
                partition |= {"lost": Flag(), "again": Flag()}
            fields |= {self._name(name, at): domain for name, domain in partition.items()}
        return fields

    def _make_fields(self) -> dict[str, Domain]:
        fields = {**self.make_partition_fields(), "contradiction": Flag()}
        if self.world.limits.term:
            fields["written"] = Int(0, self.world.limits.term)
        return fields | {name: Int(0, limit) for name, limit in self._limited.items()}

    def make_initial_partitions(self) -> dict[str, Any]:
        """Return the values of brokers and partitions at the start."""
        initial: dict[str, Any] = {"live": self._members}
        for at, assigned in enumerate(self.world.assigned):
            online = self.world.online
            values: dict[str, Any] = {
                "assigned": assigned,
                "leader": assigned[0] if online else None,
                "isr": assigned if online else (),
                "flight": None,
                "top": 0,
                "requests": (),
                "drop_due": False,
                "announce_due": False,
                "completing": False,
            }
            if self._is_remembered:
                values |= {"taken": None, "taken_top": 0}
            if self.world.promises:
                values |= {"original": (), "before": (), "lost": False, "again": False}
            initial |= {self._name(name, at): value for name, value in values.items()}
        return initial

    def _make_initial(self) -> dict[str, Any]:
        initial = {**self.make_initial_partitions(), "contradiction": False}
        if self.world.limits.term:
            initial["written"] = 0
        return initial | self._limited

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        places = range(len(self.world.assigned))
        brokers = tuple(range(1, self.world.brokers + 1))
        replicas = tuple((at, broker) for at in places for broker in brokers)
        asked = tuple((at, target) for at in places for target in self.world.targets)
        return Model(
            name=name,
            fields=self._make_fields(),
            initial=(self._make_initial(),),
            actions=tuple(
                Action(
                    verb,
                    step,
                    parameters,
                    verb in FAIR,
                    partial(self.explain, verb),
                    partial(self.describe, verb),
                )
                for verb, step, parameters in (
                    ("submit", self.submit, asked),
                    ("join", self.join, replicas),
                    ("leave", self.leave, replicas),
                    ("die", self.die, brokers),
                    ("return", self.come_back, brokers),
                    ("failover", self.fail_over, (None,)),
                    ("controller", self.write, tuple(places)),
                )
            ),
            invariants=(
                Invariant(SELF_CONSISTENCY, self.find_contradiction),
                *(Invariant(i.clause, partial(self.find_broken, i)) for i in invariants.INVARIANTS),
                *(
                    Invariant(clause, partial(self.find_promise_broken, find))
                    for clause, find in (PROMISES if self.world.promises else {}).items()
                ),
            ),
            goals=tuple(Goal(g.name, partial(self.is_reached, g)) for g in invariants.GOALS),
            settled=self.is_settled,
            faults=tuple(name for name in self._limited if name != "requests_left"),
            symmetries=self._make_symmetries(),
        )

    def _make_symmetries(self) -> tuple[Symmetry, ...]:
        """Declare what may change places: brokers, and partitions where there are several."""
        places = tuple(range(len(self.world.assigned)))
        values: dict[str, Callable[[Rename, Any], Any]] = {"live": rename_whole}
        for at in places:
            whole = [self._name(name, at) for name in ("leader", "isr", "assigned")]
            if self.world.promises:
                whole += [self._name(name, at) for name in ("original", "before")]
            asked = [self._name(name, at) for name in ("flight", "requests")]
            asked += [self._name("taken", at)] if self._is_remembered else []
            values |= dict.fromkeys(whole, rename_whole) | dict.fromkeys(asked, _rename_target)
        brokers = Symmetry(
            "broker",
            tuple(range(1, self.world.brokers + 1)),
            values,
            parameters={
                "submit": lambda rename, asked: (asked[0], _rename_target(rename, asked[1])),
                **dict.fromkeys(("join", "leave"), lambda rename, who: (who[0], rename(who[1]))),
                **dict.fromkeys(("die", "return"), rename_whole),
            },
        )
        if len(places) == 1:
            return (brokers,)
        owned = [name for name in self._make_fields() if name.endswith("_0")]
        partitions = Symmetry(
            "partition",
            places,
            families=tuple(tuple(f"{n[:-1]}{at}" for at in places) for n in owned),
            parameters={
                **dict.fromkeys(
                    ("submit", "join", "leave"), lambda rename, p: (rename(p[0]), p[1])
                ),
                "controller": rename_whole,
            },
        )
        return brokers, partitions


def _rename_target(rename: Rename, target: Target | None) -> Target | None:
    return None if target is None else (tuple(map(rename, target[0])), target[1])


def get_system(reference: Reference, state: Any, at: int = 0) -> system.System:
    """Return a plain state as a complete record of the model, epochs and numbers counted from 0."""
    view: Any = reference.view_partition(state, at)
    stored = view.state
    flight, taken = (
        None if found is None else Reassignment(found.target, found.top, found.legacy)
        for found in (view.reassignment, view.taken)
    )
    partition = Partition(
        assigned=tuple(view.assigned),
        state=None if stored is None else LeaderAndIsr(stored.leader, 0, 0, tuple(stored.isr)),
        reassignment=flight,
        requests=tuple(view.requests),
        drop_due=view.drop_due,
        announce_due=view.announce_due,
        completing=view.completing,
        taken=taken,
    )
    around = reference.view_surroundings(state)
    return system.System(
        partition, frozenset(state.live), around.known, around.min_insync_replicas, 0
    )


__all__ = ["Limits", "Reference", "Target", "World", "get_system"]
