"""Registers and stories: each clause, finding and reading is told, or it is said why not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

import pytest

from reassure_conformance.scenarios.scenario import (
    Scenario,
    ScenarioError,
    find_scenarios,
    read_scenario,
    run_scenario,
)
from reassure_spec.clauses import Clause, load_clauses
from reassure_spec.findings import FINDINGS, Finding, get_finding
from reassure_spec.readings import READINGS, Reading, override_readings


@cache
def scenarios() -> dict[str, Scenario]:
    """Every scenario by area and name."""
    told = map(read_scenario, find_scenarios())
    return {f"{scenario.area}/{scenario.name}": scenario for scenario in told}


def names(scenario: Scenario, finding_id: str) -> bool:
    """Whether the head of a scenario names a finding."""
    text = " ".join(scenario.why)
    return re.search(rf"(?<![\w-]){re.escape(finding_id)}(?!\d)", text) is not None


# Findings ---------------------------------------------------------------------------------------


def describe_gap(finding: Finding, told: dict[str, Scenario]) -> str:
    """Say what a finding lacks to be shown, "" where it lacks nothing."""
    kind, _, name = finding.shown_by.partition(" ")
    if finding.words_only:
        return "said to be about words and shown all the same" if kind else ""
    if kind == "scenario":
        if name not in told:
            return f"no scenario {name}"
        return "" if names(told[name], finding.id) else f"{name} does not name it"
    if kind != "theorem":
        return "neither shown nor about words alone"
    named = any(names(scenario, finding.id) for scenario in told.values())
    return "" if named else "no scenario names it"


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.id)
def test_finding_is_told(finding: Finding) -> None:
    """A finding has a scenario that names it, or is about words alone and says so."""
    assert describe_gap(finding, scenarios()) == ""


@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        ({"shown_by": ""}, "neither shown nor about words alone"),
        ({"shown_by": "test tests/x.py::test_y"}, "neither shown nor about words alone"),
        ({"shown_by": "scenario drop/nothing"}, "no scenario drop/nothing"),
        ({"shown_by": "scenario drop/top-of-zero"}, "drop/top-of-zero does not name it"),
        ({"shown_by": "theorem x", "id": "drop-99"}, "no scenario names it"),
        ({"words_only": "mere words"}, "said to be about words and shown all the same"),
    ],
)
def test_finding_that_is_not_told_is_noticed(changes: dict[str, str], gap: str) -> None:
    """Each way for a finding to be a mere claim is seen."""
    finding = get_finding("drop-2")
    assert describe_gap(finding, scenarios()) == ""
    broken = replace(finding, **changes)  # type: ignore[arg-type]
    assert describe_gap(broken, scenarios()) == gap


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


EACH_VALUE = [(reading, value) for reading in READINGS for value in reading.values]


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
