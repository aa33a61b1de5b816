"""One protocol as one value: what every other room is given, so that none knows a protocol by name.

A `Machine` says of a protocol what its states are, what may happen and what follows, what must
never be and what must be reachable; how it is spoken of is in `reassure_model.narration`. The
explorer's scopes bound it, scenarios tell it, proofs and tables of findings ask for its properties.
Each protocol is a folder of this package that exports one, `MACHINE`, in its module `machine`
(`find_machines`). Nothing here looks at a state.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, Generic, Protocol, TypeVar

from reassure_model.environment import (
    Controller,
    Die,
    Failover,
    Join,
    Leave,
    On,
    Return,
)
from reassure_model.fields import Domain, RecordOf, normalise
from reassure_model.invariants import Invariant
from reassure_model.narration import Vocabulary
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment
from reassure_spec.protocols import import_parts
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, parse_number, parse_replicas, spell_replicas

S = TypeVar("S")
M = TypeVar("M")
State = TypeVar("State")
Written = TypeVar("Written")
Written_co = TypeVar("Written_co", covariant=True)
Sets = Mapping[str, tuple[Any, ...]]
"""What the names of sets stand for (`brokers`, `targets`): who looks at a machine says."""
Within = Mapping[str, Callable[[S, S], bool]]
"""By act which of its steps are looked at, from the states before and after; of others all are."""
Times = Mapping[str, int | None]
"""How often what is counted may happen, by the machine's word; without end where it is None."""

ONLY: Final = "p"
"""Name of a partition where a scenario names none."""


# Actions ----------------------------------------------------------------------------------------


def _make_alone(kind: Callable[[], Any], _: Any = None) -> Any:
    return kind()


def _make_of_parts(kind: Callable[..., Any], parameter: tuple[Any, ...]) -> Any:
    return kind(*parameter)


def _make_on(make: Callable[[Any], Any], parameter: tuple[Any, Any]) -> On:
    return On(parameter[0], make(parameter[1]))


def read_replicas(name: str, text: str) -> tuple[Any, ...]:
    """Return the one list of brokers that an argument spells."""
    return (parse_replicas(name, text),)


def read_number(name: str, text: str) -> tuple[Any, ...]:
    """Return the one number that an argument spells."""
    return (parse_number(name, text),)


@dataclass(frozen=True, slots=True)
class Act:
    """A kind of action."""

    name: str
    """One word, as the stories of the explorer have it."""
    kind: Callable[..., Any]
    """Makes the action, of its parameter where it has one."""
    over: str = ""
    """The set that the parameter is taken from, "" where there is none."""
    argument: str = ""
    """What a scenario calls the parameter."""
    read: Callable[[str, str], tuple[Any, ...]] = read_number
    """From an argument's name and text to the parameters, an action for each."""
    spell: Callable[[Any], str] = str
    """The parameter as a scenario spells it."""
    command: str = ""
    """What a scenario calls it where that is not its name."""
    words: str | Callable[[Any], str] = ""
    """What it says to a person, `{}` for the parameter; "" where its name says it."""
    saying: Callable[[Any], str] | None = None
    """From the parameter to the command of a scenario, where it is not spelled as usual."""
    shared: bool = False
    """Whether it happens to all partitions that are looked at."""
    counted: str = ""
    """What scopes and searches that limit it call many of it; "" where it is never limited."""
    fault: bool = False
    """Whether it does harm that nobody asked for."""
    fair: bool = False
    """Whether it is bound to happen where it stays possible: what heals."""
    in_parts: bool = False
    """Whether a parameter is a tuple of all that the action has."""
    of_several: bool = False
    """Whether it happens to one of several partitions that a state holds: `On` it, and its
    parameters are pairs, of the partition and what is asked of it."""
    brief: Callable[[Any], str] | None = None
    """What it is called in traces, of its parameter; otherwise its name and the parameter."""

    @property
    def make(self) -> Callable[..., Any]:
        """Makes the action, of its parameter where it has one."""
        made: Callable[..., Any] = self.kind
        if not self.over:
            made = partial(_make_alone, self.kind)
        elif self.in_parts:
            made = partial(_make_of_parts, self.kind)
        return partial(_make_on, made) if self.of_several else made

    @property
    def verb(self) -> str:
        """What a scenario calls it."""
        return self.command or self.name

    def get_parameter(self, action: Any) -> Any:
        """Return the parameter of an action of this kind, None where it has none."""
        if self.of_several:
            return action.key, self._get_parameter(action.action)
        return self._get_parameter(action)

    def _get_parameter(self, action: Any) -> Any:
        names = getattr(action, "__slots__", ()) if self.over else ()
        if self.in_parts:
            return tuple(getattr(action, name) for name in names)
        return getattr(action, names[0]) if names else None

    def say(self, parameter: Any = None) -> str:
        """Return the command of a scenario that it is."""
        if self.saying is not None:
            return self.saying(parameter)
        return f"{self.verb} {self.argument}={self.spell(parameter)}" if self.over else self.verb

    def tell(self, parameter: Any = None) -> str:
        """Return what it says to a person."""
        if callable(self.words):
            return self.words(parameter)
        return self.words.format(parameter) if self.words else self.name


def ask_for(name: str, kind: Callable[..., Any], counted: str, **more: Any) -> Act:
    """Return what a client does that asks for a target."""
    asked = {"over": "targets", "argument": "target", "read": read_replicas}
    return Act(name, kind, **{**asked, "spell": spell_replicas, "counted": counted, **more})


def _on_broker(kind: type, argument: str, words: str, **more: Any) -> Act:
    """Return what happens to a broker, or to the replica on it."""
    name = kind.__name__.lower()
    return Act(name, kind, "brokers", argument, parse_replicas, words=words, **more)


CONTROLLER = Act("controller", Controller, command="step", fair=True)
JOIN = _on_broker(Join, "replica", "{} joins the in-sync set", fair=True)
LEAVE = _on_broker(Leave, "replica", "{} leaves the in-sync set", counted="lags", fault=True)
DIE = _on_broker(Die, "broker", "broker {} dies", counted="deaths", fault=True, shared=True)
RETURN = _on_broker(
    Return, "broker", "broker {} returns", counted="returns", fair=True, shared=True
)
FAILOVER = Act(
    "failover",
    Failover,
    command="fail-over",
    words="the controller fails over",
    counted="failovers",
    fault=True,
    shared=True,
)

# Properties -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Property(Generic[S]):
    """What must be true of every state, or of every state at rest."""

    clause: str
    find: Callable[[S, Readings], str | None]
    """Answers why it is broken, None where it holds."""
    name: str = ""
    """What scenarios call it; those without are not asked for by `problems`."""
    at_rest: bool = False
    """Whether it need hold only when nothing is asked for and the controller owes nothing."""
    promised: Callable[[Readings], bool] = lambda _: True
    """Whether readings promise it; where they do not it may break, which is told all the same."""
    when_refused: bool = False
    """Whether it need hold only where the rules have just refused what the controller owed."""


@dataclass(frozen=True, slots=True)
class Watch(Generic[S, M]):
    """What somebody keeps in mind of what happens, who knows more than a state says."""

    begin: M
    """A record, at the start."""
    fields: Mapping[str, Domain]
    follow: Callable[[S, M, Any, S, Readings], M]
    """From a state, what is kept in mind, an action and the state after it to what is kept then."""
    properties: Mapping[str, Callable[[S, M, Readings], str | None]]
    """By clause: answers why what a reader takes for granted is broken, None where it holds."""


@dataclass(frozen=True, slots=True)
class Goal(Generic[S]):
    """A kind of state that must be reachable, or the properties hold of too little."""

    name: str
    reached: Callable[[S, Readings], bool]


def always(find: Callable[[S], str | None]) -> Callable[[S, Readings], str | None]:
    """Return what is asked whatever the readings."""
    return lambda state, _: find(state)


def reached(find: Callable[[S], bool]) -> Callable[[S, Readings], bool]:
    """Return what is reached whatever the readings."""
    return lambda state, _: find(state)


# What a judge asks --------------------------------------------------------------------------------


class Due(Protocol[Written_co]):
    """A write that is due, and the clause that asks for it."""

    @property
    def write(self) -> Written_co:
        """What is due."""

    @property
    def clause(self) -> str:
        """The clause that asks for it."""


@dataclass(frozen=True, slots=True)
class Judgement(Generic[State, Written]):
    """What a protocol says of the writes to one partition, whoever makes them.

    All functions are pure. A state is what ZooKeeper holds of the partition, with what follows for
    the acting controller's mind from the order of earlier writes.
    """

    begin: State
    """The partition before anything was written."""
    accept: Callable[[State, Written, Environment, Readings], Accepted[State] | Rejected]
    """Whether a write may come next, and the state that it leads to."""
    fail_over: Callable[[State, Readings], State]
    """The state as the next controller finds it, who remembers nothing."""
    owed: Callable[[State, Environment, Readings], Due[Written] | None]
    """What the controller has to write next; None where it may rest."""
    invariants: tuple[Invariant[State], ...] = ()
    mind: tuple[str, ...] = ()
    """The fields of a state that no znode holds: what the acting controller has in mind."""


# Machines ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine(Generic[S]):
    """A protocol."""

    name: str
    """As its profile is called; its module has underscores for dashes."""
    summary: str
    state: type[S]
    """A frozen record."""
    fields: Mapping[str, Domain]
    """The domain of each field, in the order in which they are stored."""
    acts: tuple[Act, ...]
    """Everything that can happen, in the order in which it is looked at."""
    step: Callable[[S, Any, Readings], Accepted[S] | Rejected]
    """Takes an action. Raises NotPossible where there is nothing to act upon."""
    next_effect: Callable[[S, Readings], Any]
    """The effect that the controller owes next, None while it waits."""
    enabled: Callable[[S, Readings, Sets], Iterable[Any]]
    """The actions that are possible, clients' with parameters from the sets only."""
    is_at_rest: Callable[[S, Readings], bool]
    """Whether nothing is asked for and the controller owes nothing."""
    properties: tuple[Property[S], ...]
    goals: tuple[Goal[S], ...]
    vocabulary: Vocabulary[S]
    is_settled: Callable[[S], bool] | None = None
    """What fair runs come to again and again; None where nothing is claimed."""
    settle: "Callable[[Arguments, Readings], Machine[S]] | None" = None
    """From the arguments of `world` to the machine under what an operator may set, if anything."""
    judgement: Judgement[Any, Any] | None = None
    """What it accepts of a write and what it still owes, where the judge can ask it."""
    forget: Callable[[S], S] | None = None
    """From a state to the one that stands for all that differ from it in numbers that only count:
    whatever may follow one may follow the other. None where fields that are held say it all."""
    counting: tuple[str, ...] = ()
    """The acts that move such a number; without any it may be all."""
    shared: tuple[str, ...] = ()
    """Fields that several partitions have in common, where a state is one partition of them."""
    watch: Watch[S, Any] | None = None
    """What has to be kept in mind for properties that look back, if anything."""
    alike: Mapping[str, Callable[[Callable[[Any], Any], Any], Any]] = field(default_factory=dict)
    """For sets whose members hold brokers how to rename a member, where brokers are alike."""

    @cached_property
    def kinds(self) -> Mapping[type, Act]:
        """The acts by the type of their actions."""
        return {act.kind: act for act in self.acts if isinstance(act.kind, type)}

    def find_act(self, action: Any) -> Act:
        """Return the act that an action is."""
        return self.kinds[type(action.action if isinstance(action, On) else action)]

    @cached_property
    def by_name(self) -> Mapping[str, Property[S]]:
        """The properties that scenarios can ask for."""
        return {each.name: each for each in self.properties if each.name}

    def find_broken(self, wanted: Property[S], state: S, readings: Readings) -> str | None:
        """Say why a property is broken in a state, None where it holds or need not."""
        if wanted.at_rest and not self.is_at_rest(state, readings):
            return None
        return wanted.find(state, readings)

    @cached_property
    def record(self) -> RecordOf:
        """The domain of the state."""
        return RecordOf(self.state, self.fields, always=True)

    def normalise(self, state: S) -> S:
        """Return the state with what only counts as it was at the start."""
        if self.forget is not None:
            state = self.forget(state)
        settled: S = normalise(self.record, state)
        return settled

    def iterate_successors(
        self,
        state: S,
        readings: Readings,
        sets: Sets,
        without: tuple[str, ...] = (),
        within: Within[S] | None = None,
    ) -> Iterator[tuple[Any, S]]:
        """Yield every action that is possible and allowed, with the state that it leads to.

        `without` names acts that are left out, and `within` says which steps of others are taken.
        """
        for action in self.enabled(state, readings, sets):
            act = self.find_act(action)
            if act.name in without:
                continue
            outcome = self.step(state, action, readings)
            if isinstance(outcome, Accepted):
                after = self.normalise(outcome.state)
                if within is None or act.name not in within or within[act.name](state, after):
                    yield action, after

    def list_limits(self, times: Times) -> Mapping[type, int]:
        """Return how often each kind of action that is counted may happen.

        `times` says so by the machine's words; what it does not name never happens, and what is
        None has no end.
        """
        kinds = {kind: act.counted for kind, act in self.kinds.items() if act.counted}
        often = {kind: times.get(counted, 0) for kind, counted in kinds.items()}
        return {kind: number for kind, number in often.items() if number is not None}

    def say(self, action: Any) -> str:
        """Return the command of a scenario that an action is."""
        act = self.find_act(action)
        return act.say(act.get_parameter(action))

    def tell(self, action: Any, before: S, after: S, readings: Readings) -> str:
        """Return what an action says to a person; of the controller's, its effect."""
        if isinstance(action, Controller):
            return self.vocabulary.say_effect(self.next_effect(before, readings), before, after)
        act = self.find_act(action)
        return act.tell(act.get_parameter(action))


_FOUND: dict[str, Machine[Any]] = {}


def register(machine: Machine[Any]) -> Machine[Any]:
    """Make a machine known that is no folder of this package."""
    _FOUND[machine.name] = machine
    return machine


def find_machines() -> Mapping[str, Machine[Any]]:
    """Return every protocol by name: those of this room, and what was registered."""
    for name, module in import_parts("reassure_model", "machine").items():
        _FOUND.setdefault(name, module.MACHINE)
    return {name: _FOUND[name] for name in sorted(_FOUND)}
