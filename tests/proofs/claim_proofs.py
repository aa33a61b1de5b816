"""One claim proved of one function, and a theorem of single kinds of steps; shared by the tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reassure_proofs.engine.prover import explore_shape
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.results import Certificate, ProofGoal, Refutation
from reassure_proofs.engine.runner import prove_all, summarise_verdict
from reassure_proofs.engine.statement import Claim, Function, Hypothesis, Shape
from reassure_proofs.engine.symex import PathLimits


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of a claim."""

    verdict: str
    paths: int
    certificate: tuple[Certificate, ...]
    counterexample: Refutation | None
    reason: str


def prove(
    function: Function,
    shapes: Sequence[Shape],
    hypotheses: Sequence[Hypothesis],
    claim: Claim,
    limits: PathLimits | None = None,
    hashable: bool = False,
) -> Proof:
    """Prove or refute that a claim holds of every result under the hypotheses, by every shape."""
    explored = []
    for shape in shapes:
        goals = [ProofGoal("claim", claim)]
        explored.append(explore_shape(function, shape, hypotheses, goals, limits, hashable))
        if explored[-1].counterexamples or explored[-1].reason:
            break
    certificates = tuple(each.certificate for each in explored if each.certificate is not None)
    paths = sum(each.paths for each in certificates)
    found, reason = explored[-1].counterexamples.get("claim"), explored[-1].reason
    certified = len(certificates) == len(shapes) and all(
        (each.gap, each.replayed) == ("unsat", each.paths) for each in certificates
    )
    verdict, reason = summarise_verdict(found is not None, reason, paths, certified)
    return Proof(verdict, paths, certificates, found, reason)


def prove_theorem(
    name: str, size: int, function: Callable[..., Any] | None = None, **words: str
) -> Proof:
    """Prove a theorem up to a size, of the shapes with these words, or of another function."""
    (theorem,) = get_theorems([name])
    shapes = [
        shape
        for shape in theorem.subject.shapes(size)
        if all(shape[key].word == word for key, word in words.items() if word)
    ]
    about, hashable = function or theorem.subject.function, theorem.subject.hashable
    return prove(about, shapes, theorem.assumptions, theorem.claim, hashable=hashable)


def find_outcomes(names: Sequence[str], factor: int, **more: Any) -> dict[str, str]:
    """Return what comes of theorems in this process, by name."""
    results = prove_all(list(names), factor, processes=1, **more)
    return {result.theorem.name: result.outcome for result in results}
