"""What clauses on Kafka's own controllers need of whom the gate drives."""

from typing import Final

from reassure_conformance.gate.requirements import Needs

_BROKEN: Final = "the judge looks at every write, and counts only one that breaks it"
_INSIDE: Final = "it is said of steps that no log shows; the model is explored for it"
NEEDS: Final = Needs(
    not_claimed={
        **dict.fromkeys(
            (
                "assigned.no-duplicates",
                "shipped.assignment.lists-within",
                "shipped.assignment.original-derivable",
                "shipped.change.keeps-in-sync",
                "shipped.entry.client-asks",
            ),
            _BROKEN,
        ),
        **dict.fromkeys(
            (
                "shipped.call.nothing-to-cancel",
                "shipped.call.supplants-entry",
                "shipped.call.validated",
                "shipped.cancel.to-original",
                "shipped.change.unneeded-stopped",
                "shipped.entry.created-only",
                "shipped.entry.matching-target",
                "shipped.entry.supplants",
                "shipped.entry.unknown-removed",
                "shipped.failover.entry-first",
                "shipped.isr.last-kept",
                "shipped.leader.holds-committed",
                "shipped.preferred.target-first",
                "shipped.shutdown.leader-moved",
                "shipped.start.announced-first",
                "shipped.target-start.again",
                "topic.delete.disabled",
                "topic.growth.refused-while-deleting",
                "topic.growth.refused-while-reassigning",
            ),
            _INSIDE,
        ),
    },
)
