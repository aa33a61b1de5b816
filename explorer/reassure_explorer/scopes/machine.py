"""A protocol's machine within bounds, as an explorer model: made from what the machine declares.

The machine's own `step` runs on views (`engine.views`): an object that answers to the field names
of the machine's record and looks each up in the explorer's state when a rule first asks. Records in
a field are stored as fields of their own, and what is held is not stored at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property, partial
from types import FunctionType
from typing import Any, Final

from reassure_explorer.engine import interface
from reassure_explorer.engine.interface import Choice, Flag, Int, Invariant, Model, SequenceOf
from reassure_explorer.engine.search import find_shortest
from reassure_explorer.engine.views import View, get_changes
from reassure_explorer.scopes.copies import Steps
from reassure_model import machine as declared
from reassure_model.environment import NotPossible
from reassure_model.machine import Machine, Sets, Within
from reassure_model.outcome import Accepted
from reassure_spec.readings import Readings

_NONE: Final = (None,)


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


@dataclass(frozen=True)
class _Record:
    """How a record is stored: each part as a field."""

    make: Callable[..., Any]
    parts: tuple[str, ...]
    """Names of the explorer's fields; where there is no record the first is None."""
    absent: Mapping[str, Any]
    """Their values where there is none."""


@dataclass(frozen=True)
class _MachineSteps(Steps):
    """Takes a machine's steps. What is traced sees this and nothing else of the machine."""

    take_step: Callable[[Any, Any, Readings], Any]
    readings: Readings
    counted: Mapping[type, str]  # type: ignore[misc]
    within: Mapping[type, Callable[[Any, Any], bool]]
    forget: Callable[[Any], Any] | None
    held: Mapping[str, Any]
    records: Mapping[str, _Record]
    view_type: type[View]

    def view(self, state: Any) -> Any:
        """Return the explorer's state as the machine sees it."""
        return self.view_type(partial(self._look_up, state))

    def _look_up(self, state: Any, name: str) -> Any:
        if name in self.held:
            return self.held[name]
        if name in self.records:
            record = self.records[name]
            values = [getattr(state, part) for part in record.parts]
            return None if values[0] is None else record.make(*values)
        return getattr(state, name)

    def store(self, state: Any, after: Any) -> Any:
        """Return the explorer's state after a step of the machine on a view."""
        changes: dict[str, Any] = {}
        after = after if self.forget is None else self.forget(after)
        for name, value in (get_changes(after) or {}).items():
            changes |= self.spread(name, value)
        return state.replace(**changes)

    def spread(self, name: str, value: Any) -> Mapping[str, Any]:
        """Return the explorer's fields for a value of a field of the machine."""
        if name in self.held:
            return {}
        if name not in self.records:
            return {name: value}
        record = self.records[name]
        if value is None:
            return record.absent
        return {part: getattr(value, part.removeprefix(f"{name}_")) for part in record.parts}

    def step(self, view: Any, action: Any) -> Any:
        """Take a step of the machine, within the bounds. Raises NotPossible beyond them."""
        outcome = self.take_step(view, action, self.readings)
        check = self.within.get(action.__class__)
        if check is None or not isinstance(outcome, Accepted) or check(view, outcome.state):
            return outcome
        raise NotPossible("beyond this scope")


def _make_alone(kind: Callable[[], Any], _: Any) -> Any:
    return kind()


def _find(find: Any, is_at_rest: Any, readings: Readings, view: Any) -> str | None:
    """Answer why a property is broken; one that is for rest only has `is_at_rest`."""
    if is_at_rest is not None and not is_at_rest(view, readings):
        return None
    found: str | None = find(view, readings)
    return found


def _is_reached(goal: Any, readings: Readings, view: Any) -> bool:
    return bool(goal(view, readings))


@dataclass(frozen=True)
class MachineScope:
    """A machine within bounds, under a choice of readings."""

    machine: Machine[Any]
    bounds: Bounds
    readings: Readings

    @cached_property
    def _acts(self) -> tuple[declared.Act, ...]:
        """The acts that can happen within the bounds."""
        sets = self.bounds.sets
        return tuple(
            act
            for act in self.machine.acts
            if act.name not in self.bounds.without and (not act.over or sets.get(act.over))
        )

    @cached_property
    def _steps(self) -> _MachineSteps:
        machine, times, within = self.machine, self.bounds.times, self.bounds.within
        domains = machine.fields.items()
        return _MachineSteps(
            machine.step,
            self.readings,
            {
                kind: f"{act.counted}_left"
                for kind, act in machine.kinds.items()
                if act.counted in times and act in self._acts
            },
            {k: within[act.name] for k, act in machine.kinds.items() if act.name in within},
            machine.forget,
            {name: held.value for name, held in domains if isinstance(held, declared.Held)},
            {
                name: _plan_record(name, record)
                for name, record in domains
                if isinstance(record, declared.RecordOf)
            },
            _make_view_type(machine.state),
        )

    @property
    def limits(self) -> Mapping[str, int]:
        """How often what is counted may happen, by the field that counts it."""
        counters = dict.fromkeys(self._steps.counted.values())
        return {name: self.bounds.times[name.removesuffix("_left")] for name in counters}

    def view(self, state: Any) -> Any:
        """Return the explorer's state as the machine sees it."""
        return self._steps.view(state)

    def _make_fields(self) -> dict[str, interface.Domain]:
        made: dict[str, interface.Domain] = {}
        for name, domain in self.machine.fields.items():
            match domain:
                case declared.Held():
                    continue
                case declared.RecordOf(_, parts):
                    for number, (part, each) in enumerate(parts.items()):
                        made[f"{name}_{part}"] = self._bound(each, () if number else _NONE)
                case _:
                    made[name] = self._bound(domain)
        return made | {name: Int(0, limit) for name, limit in self.limits.items()}

    def _bound(self, domain: declared.Domain, absent: tuple[Any, ...] = ()) -> interface.Domain:
        """Return a domain within the bounds; `absent` is what stands for no record."""
        sets = self.bounds.sets
        match domain:
            case declared.OneOf(values, of):
                return Choice((*absent, *values, *(sets[of] if of else ())))
            case declared.Int(low, high) if not absent:
                return Int(low, high)
            case declared.Flag() if not absent:
                return Flag()
            case declared.SetOf(of) if not absent:
                return interface.SetOf(sets[of])
            case declared.ListOf(of, longest) if not absent:
                most = longest if isinstance(longest, int) else len(sets[longest])
                return SequenceOf(_choose(sets[of]), most)
        raise TypeError(f"{self.machine.name}: {domain} cannot be the first part of a record")

    def make_model(self, name: str) -> Model:
        """Return the explorer model."""
        machine, bounds, steps = self.machine, self.bounds, self._steps
        initial: dict[str, Any] = {}
        for each in machine.fields:
            initial |= steps.spread(each, getattr(bounds.start, each))
        return Model(
            name=name,
            fields=self._make_fields(),
            initial=({**initial, **self.limits},),
            actions=tuple(map(self._make_act, self._acts)),
            invariants=tuple(
                Invariant(each.clause, steps.ask(self._ask_for(each)))
                for each in machine.properties
                if bounds.properties is None or each.clause in bounds.properties
            ),
            goals=tuple(
                interface.Goal(
                    goal.name, steps.ask(partial(_is_reached, goal.reached, self.readings))
                )
                for goal in machine.goals
            ),
            settled=None if machine.is_settled is None else steps.ask(machine.is_settled),
            faults=tuple(
                dict.fromkeys(
                    steps.counted[kind]
                    for kind, act in machine.kinds.items()
                    if act.fault and kind in steps.counted
                )
            ),
        )

    def _make_act(self, act: declared.Act) -> interface.Action:
        parameters = self.bounds.sets[act.over] if act.over else _NONE
        make = act.kind if act.over else partial(_make_alone, act.kind)
        steps = self._steps
        why = partial(steps.explain, make)
        return interface.Action(act.name, partial(steps.take, make), parameters, act.fair, why)

    def _ask_for(self, wanted: declared.Property[Any]) -> Callable[[Any], str | None]:
        is_at_rest = self.machine.is_at_rest if wanted.at_rest else None
        return partial(_find, wanted.find, is_at_rest, self.readings)


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


def _make_view_type(state: type) -> type[View]:
    """Return a view that has the methods and properties of a record."""
    taken: dict[str, Any] = {"__slots__": ()}
    for kind in reversed(state.__mro__[:-1]):
        taken |= {
            name: value
            for name, value in vars(kind).items()
            if isinstance(value, property | FunctionType) and not name.startswith("_")
        }
    return type("MachineView", (View,), taken)


def _plan_record(name: str, record: declared.RecordOf) -> _Record:
    """Return how a record is stored. Raises TypeError where its absence leaves a part no value."""
    defaults = {each.name: each.default for each in fields(record.make)}  # type: ignore[arg-type]
    first, *others = record.fields
    absent: dict[str, Any] = {f"{name}_{first}": None}
    for part in others:
        if defaults.get(part, MISSING) is MISSING:
            raise TypeError(f"{record.make}: give {part!r} a default, which is stored for none")
        absent[f"{name}_{part}"] = defaults[part]
    return _Record(record.make, tuple(f"{name}_{part}" for part in record.fields), absent)


def _choose(members: tuple[Any, ...]) -> interface.Domain:
    """Return a domain of these members, as a range where they are one."""
    numbers = all(isinstance(member, int) for member in members)
    if numbers and list(members) == list(range(members[0], members[-1] + 1)):
        return Int(members[0], members[-1])
    return Choice(members)
