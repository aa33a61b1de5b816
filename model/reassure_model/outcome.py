"""What a rule answers: accepted with the clauses it put to the test, or rejected by one clause."""

from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Accepted(Generic[State]):
    """The step may happen."""

    state: State
    clauses: tuple[str, ...] = ()
    """The clauses that the step put to the test and that allowed it."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The step may not happen."""

    clause: str
    """The first clause that it would break."""
    reason: str
