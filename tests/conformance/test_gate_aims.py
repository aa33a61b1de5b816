"""Aims: generation goes for the mutants of the rules that survive, and ends when it kills none."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from reassure_conformance.adapter import CAPABILITIES, Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.aims import MORE_EFFECTS, Aim
from reassure_conformance.gate.controllers import PATIENCE, ControllersResult, ControllersRunner
from reassure_conformance.gate.cover import MOST_MORE, list_variants
from reassure_conformance.gate.discrimination import Score
from reassure_conformance.gate.generation import AIMS, GenerationBudget, choose_aims, generate
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.moment import ClusterMoment
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.story import parse_story
from reassure_mutation.score import Scorer, Survivor
from reassure_mutation.table import Killable
from reassure_spec.readings import get_profile

PROFILE: Final = "kip-236"
CLUSTER: Final = "world cluster\ncreate orders with 1,2\n"


def _is_taken_over(survivor: Survivor) -> bool:
    """Whether a controller has to die between two writes, with a request in hand."""
    return {"hold", "kill", "request"} <= {step.split()[0] for step in survivor.kill.steps}


def test_hold_of_a_test_case_is_drawn() -> None:
    """The steps stand as they were found; only how long the controller is let go on is drawn."""
    aim = Aim.parse(("hold after 2", "kill controller", "elect"))
    drawn = (lambda n, more=more: n - 1 if n == 2 else more % n for more in range(40))
    lines = {tuple(map(str, aim.follow(_NOW, draw))) for draw in drawn}
    first = {line[0] for line in lines}
    assert {line[1:] for line in lines} == {("kill controller", "elect")}
    assert first == {f"hold after {2 + more}" for more in range(2 + MORE_EFFECTS)}


@pytest.mark.parametrize("writes", range(4))
def test_controller_is_held_after_as_many_writes(harness: Harness, writes: int) -> None:
    """However many effects lie between, a held controller has made the writes of the test case."""
    lines = ("create orders with 1,2", f"hold after {writes}", "request orders-0 to 2,3")
    example = harness.begin((1, 2, 3))
    for step in Aim.parse(lines).follow(example.now, lambda _: 0):
        harness.perform(example, step)
        if isinstance(step, s.Request):
            before = len(example.transactions)
    made = len(example.transactions) - before
    assert (made, example.now.owes) == (writes, True)
    harness.end(example)


def test_test_case_is_varied_from_the_nearest_on() -> None:
    """Whoever looks for the number of effects begins with the model's, and changes only that."""
    steps = tuple(map(s.parse_step, ("hold after 1", "elect", "hold after 0")))
    variants = list(list_variants(steps))
    assert variants[0] == steps
    assert len(set(variants)) == len(variants) == (MOST_MORE + 1) ** 2
    assert {tuple(map(type, each)) for each in variants} == {(s.Hold, s.Elect, s.Hold)}
    assert list(list_variants(steps[1:2])) == [steps[1:2]]


def test_generation_kills_what_it_aims_at(make_harness: Callable[[Adapter], Harness]) -> None:
    """A mutant that takes a death between two writes is killed soon by who aims at it."""
    scorer = Scorer(PROFILE, get_profile(PROFILE))
    survivor = next(filter(_is_taken_over, scorer.list_survivors()))
    aim = Aim.parse(survivor.kill.steps)
    harness = make_harness(Bundled(profile=PROFILE))
    for aims, alive in (((), True), ((aim,), False)):
        harness.recorder.take_situations()
        budget = GenerationBudget(examples=30, steps_per_example=8)
        get_aims = partial(tuple[Aim, ...], aims)
        generate(harness, 5, budget, get_wanted=frozenset, get_aims=get_aims)
        scorer.update(harness.recorder.take_situations())
        assert (survivor in scorer.list_survivors()) is alive


def test_batch_keeps_a_place_for_what_was_reached_before() -> None:
    """What is never reached takes two of three aims, and none where nothing is left of it."""
    steps = [(s.Hold(n),) for n in range(9)]
    aims, others = tuple(map(Aim, steps[:5])), tuple(map(Aim, steps[5:]))
    for each, rest, expected in ((aims, others, 2), (aims[:1], others, 1), ((), others, 0)):
        chosen = [choose_aims(each, rest, Random(number)) for number in range(20)]
        assert {len(set(few)) for few in chosen} == {AIMS}
        assert {len({*few} & {*aims}) for few in chosen} == {expected}
        assert len(set(chosen)) > 1
    assert {*choose_aims(aims, (), Random(1))} <= {*aims}


def test_recorder_gives_each_situation_once(make_harness: Callable[[Adapter], Harness]) -> None:
    """What was seen before is not asked again, unless it went on for longer than then."""
    harness = make_harness(Bundled(profile=PROFILE))
    story = parse_story(f"{CLUSTER}request orders-0 to 2,3\n3 joins orders-0", "told.txt")
    harness.tell(story)
    first = harness.recorder.take_situations()
    assert len(first) == len(set(first)) > 4
    harness.tell(story)
    assert harness.recorder.take_situations() == ()
    harness.tell(parse_story(f"{CLUSTER}request orders-0 to 3,4", "other.txt"))
    again = harness.recorder.take_situations()
    assert again
    assert not set(first) & set(again)


@pytest.mark.parametrize(("able", "given_up"), [(True, PATIENCE), (False, 0)])
def test_mutant_that_nothing_kills_is_given_up(tmp_path: Path, able: bool, given_up: int) -> None:
    """A run until everything is covered goes on for a mutant, and not for ever."""
    capabilities = frozenset(CAPABILITIES if able else ())
    runner = ControllersRunner(Settings(seed=1, profile=PROFILE), tmp_path)
    kill = Killable("drop.leader-kept", ("create orders with 1,2", "broker 1 dies"), False)
    survivors = (Survivor("a", "it is a", kill), Survivor("b", "it is b", kill))
    runner.result = ControllersResult(runner.settings, {}, PROFILE, {}, capabilities)
    score = Score({kill.clause: 3}, survivors, capabilities)
    runner.result.score = score
    runner.list_wanted()
    runner.result.score = replace(score, survivors=survivors[:1])
    wanted = [tuple(runner.list_wanted()) for _ in range(PATIENCE + 2)]
    assert wanted == [("a",)] * given_up + [()] * (PATIENCE + 2 - given_up)


_NOW: Final = ClusterMoment((1, 2, 3), view=None)  # type: ignore[arg-type]
