"""The model's reference controller, and mutants of it, carried into a controller that runs.

What is predicted of mutants from the states of a run has to be what becomes of them.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from types import ModuleType
from typing import NamedTuple

import pytest
from carried import carry, run_with
from carried_mind import Decisions

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.world import VIRTUAL_WORLD
from reassure_conformance.gate import base_runner
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.run_outcome import Failure, RunOutcome
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_conformance.gate.story import format_story, parse_story, shipped_stories
from reassure_conformance.report.document import HOLDS, VIOLATED
from reassure_judge.protocols import make_rules
from reassure_model.protocols import kip_236
from reassure_model.protocols.kip_236.machine import JUDGEMENT
from reassure_mutation.kills import NEVER_RESTS, SURVIVES, Reference, Situation
from reassure_mutation.linked import Mutant, spell
from reassure_mutation.score import select
from reassure_spec.readings import get_profile

SEED = 7
STORIES = {story.name: story for story in shipped_stories()}
QUICK = ("a-move", "change-in-flight", "failover-with-two-moves", "bad-targets", "answer-lost")
PROFILES = ("kip-236", "kip-236-amended", "kip-236-legacy")
DRAWS = [(profile, seed) for seed, profile in enumerate((*PROFILES, *PROFILES, "kip-46"), SEED)]


class Mistake(NamedTuple):
    """A text of the reference controller, what stands there instead, and what catches that."""

    old: str
    new: str
    story: str
    clause: str


MISTAKES = {
    "the leader not ranked first": Mistake(
        "(leader, *isr, *others)",
        "(*isr, *others, leader)",
        "leader-last-in-sync-at-a-drop",
        "drop.leader-kept",
    ),
    "a due drop forgotten at failover": Mistake(
        "due = again or is_change_unfinished(partition)",
        "due = again",
        "failover-while-a-drop-waits",
        "drop.before-expansion",
    ),
    "complete before the target is in sync": Mistake(
        "if state is None or not is_target_in_sync(partition):",
        "if state is None:",
        "cancel",
        "complete.target-in-sync",
    ),
}


def make_wrong(mistake: Mistake) -> Decisions:
    """Return a judgement of a copy of the reference controller that has a mistake."""
    source = Path(kip_236.__file__).read_text("utf-8")
    assert source.count(mistake.old) == 1
    copy = ModuleType(kip_236.__name__)
    exec(compile(source.replace(mistake.old, mistake.new), "<copy>", "exec"), copy.__dict__)
    return replace(JUDGEMENT, owed=copy.next_write, fail_over=copy.apply_failover)


@pytest.mark.parametrize("name", QUICK)
def test_reference_controller_holds(name: str, make_harness: Callable[..., Harness]) -> None:
    """The reference controller violates nothing in a story, and does all that it tells."""
    example = make_harness(carry(JUDGEMENT, "kip-236")).tell(STORIES[name])
    skipped = [done.why for done in example.done if done.result == "skipped"]
    assert (example.violations, example.unsettled, skipped) == ([], 0, [])


FOUND = {
    "a stop before an answer that is lost": "create orders with 3,2; lose answer after 2;"
    "request orders-0 to 2",
    "one falls behind before the record goes": "create orders with 2; request orders-0 to 2,3;"
    "3 joins orders-0; request orders-0 to 2,3,1; hold after 0; 1 joins orders-0;"
    "cancel orders-0; 1 leaves orders-0",
}
"""What draws have found wrong with what carries the decisions."""


@pytest.mark.parametrize("name", FOUND)
def test_what_was_drawn_holds(name: str, make_harness: Callable[..., Harness]) -> None:
    """What was once found by a draw is violated no more."""
    story = parse_story("\n".join(["world cluster brokers=1,2,3", *FOUND[name].split(";")]), name)
    example = make_harness(carry(JUDGEMENT, "kip-236")).tell(story)
    assert (example.violations, example.unsettled) == ([], 0)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_carried(name: str, make_harness: Callable[..., Harness]) -> None:
    """A mistake of the reference controller breaks its clause in the story that tells it."""
    mistake = MISTAKES[name]
    told = make_harness(carry(make_wrong(mistake), "kip-236")).tell(STORIES[mistake.story])
    assert [violation.clause for violation in told.violations[:1]] == [mistake.clause]


def test_one_that_fails_writes_nothing(make_harness: Callable[..., Harness]) -> None:
    """A reference controller that raises an exception owes what it does not write."""

    def fail(*_: object) -> None:
        raise RecursionError

    told = make_harness(carry(replace(JUDGEMENT, owed=fail), "kip-236")).tell(STORIES["a-move"])
    assert [violation.clause for violation in told.violations[:1]] == [
        "partition.new.brought-online"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES[1:])  # the last has all that the first has
def test_all_test_cases_hold(profile: str, tmp_path: Path) -> None:
    """Told all test cases it holds, and puts the same clauses to the test as the bundled one."""
    settings = Settings(SEED, profile=profile, examples=0, world=VIRTUAL_WORLD)
    folders = [tmp_path / name for name in ("carried", "bundled")]
    for folder in folders:
        folder.mkdir()
    runs = run_with(JUDGEMENT, settings, folders[0]), run(settings, folders[1])
    assert [each.verdict() for each in runs] == [HOLDS, HOLDS]
    carried, bundled = ({c.id for c in each.clauses if c.exercised} for each in runs)
    assert carried == bundled


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "seed"), DRAWS)
def test_drawn_examples_hold(profile: str, seed: int, tmp_path: Path) -> None:
    """It violates nothing, and comes to rest, in what is drawn from each seed."""
    settings = Settings(seed, profile=profile, examples=8, steps_min=0, with_stories=False)
    outcome = run_with(JUDGEMENT, settings, tmp_path)
    assert (outcome.failure, outcome.unsettled, outcome.examples) == (None, 0, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_whole_run_finds_mistake(name: str, tmp_path: Path) -> None:
    """A default run finds each of the mistakes, by its clause."""
    mistake = MISTAKES[name]
    outcome = run_with(make_wrong(mistake), Settings(SEED), tmp_path)
    assert outcome.verdict() == VIOLATED and outcome.failure is not None
    assert outcome.failure.violation.clause == mistake.clause


# What is predicted --------------------------------------------------------------------------------

DRAWN = 24


class Prediction(NamedTuple):
    """Mutants of the reference controller, and the states that say what becomes of them."""

    reference: Reference
    drawn: list[Mutant]
    called: list[tuple[Situation, frozenset[str]]]
    """Each state with the functions that decide there."""

    def list_clauses(self, mutant: Mutant) -> set[str]:
        """Return the clauses that kill the mutant which is planted, each in some state."""
        place = f"<{spell(mutant.function)}>"
        where = (situation for situation, names in self.called if place in names)
        return {*map(self.reference.find_kill, where)} - {*SURVIVES}


@pytest.fixture(scope="module")
def prediction(make_harness: Callable[..., Harness]) -> Prediction:
    """Mutants that are drawn, and the states through which the stories lead the bundled one."""
    reference = Reference(make_rules("kip-236", get_profile("kip-236")))
    harness = make_harness(Bundled())
    for story in STORIES.values():
        if story.is_for("kip-236"):
            assert harness.tell(story).violations == []
    seen = select(reference, harness.recorder.take_situations())
    called = [(each, reference.find_called(each)) for each in seen]
    return Prediction(reference, Random(SEED).sample(reference.list_mutants(), DRAWN), called)


def list_found(outcome: RunOutcome, expected: set[str]) -> set[str]:
    """Return what a run found: of the clauses that were expected those that its verdict names.

    What is violated where the controller wrote on and on, until it was stopped, only follows.
    """
    failure = outcome.failure
    if failure is None:
        return {NEVER_RESTS} if outcome.unsettled else set()
    assert isinstance(failure, Failure)
    if failure.told.unsettled:
        return {NEVER_RESTS}
    # A debt to a queue that was not looked at is one to whoever would have looked.
    named = {each for each in expected if each in failure.violation.reason}
    return named or {failure.violation.clause}


def save(folder: Path, first: int) -> Path:
    """Write every third test case into a folder, to be told from there."""
    folder.mkdir()
    told = [story for story in STORIES.values() if story.is_for("kip-236")]
    for story in told[first::3]:
        (folder / f"{story.name}.txt").write_text(format_story(story), encoding="utf-8")
    return folder


@pytest.mark.sampled(6)
@pytest.mark.parametrize("number", range(DRAWN))
def test_prediction_comes_true(
    number: int,
    prediction: Prediction,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run is violated by a clause that was predicted; where none was, it finds nothing.

    One that would break a clause elsewhere may never rest in what the run tells it before.
    """
    monkeypatch.setattr(base_runner, "SHORTEN_S", 0.0)
    reference, mutant = prediction.reference, prediction.drawn[number]
    settings = Settings(SEED, examples=0)
    with reference.linked.planted(mutant):
        expected = prediction.list_clauses(mutant)
        if not expected:  # then no test case ends the run: a third of them have to do
            saved = save(tmp_path / "saved", number % 3)
            settings = replace(settings, with_stories=False, failures=str(saved))
        outcome = run_with(reference.mutated, settings, tmp_path)
    found = list_found(outcome, expected)
    assert bool(found) == bool(expected), (mutant.sentence, expected, found)
    assert found <= expected | {NEVER_RESTS}, (mutant.sentence, expected, found)
