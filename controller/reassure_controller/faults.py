"""Mistakes that can be planted in the controller, each by name and all of them off.

A fault is one small branch at the place where the mistake would be made. A suite that cannot tell
a controller with a fault from one without it does not check the rule that the fault breaks.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

FAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "drop-slice-exclusive": "The drop rule keeps one replica fewer than top.",
        "drop-after-expansion": "The drop set is computed after the target was added.",
        "drop-skipped": "A change of the target drops nothing.",
        "stop-before-in-sync": "A reassignment completes before its target is in sync.",
        "leader-outside-target": "Completion leaves a leader that is not in the target.",
        "delete-request-before-child": "The request is deleted before the child is written.",
        "requests-unsorted": "Requests are carried out in the reverse of their sequence.",
        "top-recomputed-on-failover": "A failover replaces top by the length of the assignment.",
        "no-epoch-check": "Writes do not check the controller epoch and nobody resigns.",
        "unconditional-state-write": "State is written unconditionally, from memory.",
        "child-recreated": "A change deletes and creates the child instead of setting its data.",
        "unknown-partition-kept": "A request for an unknown partition is never deleted.",
        "isr-keeps-removed": "Completion leaves the removed replicas in the in-sync set.",
        "top-below-min-accepted": "A reassignment with top below min.insync.replicas is accepted.",
        "duplicate-target-accepted": "A target that names a broker twice is accepted.",
        "expand-skipped-order": "Completion writes the assignment before it shrinks the ISR.",
        "completion-keeps-child": "A completed reassignment leaves its child znode.",
        "completion-unannounced": "Completion leaves the epoch alone where the leader stays.",
        "election-any-assigned": "An election takes any live assigned replica, in sync or not.",
        "no-epoch-bump-on-election": "An election leaves the leader epoch as it was.",
        "resume-skipped": "A failover does not resume the reassignments in flight.",
        "malformed-request-kept": "A malformed request is never deleted.",
        "dead-replica-kept": "Dead replicas are never removed from the in-sync set.",
        "target-reordered": "Completion writes the target sorted instead of as asked.",
        "update-resets-top": "A change of the target replaces top by the assignment's length.",
    }
)
"""Every fault by name, with one sentence that says what goes wrong."""


class UnknownFault(ValueError):
    """A fault name that `FAULTS` does not have."""


def check_faults(names: Iterable[str]) -> frozenset[str]:
    """Return the names as a set. Raises UnknownFault for a name that is not in `FAULTS`."""
    chosen = frozenset(names)
    unknown = sorted(chosen - FAULTS.keys())
    if unknown:
        raise UnknownFault(
            f"no such fault: {', '.join(unknown)}; the faults are: {', '.join(FAULTS)}"
        )
    return chosen
