"""The model's reference controller, and mutants of it, carried into a controller that runs.

What is predicted of mutants from the states of a run has to be what becomes of them.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from carried import carry, run_with
from carried_mind import Reference

from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.report.document import HOLDS, VIOLATED
from reassure_model.protocols import kip_236
from reassure_model.protocols.kip_236.machine import JUDGEMENT

SEED = 7
STORIES = {story.name: story for story in shipped_stories()}
QUICK = ("a-move", "change-in-flight", "failover-with-two-moves", "bad-targets", "answer-lost")
PROFILES = ("kip-236", "kip-236-amended", "kip-236-legacy")


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
        "a-move",
        "complete.target-in-sync",
    ),
}


def make_wrong(mistake: Mistake) -> Reference:
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
@pytest.mark.parametrize("profile", PROFILES)
def test_whole_run_holds(profile: str, tmp_path: Path) -> None:
    """A default run holds, and puts the same clauses to the test as that of the bundled one."""
    settings = Settings(SEED, profile=profile)
    folders = [tmp_path / name for name in ("carried", "bundled")]
    for folder in folders:
        folder.mkdir()
    runs = run_with(JUDGEMENT, settings, folders[0]), run(settings, folders[1])
    assert [each.verdict() for each in runs] == [HOLDS, HOLDS]
    carried, bundled = ({c.id for c in each.clauses if c.exercised} for each in runs)
    assert carried == bundled


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_whole_run_finds_mistake(name: str, tmp_path: Path) -> None:
    """A default run finds each of the mistakes, by its clause."""
    mistake = MISTAKES[name]
    outcome = run_with(make_wrong(mistake), Settings(SEED), tmp_path)
    assert outcome.verdict() == VIOLATED and outcome.failure is not None
    assert outcome.failure.violation.clause == mistake.clause
