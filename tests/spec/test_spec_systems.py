"""The systems: everything belongs to one, and what they name is there."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

import pytest

from reassure_conformance.scenarios.scenario import Scenario, find_scenarios, read_scenario
from reassure_explorer.lifecycle import find_lives
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import FINDINGS
from reassure_spec.readings import PROFILES, READINGS
from reassure_spec.systems import SYSTEMS, System

SCENARIOS = tuple(map(read_scenario, find_scenarios()))
EACH = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.id)


def find_homeless(systems: Sequence[System], scenarios: Sequence[Scenario]) -> list[str]:
    """Return the clauses, findings, readings and scenarios that belong to none of the systems."""
    ids = [name for name in load_clauses() if not any(s.has_clause(name) for s in systems)]
    ids += [f.id for f in FINDINGS if not any(s.has_finding(f.id) for s in systems)]
    ids += [r.name for r in READINGS if not any(s.has_reading(r.name) for s in systems)]
    return ids + [
        f"{each.area}/{each.name}"
        for each in scenarios
        if not any(s.has_scenario(each.area, each.clauses) for s in systems)
    ]


def test_everything_belongs_to_a_system() -> None:
    """No clause, finding, reading or scenario is left without a page."""
    assert find_homeless(SYSTEMS, SCENARIOS) == []


def test_what_belongs_nowhere_is_noticed() -> None:
    """Without the system of healing what is healing's alone is missed, and so is a stray story."""
    left = [system for system in SYSTEMS if system.id != "kip-46"]
    homeless = find_homeless(left, SCENARIOS)
    assert {"heal.interval", "heal-1", "heal.replaces", "kip-46/spread-evenly"} <= set(homeless)
    stray = replace(SCENARIOS[0], area="nowhere", name="stray", clauses=("nothing.at-all",))
    assert find_homeless(SYSTEMS, [stray]) == ["nowhere/stray"]


@EACH
def test_system_names_what_there_is(system: System) -> None:
    """Each beginning, area, module, machine and profile of a system stands for something."""
    for beginning in system.clauses:
        assert any(name.startswith(beginning) for name in load_clauses()), beginning
    for finding in system.findings:
        one = replace(system, findings=(finding,))
        assert any(one.has_finding(each.id) for each in FINDINGS), finding
    for beginning in system.readings:
        assert any(reading.name.startswith(beginning) for reading in READINGS), beginning
    assert set(system.areas) <= {scenario.area for scenario in SCENARIOS}
    for module in system.modules:
        assert find_spec(f"reassure_model.{module}") is not None, module
    assert {*system.profiles, *system.machines} <= set(PROFILES)
    assert set(system.lives) <= find_lives().keys()


def test_ids_of_systems_are_unique() -> None:
    """Each system has a page of its own."""
    assert len({system.id for system in SYSTEMS}) == len(SYSTEMS)


def test_finding_is_not_taken_for_another() -> None:
    """A whole id stands for itself, a beginning for all that begin so."""
    one = replace(SYSTEMS[0], findings=("drop-1",))
    assert (one.has_finding("drop-1"), one.has_finding("drop-11")) == (True, False)
    area = replace(SYSTEMS[0], findings=("drop-",))
    assert (area.has_finding("drop-11"), area.has_finding("hypothesis-1")) == (True, False)


def find_unanswered(systems: Sequence[System]) -> list[str]:
    """Return what is asked for and told by no scenario, or by one that there is not."""
    there = {f"{each.area}/{each.name}" for each in SCENARIOS}
    return [
        words
        for system in systems
        for words, names in system.asks
        if not names or not set(names) <= there
    ]


def test_what_is_asked_for_is_told() -> None:
    """Each row of the documents says what it asks for, and a scenario tells each of it."""
    assert {system.id for system in SYSTEMS if not system.asks} == {"kafka-zk", "common"}
    assert find_unanswered(SYSTEMS) == []


def test_what_nothing_tells_is_noticed() -> None:
    """A demand without a scenario, or with one that does not exist, is named."""
    asks = (("more", ()), ("less", ("drop/nothing",)), ("top", ("drop/top-of-zero",)))
    assert find_unanswered([replace(SYSTEMS[0], asks=asks)]) == ["more", "less"]
