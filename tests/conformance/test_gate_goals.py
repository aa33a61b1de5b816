"""Coverage goals: test cases and generation reach each, and a clause needs those of its own."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.adapter import CAPABILITIES, Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate import base_runner
from reassure_conformance.gate.aims import Aim
from reassure_conformance.gate.events import CoverageGoal
from reassure_conformance.gate.generation import GenerationBudget, generate
from reassure_conformance.gate.goals import (
    COVERAGE_GOALS,
    aim_at,
    count_goals,
    find_unreached,
    possible_with,
)
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.run_outcome import Failure
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_conformance.gate.story import Story, format_story, parse_story, shipped_stories
from reassure_judge.protocols import find_protocols
from reassure_spec.clauses import load_clauses

MakeHarness = Callable[[Adapter], Harness]
EVERY = frozenset(CAPABILITIES)
DRIVEN = [name for name, rules in find_protocols().items() if name in rules.driven]


def _reached(harness: Harness, story: Story) -> set[str]:
    """Return the goals that a story reaches."""
    example = harness.tell(story)
    assert example.violations == []
    return {name for name, count in count_goals(example.history).items() if count}


def _tell(failure: Failure[Any]) -> str:
    """Return what was broken and the story that shows it."""
    broken = failure.violation
    return f"{broken.clause}: {broken.reason}\n{format_story(failure.story)}"


def test_goals_name_real_clauses_and_differ() -> None:
    """Every goal has a name of its own and is for clauses that exist."""
    names = [goal.name for goal in COVERAGE_GOALS]
    assert len(set(names)) == len(names)
    assert {c for one in COVERAGE_GOALS for c in one.clauses} - set(load_clauses()) == set()
    assert all(one.clauses and one.needs <= EVERY for one in COVERAGE_GOALS)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("goal", COVERAGE_GOALS, ids=lambda goal: goal.name)
def test_case_reaches_its_goal(goal: CoverageGoal, make_harness: MakeHarness) -> None:
    """The test case that a goal names reaches it, under the first profile that has both."""
    story = next(story for story in shipped_stories() if story.name == goal.case)
    profile = next(p for p in DRIVEN if story.is_for(p) and goal in possible_with(EVERY, p))
    assert goal.name in _reached(make_harness(Bundled(profile=profile)), story)


def test_plain_move_reaches_none(harness: Harness) -> None:
    """Where nothing meets anything no goal is reached."""
    lines = "world cluster\ncreate orders with 1,2\nrequest orders-0 to 1,3\n3 joins orders-0"
    reached = _reached(harness, parse_story(lines, "plain.txt"))
    assert reached & {one.name for one in possible_with(EVERY, "kip-236")} == set()


def test_every_goal_belongs_to_a_driven_profile() -> None:
    """No goal is left out of every run."""
    assert {one for profile in DRIVEN for one in possible_with(EVERY, profile)} == set(
        COVERAGE_GOALS
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy"])
def test_generation_alone_reaches_every_goal(profile: str, make_harness: MakeHarness) -> None:
    """Generated examples aim at what has not come up yet, and so get everywhere soon."""
    harness = make_harness(Bundled(profile=profile))
    possible = possible_with(EVERY, profile)

    def left() -> tuple[str, ...]:
        return tuple(one.name for one in possible if not harness.reached[one.name])

    for seed in range(12):
        aims = tuple(aim_at(one) for one in possible if one.name in left())
        budget = GenerationBudget(examples=12, steps_per_example=10)
        if not aims:
            break
        failure = generate(
            harness, seed, budget, get_wanted=frozenset, get_aims=partial(tuple[Aim, ...], aims)
        )
        assert failure is None, _tell(failure)
    assert left() == ()


def test_clause_without_its_goal_is_not_exercised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clause that was held where right and wrong look alike does not make a run green."""
    told = [story for story in shipped_stories() if story.name != "request-withdrawn"]
    monkeypatch.setattr(base_runner, "shipped_stories", lambda _: iter(told))
    result = run(Settings(1, examples=0), tmp_path)
    assert result.reached["request-withdrawn"] == 0
    assert result.missing() == ("request.consumed",)
    assert result.verdict() == "vacuous"


def test_goal_that_cannot_be_reached_keeps_nothing_from_holding() -> None:
    """Only what an implementation says it can be brought into is asked for."""

    def find(without: set[str]) -> tuple[str, ...]:
        possible = possible_with(EVERY - without, "kip-236")
        return find_unreached(possible, Counter()).get("controller.epoch.raised-by-one", ())

    assert find(set()) == ("earlier-controller",)
    assert find({"kill"}) == find({"hold"}) == ()
    assert find_unreached(COVERAGE_GOALS, Counter(one.name for one in COVERAGE_GOALS)) == {}
