"""What happens in an example, and what must come up in one: events and coverage goals.

An example's *history* is a sequence of events in order: steps taken, transactions of the cluster
(those that were refused as well) with what ZooKeeper held before and after, messages that brokers
received, and moments of rest. A coverage goal is recognised in it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reassure_conformance.gate import steps as s
from reassure_judge.live_events import ClusterView, Received, Rested, StatesSaid, Wrote


@dataclass(frozen=True, slots=True)
class Took:
    """A step was taken."""

    step: s.ClusterStep
    result: str


Event = Took | Wrote | Received | StatesSaid | Rested
History = Sequence[Event]


@dataclass(frozen=True, slots=True)
class CoverageGoal:
    """What has to come up before clauses count as put to the test."""

    name: str
    sentence: str
    clauses: tuple[str, ...]
    """The clauses that are put to the test only where it comes up."""
    count: Callable[[Any], int]
    """How often it came up in a history, or by an event of brokers with logs."""
    case: str
    """The shipped test case that gets there, and by which generation does."""
    needs: frozenset[str] = frozenset()
    """The capabilities that it takes."""
    protocol: str = ""
    """Whose it is, by its folder: it comes up under the profiles that the protocol is one of."""


def iterate_writes(history: History) -> Iterator[tuple[int, Wrote]]:
    """Yield the transactions, each with its place."""
    for place, event in enumerate(history):
        if isinstance(event, Wrote):
            yield place, event


def iterate_steps(history: History) -> Iterator[tuple[s.ClusterStep, ClusterView]]:
    """Yield the steps that were done, each with what ZooKeeper held then."""
    view = None
    for event in history:
        if isinstance(event, Wrote):
            view = event.after
        elif isinstance(event, Took) and event.result == "ok" and view is not None:
            yield event.step, view


def iterate_failovers(history: History) -> Iterator[tuple[int, Wrote]]:
    """Yield every election but a cluster's first, each with its place."""
    for place, wrote in iterate_writes(history):
        if wrote.elects and wrote.before.controller_epoch:
            yield place, wrote
