"""Watermarks, lag and in-sync sets: what a leader concludes of its followers, and what it loses."""

from typing import Final

from reassure_proofs.protocols.kafka_4485 import insync, lag, leader, replication

THEOREMS: Final = (
    *insync.THEOREMS,
    *lag.THEOREMS,
    *replication.THEOREMS,
    *leader.THEOREMS,
)
RULES: Final = (insync.RULE,)
