"""Pieces of proof work that can be done anywhere, and what comes back from them.

Theorems about the same subject are proved together: the code is explored under the hypotheses that
they share, and each is judged at the end of every path under what it assumes beyond. A *task* is
such a group with some of its shapes. Tasks and their answers are plain JSON values, so that they
can cross to another process.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reassure_proofs.statement import Hypothesis, Theorem
from reassure_proofs.theorems import get_theorems


@dataclass(frozen=True, slots=True)
class Task:
    """Theorems about one subject, and the shapes in which they are to be judged."""

    theorems: tuple[str, ...]
    """Names; all are about the same subject."""
    shapes: tuple[int, ...]
    """Places in the subject's list of shapes, smallest first. The task ends early once a
    counterexample to each of its theorems is known."""
    replication_factor: int
    """Largest replication factor, which fixes the list of shapes."""
    seconds: float
    """Time for all of it."""
    without: tuple[str, ...] = ()
    """Names of hypotheses to leave out, to see whether they are needed."""

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Task":
        """Return the task that `to_json` wrote."""
        lists = {name: tuple(data[name]) for name in ("theorems", "shapes", "without")}
        return Task(**{**data, **lists})


def group_theorems(theorems: Sequence[Theorem]) -> list[list[Theorem]]:
    """Return the theorems in groups that share explorations.

    Those expected to be refuted stand apart: their search ends with the first counterexample,
    while the others' cannot.
    """
    groups: dict[tuple[str, str, int | None, str], list[Theorem]] = {}
    for theorem in theorems:
        key = (theorem.subject.name, theorem.expected, theorem.largest, theorem.tier)
        groups.setdefault(key, []).append(theorem)
    return list(groups.values())


def split_hypotheses(
    theorems: Sequence[Theorem], without: Sequence[str] = ()
) -> tuple[tuple[Hypothesis, ...], dict[str, tuple[Hypothesis, ...]]]:
    """Return the hypotheses that all theorems share, and by theorem those that it has beyond."""
    own = {
        theorem.name: [item for item in theorem.assumptions if item.name not in without]
        for theorem in theorems
    }
    shared = [item for item in own[theorems[0].name] if all(item in some for some in own.values())]
    extra = {
        name: tuple(item for item in items if item not in shared) for name, items in own.items()
    }
    return tuple(shared), extra


def run_task(task: Task) -> list[dict[str, Any]]:
    """Do the task in this process; return one plain JSON record for each shape it looked at.

    Raises ProofFaultError when the executor is at fault.
    """
    from reassure_proofs.prover import Goal, explore_shape
    from reassure_proofs.symex import Limits

    theorems = get_theorems(task.theorems)
    shared, extra = split_hypotheses(theorems, task.without)
    shapes = theorems[0].shapes(task.replication_factor)
    open_goals = [Goal(item.name, item.claim, extra[item.name]) for item in theorems]
    records: list[dict[str, Any]] = []
    deadline = time.monotonic() + task.seconds
    for place in task.shapes:
        explored = explore_shape(
            theorems[0].subject.function,
            shapes[place],
            shared,
            open_goals,
            Limits(seconds=deadline - time.monotonic()),
            theorems[0].subject.hashable,
        )
        record = explored.to_json()
        record["place"] = place
        records.append(record)
        open_goals = [goal for goal in open_goals if goal.name not in explored.counterexamples]
        if not open_goals or explored.reason:
            break
    return records
