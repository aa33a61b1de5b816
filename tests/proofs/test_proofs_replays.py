"""Counterexamples to left-out hypotheses, replayed on the model's controller."""

from dataclasses import replace

import pytest

from reassure_proofs.engine.necessity import NecessityResult, examine_hypotheses
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.replays import NotShown, find_shown, prepare
from reassure_proofs.protocols.kip_236.plantings import dropped, violates


@pytest.fixture(scope="module")
def found() -> list[NecessityResult]:
    """What becomes of a theorem about the drop without each hypothesis."""
    return list(examine_hypotheses(["drop-isr-at-least-min"], 2))


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
