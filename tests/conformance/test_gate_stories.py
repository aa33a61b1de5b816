"""The shipped stories on the bundled controller, and together on every clause."""

from collections.abc import Callable

import pytest

from reassure_conformance.adapter import Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.requirements import list_unseen
from reassure_conformance.gate.story import Story, parse_story, shipped_stories
from reassure_mutation.score import Scorer
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
    refused = [str(done.step) for done in example.done if done.result == "skipped"]
    assert refused == []


LIVES = {
    "birth": "create orders with 1,2,3",
    "deaths": "create orders with 1,2; broker 1 dies; broker 1 returns; broker 2 dies",
    "move": "create orders with 1,2; request orders-0 to 2,3; 3 joins orders-0",
    "cancel": "create orders with 1,2; request orders-0 to 3,4; 3 joins orders-0; cancel orders-0",
}


@pytest.mark.parametrize("kind", ["answer", "write"])
@pytest.mark.parametrize("name", LIVES)
def test_answer_may_be_lost_anywhere(harness: Harness, name: str, kind: str) -> None:
    """Whichever write goes without an answer, all is done in the end and everybody is told."""
    lines = LIVES[name].split("; ")
    for at in range(len(lines)):
        for writes in range(3):
            told = [*lines[:at], f"lose {kind} after {writes}", *lines[at:]]
            story = parse_story("\n".join(["world cluster", *told]), name)
            example = harness.tell(story)
            assert (example.violations, example.unsettled) == ([], 0), told


def test_stories_kill_nearly_every_mutant_of_the_rules(teller: Harness) -> None:
    """Of the mutants of the rules that can be killed the stories alone leave one in a hundred."""
    scorer = Scorer(teller.description.profile, teller.readings)
    most = len(scorer.killable) // 100
    for story in (None, *STORIES):  # the tests above may have told some
        if story is not None and story.is_for(teller.description.profile):
            teller.tell(story)
        scorer.update(teller.recorder.take_situations())
    assert len(scorer.list_survivors()) <= most


def test_stories_put_every_required_clause_to_the_test(teller: Harness) -> None:
    """Together the stories exercise each MUST clause of the profile that a log can show."""
    required = {
        clause.id
        for clause in clauses_of_profile(teller.description.profile)
        if clause.level == "MUST" and clause.id not in list_unseen()
    }
    for story in STORIES:
        if all(teller.judge.exercised[name] for name in required):
            break  # the tests above have told them
        if story.is_for(teller.description.profile):
            teller.tell(story)
    assert {name for name in required if not teller.judge.exercised[name]} == set()
