"""Registers and stories: each clause, finding and reading is told, or it is said why not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

import pytest

from reassure_conformance.answers.clause_matrix import find_shown
from reassure_conformance.scenarios.scenario import (
    Scenario,
    find_scenarios,
    parse_scenario,
    read_scenario,
    run_scenario,
)
from reassure_spec.clauses import Clause, load_clauses
from reassure_spec.findings import FINDINGS, Finding
from reassure_spec.readings import READINGS, Reading, override_readings
from reassure_spec.rooms import find_judged_only
from reassure_spec.words import ScenarioError


@cache
def scenarios() -> dict[str, Scenario]:
    """Every scenario by area and name."""
    told = map(read_scenario, find_scenarios())
    return {f"{scenario.area}/{scenario.name}": scenario for scenario in told}


# Findings ---------------------------------------------------------------------------------------

EACH_FINDING = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.id)


@EACH_FINDING
def test_finding_is_shown(finding: Finding) -> None:
    """A scenario, a theorem or an exploration shows a finding, or it is about words alone."""
    assert bool(find_shown().get(finding.id)) != bool(finding.words_only)


def test_what_shows_a_finding_names_one() -> None:
    """Whatever says that it shows a finding names one of the register."""
    assert set(find_shown()) <= {finding.id for finding in FINDINGS}
    (path,) = (each for each in find_scenarios() if each.stem == "the-target-is-protected")
    text = path.read_text(encoding="utf-8")
    for wrong in ("drop-99", "drop-9"):
        with pytest.raises(ScenarioError, match=f"{wrong}"):
            parse_scenario(f"# findings: {wrong}\n{text}", str(path))


@EACH_FINDING
def test_instance_under_a_reading_says_so(finding: Finding) -> None:
    """A reading that an instance needs is one of its finding, and set where that is shown."""
    needed = dict(re.findall(r"([a-z-]+\.[a-z-]+)=([a-z-]+)", finding.instance))
    for name, value in needed.items():
        assert {name, f"{name}={value}"} & {*finding.readings}
    values = {reading.name: reading.values for reading in READINGS}
    assert all(value in values[name] for name, value in needed.items())
    for scenario in scenarios().values():
        if finding.id in scenario.findings:
            assert scenario.readings.as_dict().items() >= needed.items()


# Clauses ----------------------------------------------------------------------------------------


def find_untold(clauses: Iterable[Clause], told: Iterable[Scenario]) -> list[str]:
    """Return the clauses that no scenario is about though none is excused, and the other way."""
    named = {clause_id for scenario in told for clause_id in scenario.clauses}
    return [clause.id for clause in clauses if (clause.id in named) == bool(clause.untold)]


def test_clauses_are_told() -> None:
    """Each clause is told by a scenario, or says why it cannot be; none does both."""
    assert find_untold(load_clauses().values(), scenarios().values()) == []


def test_clause_that_is_not_told_is_noticed() -> None:
    """Without the scenarios of a clause it is missed, and an excuse that is none is as well."""
    clauses = load_clauses()
    without = [s for s in scenarios().values() if "drop.leader-kept" not in s.clauses]
    assert "drop.leader-kept" in find_untold(clauses.values(), without)
    excused = replace(clauses["drop.leader-kept"], untold="too hard")
    assert find_untold([excused], scenarios().values()) == ["drop.leader-kept"]


# Readings ---------------------------------------------------------------------------------------


def differs(scenario: Scenario, reading: str, value: str) -> bool:
    """Whether the story ends otherwise, or cannot be told, with another value of a reading."""
    changed = override_readings(scenario.readings, {reading: value})
    try:
        return run_scenario(replace(scenario, readings=changed)) != run_scenario(scenario)
    except ScenarioError:
        return True


def find_turning(reading: Reading, value: str, told: Sequence[Scenario]) -> str | None:
    """Return a scenario whose head names the value and whose story turns on it."""
    others = [other for other in reading.values if other != value]
    for scenario in told:
        if scenario.overrides.get(reading.name) == value and any(
            differs(scenario, reading.name, other) for other in others
        ):
            return scenario.name
    return None


EACH_VALUE = [
    (reading, value)
    for reading in READINGS
    if reading.name not in find_judged_only()
    for value in reading.values
]


@pytest.mark.parametrize(
    ("reading", "value"), EACH_VALUE, ids=lambda each: getattr(each, "name", each)
)
def test_value_of_reading_is_told(reading: Reading, value: str) -> None:
    """A story names the value in its head and would be another under another value."""
    assert find_turning(reading, value, tuple(scenarios().values())) is not None


def test_value_that_changes_nothing_is_noticed() -> None:
    """A head that names a reading on which its story does not turn does not count."""
    scenario = scenarios()["drop/top-of-zero"]
    idle = replace(scenario, overrides={"heal.redundancy": "isr-full"})
    reading = next(each for each in READINGS if each.name == "heal.redundancy")
    assert find_turning(reading, "isr-full", [idle]) is None
    turns = scenarios()["kip-46/cancelled-only-when-in-sync"]
    assert find_turning(reading, "isr-full", [idle, turns]) == "cancelled-only-when-in-sync"
