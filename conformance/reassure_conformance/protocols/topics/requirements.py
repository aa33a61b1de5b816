"""What clauses on deletions, preferred leaders and shutdowns need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import (
    BROKERS,
    DELETION,
    EXAMPLE,
    KILL,
    MESSAGES,
    PREFERRED,
    SHUTDOWN,
)
from reassure_conformance.gate.requirements import Needs

_JUDGED: Final = {
    "act.deletion-carried-out": (DELETION,),
    "act.preferred-election-held": (PREFERRED,),
    "act.shutdown-handed-over": (SHUTDOWN,),
    "shipped.delete.blocks-reassignment": (DELETION,),
    "topic.delete.all-successful-first": (DELETION, MESSAGES),
    "topic.delete.asked-last": (DELETION,),
    "topic.delete.failed-retried-later": (DELETION, MESSAGES, BROKERS),
    "topic.delete.failover-begins-again": (DELETION, MESSAGES, KILL),
    "topic.delete.unknown-removed": (DELETION,),
    "topic.delete.waits-for-brokers": (DELETION, BROKERS),
}
NEEDS: Final = Needs({clause: (*needs, EXAMPLE) for clause, needs in _JUDGED.items()})
"""What is asked for is followed from the beginning of a cluster that lives for one example."""
