"""What must come about: properties of whole runs, each named, in the four forms that are common.

A run is looked at only where it treats the fair actions fairly (`Action.fair`, `Action.strong`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

ALWAYS_EVENTUALLY: Final = "[]<>P"
EVENTUALLY: Final = "<>P"
LEADS_TO: Final = "P ~> Q"
EVENTUALLY_ALWAYS: Final = "<>[]P"


@dataclass(frozen=True, slots=True)
class Temporal:
    """A property of runs; made by one of the functions below."""

    name: str
    form: str
    """As TLA+ writes it."""
    wanted: Callable[[Any], bool]
    """What must come about: P, or Q of what P leads to."""
    when: Callable[[Any], bool] | None = None
    """For what leads to something: P."""


def always_eventually(name: str, wanted: Callable[[Any], bool]) -> Temporal:
    """Say that every fair run comes to such a state again and again: []<>P."""
    return Temporal(name, ALWAYS_EVENTUALLY, wanted)


def eventually(name: str, wanted: Callable[[Any], bool]) -> Temporal:
    """Say that every fair run comes to such a state: <>P."""
    return Temporal(name, EVENTUALLY, wanted)


def leads_to(name: str, when: Callable[[Any], bool], wanted: Callable[[Any], bool]) -> Temporal:
    """Say that in every fair run `when` is followed by `wanted`, at once or later: P ~> Q."""
    return Temporal(name, LEADS_TO, wanted, when)


def eventually_always(name: str, wanted: Callable[[Any], bool]) -> Temporal:
    """Say that every fair run comes to such states and never leaves them any more: <>[]P."""
    return Temporal(name, EVENTUALLY_ALWAYS, wanted)
