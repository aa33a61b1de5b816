"""The first reassignment (KAFKA-42) under the gate: its stories, its clauses, its faults."""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Final

import pytest

from reassure_conformance.adapter import Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.needs import find_not_claimed
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import load_mutants
from reassure_spec.clauses import clauses_of_profile

PROFILE: Final = "kafka-42"
UNCLAIMED: Final = find_not_claimed(PROFILE)
STORIES: Final = tuple(story for story in shipped_stories() if PROFILE in story.profiles)
MUTANTS: Final = tuple(one for one in load_mutants().values() if one.profile == PROFILE)
REPAIRED: Final = load_mutants()["dead-target-taken"].readings
CHOICES: Final[Mapping[str, Mapping[str, str]]] = {"as written": {}, "repaired": REPAIRED}

MakeHarness = Callable[..., Harness]


def _bundle(readings: Mapping[str, str], *faults: str) -> Adapter:
    return Bundled(profile=PROFILE, readings=readings, faults=faults)


@pytest.mark.parametrize("name", CHOICES)
def test_stories_of_the_first_text_hold(name: str, make_harness: MakeHarness) -> None:
    """Its stories are told to their ends; repaired, all advice is followed as well."""
    harness = make_harness(_bundle(CHOICES[name]), strict=name == "repaired")
    for story in STORIES:
        example = harness.tell(story)
        assert (story.name, example.violations, example.unsettled) == (story.name, [], 0)
        assert [done.why for done in example.done if done.result == "skipped"] == []


def test_stories_put_the_moves_clauses_to_the_test(make_harness: MakeHarness) -> None:
    """Each MUST clause on moves that is claimed is exercised by the stories of the first text."""
    harness = make_harness(_bundle({}))
    for story in STORIES:
        harness.tell(story)
    required = {
        each.id
        for each in clauses_of_profile(PROFILE)
        if each.level == "MUST" and each.id.startswith("move.") and each.id not in UNCLAIMED
    }
    assert {name for name in required if not harness.judge.exercised[name]} == set()


def test_what_is_not_claimed_is_of_the_profile() -> None:
    """Every clause that nobody claims is one that the profile would ask for, and says why not."""
    assert UNCLAIMED.keys() <= {each.id for each in clauses_of_profile(PROFILE)}
    assert all(UNCLAIMED.values())


@pytest.mark.slow
def test_every_fault_is_caught_by_its_clause_in_a_short_story(make_harness: MakeHarness) -> None:
    """Each planted fault breaks the clause that is made for it, in a story of few steps."""
    assert len(MUTANTS) >= 6
    lengths = []
    for mutant in MUTANTS:
        harness = make_harness(_bundle(mutant.readings, mutant.name), strict=True)
        found = [
            (len(example.done), example.violations[0].clause)
            for story in STORIES
            if (example := harness.tell(story)).violations
        ]
        named = [length for length, clause in found if clause in mutant.clauses]
        assert named, f"{mutant.name}: {found}"
        lengths.append(min(named))
    assert median(lengths) <= 5
