"""A protocol's machine within bounds, as an explorer model: made from what the machine declares.

The machine's own `step` runs on views of the explorer's states (`storage`). Where a machine is
about one partition several can be looked at: what it says is shared is stored once, and what
happens to what is shared happens to all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

from reassure_explorer.engine.interface import (
    Action,
    Flag,
    Goal,
    Int,
    Invariant,
    Model,
    Noted,
    Rename,
    Symmetry,
)
from reassure_explorer.engine.search import find_shortest
from reassure_explorer.engine.temporal import always_eventually
from reassure_explorer.scopes.storage import Storage, Storing
from reassure_model.environment import Controller, Failover, NotPossible
from reassure_model.fields import RecordOf
from reassure_model.machine import Act, Machine, Sets, Within
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings

CONTRADICTION: Final = "contradiction"
"""The field that says that the rules have refused what the controller owed."""
WRITTEN: Final = "written"
"""The field that counts the effects of a controller, as far as its term is long."""


@dataclass(frozen=True)
class Bounds:
    """How much of a machine is looked at."""

    start: Any
    """The state in which it begins."""
    sets: Sets
    """What the machine's named sets stand for."""
    times: Mapping[str, int] = field(default_factory=dict)
    """How often what is counted may happen, by the machine's word; without one, without end."""
    without: tuple[str, ...] = ()
    """Acts that are left out."""
    within: Within[Any] = field(default_factory=dict)
    """Which steps of some acts are taken."""
    properties: tuple[str, ...] | None = None
    """The clauses that are invariants; None stands for all that the machine has."""
    others: tuple[Any, ...] = ()
    """The states in which further partitions begin."""
    watched: bool = False
    """Whether the properties that look back are invariants as well."""
    calm: bool = False
    """Whether everything else waits until the controller owes nothing.

    Any controller that keeps the rules can follow such traces, whatever the order of its effects.
    """
    term: int = 0
    """Effects that every controller carries out at least before another takes over.

    Where failovers are without limit and each new controller first does something again, none
    would ever come to its second effect.
    """


Step = Callable[[Any, Any, Readings], Any]


@dataclass(frozen=True)
class _Steps:
    """Takes a machine's steps. What is traced sees this and nothing else of the machine."""

    take_step: Step
    readings: Readings
    places: tuple[Storage, ...]
    """Where each partition is stored."""
    memories: tuple[Storage, ...]
    """Where what is kept in mind of each is stored, if it is."""
    follow: Callable[..., Any] | None
    next_effect: Callable[[Any, Readings], Any] | None
    """Given where the world is calm."""
    flags: bool
    """Whether a state says that what was owed was refused."""
    term: int

    def is_quiet(self, state: Any) -> bool:
        """Whether the controller owes nothing, or nobody waits for it."""
        find = self.next_effect
        if find is None:
            return True
        return all(find(place.get(state), self.readings) is None for place in self.places)


@dataclass(frozen=True)
class _Taking:
    """Takes the steps of one act."""

    steps: _Steps
    make: Callable[[Any], Any]
    within: Callable[[Any, Any], bool] | None
    """Which steps are taken, of the states before and after; None where all are."""
    forget: Callable[[Any], Any] | None
    """Takes out of the state after a step what only counts, if it can be there."""
    counter: str
    """The field that counts down how often it may happen, "" where it is without end."""
    everywhere: bool
    """Whether it happens to all partitions; otherwise, of several, the parameter says to which."""
    controls: bool
    takes_over: bool

    def take(self, state: Any, parameter: Any) -> Any:
        """Take the action; None where it cannot be, is rejected, or is used up."""
        steps = self.steps
        if self._has_to_wait(state):
            return None
        action, at = self._make(parameter)
        changes: dict[str, Any] = {}
        clauses: tuple[str, ...] = ()
        try:
            for number in at:
                before = steps.places[number].get(state)
                outcome = steps.take_step(before, action, steps.readings)
                if isinstance(outcome, Rejected):
                    refused = self.controls and steps.flags
                    return state.replace(**{CONTRADICTION: True}) if refused else None
                if self.within is not None and not self.within(before, outcome.state):
                    return None
                after = outcome.state if self.forget is None else self.forget(outcome.state)
                changes |= steps.places[number].put(after)
                clauses += outcome.clauses
                if steps.follow is not None:
                    memory = steps.memories[number].get(state)
                    after = steps.follow(before, memory, action, outcome.state, steps.readings)
                    changes |= steps.memories[number].put(after)
        except NotPossible:
            return None
        after = state.replace(**changes, **self._count(state))
        return Noted(after, clauses) if clauses else after

    def _make(self, parameter: Any) -> tuple[Any, tuple[int, ...]]:
        """Return the action and the numbers of the partitions to which it happens."""
        many = len(self.steps.places)
        if many > 1 and not self.everywhere:
            return self.make(parameter[1]), (parameter[0],)
        return self.make(parameter), tuple(range(many))

    def _count(self, state: Any) -> dict[str, Any]:
        counted = {self.counter: getattr(state, self.counter) - 1} if self.counter else {}
        if self.steps.term and self.takes_over:
            counted[WRITTEN] = 0
        if self.steps.term and self.controls:
            counted[WRITTEN] = min(getattr(state, WRITTEN) + 1, self.steps.term)
        return counted

    def _has_to_wait(self, state: Any) -> bool:
        """Whether it cannot happen yet, or any more, within this scope, whatever the rules say."""
        if self.counter and getattr(state, self.counter) == 0:
            return True
        if self.takes_over and self.steps.term and getattr(state, WRITTEN) < self.steps.term:
            return True
        return not self.controls and not self.steps.is_quiet(state)


@dataclass(frozen=True)
class _Asking:
    """Asks something of every partition."""

    places: tuple[Storage, ...]
    memories: tuple[Storage, ...]
    readings: Readings
    find: Callable[..., Any]
    is_at_rest: Callable[[Any, Readings], bool] | None = None
    """Given where it is asked at rest only."""
    flag: str = ""
    """The field that has to be true, "" where it is asked of every state."""

    def find_broken(self, state: Any) -> str | None:
        """Answer why a property is broken, None where it holds of every partition."""
        if self.flag and not getattr(state, self.flag):
            return None
        for at, place in enumerate(self.places):
            view = place.get(state)
            memory = (self.memories[at].get(state),) if self.memories else ()
            reason: str | None = self.find(view, *memory, self.readings)
            # Whether anything is owed is the longer question.
            if reason is None or (self.is_at_rest and not self.is_at_rest(view, self.readings)):
                continue
            return reason if len(self.places) == 1 else f"partition {at}: {reason}"
        return None

    def is_any(self, state: Any) -> bool:
        """Whether it is true of one partition."""
        return any(bool(self.find(place.get(state), self.readings)) for place in self.places)

    def is_all(self, state: Any) -> bool:
        """Whether it is true of every partition."""
        return all(bool(self.find(place.get(state), self.readings)) for place in self.places)


@dataclass(frozen=True)
class MachineScope:
    """A machine within bounds, under a choice of readings."""

    machine: Machine[Any]
    bounds: Bounds
    readings: Readings

    @property
    def starts(self) -> tuple[Any, ...]:
        """The states in which the partitions begin."""
        return self.bounds.start, *self.bounds.others

    @cached_property
    def _acts(self) -> tuple[Act, ...]:
        """The acts that can happen within the bounds."""
        sets = self.bounds.sets
        return tuple(
            act
            for act in self.machine.acts
            if act.name not in self.bounds.without and (not act.over or sets.get(act.over))
        )

    @property
    def is_one_of_several(self) -> bool:
        """Whether several partitions are looked at."""
        return len(self.starts) > 1

    @cached_property
    def _storing(self) -> tuple[Storing, tuple[Storage, ...], tuple[Storage, ...]]:
        """The explorer's fields, where partitions are stored, and what is kept in mind of each."""
        machine = self.machine
        storing = Storing(self.bounds.sets, self.readings, alike=machine.alike)
        places, memories = [], []
        for at, start in enumerate(self.starts):
            mark = f"_{at}" if self.is_one_of_several else ""
            places.append(
                storing.make_record("", machine.record, start, mark, plain=machine.shared)
            )
            if self.bounds.watched and machine.watch is not None:
                watch = machine.watch
                record = RecordOf(type(watch.begin), watch.fields, always=True)
                memories.append(storing.make_record("watch", record, watch.begin, mark))
        return storing, tuple(places), tuple(memories)

    @cached_property
    def _steps(self) -> _Steps:
        machine, bounds = self.machine, self.bounds
        _, places, memories = self._storing
        return _Steps(
            machine.step,
            self.readings,
            places,
            memories,
            machine.watch.follow if memories and machine.watch is not None else None,
            machine.next_effect if bounds.calm else None,
            any(each.when_refused for each in machine.properties),
            bounds.term,
        )

    @property
    def limits(self) -> Mapping[str, int]:
        """How often what is counted may happen, by the field that counts it."""
        counted = {act.counted for act in self._acts}
        return {f"{word}_left": most for word, most in self.bounds.times.items() if word in counted}

    def view(self, state: Any, at: int = 0) -> Any:
        """Return a partition in the explorer's state as the machine sees it."""
        return self._steps.places[at].get(state)

    def is_quiet(self, state: Any) -> bool:
        """Whether the controller owes nothing."""
        return replace(self._steps, next_effect=self.machine.next_effect).is_quiet(state)

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        machine, steps = self.machine, self._steps
        storing, places, memories = self._storing
        fields = dict(storing.fields)
        initial: dict[str, Any] = {}
        for place, start in zip(places, self.starts, strict=True):
            initial |= place.put(start)
        for place in memories:
            initial |= place.put(machine.watch.begin if machine.watch is not None else None)
        if steps.flags:
            fields[CONTRADICTION], initial[CONTRADICTION] = Flag(), False
        if steps.term:
            fields[WRITTEN], initial[WRITTEN] = Int(0, steps.term), 0
        fields |= {each: Int(0, limit) for each, limit in self.limits.items()}
        settled = machine.is_settled
        harmful = {act.counted for act in self._acts if act.fault}
        ask = partial(_Asking, places, (), self.readings)
        return Model(
            name=name,
            fields=fields,
            initial=({**initial, **self.limits},),
            actions=tuple(map(self._make_act, self._acts)),
            invariants=tuple(self._make_invariants()),
            goals=tuple(Goal(goal.name, ask(goal.reached).is_any) for goal in machine.goals),
            terminal=ask(machine.is_at_rest).is_all,
            temporal=()
            if settled is None
            else (always_eventually("settled", ask(lambda view, _: settled(view)).is_all),),
            faults=tuple(name for name in self.limits if name.removesuffix("_left") in harmful),
            symmetries=self._make_symmetries(storing),
        )

    def _make_invariants(self) -> Iterator[Invariant]:
        machine, bounds, readings = self.machine, self.bounds, self.readings
        _, places, memories = self._storing
        for each in machine.properties:
            wanted = bounds.properties is None or each.clause in bounds.properties
            if wanted and each.promised(readings):
                at_rest = machine.is_at_rest if each.at_rest else None
                flag = CONTRADICTION if each.when_refused else ""
                asking = _Asking(places, (), readings, each.find, at_rest, flag)
                yield Invariant(each.clause, asking.find_broken)
        if memories and machine.watch is not None:
            for clause, find in machine.watch.properties.items():
                asking = _Asking(places, memories, readings, find)
                yield Invariant(clause, asking.find_broken)

    def _make_act(self, act: Act) -> Action:
        parameters = self.bounds.sets[act.over] if act.over else (None,)
        marked = self.is_one_of_several and not act.shared
        if marked:
            places = range(len(self.starts))
            parameters = tuple((at, parameter) for at in places for parameter in parameters)
        taking = _Taking(
            self._steps,
            act.make,
            self.bounds.within.get(act.name),
            self.machine.forget if act.name in (self.machine.counting or (act.name,)) else None,
            f"{act.counted}_left" if act.counted in self.bounds.times else "",
            act.shared,
            act.kind is Controller,
            act.kind is Failover,
        )
        action = Action(act.name, taking.take, parameters, act.fair, act.brief)
        if not marked:
            return action
        words = action.describe
        return replace(action, words=lambda pair: f"{words(pair[1])}, partition {pair[0]}")

    def _make_symmetries(self, storing: Storing) -> tuple[Symmetry, ...]:
        """Declare what may change places: brokers, and partitions where there are several."""
        alike = self.machine.alike
        if not alike:
            return ()
        several = self.is_one_of_several
        renamed = {
            act.name: partial(_rename_second, alike[act.over])
            if several and not act.shared
            else alike[act.over]
            for act in self._acts
            if act.over in alike
        }
        brokers = Symmetry(
            "broker",
            self.bounds.sets["brokers"],
            storing.renames,
            tuple(storing.families),
            renamed,
        )
        if not several:
            return (brokers,)
        numbers = tuple(range(len(self.starts)))
        owned = [each.removesuffix("_0") for each in storing.fields if each.endswith("_0")]
        return brokers, Symmetry(
            "partition",
            numbers,
            families=tuple(tuple(f"{each}_{at}" for at in numbers) for each in owned),
            parameters=dict.fromkeys(
                (act.name for act in self._acts if not act.shared),
                lambda rename, pair: (rename(pair[0]), pair[1]),
            ),
        )


def _rename_second(renamed: Callable[[Rename, Any], Any], rename: Rename, pair: Any) -> Any:
    return pair[0], renamed(rename, pair[1])


def search(
    machine: Machine[Any],
    start: Any,
    readings: Readings,
    found: Callable[[Any], bool],
    times: Mapping[str, int],
    sets: Sets,
) -> tuple[Any, ...] | None:
    """Return a shortest trace to a state that is `found`, None where there is none.

    `times` says how often what is counted may happen, what it does not name never. Raises
    SearchLimit like `find_shortest`.
    """
    without = machine.vocabulary.overlooked
    return find_shortest(
        start,
        lambda state: machine.iterate_successors(state, readings, sets, without),
        found,
        machine.list_limits(times),
    )
