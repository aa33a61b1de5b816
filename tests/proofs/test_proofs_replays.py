"""Counterexamples to left-out hypotheses, replayed on the model's controller."""

import pytest

from reassure_proofs.engine.necessity import examine_hypotheses
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.replays import NotShown, find_shown, prepare
from reassure_proofs.protocols.kip_236.plantings import dropped


def test_end_of_the_models_controller_shows_it() -> None:
    """A hypothesis without which a drop leaves too few in sync is shown by what was dropped."""
    (item,) = [
        each
        for each in examine_hypotheses(["drop-isr-at-least-min"], 2)
        if (each.theorem.name, each.hypothesis) == ("drop-isr-at-least-min", "top-at-least-min")
    ]
    assert item.counterexample is not None
    planting, end = find_shown(item.theorem, item.counterexample["arguments"])
    assert dropped(planting, end) == (2,)


def test_counterexample_that_is_none_is_noticed() -> None:
    """Arguments that do not break the claim are a fault of the prover."""
    (theorem,) = get_theorems(["drop-leader-kept"])
    arguments = {"assigned": [1], "isr": [1], "leader": 1, "top": 1, "minimum": 1}
    with pytest.raises(AssertionError, match="drop-leader-kept"):
        prepare(theorem, "none", {"arguments": arguments, "sentence": "made up"})


def test_what_no_controller_does_has_a_reason() -> None:
    """Theorems about a selector and about followers say why no controller can show anything."""
    selector = ("election-offline-live-in-sync", "no controller")
    for name, words in (selector, ("hw-never-decreases", "followers")):
        (theorem,) = get_theorems([name])
        with pytest.raises(NotShown, match=words):
            find_shown(theorem, {})
