"""What clauses on requests and records need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import BROKERS, ISR, KILL, REQUESTS
from reassure_conformance.gate.requirements import Needs

NEEDS: Final = Needs(
    {
        "child.foreign-removed": (KILL,),
        "complete.leader-first-in-sync-target": (ISR,),
        "drop.isr-at-least-min": (ISR,),
        # Who leads stays in sync, so only a leader that is lost makes a drop wait.
        "drop.offline.skip": (BROKERS,),
        "request.foreign-removed": (REQUESTS,),
        "request.refuse.malformed": (REQUESTS,),
        "request.refuse.too-large": (REQUESTS,),
    },
    told={"drop.replica.states": "states"},
)
