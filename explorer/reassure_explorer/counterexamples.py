"""Promises that a model breaks which is so small that it is gone through in no time.

A document makes the promise, and the shortest trace to where it is broken is the smallest instance
of a finding. Which there are stands in `protocols/NAME/counterexamples.toml`, and their models in
the module beside it. Traces are told in the commands of the scenarios, one for each action, so that
what is found is a scenario as it stands.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from reassure_explorer.engine.search import Sketch, Successors, remember
from reassure_model.machine import Machine, Sets, Times, Within
from reassure_model.outcome import Accepted
from reassure_spec.protocols import import_parts, read_parts
from reassure_spec.readings import Readings


@dataclass(frozen=True)
class SmallWorld(Sketch):
    """A sketch that a scenario can tell."""

    opening: tuple[str, ...] = ()
    """Commands that lead to the start; the first makes the world."""
    closing: tuple[str, ...] = ("show",)
    """Commands that show how it ended."""


Make = Callable[[Readings, str], SmallWorld]
"""Returns a world under these readings; what must never be goes by the given name."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A promise, the small world in which it is broken, and the finding that this shows."""

    name: str
    clause: str
    """The clause that the promise is about, or that cures what breaks it."""
    promise: str
    finding: str
    steps: int
    """Length of the shortest trace that breaks it."""
    profile: str
    make: Make
    readings: Mapping[str, str] = field(default_factory=dict)
    """Readings that are not those of the profile."""

    def make_source(self, readings: Readings) -> SmallWorld:
        """Return the world in which the promise is broken, named by its clause."""
        return self.make(readings, self.clause)


Meetings = Mapping[str, Callable[[Readings], Sketch]]
"""By name what returns a small world in which protocols meet, and much must never be."""


@cache
def list_counterexamples() -> tuple[Counterexample, ...]:
    """Return the counterexamples of every protocol, whose own profile is the usual one."""
    modules = import_parts("reassure_explorer", "counterexamples")
    return tuple(
        Counterexample(
            name=name, make=modules[protocol].WORLDS[name], **{"profile": protocol} | said
        )
        for protocol, tables in read_parts("reassure_explorer", "counterexamples.toml")
        for name, said in tables.items()
        if "promise" in said
    )


Find = Callable[[Any, Readings], str | None]
"""Says why a state is one that must never be, or None."""
Beside = Callable[[Any, Readings], tuple[Callable[..., Any], Any]]
"""From the start to what updates a memory beside it (`remember`), and that memory at first."""


def make_world(
    machine: Machine[Any],
    readings: Readings,
    problems: Mapping[str, Find],
    done: tuple[Any, ...],
    first: Any,
    *,
    sets: Sets | None = None,
    times: Times | None = None,
    without: tuple[str, ...] = (),
    within: Within[Any] | None = None,
    others: Callable[[Any], Iterable[Any]] = lambda _: (),
    beside: Beside | None = None,
    closing: tuple[str, ...] = (),
) -> SmallWorld:
    """Return the small world of a machine that begins in the state `first` once some is `done`.

    `times` says how often what is counted may happen from there on, what it does not name never;
    `without` names acts that are left out, `within` says which steps of others are taken, `others`
    what clients may do besides; without `closing` it is the machine's.
    """
    start = first
    for action in done:
        outcome = machine.step(start, action, readings)
        assert isinstance(outcome, Accepted)  # a world begins with what is allowed
        start = machine.normalise(outcome.state)

    def follow(state: Any) -> Iterator[tuple[Any, Any]]:
        yield from machine.iterate_successors(state, readings, sets or {}, without, within)
        for action in others(state):
            outcome = machine.step(state, action, readings)
            if isinstance(outcome, Accepted):
                yield action, machine.normalise(outcome.state)

    successors: Successors[Any, Any] = follow
    if beside is not None:
        update, memory = beside(start, readings)
        start, successors = (start, memory), remember(follow, update)
    return SmallWorld(
        start,
        successors,
        {name: lambda s, find=find: find(s, readings) for name, find in problems.items()},  # type: ignore[misc]
        machine.list_limits(times or {}),
        machine.say,
        (*machine.vocabulary.say_opening(first), *map(machine.say, done)),
        closing or machine.vocabulary.closing,
    )
