"""Situations: what must come up before a clause counts as put to the test.

Most mistakes show only where two things meet: a write and a change under it, a failover and a plan
half carried out. A clause that was held a thousand times where right and wrong look alike has not
been put to the test. So each situation says in one sentence what has to come up, how it is
recognised in the history of an example, which clauses need it, and how generation gets there. Those
of a protocol stand in its folder, `protocols/NAME/coverage_goals.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from reassure_conformance.gate.events import CoverageGoal, History
from reassure_conformance.gate.run_outcome import Goal
from reassure_spec.profiles import has_protocol
from reassure_spec.protocols import import_parts


def _collect() -> Iterator[CoverageGoal]:
    for protocol, part in import_parts("reassure_conformance", "coverage_goals").items():
        for situation in part.SITUATIONS:
            yield replace(situation, protocol=protocol)


SITUATIONS: Final = tuple(_collect())
"""Every situation, each with a counter in the report of a run."""


def count_situations(
    history: History, situations: Iterable[CoverageGoal] = SITUATIONS
) -> dict[str, int]:
    """Return how often each of the situations came up in an example's history."""
    return {situation.name: situation.count(history) for situation in situations}


def possible_with(capabilities: frozenset[str], profile: str) -> tuple[CoverageGoal, ...]:
    """Return the situations that can come up under a profile, given these capabilities."""
    return tuple(
        one
        for one in SITUATIONS
        if one.needs <= capabilities and has_protocol(profile, one.protocol)
    )


def find_unreached(
    possible: Iterable[Goal], reached: Mapping[str, int]
) -> Mapping[str, tuple[str, ...]]:
    """Return, by clause, the situations that it needs and that never came up."""
    found: dict[str, tuple[str, ...]] = {}
    for situation in possible:
        if not reached.get(situation.name):
            for clause in situation.clauses:
                found[clause] = (*found.get(clause, ()), situation.name)
    return found
