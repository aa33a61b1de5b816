"""What clauses on healing need of whom the gate drives.

Tasks are generated for a broker that stays away for longer than an interval.
"""

from typing import Final

from reassure_conformance.adapter import BROKERS, CLOCK, EXPIRE, KILL
from reassure_conformance.gate.requirements import Needs, either

NEEDS: Final = Needs(
    {
        "heal.record.deleted-on-return": (BROKERS,),
        **dict.fromkeys(
            (
                "heal.cancel.automatic-only",
                "heal.cancel.enough-replicas",
                "heal.generate.persisted",
                "heal.generate.replaces-failed",
                "heal.generate.small-tasks",
                "heal.interval",
                "heal.record.deleted-when-scheduled",
                "heal.target.live",
                "heal.target.no-duplicate",
            ),
            (BROKERS, CLOCK),
        ),
        "heal.failover.generated-again": (BROKERS, CLOCK, either(EXPIRE, KILL)),
    }
)
