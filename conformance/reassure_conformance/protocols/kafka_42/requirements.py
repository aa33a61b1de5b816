"""What clauses of the first text need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import MESSAGES
from reassure_conformance.gate.requirements import Needs

_COMMAND: Final = "it is the command's, and the gate writes the path itself"
NEEDS: Final = Needs(
    not_claimed={
        "move.tool.creates-path": _COMMAND,
        "move.tool.one-at-a-time": _COMMAND,
        "move.tool.reports": _COMMAND,
        "move.tool.interrupt": _COMMAND,
        "move.failure.leader-does-not-serve": "brokers of the gate do what they are told",
        "election.preferred": "the text elects a preferred leader for no request that it names",
        "election.controlled-shutdown": "brokers of the gate stop without notice",
    },
    # Only who hears the messages can judge these.
    any_of=dict.fromkeys(
        (
            "move.failover.no-needless-election",
            "move.failover.re-elects",
            "move.failover.resumes",
            "move.failure.never-in-sync",
            "move.listener.ignore-in-flight",
            "move.partition.self-transition",
            "move.selector.offline",
            "move.selector.reassigned",
            "move.step.listen",
            "move.step.start-new",
            "move.step.stop-old",
            "request.refuse.dead-replica",
            "shipped.entry.client-asks",
        ),
        (MESSAGES,),
    ),
    told={
        "move.failure.leader-change-unanswered": "answered",
        **dict.fromkeys(
            ("move.replica.new-follows", "move.replica.online", "move.replica.states"), "states"
        ),
    },
)
