"""The shipped stories on the bundled controller, and together on every clause."""

from collections.abc import Callable

import pytest

from reassure_conformance.adapter import Adapter
from reassure_conformance.bundled import Bundled
from reassure_conformance.harness import Harness
from reassure_conformance.run import PROOF_ONLY
from reassure_conformance.steps import format_step
from reassure_conformance.story import Story, shipped_stories
from reassure_spec.clauses import clauses_of_profile

STORIES = list(shipped_stories())
PROFILES = ("kip-236", "kip-236-amended")


@pytest.fixture(scope="module", params=PROFILES)
def teller(request: pytest.FixtureRequest, make_harness: Callable[[Adapter], Harness]) -> Harness:
    """A harness for one profile, kept over the stories."""
    return make_harness(Bundled(profile=request.param))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_shipped_story_holds(teller: Harness, story: Story) -> None:
    """The bundled controller violates nothing in a shipped story and comes to rest every time."""
    profile = teller.description.profile
    if not story.is_for(profile):
        assert story.profiles
        return
    example = teller.tell(story)
    assert example.violations == []
    assert example.unsettled == 0
    refused = [format_step(done.step) for done in example.done if done.result == "skipped"]
    assert refused == []


def test_stories_put_every_required_clause_to_the_test(teller: Harness) -> None:
    """Together the stories exercise each MUST clause of the profile that a log can show."""
    required = {
        clause.id
        for clause in clauses_of_profile(teller.description.profile)
        if clause.level == "MUST" and clause.id not in PROOF_ONLY
    }
    for story in STORIES:
        if all(teller.judge.exercised[name] for name in required):
            break  # the tests above have told them
        if story.is_for(teller.description.profile):
            teller.tell(story)
    assert {name for name in required if not teller.judge.exercised[name]} == set()
