"""Counterexamples to left-out hypotheses, replayed on the model's controller and the real one."""

from dataclasses import replace

import pytest

from reassure_conformance.answers.shown_live import (
    NOT_POSSIBLE,
    SAME,
    ReplayRow,
    render_replays,
    replay_counterexamples,
)
from reassure_proofs.engine.necessity import SHAPE, NecessityResult, examine_hypotheses
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.replays import NotShown, can_be_shown, find_shown, prepare
from reassure_proofs.protocols.kip_236.plantings import dropped, violates

DROPS = [item.name for item in get_theorems() if can_be_shown(item) and item.tier == "gate"]


@pytest.fixture(scope="module")
def found() -> list[NecessityResult]:
    """What becomes of the theorems about the drop and the plan without each hypothesis."""
    return [
        *examine_hypotheses(DROPS, 2),
        *examine_hypotheses(["reassignment-completes"], 1, processes=1),
    ]


@pytest.fixture(scope="module")
def rows(found: list[NecessityResult]) -> list[ReplayRow]:
    """Each counterexample on both controllers."""
    return replay_counterexamples(found)


def test_real_controller_shows_what_the_model_shows(rows: list[ReplayRow]) -> None:
    """Wherever a controller can be brought to it, it breaks the claim as the model's one does."""
    assert [row for row in rows if row.controller not in (SAME, NOT_POSSIBLE)] == []
    shown = {(row.replay.theorem, row.replay.hypothesis) for row in rows if row.controller == SAME}
    assert len(shown) >= 20
    assert {
        ("drop-isr-at-least-min", "top-at-least-min"),
        ("drop-isr-at-least-min", "isr-at-least-min"),
        ("drop-isr-at-least-min", "isr-distinct"),
        ("drop-assigned-isr-at-least-min", "isr-assigned"),
        ("drop-nothing-at-first-request", "first-request"),
        ("reassignment-completes", "everybody-live"),
    } <= shown


def test_every_needed_hypothesis_has_a_row(
    rows: list[ReplayRow], found: list[NecessityResult]
) -> None:
    """No counterexample is passed over, and what is not possible has a reason."""
    needed = [(f.theorem.name, f.hypothesis) for f in found if f.hypothesis != SHAPE]
    assert [(row.replay.theorem, row.replay.hypothesis) for row in rows] == needed
    assert all(row.replay.reason for row in rows if row.controller == NOT_POSSIBLE)
    assert "rule only while a leader is in sync" in render_replays(rows, "markdown")


def test_controller_with_a_fault_is_told_apart(found: list[NecessityResult]) -> None:
    """A controller that skips drops comes to another end, and the row says to which."""
    some = [item for item in found if item.hypothesis == "top-at-least-min"][:1]
    (row,) = replay_counterexamples(some, faults=("drop-skipped",))
    assert row.controller == (
        "comes to assigned=[1, 2, 3] leader=1 isr=[1, 2] target=[3], "
        "the model to assigned=[1, 3] leader=1 isr=[1] target=[3]"
    )


def test_end_that_keeps_the_claim_is_no_violation(found: list[NecessityResult]) -> None:
    """Whether an end breaks the claim is asked of the end, not of the model."""
    (item,) = [
        each
        for each in found
        if (each.theorem.name, each.hypothesis) == ("drop-isr-at-least-min", "top-at-least-min")
    ]
    assert item.counterexample is not None
    arguments = item.counterexample["arguments"]
    planting, end = find_shown(item.theorem, arguments)
    assert dropped(planting, end) == (2,)
    assert violates(item.theorem, arguments, planting, end)
    kept = replace(end, assigned=(1, 2, 3), isr=(1, 2))
    assert not violates(item.theorem, arguments, planting, kept)


def test_counterexample_that_is_none_is_noticed() -> None:
    """Arguments that do not break the claim are a fault of the prover."""
    (theorem,) = get_theorems(["drop-leader-kept"])
    arguments = {"assigned": [1], "isr": [1], "leader": 1, "top": 1, "minimum": 1}
    with pytest.raises(AssertionError, match="drop-leader-kept"):
        prepare(theorem, "none", {"arguments": arguments, "sentence": "made up"})


def test_what_no_controller_does_has_a_reason() -> None:
    """Theorems about numbers and about followers say why no controller can show anything."""
    for name, words in (("unbounded-others-first", "numbers"), ("hw-never-decreases", "followers")):
        (theorem,) = get_theorems([name])
        with pytest.raises(NotShown, match=words):
            find_shown(theorem, {})
