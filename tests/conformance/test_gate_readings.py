"""Readings that the bundled controller carries out: each value of them in a short generated run."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.aims import Aim
from reassure_conformance.gate.generation import GenerationBudget, generate
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import parse_story, shipped_stories
from reassure_conformance.scenarios.scenario import find_scenarios, read_scenario
from reassure_explorer.scopes.sweep import INSTANCES
from reassure_spec.findings import FINDINGS as FINDINGS_OF_DOCUMENTS
from reassure_spec.findings import findings_that_break, get_finding
from reassure_spec.readings import (
    READINGS,
    Reading,
    field_name,
    get_profile,
    override_readings,
)
from reassure_spec.rooms import controller_of, gate_of, get_room

PROFILES = ("kip-236-amended", "kip-236-legacy", "kip-46", "kafka-42")
"""Those that the gate drives a controller under; the amended one stands for `kip-236` as well."""


def _is_carried_out(profile: str, reading: Reading, value: str) -> bool:
    rooms = (get_room(controller_of(profile)), get_room(gate_of(profile)))
    if value == getattr(get_profile(profile), field_name(reading.name)):
        return False
    return all(room.find_refusal(reading.name, value) is None for room in rooms)


def _list_cells() -> Iterator[Any]:
    """Yield profile, reading and value, each value under the first profile that has it."""
    seen: set[tuple[str, str]] = set()
    for profile in PROFILES:
        for reading in READINGS:
            for value in reading.values:
                own = (profile if profile == "kafka-42" else "", f"{reading.name}={value}")
                if own not in seen and _is_carried_out(profile, reading, value):
                    seen.add(own)
                    yield pytest.param(
                        profile, reading.name, value, id=f"{profile}-{reading.name}={value}"
                    )


SEED = 17
FINDINGS = {("drop.slice", "exclusive"): "drop-1", ("offline.drop", "as-written"): "drop-11"}
"""Values under which a run may come to what is wrong with the document itself."""


@pytest.mark.parametrize(("reading", "value"), FINDINGS)
def test_register_says_what_a_value_breaks(reading: str, value: str) -> None:
    """So a run under it says that the finding is known, whichever of its clauses is broken."""
    finding = get_finding(FINDINGS[reading, value])
    for clause in finding.clauses:
        assert finding in findings_that_break(clause, {reading: value}, [reading])


def test_finding_is_shown_under_the_values_that_it_names() -> None:
    """By a scenario or an exploration, where there is one."""
    shown: dict[str, list[Mapping[str, str]]] = {}
    for scenario in map(read_scenario, find_scenarios()):
        for name in scenario.findings:
            shown.setdefault(name, []).append(scenario.readings.as_dict())
    for each in INSTANCES:
        readings = override_readings(get_profile(each.profile), each.readings)
        shown.setdefault(each.finding, []).append(readings.as_dict())
    named = {f.id: [v for v in f.readings if "=" in v] for f in FINDINGS_OF_DOCUMENTS}
    for name, values in named.items():
        wanted = dict(each.split("=") for each in values).items()
        assert name not in shown or any(wanted <= each.items() for each in shown[name]), name
    assert sum(map(bool, named.values())) > 30


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("profile", "reading", "value"), list(_list_cells()))
def test_value_holds_in_a_generated_run(
    profile: str, reading: str, value: str, make_harness: Callable[..., Harness]
) -> None:
    """Controller and judge agree on a value; what it breaks is what its finding says, no more."""
    finding = FINDINGS.get((reading, value))
    known = get_finding(finding).clauses if finding else ()
    aims = tuple(Aim(story.steps) for story in shipped_stories() if story.is_for(profile))
    budget = GenerationBudget(examples=6, steps_per_example=14)
    harness = make_harness(Bundled(profile=profile, readings={reading: value}), known=known)
    failure = generate(harness, SEED, budget, get_wanted=frozenset, get_aims=lambda: aims)
    harness.close()
    assert failure is None, failure.violation


MADE, ASKED = "create orders with 1,2", "request orders-0 to 3,4"
TWO = "request orders-0 to 3,4 and orders-1 to 1,4"
RESTARTS = {
    "answer lost at the change": (
        *("create orders with 2", "lose answer after 0"),
        "request orders-0 to 5",
    ),
    "write lost at the change": (MADE, ASKED, "lose write after 0", ASKED),
    "answer lost at the change to the same": (MADE, ASKED, "lose answer after 0", ASKED),
    "connection lost later": (MADE, ASKED, "lose answer after 2", ASKED),
    "several partitions": ("create orders with 1,2 and 2,3", TWO, "lose answer after 5", TWO),
    "withdrawn, and asked again": (
        *(MADE, ASKED, "hold after 1", ASKED),
        *("withdraw request", "resume", ASKED),
    ),
    "changed in its place": (
        *(MADE, ASKED, "hold after 1", ASKED),
        *("rewrite request as orders-0 to 3,4", "resume"),
    ),
}


@pytest.mark.clause("request.same-target.no-change")
@pytest.mark.parametrize("name", RESTARTS)
def test_restart_is_carried_out_once(name: str, make_harness: Callable[..., Harness]) -> None:
    """A plan that is made again after an answer was lost is no second request to restart."""
    readings = {"request.same-target": "restart"}
    harness = make_harness(Bundled(profile="kip-236-amended", readings=readings))
    story = parse_story("\n".join(("world cluster brokers=1,2,3,4,5", *RESTARTS[name])), name)
    example = harness.tell(story)
    harness.close()
    assert [done.result for done in example.done if done.result == "skipped"] == []
    assert example.violations == []
