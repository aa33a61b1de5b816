"""Counterexamples to left-out hypotheses as states that a controller can be put in.

The prover has replayed each counterexample on the function that it is about. Here it is replayed on
a whole controller, the model's, in a state that the theorems of the protocol know how to find
(`engine.statement.Subject.shown`); where no controller comes to do what the
function was asked, they say why.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reassure_proofs.engine.counterexamples import restore_arguments
from reassure_proofs.engine.statement import Theorem, Values


class NotShown(Exception):
    """Why a counterexample cannot be shown on a controller."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of one counterexample on the model's controller."""

    theorem: str
    hypothesis: str
    sentence: str
    """The counterexample."""
    planting: Any | None
    """The state, None where no controller can show it."""
    expected: Any | None
    """Where the model's controller came to rest."""
    reason: str
    """Why no controller can show it."""


def find_shown(theorem: Theorem, arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a state in which the model's controller shows a counterexample, and where it rests.

    Raises NotShown where there is none, with the reason.
    """
    shown = theorem.subject.shown
    if isinstance(shown, str):
        raise NotShown(shown)
    return shown(theorem, restore_arguments(theorem, arguments))


def prepare(theorem: Theorem, hypothesis: str, counterexample: Mapping[str, Any]) -> Replay:
    """Return a counterexample with the state that shows it, and replay it on the model.

    Raises AssertionError where the model's function does not break the claim after all.
    """
    arguments, sentence = counterexample["arguments"], counterexample["sentence"]
    assert _breaks(theorem, restore_arguments(theorem, arguments)), f"{theorem.name}: {sentence}"
    try:
        planting, expected = find_shown(theorem, arguments)
    except NotShown as reason:
        return Replay(theorem.name, hypothesis, sentence, None, None, str(reason))
    return Replay(theorem.name, hypothesis, sentence, planting, expected, "")


def _breaks(theorem: Theorem, values: Values) -> bool:
    try:
        return not theorem.claim(values, theorem.subject.function(values))
    except Exception:
        # Code that raises keeps no promise.
        return True
