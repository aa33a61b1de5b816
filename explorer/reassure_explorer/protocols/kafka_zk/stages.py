"""The life of a partition under shipped controllers: from what is asked for until it is there."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from reassure_explorer.lifecycle import Lifecycle, Moves, lead_to
from reassure_model.copies import is_in_sync
from reassure_model.environment import Join
from reassure_model.protocols.kafka_zk import (
    Alter,
    CutIsr,
    Elect,
    Look,
    Record,
    RemoveEntry,
    Shipped,
    WriteEntry,
    apply_effect,
    plan_call,
    plan_change,
    plan_phase,
    reassign_to,
)
from reassure_model.protocols.kafka_zk.machine import can_join_told


class ShippedStage(Enum):
    """Where a partition stands; the value says what there is to do."""

    AT_REST = "nothing is asked for"
    ASKED = "what is asked for is to be recorded, or the old znode to be taken up"
    RECORDED = "what the target does not need is to stop; then it is looked who is in sync"
    ADDING = "the replicas of the target are to be in sync"
    COMPLETING = "the target is in sync: it is to be led, and what is removed to stop"
    REACHED = "the target is all that is assigned: the old znode's entry for it is to go"


S = ShippedStage


def find_stage(shipped: Shipped) -> ShippedStage:
    """Return where a partition stands."""
    due = {effect.step for effect in shipped.plan if isinstance(effect, Record)}
    if "U1" in due or (shipped.unread and shipped.entry is not None):
        return S.ASKED
    if Look() in shipped.plan:
        return S.RECORDED
    now = shipped.assignment
    if "B6" in due or (now.is_reassigning and is_in_sync(shipped, now.target)):
        return S.COMPLETING
    if now.is_reassigning:
        return S.ADDING
    return S.REACHED if RemoveEntry(now.target, "B7") in shipped.plan else S.AT_REST


_CALLED: Final = lead_to(S.ASKED, S.RECORDED, by=(plan_call,))
_WRITTEN: Final = lead_to(S.ASKED)
_LOOKED: Final = lead_to(S.ADDING, S.COMPLETING, by=(plan_phase,))

MOVES: Final[Moves] = {
    (S.AT_REST, Alter): _CALLED,
    (S.AT_REST, WriteEntry): _WRITTEN,
    (S.ASKED, Record): lead_to(S.RECORDED, by=(plan_change, reassign_to)),
    (S.ASKED, Look): _LOOKED,
    (S.ASKED, RemoveEntry): lead_to(S.RECORDED, S.AT_REST, by=(apply_effect, plan_call)),
    (S.RECORDED, Look): _LOOKED,
    (S.RECORDED, WriteEntry): _WRITTEN,
    (S.ADDING, Join): lead_to(S.COMPLETING, by=(can_join_told,)),
    (S.ADDING, Alter): _CALLED,
    (S.ADDING, WriteEntry): _WRITTEN,
    (S.COMPLETING, Record): lead_to(S.REACHED, by=(plan_phase,)),
    (S.COMPLETING, CutIsr): lead_to(S.ADDING),
    (S.COMPLETING, Elect): lead_to(S.ADDING),
    (S.COMPLETING, Alter): _CALLED,
    (S.COMPLETING, WriteEntry): _WRITTEN,
    (S.REACHED, RemoveEntry): lead_to(S.AT_REST, by=(plan_phase, apply_effect)),
    (S.REACHED, WriteEntry): _WRITTEN,
}
"""Where a step leads from a stage that it ends. Whoever calls for what is recorded already has it
looked at again; a target falls out of sync where one of it is found dead."""

FORGETS: Final[Mapping[Enum, frozenset[Enum]]] = {
    S.AT_REST: frozenset({S.ASKED}),
    S.ASKED: frozenset({S.AT_REST, S.ADDING, S.COMPLETING}),
    S.RECORDED: frozenset({S.AT_REST, S.ASKED, S.ADDING, S.COMPLETING}),
    S.ADDING: frozenset({S.ASKED}),
    S.COMPLETING: frozenset({S.AT_REST, S.ASKED}),
    S.REACHED: frozenset({S.AT_REST, S.ASKED}),
}
"""A plan is lost, and with it a call that was not recorded; an entry of the old znode is taken up
again, also one that was left there."""


LIFECYCLE: Final[Lifecycle[Shipped]] = Lifecycle(
    "a partition of a shipped controller",
    ShippedStage,
    lambda shipped, _: {"": find_stage(shipped)},
    MOVES,
    FORGETS,
)
