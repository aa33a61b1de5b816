"""What holds under which reading, found by looking at every case within a small scope.

A row is one guarantee under one choice of readings: it holds within the scope, or the smallest
counterexample is shown. Which choices and which cases are looked at is a file for each protocol,
named for it, whose `judge` yields the rows. Where it takes states, the explorer's plain engine goes
through them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from reassure_conformance.report.document import HOLDS, VIOLATED
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget
from reassure_explorer.engine.search import Sketch
from reassure_model.machine import Machine, Sets, Times, Within
from reassure_spec.protocols import import_parts
from reassure_spec.readings import READINGS, Readings, get_profile, override_readings

COLUMNS: Final = ("guarantee", "under", "within", "verdict", "smallest counterexample")

Find = Callable[[Any, Readings], str | None]
"""Answers why a guarantee is broken in a state, or None."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One row: a clause under a choice of readings."""

    clause: str
    under: str
    within: str
    """The scope."""
    counterexample: str = ""
    """Empty where the guarantee holds within the scope."""

    @property
    def verdict(self) -> str:
        """Whether it holds within the scope."""
        return VIOLATED if self.counterexample else HOLDS

    def as_row(self) -> list[str]:
        """Return the values of `COLUMNS`."""
        return [self.clause, self.under, self.within, self.verdict, self.counterexample]


def find_stories(sketch: Sketch, depth: int) -> dict[str, tuple[str, tuple[object, ...]]]:
    """Return why and by which shortest story each problem is met within so many steps."""
    model = sketch.make_model("guarantees")
    result = explore_plain(model, keep_going=True, budget=Budget(depth=depth))
    return {
        each.invariant: (each.reason, tuple(step.parameter for step in each.trace.steps))
        for each in result.violations
    }


def vary(names: Iterable[str], base: str) -> Iterator[tuple[str, Readings]]:
    """Yield the profile and every other value of each of these readings, with what to call it."""
    start = get_profile(base)
    yield base, start
    for reading in READINGS:
        if reading.name in names:
            for value in reading.values:
                changed = override_readings(start, {reading.name: value})
                if changed != start:
                    yield f"{base}, {reading.name}={value}", changed


def judge_machine(
    machine: Machine[Any],
    choices: Mapping[str, Readings],
    cases: Iterable[tuple[Any, Sets, Times]],
    scope: str,
    depth: int,
    *,
    within: Within[Any] | None = None,
    without: tuple[str, ...] = (),
    checks: Mapping[str, Find] | None = None,
) -> Iterator[Guarantee]:
    """Yield the properties of a machine that scenarios can ask for, under choices of readings.

    A case is a start, what the machine's sets stand for, and how often what is counted may happen.
    `checks` are asked in place of those properties, by clause.
    """
    if checks is None:
        checks = {e.clause: partial(machine.find_broken, e) for e in machine.by_name.values()}
    cases = tuple(cases)
    for under, readings in choices.items():
        found: dict[str, tuple[str, tuple[object, ...]]] = {}
        asked = {clause: _under(find, readings) for clause, find in checks.items()}
        for start, sets, times in cases:
            successors = partial(
                machine.iterate_successors,
                readings=readings,
                sets=sets,
                without=(*machine.vocabulary.overlooked, *without),
                within=within,
            )
            sketch = Sketch(start, successors, asked, machine.list_limits(times))
            for clause_id, story in find_stories(sketch, depth).items():
                if clause_id not in found or len(story[1]) < len(found[clause_id][1]):
                    found[clause_id] = story
        for clause_id in checks:
            yield Guarantee(clause_id, under, scope, _tell(found.get(clause_id)))


def _under(find: Find, readings: Readings) -> Callable[[Any], str | None]:
    return lambda state: find(state, readings)


def _tell(found: tuple[str, tuple[object, ...]] | None) -> str:
    if found is None:
        return ""
    why, story = found
    return f"{len(story)} steps: {'; '.join(map(_format, story))} => {why}"


def _format(action: object) -> str:
    """Return an action in a word or two."""
    values = [getattr(action, name) for name in getattr(action, "__slots__", ())]
    words = [str(list(v) if isinstance(v, tuple) else v) for v in values if v is not False]
    return " ".join([type(action).__name__.lower(), *words])


@cache
def compute_guarantees() -> tuple[Guarantee, ...]:
    """Return every guarantee under every choice of readings; takes a few seconds."""
    modules = import_parts("reassure_conformance", "guarantees").values()
    return tuple(row for module in modules for row in module.judge())
