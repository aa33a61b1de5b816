"""Which hypotheses are needed: every theorem once more, each time without one of them.

A hypothesis is *needed* if the claim fails without it, and the smallest counterexample says how.
It is *not needed* if the claim is proved without it, up to the bound. The second is no defect:
hypotheses that only say that the arguments are well formed keep the number of paths small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reassure_proofs.runner import Progress, make_tasks, run_tasks, summarise_records
from reassure_proofs.statement import Hypothesis
from reassure_proofs.tasks import group_theorems
from reassure_proofs.theorems import Theorem, get_theorems


@dataclass(frozen=True, slots=True)
class NecessityResult:
    """What becomes of a theorem without one of its hypotheses."""

    theorem: Theorem
    hypothesis: Hypothesis
    verdict: str
    """`needed`, `not needed` or `unknown`."""
    bound: str
    """Up to where that was looked at, in words."""
    counterexample: dict[str, Any] | None
    """The smallest way in which the claim fails, if the hypothesis is needed."""
    reason: str
    """Why the verdict is unknown."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "theorem": self.theorem.name,
            "clause": self.theorem.clause,
            "hypothesis": self.hypothesis.name,
            "sentence": self.hypothesis.sentence,
            "verdict": self.verdict,
            "bound": self.bound,
            "counterexample": self.counterexample,
            "reason": self.reason,
        }


def examine_hypotheses(
    names: Sequence[str] | None = None,
    replication_factor: int = 3,
    progress: Progress | None = None,
    timeout_s: float = 60.0,
    processes: int = 2,
) -> list[NecessityResult]:
    """Return one result for each hypothesis of each theorem that is expected to be proved.

    Arguments and errors are those of `reassure_proofs.runner.prove_all`.
    """
    theorems = get_theorems(None if names is None else list(names))
    proved = [theorem for theorem in theorems if theorem.expected == "proved"]
    tasks = []
    for group in group_theorems(proved):
        hypotheses = dict.fromkeys(item.name for theorem in group for item in theorem.hypotheses)
        for name in hypotheses:
            concerned = [item for item in group if any(h.name == name for h in item.hypotheses)]
            tasks += make_tasks(concerned, replication_factor, timeout_s, without=name)
    answers = run_tasks(tasks, processes, progress)
    records = {
        (theorem, task.without): some
        for task, some in zip(tasks, answers, strict=True)
        for theorem in task.theorems
    }
    return [
        _summarise(theorem, hypothesis, records[theorem.name, hypothesis.name], replication_factor)
        for theorem in proved
        for hypothesis in theorem.hypotheses
    ]


def _summarise(
    theorem: Theorem,
    hypothesis: Hypothesis,
    records: Sequence[dict[str, Any]],
    replication_factor: int,
) -> NecessityResult:
    result = summarise_records(theorem, records, replication_factor)
    verdict = {"refuted": "needed", "proved": "not needed"}.get(result.verdict, "unknown")
    found = result.counterexample
    return NecessityResult(
        theorem=theorem,
        hypothesis=hypothesis,
        verdict=verdict,
        bound=result.bound,
        counterexample=None if found is None else dict(found),
        reason=result.reason,
    )


def to_json(results: Sequence[NecessityResult]) -> dict[str, Any]:
    """Return the body of the report: `counts` and `necessity`."""
    verdicts = [result.verdict for result in results]
    return {
        "counts": {
            "hypotheses": len(results),
            "needed": verdicts.count("needed"),
            "not_needed": verdicts.count("not needed"),
            "unknown": verdicts.count("unknown"),
        },
        "necessity": [result.to_json() for result in results],
    }
