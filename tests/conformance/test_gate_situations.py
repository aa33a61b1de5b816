"""Situations: stories and generation get into each, and a clause needs those that are its own."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from reassure_conformance.adapter import CAPABILITIES, Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate import controllers
from reassure_conformance.gate.generation import Failed, GenerationBudget, generate
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_conformance.gate.situations import (
    SITUATIONS,
    count_situations,
    find_unreached,
    possible_with,
)
from reassure_conformance.gate.story import Story, format_story, parse_story, shipped_stories
from reassure_judge.protocols import find_protocols
from reassure_spec.clauses import load_clauses

MakeHarness = Callable[[Adapter], Harness]
EVERY = frozenset(CAPABILITIES)
DRIVEN = [name for name, rules in find_protocols().items() if name in rules.driven]


def _reached(harness: Harness, story: Story) -> set[str]:
    """Return the situations that a story gets into."""
    example = harness.tell(story)
    assert example.violations == []
    return {name for name, count in count_situations(example.history).items() if count}


def _tell(failure: Failed) -> str:
    """Return what was broken and the story that shows it."""
    broken = failure.violation
    return f"{broken.clause}: {broken.reason}\n{format_story(failure.story)}"


def test_situations_name_real_clauses_and_differ() -> None:
    """Every situation has a name of its own and is for clauses that exist."""
    names = [situation.name for situation in SITUATIONS]
    assert len(set(names)) == len(names)
    assert {c for one in SITUATIONS for c in one.clauses} - set(load_clauses()) == set()
    assert all(one.clauses and one.needs <= EVERY for one in SITUATIONS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("profile", DRIVEN)
def test_stories_get_into_every_situation(profile: str, make_harness: MakeHarness) -> None:
    """The shipped stories alone get into each situation, in each profile."""
    harness = make_harness(Bundled(profile=profile))
    for story in shipped_stories():
        if story.is_for(profile):
            harness.tell(story)
    possible = possible_with(EVERY, profile)
    assert {one.name for one in possible if not harness.reached[one.name]} == set()


def test_plain_move_gets_into_none(harness: Harness) -> None:
    """Where nothing meets anything there is no situation."""
    lines = "world cluster\ncreate orders with 1,2\nrequest orders-0 to 1,3\n3 joins orders-0"
    reached = _reached(harness, parse_story(lines, "plain.txt"))
    assert reached & {one.name for one in possible_with(EVERY, "kip-236")} == set()


def test_every_situation_belongs_to_a_driven_profile() -> None:
    """No situation is left out of every run."""
    assert {one for profile in DRIVEN for one in possible_with(EVERY, profile)} == set(SITUATIONS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy"])
def test_generation_alone_gets_into_every_situation(
    profile: str, make_harness: MakeHarness
) -> None:
    """Generated examples aim at what has not come up yet, and so get everywhere soon."""
    harness = make_harness(Bundled(profile=profile))
    possible = possible_with(EVERY, profile)

    def left() -> tuple[str, ...]:
        return tuple(one.name for one in possible if not harness.reached[one.name])

    for seed in range(12):
        aims = tuple(one.approach for one in possible if one.name in left())
        budget = GenerationBudget(examples=12, steps_per_example=10)
        if not aims:
            break
        failure = generate(
            harness, seed, budget, get_wanted=frozenset, get_aims=lambda aims=aims: aims
        )
        assert failure is None, _tell(failure)
    assert left() == ()


def test_clause_without_its_situation_is_not_exercised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clause that was held where right and wrong look alike does not make a run green."""
    told = [story for story in shipped_stories() if story.name != "write-lost"]
    monkeypatch.setattr(controllers, "shipped_stories", lambda: iter(told))
    result = run(Settings(1, examples=0), tmp_path)
    assert result.reached["write-lost"] == 0
    assert result.missing() == ("request.consumed",)
    assert result.verdict() == "vacuous"


def test_situation_that_cannot_be_reached_keeps_nothing_from_holding() -> None:
    """Only what an implementation says it can be brought into is asked for."""

    def find(without: set[str], reached: Counter[str]) -> tuple[str, ...]:
        possible = possible_with(EVERY - without, "kip-236")
        return find_unreached(possible, reached).get("request.consumed", ())

    assert find(set(), Counter()) == ("answer-lost", "write-lost", "request-withdrawn")
    assert find({"lose"}, Counter()) == ("request-withdrawn",)
    assert find({"lose", "hold"}, Counter()) == ()
    assert find_unreached(SITUATIONS, Counter(one.name for one in SITUATIONS)) == {}
