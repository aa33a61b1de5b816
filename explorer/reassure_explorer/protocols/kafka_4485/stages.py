"""The life of a replica under KAFKA-4485: how close it is to its leader, and what is stored."""

from enum import Enum
from typing import Final

from reassure_explorer.lifecycle import Lifecycle, Moves, lead_to
from reassure_model.protocols.kafka_4485 import compute_isr, compute_pseudo_isr
from reassure_model.protocols.kafka_4485.replication import (
    STEPS,
    CatchUp,
    Elect,
    Follow,
    Join,
    Lag,
    Leave,
    Remove,
    Replication,
    define_isr,
)


class ReplicaStage(Enum):
    """Where a replica stands; the value says what there is to do."""

    LEADING = "it leads: it writes, answers and evaluates the high watermark"
    STALE = "it has not heard of its leader: its log is to be truncated"
    BEHIND = "it lags beyond the limit: it is to catch up"
    CLOSE = "it is within the limit: once it has reached the high watermark it is to join"
    IN_SYNC = "it is in sync, and the high watermark waits for it"
    LAGGING = "it lags beyond the limit: it is to be written out of the in-sync set"


S = ReplicaStage


def find_stage(state: Replication, broker: int) -> ReplicaStage:
    """Return where a replica stands, by what its leader knows."""
    if broker == state.leader:
        return S.LEADING
    if state.replicas[broker].leader_epoch != state.leader_epoch:
        return S.STALE
    stored, close = broker in state.isr, broker in state.term.pseudo_isr
    if close:
        return S.IN_SYNC if stored else S.CLOSE
    return S.LAGGING if stored else S.BEHIND


_ELECT: Final = (STEPS[Elect],)
_CLOSE: Final = (compute_pseudo_isr,)

MOVES: Final[Moves] = {
    (S.LEADING, Elect): lead_to(S.STALE, by=_ELECT),
    (S.STALE, Follow): lead_to(S.BEHIND, S.CLOSE, S.IN_SYNC, S.LAGGING, by=(STEPS[Follow],)),
    (S.BEHIND, CatchUp): lead_to(S.CLOSE, by=_CLOSE),
    (S.BEHIND, Elect): lead_to(S.STALE, by=_ELECT),
    (S.CLOSE, Join): lead_to(S.IN_SYNC, by=(STEPS[Join], compute_isr)),
    (S.CLOSE, Lag): lead_to(S.BEHIND, by=_CLOSE),
    (S.CLOSE, Elect): lead_to(S.STALE, by=_ELECT),
    (S.IN_SYNC, Lag): lead_to(S.LAGGING, by=_CLOSE),
    (S.IN_SYNC, Remove): lead_to(S.CLOSE),
    (S.IN_SYNC, Elect): lead_to(S.LEADING, S.STALE, by=_ELECT),
    (S.LAGGING, CatchUp): lead_to(S.IN_SYNC, by=_CLOSE),
    (S.LAGGING, Leave): lead_to(S.BEHIND, by=(STEPS[Leave], define_isr)),
    (S.LAGGING, Remove): lead_to(S.BEHIND),
    (S.LAGGING, Elect): lead_to(S.LEADING, S.STALE, by=_ELECT),
}
"""Where an action leads from a stage that it ends."""


LIFECYCLE: Final[Lifecycle[Replication]] = Lifecycle(
    "a replica",
    ReplicaStage,
    lambda state, _: {broker: find_stage(state, broker) for broker in range(len(state.replicas))},
    MOVES,
)
