"""What has to come up where the old znode is translated, and how it is recognised.

What stands in the znode is not part of what the judge shows of a cluster, so a recogniser goes by
the steps of the client that writes it, and by whether what is in flight came by it.
"""

from collections.abc import Iterable
from typing import Final

from reassure_conformance.adapter import ISR
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.events import CoverageGoal, History, iterate_steps
from reassure_spec.znodes import PartitionKey, ReplicaList


def _list_asked(step: s.ClusterStep, *, legacy: bool) -> Iterable[tuple[PartitionKey, ReplicaList]]:
    """Return what a client asks for by one of the routes."""
    if legacy and isinstance(step, s.WriteOld):
        return [(entry.key, entry.target) for entry in step.entries]
    return step.targets if not legacy and isinstance(step, s.Request) else ()


def _count(history: History, *, legacy: bool, under_legacy: bool) -> int:
    """Count what asks by one route for another target than what is in flight by one of them."""
    found = 0
    for step, view in iterate_steps(history):
        for key, target in _list_asked(step, legacy=legacy):
            partition = view.partitions.get(key)
            flight = None if partition is None else partition.reassignment
            under = flight is not None and flight.legacy is under_legacy
            found += under and flight is not None and flight.target != target
    return found


COVERAGE_GOALS: Final = (
    CoverageGoal(
        "old-znode-overwritten",
        "A client asks by the old znode for another target while the first is in flight.",
        ("legacy.entry.matching-target", "legacy.entry.removed-when-done"),
        lambda history: _count(history, legacy=True, under_legacy=True),
        "old-znode-overwritten",
        frozenset({ISR}),
    ),
    CoverageGoal(
        "requested-under-an-entry",
        "A client asks by a request for another target than the one in flight by the old znode.",
        ("legacy.conflict.both-ways",),
        lambda history: _count(history, legacy=False, under_legacy=True),
        "old-znode-and-requests",
    ),
    CoverageGoal(
        "entered-under-a-request",
        "A client asks by the old znode for another target than the one in flight by a request.",
        ("legacy.conflict.both-ways", "legacy.entry.refused-removed"),
        lambda history: _count(history, legacy=True, under_legacy=False),
        "old-znode-and-requests",
    ),
)
"""What has to come up where the old znode is translated."""
