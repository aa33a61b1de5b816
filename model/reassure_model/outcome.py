"""What a rule answers: accepted with the clauses it put to the test, or rejected by one clause."""

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
