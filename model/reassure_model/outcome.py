"""What a rule answers: accepted with the clauses it put to the test, or rejected by one clause.

A rule is the checks that it puts a step to, in order. The first that the step breaks rejects it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Accepted(Generic[State]):
    """The step may happen."""

    state: State
    clauses: tuple[str, ...] = ()
    """The clauses that the step put to the test and that allowed it."""
    effects: tuple[Any, ...] = ()
    """What the step does outside of whoever takes it, in order: writes, messages to brokers.

    A crash point is a prefix of them."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The step may not happen."""

    clause: str
    """The first clause that it would break."""
    reason: str


Check = tuple[str, bool | str]
"""A clause, and either why the step breaks it or that it does not."""
Checks = Iterator[Check]


def judge(checks: Iterable[Check]) -> tuple[str, ...] | Rejected:
    """Return the clauses that a step was put to and kept, or the first that it breaks."""
    tested = []
    for clause_id, kept in checks:
        if isinstance(kept, str):
            return Rejected(clause_id, kept)
        tested.append(clause_id)
    return tuple(tested)


def accept(checks: Iterable[Check], after: State) -> Accepted[State] | Rejected:
    """Accept a step that leads to the state `after`, unless it breaks a check."""
    judged = judge(checks)
    return judged if isinstance(judged, Rejected) else Accepted(after, judged)
