"""The first reassignment (KAFKA-42) under the gate: its stories, its clauses, its faults."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.requirements import find_not_claimed
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import load_mutants
from reassure_spec.clauses import clauses_of_profile

PROFILE: Final = "kafka-42"
UNCLAIMED: Final = find_not_claimed(PROFILE)
STORIES: Final = tuple(story for story in shipped_stories() if PROFILE in story.profiles)
REPAIRED: Final = load_mutants()["dead-target-taken"].readings
CHOICES: Final[Mapping[str, Mapping[str, str]]] = {"as written": {}, "repaired": REPAIRED}

MakeHarness = Callable[..., Harness]


@pytest.mark.parametrize("name", CHOICES)
def test_stories_of_the_first_text_hold(name: str, make_harness: MakeHarness) -> None:
    """Its stories are told to their ends; repaired, all advice is followed as well."""
    harness = make_harness(
        Bundled(profile=PROFILE, readings=CHOICES[name]), strict=name == "repaired"
    )
    for story in STORIES:
        example = harness.tell(story)
        assert (story.name, example.violations, example.unsettled) == (story.name, [], 0)
        assert [done.why for done in example.done if done.result == "skipped"] == []


def test_stories_put_the_moves_clauses_to_the_test(make_harness: MakeHarness) -> None:
    """Each MUST clause on moves that is claimed is exercised by the stories of the first text."""
    harness = make_harness(Bundled(profile=PROFILE))
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
