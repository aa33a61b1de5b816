"""What clauses on deletions, preferred leaders and shutdowns need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import BROKERS, DELETION, KILL, MESSAGES, PREFERRED, SHUTDOWN
from reassure_conformance.gate.requirements import Needs

NEEDS: Final = Needs(
    {
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
)
