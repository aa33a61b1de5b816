"""Watermarks, lag and in-sync sets: what a leader concludes of its followers, and what it loses."""

from typing import Final

from reassure_proofs.engine.statement import Rule, Theorem
from reassure_proofs.theorems.kafka_4485.insync import IN_SYNC_THEOREMS, RULE
from reassure_proofs.theorems.kafka_4485.lag import LAG_THEOREMS
from reassure_proofs.theorems.kafka_4485.leader import LEADER_THEOREMS
from reassure_proofs.theorems.kafka_4485.replication import REPLICA_THEOREMS

THEOREMS: Final[tuple[Theorem, ...]] = (
    *IN_SYNC_THEOREMS,
    *LAG_THEOREMS,
    *REPLICA_THEOREMS,
    *LEADER_THEOREMS,
)
RULES: Final[tuple[Rule, ...]] = (RULE,)
