"""Which hypotheses are needed: every theorem once more, each time without one of them.

A hypothesis of a theorem is *needed* if the claim fails without it, and the smallest
counterexample, which was replayed on the plain model, says how. What is assumed only to bound the
number of paths stands apart, in the theorem's `shape`: the claim has to hold without all of that
together. Either can be wrong, and then the register is: a hypothesis that is not needed is no
hypothesis, and one of the shape without which the claim fails is a hypothesis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import Progress, make_tasks, run_tasks, summarise_records
from reassure_proofs.engine.statement import Theorem
from reassure_proofs.engine.tasks import ProofTask, group_theorems

SHAPE: Final = "shape"
"""Stands for all that a theorem assumes only to bound the number of paths."""


@dataclass(frozen=True, slots=True)
class NecessityResult:
    """What becomes of a theorem without one of its hypotheses."""

    theorem: Theorem
    hypothesis: str
    """Name of the hypothesis left out, or `SHAPE`."""
    sentence: str
    """What was left out, in words."""
    verdict: str
    """`needed`, `not needed` or `unknown`."""
    bound: str
    """Up to where that was looked at, in words."""
    counterexample: dict[str, Any] | None
    """The smallest way in which the claim fails, if the hypothesis is needed."""
    reason: str
    """Why the verdict is unknown."""

    @property
    def as_expected(self) -> bool:
        """Whether that is what the register says."""
        return self.verdict == ("not needed" if self.hypothesis == SHAPE else "needed")


def examine_hypotheses(
    names: Sequence[str] | None = None,
    replication_factor: int = 3,
    progress: Progress | None = None,
    timeout_s: float = 60.0,
    processes: int = 2,
    tier: str = "full",
) -> list[NecessityResult]:
    """Return one result for each hypothesis, and one for the shape, of each theorem to be proved.

    Arguments and errors are those of `engine.runner.prove_all`.
    """
    theorems = get_theorems(None if names is None else list(names), tier)
    proved = [theorem.within_bounds() for theorem in theorems if theorem.expected == "proved"]
    asked: list[tuple[str, ProofTask]] = []
    for group in group_theorems(proved):
        for name in dict.fromkeys(name for theorem in group for name, _ in _left_out(theorem)):
            concerned = [item for item in group if name in dict(_left_out(item))]
            for some in _alike(concerned, name):
                without = [item.name for item in some[0].shape] if name == SHAPE else [name]
                tasks = make_tasks(some, replication_factor, timeout_s, without)
                asked += [(name, task) for task in tasks]
    answers = run_tasks([task for _, task in asked], processes, progress)
    records = {
        (theorem, name): some
        for (name, task), some in zip(asked, answers, strict=True)
        for theorem in task.theorems
    }
    return [
        _summarise(theorem, name, sentence, records[theorem.name, name], replication_factor)
        for theorem in proved
        for name, sentence in _left_out(theorem)
    ]


def _left_out(theorem: Theorem) -> tuple[tuple[str, str], ...]:
    """Return what is left out of the theorem in turn: names and words."""
    single = tuple((item.name, item.sentence) for item in theorem.hypotheses)
    shape = "; ".join(item.sentence for item in theorem.shape)
    return (*single, (SHAPE, shape)) if theorem.shape else single


def _alike(theorems: Sequence[Theorem], name: str) -> list[list[Theorem]]:
    """Return the theorems in groups that can be looked at together without `name`."""
    groups: dict[tuple[str, ...], list[Theorem]] = {}
    for theorem in theorems:
        key = tuple(item.name for item in theorem.shape) if name == SHAPE else ()
        groups.setdefault(key, []).append(theorem)
    return list(groups.values())


def _summarise(
    theorem: Theorem,
    hypothesis: str,
    sentence: str,
    records: Sequence[dict[str, Any]],
    replication_factor: int,
) -> NecessityResult:
    result = summarise_records(theorem, records, replication_factor)
    verdict = {"refuted": "needed", "proved": "not needed"}.get(result.verdict, "unknown")
    found = result.counterexample
    return NecessityResult(
        theorem=theorem,
        hypothesis=hypothesis,
        sentence=sentence,
        verdict=verdict,
        bound=result.bound,
        counterexample=None if found is None else dict(found),
        reason=result.reason,
    )
