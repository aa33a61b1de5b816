"""Which clauses are made for which planted fault: the expected cells of the kill matrix."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

EXPECTED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "drop-slice-exclusive": ("drop.keep-top", "drop.leader-kept", "drop.slice.inclusive"),
        "drop-after-expansion": ("drop.before-expansion", "drop.keep-top"),
        "drop-skipped": ("drop.carried-out", "drop.before-expansion"),
        "stop-before-in-sync": ("complete.target-in-sync",),
        "leader-outside-target": ("complete.leader-in-target",),
        "delete-request-before-child": ("request.delete.child-first", "child.from-request"),
        "requests-unsorted": ("request.order.sequence",),
        "top-recomputed-on-failover": ("top.once-per-chain",),
        "no-epoch-check": ("controller.write.epoch-checked", "controller.write.by-controller"),
        "unconditional-state-write": ("state.write-conditional",),
        "child-recreated": ("child.update-in-place",),
        "unknown-partition-kept": ("request.refuse.unknown-partition", "request.consumed"),
        "isr-keeps-removed": ("complete.isr-before-assigned",),
        "top-below-min-accepted": ("top.at-least-min-isr",),
        "duplicate-target-accepted": ("request.refuse.duplicate-replica",),
        "expand-skipped-order": ("complete.isr-before-assigned",),
        "completion-keeps-child": ("complete.carried-out",),
        "completion-unannounced": ("complete.announced",),
        "election-any-assigned": ("election.clean",),
        "no-epoch-bump-on-election": ("leader-epoch.raised-by-one",),
        "resume-skipped": ("complete.carried-out", "expand.carried-out", "expand.announced"),
        "malformed-request-kept": (
            "request.refuse.malformed",
            "request.refuse.too-large",
            "request.consumed",
        ),
        "dead-replica-kept": ("isr.remove.dead",),
        "target-reordered": ("complete.target-order",),
        "update-resets-top": ("top.once-per-chain",),
    }
)
"""The clauses that are made for each fault."""
