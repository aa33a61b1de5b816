"""What clauses of the first text need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import BROKERS, EXPIRE, KILL, MESSAGES
from reassure_conformance.gate.requirements import Needs, either

_COMMAND: Final = "it is the command's, and the gate writes the path itself"
_OFFICE: Final = either(EXPIRE, KILL)
"""What it takes for another controller to take office."""
NEEDS: Final = Needs(
    {
        # As written nobody leaves the in-sync set, or the lead, but by a death.
        "isr.remove.only-when-due": (BROKERS,),
        "shipped.leader.none-when-stopped": (BROKERS,),
        "state.write-conditional": (BROKERS,),
        "move.failover.no-needless-election": (_OFFICE,),
        "move.failover.re-elects": (_OFFICE, BROKERS),
        "move.failover.resumes": (_OFFICE,),
        "move.selector.offline": (BROKERS,),
        "request.refuse.dead-replica": (BROKERS,),
        "move.failure.never-in-sync": (MESSAGES,),
        "move.step.start-new": (MESSAGES,),
        "move.step.stop-old": (MESSAGES,),
    },
    not_claimed={
        "move.tool.creates-path": _COMMAND,
        "move.tool.one-at-a-time": _COMMAND,
        "move.tool.reports": _COMMAND,
        "move.tool.interrupt": _COMMAND,
        "move.failure.leader-does-not-serve": "brokers of the gate do what they are told",
        "election.preferred": "the text elects a preferred leader for no request that it names",
        "election.controlled-shutdown": "brokers of the gate stop without notice",
    },
    told={
        "move.failure.leader-change-unanswered": "answered",
        **dict.fromkeys(
            ("move.replica.new-follows", "move.replica.online", "move.replica.states"), "states"
        ),
    },
)
