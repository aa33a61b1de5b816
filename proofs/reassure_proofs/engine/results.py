"""What comes of an exploration: certificate, counterexamples, and what the solver was asked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from reassure_proofs.engine.statement import Claim, Hypothesis, describe_values


@dataclass(frozen=True, slots=True)
class Refutation:
    """The smallest input found that satisfies the hypotheses and breaks the claim."""

    arguments: Mapping[str, Any]
    """Plain arguments by name."""
    outcome: str
    """What the plain code returned for them, or the exception that it raised."""

    def sentence(self) -> str:
        """Return the counterexample in one line."""
        return f"{describe_values(self.arguments)} -> {self.outcome}"

    def to_json(self) -> dict[str, Any]:
        """Return the counterexample as plain JSON values."""
        arguments = {name: _as_json(value) for name, value in self.arguments.items()}
        return {"arguments": arguments, "outcome": self.outcome, "sentence": self.sentence()}


def _as_json(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Certificate:
    """Evidence that an exploration left nothing out."""

    shape: Mapping[str, int | str | None]
    """Lengths by argument, None for a single value; a word stands for itself."""
    paths: int
    """Paths explored. None at all means that no input of this shape satisfies the hypotheses."""
    gap: str
    """Solver's answer to: is there an input that takes none of the paths? Must be `unsat`."""
    replayed: int
    """Paths whose witness gave the same result in the plain code; must be all of them."""
    tried: int
    """Plain inputs on which the claims were tried; must be some where there are paths."""


@dataclass(frozen=True, slots=True)
class ProofGoal:
    """One claim about the code of an exploration."""

    name: str
    claim: Claim
    hypotheses: tuple[Hypothesis, ...] = ()
    """Those that the exploration itself does not assume."""


@dataclass(frozen=True, slots=True)
class ProofObligation:
    """What the solver was asked about one goal in one shape: it must have no model."""

    goal: str
    assumptions: tuple[Any, ...]
    violation: Any


@dataclass(slots=True)
class ShapeResult:
    """What came of one exploration: one shape, several goals."""

    certificate: Certificate | None = None
    queries: int = 0
    seconds: float = 0.0
    counterexamples: dict[str, Refutation] = field(default_factory=dict)
    """By goal; a goal that is missing was not violated."""
    obligations: list[ProofObligation] = field(default_factory=list)
    gap: Any = None
    """The certificate's question, as exported."""
    reason: str = ""
    """Why nothing can be said about any goal; empty if all is well. Of code that is not the model's
    there may be counterexamples all the same: those that plain inputs showed."""
    late: bool = False
    """Whether the code did not come to an end."""

    def to_json(self) -> dict[str, Any]:
        """Return what has to be reported as plain JSON values; the terms stay behind."""
        return {
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "queries": self.queries,
            "seconds": self.seconds,
            "counterexamples": {name: e.to_json() for name, e in self.counterexamples.items()},
            "reason": self.reason,
        }
