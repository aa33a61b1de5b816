"""What a model is: fields with finite ranges, initial states, actions, invariants and goals.

A model is ordinary Python. Its state is read by field name and is never changed; an action returns
a new one by `state.replace(field=value)`, or None where it is not possible:

    def join(state: State, replica: int) -> State | None:
        if replica in state.isr or replica not in state.live:
            return None
        return state.replace(isr=state.isr | {replica})

    Action("join", join, parameters=(1, 2, 3))

Where one action may end in several ways it returns a list of states, or yields them; each counts as
a step of its own.

An action may depend on nothing but the state and its parameter. It looks at fields through the
state it is given, as late and as little as it can: the engine that is derived from the model learns
one case for every different combination of what an action read. Take one action for each broker in
place of a loop over brokers, and ask `broker in state.live` in place of copying the set.

Sets answer as frozensets do, sequences as tuples do, maps as dicts do that never change. `copy a
field whole` and `compare by id order` are allowed, and cost more or rule out symmetry.

A run that cannot go on is a violation, `deadlock`, unless the model says that it may end there
(`terminal`).

A model may say that some things are alike (`Symmetry`): states that differ only in which of them is
which are then explored once.
"""

import inspect
import keyword
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, ClassVar, Final, Protocol

from reassure_explorer.engine.domains import Choice, Domain, Flag, Int, Option, OutOfRange
from reassure_explorer.engine.map_domain import FrozenMap, MapOf
from reassure_explorer.engine.sequence_domain import SequenceOf
from reassure_explorer.engine.set_domain import SetOf
from reassure_explorer.engine.temporal import Temporal
from reassure_spec.errors import BadUsage

__all__ = [
    "DEADLOCK",
    "Action",
    "Choice",
    "Domain",
    "Flag",
    "FrozenMap",
    "Goal",
    "Int",
    "Invariant",
    "MapOf",
    "Model",
    "ModelError",
    "Noted",
    "Option",
    "RangeError",
    "Rename",
    "SequenceOf",
    "SetOf",
    "State",
    "Symmetry",
    "rename_whole",
]


class ModelError(BadUsage):
    """A model that cannot be explored, with the reason."""


class RangeError(ModelError):
    """An initial state or an action gave a field a value outside its declared range."""


DEADLOCK: Final = "deadlock"
"""What is broken where nothing can happen in a state that is not terminal."""
DEADLOCKED: Final = (
    "nothing can happen any more, and `terminal` of the model does not say that this end is meant"
)


def end_anywhere(_: Any) -> bool:
    """Take every end for one that is meant: `terminal` where deadlock is not asked about."""
    return True


def locate(function: Any) -> str:
    """Return where a function is written, as file and line; "" for one that is not in Python."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _check_takes(what: str, function: Any, *given: str) -> None:
    """Raise ModelError for what is no function, or one that cannot be called with what is given."""
    if not callable(function):
        raise ModelError(f"{what}: {function!r:.60} is no function; give one")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Not written in Python: nothing is known of its parameters.
    try:
        signature.bind(*given)
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        words = ", ".join(given)
        advice = f"lambda {words}: ..." if name == "<lambda>" else f"def {name}({words})"
        place = locate(function)
        raise ModelError(
            f"{what}: {name}{signature}{place and f' at {place}'} is called with ({words}); write "
            f"`{advice}`"
        ) from None


class State(Protocol):
    """A state as actions, invariants and goals see it: a value for every field, by name."""

    def __getattr__(self, name: str) -> Any:
        """Return the value of a field."""

    def replace(self, **changes: Any) -> "State":
        """Return this state with some fields changed."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A new state, and words about the step that are counted for coverage (clause ids).

    Without a state, as for None, the action cannot happen.
    """

    state: State
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can happen, once for each parameter."""

    name: str
    step: Callable[[Any, Any], Any]
    """From state and parameter to the next state, a Noted one, or None where it cannot happen; to a
    list of these, or an iterator, where it may end in several ways."""
    parameters: tuple[Any, ...] = (None,)
    fair: bool = False
    """Whether it is bound to happen where it stays possible for ever (weak fairness)."""
    words: Callable[[Any], str] | None = None
    """The action with this parameter, in words; otherwise its name and the parameter."""
    strong: bool = False
    """Whether it is bound to happen where it is possible again and again (strong fairness)."""

    def __post_init__(self) -> None:
        # A generator would be empty for whoever comes second.
        object.__setattr__(self, "parameters", tuple(self.parameters))
        _check_takes(f"action {self.name}", self.step, "state", "parameter")
        if self.words is not None:
            _check_takes(f"`words` of action {self.name}", self.words, "parameter")

    def describe(self, parameter: Any) -> str:
        """Return the action with its parameter, as traces print it."""
        if self.words is not None:
            return self.words(parameter)
        if parameter is None:
            return self.name
        parts = parameter if isinstance(parameter, tuple) else (parameter,)
        return f"{self.name} {'-'.join(map(str, parts))}"


@dataclass(frozen=True, slots=True)
class Invariant:
    """What must be true of every state, named by its clause."""

    name: str
    find: Callable[[Any], str | bool | None]
    """Answers why it is broken, None or "" where it holds; or True where it holds, False where not.
    """

    def __post_init__(self) -> None:
        _check_takes(f"invariant {self.name}", self.find, "state")

    def explain(self, state: Any) -> str | None:
        """Return why it is broken, None where it holds.

        Raises ModelError where `find` answers neither a text nor a truth.
        """
        answer = self.find(state)
        if answer is None or answer is True:
            return None
        if answer is False:
            return "it is not true"
        if isinstance(answer, str):
            return answer or None
        raise ModelError(
            f"invariant {self.name} answered {answer!r:.60}; it must answer True or False, or a "
            f"text that says why it is broken and None where it holds ({locate(self.find)})"
        )


@dataclass(frozen=True, slots=True)
class Goal:
    """A kind of state that must be reachable, or the invariants hold of too little."""

    name: str
    reached: Callable[[Any], bool]

    def __post_init__(self) -> None:
        _check_takes(f"goal {self.name}", self.reached, "state")


Rename = Callable[[Any], Any]
"""From a member of a symmetry to the one that takes its place; anything else stays what it is."""


def rename_whole(rename: Rename, value: Any) -> Any:
    """Rename a value that is a member itself, or none at all."""
    return rename(value)


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Things of one kind that may change places: brokers, partitions.

    What is said here is checked while exploring (`symmetry.NotSymmetric`), never trusted.
    """

    name: str
    """The kind of thing, in the singular."""
    members: tuple[Hashable, ...]
    values: Mapping[str, Callable[[Rename, Any], Any]] = field(default_factory=dict)
    """For each field that holds members how to rename a value: of a set one member of it, of a
    sequence one entry, of a map each key and each value, otherwise the value. Fields not named
    here hold no members."""
    families: tuple[tuple[str, ...], ...] = ()
    """Fields that change places with the members: one for each member, in the members' order."""
    parameters: Mapping[str, Callable[[Rename, Any], Any]] = field(default_factory=dict)
    """For each action whose parameter holds members how to rename it."""


@dataclass(frozen=True)
class Model:
    """A finite transition system.

    Raises ModelError where it makes no sense: no initial state, names that occur twice, a field
    name that is no Python name. Raises RangeError for an initial value out of range.
    """

    name: str
    fields: Mapping[str, Domain]
    initial: tuple[Mapping[str, Any], ...]
    actions: tuple[Action, ...]
    invariants: tuple[Invariant, ...] = ()
    goals: tuple[Goal, ...] = ()
    terminal: Callable[[Any], bool] | None = None
    """Whether it is meant that nothing can happen any more in a state; None where it never is. What
    cannot go on and is not terminal is a deadlock, which is a violation."""
    temporal: tuple[Temporal, ...] = ()
    """What every fair run must come to; looked at only where liveness is asked for."""
    faults: tuple[str, ...] = ()
    """Fields that count down how many faults of a kind may still happen."""
    symmetries: tuple[Symmetry, ...] = ()
    """What may change places; looked at only where symmetry is asked for."""
    constraint: Callable[[Any], bool] | None = None
    """Where the exploration goes on from: a state for which this is false is looked at by the
    invariants, but it is not counted as reached, and what follows from it is left out."""
    is_bounded: ClassVar[bool] = True
    """Whether every engine can take it; the plain one takes any."""

    def __post_init__(self) -> None:
        names_of_many = ("initial", "actions", "invariants", "goals", "temporal", "faults")
        for name in (*names_of_many, "symmetries"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        bad = [f for f in self.fields if not f.isidentifier() or keyword.iskeyword(f)]
        bad += [f for f in self.fields if f.startswith("_") or f == "replace"]
        if bad:
            raise ModelError(
                f"model {self.name}: {bad[0]!r} cannot name a field; take a plain word"
            )
        asked = {name: getattr(self, name) for name in ("terminal", "constraint")}
        for each in self.temporal:
            asked |= {f"{each.name}, wanted": each.wanted, f"{each.name}, when": each.when}
        for name, function in asked.items():
            if function is not None:
                _check_takes(f"model {self.name}: {name}", function, "state")
        if any(check.name == DEADLOCK for check in self.checks):
            raise ModelError(
                f"model {self.name}: {DEADLOCK!r} is looked for in every model; say with "
                "`terminal` which ends are meant, or give the check another name"
            )
        for names in (
            [a.name for a in self.actions],
            [c.name for c in (*self.checks, *self.temporal)],
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ModelError(f"model {self.name}: {twice[0]!r} is the name of two things")
        for symmetry in self.symmetries:
            self._check_symmetry(symmetry)
        if not self.initial_states:
            raise ModelError(f"model {self.name} has no initial state; give at least one")
        if not any(map(self.is_within, self.initial_states)):
            raise ModelError(
                f"model {self.name}: no initial state is within the constraint, so that nothing "
                "would be explored; widen the constraint"
            )

    def _check_symmetry(self, symmetry: Symmetry) -> None:
        named = {*symmetry.values, *(name for family in symmetry.families for name in family)}
        strangers = sorted(named - set(self.fields))
        strangers += sorted(set(symmetry.parameters) - {action.name for action in self.actions})
        if strangers:
            raise ModelError(
                f"model {self.name}: the symmetry of {symmetry.name}s names {strangers[0]!r}, "
                "which is neither a field nor an action"
            )
        for family in symmetry.families:
            domains = [self.fields[name] for name in family]
            if len(family) != len(symmetry.members) or any(d != domains[0] for d in domains):
                raise ModelError(
                    f"model {self.name}: {', '.join(family)} cannot change places with the "
                    f"{symmetry.name}s; give one field for each, all with the same range"
                )

    def is_within(self, state: Any) -> bool:
        """Whether the exploration goes on from a state."""
        return self.constraint is None or bool(self.constraint(state))

    def is_terminal(self, state: Any) -> bool:
        """Whether it is meant that nothing can happen any more in a state."""
        return self.terminal is not None and bool(self.terminal(state))

    @property
    def checks(self) -> tuple[Invariant | Goal, ...]:
        """The invariants, then the goals."""
        return (*self.invariants, *self.goals)

    @cached_property
    def state_type(self) -> Any:
        """The type of plain states: a named tuple with `replace`."""
        return _make_state_type(tuple(self.fields))

    @cached_property
    def initial_states(self) -> tuple[Any, ...]:
        """The initial states as plain states in plain form, without repetitions."""
        made: list[Any] = []
        for values in self.initial:
            if set(values) != set(self.fields):
                odd = sorted(set(values) ^ set(self.fields))
                raise ModelError(f"model {self.name}: initial states lack or invent fields: {odd}")
            made.append(self.normalise(self.state_type(**values), lambda: "an initial state"))
        return tuple(dict.fromkeys(made))

    @property
    def instances(self) -> tuple[tuple[Action, Any], ...]:
        """Every action with each of its parameters, in order."""
        return tuple((action, p) for action in self.actions for p in action.parameters)

    def list_instances(self, _: Any) -> Sequence[tuple[Action, Any]]:
        """Return the actions, each with a parameter, that are to be looked at in a state."""
        return self.instances

    def normalise(self, state: Any, whence: Callable[[], str], before: Any = None) -> Any:
        """Return a plain state with every value in plain form.

        `before` is a state in that form: values taken over from it need no second look. `whence`
        says in words where the state comes from. Raises RangeError, naming field, value and state,
        where a value is out of range.
        """
        values = []
        for at, (name, domain) in enumerate(self.fields.items()):
            value = state[at]
            if before is None or value is not before[at]:
                try:
                    value = domain.normalise(value)
                except OutOfRange as problem:
                    raise make_range_error(self.name, name, problem, whence(), state) from None
            values.append(value)
        return self.state_type._make(values)

    def list_answers(self, answer: Any, action: Action) -> list["Answer"]:
        """Return the states that an action answered, each with its notes; none for None.

        Raises ModelError for a strange answer.
        """
        if answer is None:
            return []
        if isinstance(answer, self.state_type):
            return [(answer, ())]
        if isinstance(answer, Noted):
            noted = self.list_answers(answer.state, action)
            return [(state, (*notes, *answer.notes)) for state, notes in noted]
        if isinstance(answer, list | tuple | Iterator):
            return [found for one in answer for found in self.list_answers(one, action)]
        raise ModelError(
            f"model {self.name}: action {action.name} answered {answer!r}; it must answer None, a "
            "state made with `replace` from the state it was given, or a list of such states"
        )

    def ask(self, state: Any, action: Action, parameter: Any) -> list["Answer"]:
        """Return what an action answers, its values as they are, and its notes.

        Nothing where it cannot happen. Raises ModelError for a strange answer.
        """
        return self.list_answers(action.step(state, parameter), action)

    def take(self, state: Any, action: Action, parameter: Any) -> list["Answer"]:
        """Return the plain states that an action may lead to, with its notes.

        Nothing where it cannot happen. Raises RangeError, and ModelError for a strange answer.
        """
        whence = partial(action.describe, parameter)
        return [
            (self.normalise(after, whence, state), notes)
            for after, notes in self.ask(state, action, parameter)
        ]


Answer = tuple[Any, tuple[str, ...]]
"""A state that an action leads to, and what is noted of the step."""


@cache
def _make_state_type(names: tuple[str, ...]) -> Any:
    """Return one type for all models with these fields: they take each other's states."""
    base: Any = namedtuple("State", names)  # type: ignore[misc]
    return type("State", (base,), {"__slots__": (), "replace": base._replace})


def make_range_error(
    model: str, name: str, problem: OutOfRange, whence: str, state: Any
) -> RangeError:
    """Return the error that names field, value, action and state."""
    return RangeError(
        f"model {model}: field {name}: {problem}; in {whence}: {state}. "
        "Widen the field's range, or forbid the action there"
    )
