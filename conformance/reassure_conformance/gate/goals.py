"""Coverage goals: what must come up in a run beside what is derived.

Which mutants of the rules a run kills, and what met between a decision and its write, is counted
without anybody's thinking of it (`gate.discrimination`, `gate.meetings`). Declared is only what
neither can see: what lies beyond one partition, one controller's term or the rules of a decision.
Those of a protocol stand in its folder, `protocols/NAME/coverage_goals.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from reassure_conformance.gate.aims import Aim
from reassure_conformance.gate.events import CoverageGoal, History
from reassure_conformance.gate.story import shipped_stories
from reassure_spec.profiles import has_protocol
from reassure_spec.protocols import import_parts


def _collect() -> Iterator[CoverageGoal]:
    for protocol, part in import_parts("reassure_conformance", "coverage_goals").items():
        for goal in part.COVERAGE_GOALS:
            yield replace(goal, protocol=protocol)


COVERAGE_GOALS: Final = tuple(_collect())
"""Every coverage goal, each with a counter in the report of a run."""


def count_goals(history: History, goals: Iterable[CoverageGoal] = COVERAGE_GOALS) -> dict[str, int]:
    """Return how often each of the goals was reached in an example's history."""
    return {goal.name: goal.count(history) for goal in goals}


def possible_with(capabilities: frozenset[str], profile: str) -> tuple[CoverageGoal, ...]:
    """Return the goals that can be reached under a profile, given these capabilities."""
    return tuple(
        one
        for one in COVERAGE_GOALS
        if one.needs <= capabilities and has_protocol(profile, one.protocol)
    )


@cache
def _load_cases() -> Mapping[str, Aim]:
    return {story.name: Aim(story.steps) for story in shipped_stories()}


def aim_at(goal: CoverageGoal) -> Aim:
    """Return the test case that reaches a goal."""
    return _load_cases()[goal.case]


def find_unreached(
    possible: Iterable[CoverageGoal], reached: Mapping[str, int]
) -> Mapping[str, tuple[str, ...]]:
    """Return, by clause, the goals that it needs and that were never reached."""
    found: dict[str, tuple[str, ...]] = {}
    for goal in possible:
        if not reached.get(goal.name):
            for clause in goal.clauses:
                found[clause] = (*found.get(clause, ()), goal.name)
    return found
