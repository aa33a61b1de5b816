"""What clauses on leaders, controllers and messages need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import BROKERS, EXPIRE, ISR, KILL, MESSAGES
from reassure_conformance.gate.requirements import Needs, either

NEEDS: Final = Needs(
    {
        "controller.election.held": (either(EXPIRE, KILL),),
        "election.assignment-order": (BROKERS,),
        "election.clean": (either(BROKERS, ISR),),
        "election.held": (BROKERS,),
        "election.live": (either(BROKERS, ISR),),
        "election.only-when-due": (BROKERS,),
        "isr.change.assigned-only": (ISR,),
        "isr.change.by-leader": (ISR,),
        "isr.change.keeps-leader": (ISR,),
        "isr.change.leader-kept": (ISR,),
        "isr.change.live-only": (ISR,),
        "isr.remove.dead": (BROKERS,),
        "leader.none-only-without-candidate": (BROKERS,),
        "message.leader-able": (ISR,),
        "message.leader-knows-assigned": (MESSAGES,),
        "message.replica-told": (MESSAGES,),
        "message.stranger-stopped": (MESSAGES,),
    },
    told={
        "message.broker-epoch": "broker_epoch",
        "message.deleted-after-cut": "zxid",
        "message.is-new": "is_new",
        "message.replicas-assigned": "zxid",
        "message.sender": "zxid",
        "message.state-version": "state_version",
        "message.stop-epoch": "leader_epoch",
        "message.stored-first": "zxid",
        "partition.transition.valid-previous": "states",
        "replica.transition.valid-previous": "states",
    },
)
