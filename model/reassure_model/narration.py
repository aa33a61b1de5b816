"""How protocols are told: the vocabulary of scenarios, stories and explorations.

Each protocol has its words in the module `narration` of its folder. They decide nothing, and none
of a protocol's rules needs them: who reads the model beside its document can leave them out. A
`Machine` carries its `Vocabulary` for those who tell.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, ScenarioError, parse_number, parse_replicas
from reassure_spec.znodes import NO_LEADER, PartitionKey

S = TypeVar("S")

Command = Callable[[Mapping[str, S], Arguments], Iterable[tuple[str, Any]]]
"""From the partitions by name and the arguments to actions, each with its partition's name.

A refusal stands for an action that cannot be, and a text for what is said besides."""


@dataclass(frozen=True)
class Vocabulary(Generic[S]):
    """The words of a protocol in scenarios. What an action is called stands in its `Act`."""

    opening: Callable[[Arguments], S]
    """From the arguments of `world` to where it begins. Raises ScenarioError."""
    say_opening: Callable[[S], tuple[str, ...]]
    """The commands that make a world in this state, `world` first."""
    show: Callable[[S], str]
    """A state, in a line or two."""
    say_effect: Callable[[Any, S, S], str]
    """An effect of the controller, with the states before and after it."""
    adds: Mapping[str, Callable[[S, str, str], S]] = field(default_factory=dict)
    """Commands that add partitions, whose names are the names of arguments: from where the world
    began, a name and what stands for it to the partition. Without any there is just one."""
    commands: Mapping[str, Command[S]] = field(default_factory=dict)
    """Commands that are no act with its one argument: what they have happen, by partition."""
    answers: Mapping[str, Callable[[S, S], str]] = field(default_factory=dict)
    """What a command answers, from the states before and after it; others answer nothing."""
    tells_changes: bool = False
    """Whether every act answers the lines that it changed of what is shown, and what is broken.
    That something is not possible is an answer there as well, and no mistake of the scenario."""
    shows: tuple[str, ...] = ()
    """Commands after which the state is shown, `run` among them where it is after that."""
    questions: Mapping[str, Callable[[S, Arguments], str]] = field(default_factory=dict)
    """Commands that ask and change nothing."""
    changes: Mapping[str, Callable[[S, Arguments], S]] = field(default_factory=dict)
    """Commands that set the stage, as nothing in the protocol does."""
    wakes: tuple[str, ...] = ()
    """Commands after which the controller carries out an effect at once."""
    runs: str = "run"
    """The command that lets the controller go on until it waits."""
    closing: tuple[str, ...] = ("problems", "show")
    """Commands that show how a story ended."""
    waits: Callable[[S], str] | None = None
    """Why the controller waits, "" where there is no more to say than that it does."""
    overlooked: tuple[str, ...] = ()
    """Acts that searches leave out, for nothing follows from them."""
    remember: Callable[[S], Any] | None = None
    """What a new controller has in memory that is no part of the state, where anything is."""
    follow: Callable[[Any, Any, Readings], tuple[Any, tuple[str, ...]]] | None = None
    """What becomes of that memory by an effect or a death, and lines about it."""
    recall: Callable[[Any], str] | None = None
    """That memory, for the command `replicas`."""


def parse_key(text: str) -> PartitionKey:
    """Return the partition in `topic-number`. Raises ScenarioError."""
    topic, dash, number = text.rpartition("-")
    if not dash:
        raise ScenarioError(f"{text!r} is no partition; write topic-number")
    return topic, parse_number("partition", number)


def parse_set(arguments: Arguments, name: str, default: str = "none") -> frozenset[int]:
    """Return the brokers that an argument names."""
    return frozenset(parse_replicas(name, arguments.get(name, default)))


def spell_leader(leader: int, nobody: str = "nobody") -> str:
    """Return who leads."""
    return nobody if leader == NO_LEADER else str(leader)


def to_each(read: Callable[[Arguments], Any]) -> Command[Any]:
    """Return a command that has the same happen to each partition, whatever stands there."""

    def take(states: Mapping[str, Any], arguments: Arguments) -> Iterator[tuple[str, Any]]:
        action = read(arguments)
        yield from ((name, action) for name in states)

    return take
