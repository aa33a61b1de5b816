"""The life of a reassignment: its stages, and the writes that lead from one to the next.

A stage is read off the partition; nobody stores it. It says what comes next where nothing gets in
the way. Between any two writes a replica may leave the in-sync set, a leader may die or a request
may change the target, so that a stage can be left towards an earlier one. Elections, and what dead
brokers leave behind, may come in every stage and leave it as it is, but for those that cut a target
replica out of the in-sync set.

Each move names the checks of `kip_236.rules` that the write is put to there; which write is due is
for `kip_236.next_write` to say. That these moves are the ones that there are, and that a write is
put to these checks in them and to no others, is shown by exploration.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from reassure_explorer.lifecycle import Lifecycle, Moves, lead_to
from reassure_model.partition import Partition, Request, is_target_in_sync
from reassure_model.protocols.kip_236 import assignment_rules, record_rules, rules
from reassure_model.protocols.kip_236.system import System
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
    WriteState,
)


class ReassignmentStage(Enum):
    """Where a partition stands; the value says what there is to do."""

    AT_REST = "nothing is asked for"
    REQUESTED = "the lowest request is to be recorded, or refused"
    DROPPING = "the target has changed: some replicas leave before others come"
    EXPANDING = "the rest of the target is to be assigned"
    ANNOUNCING = "the leader is to be told of the assignment, by a new epoch"
    WAITING = "the target is to get in sync"
    COMPLETING = "the target is in sync: it is to lead, the old replicas are to stop"
    DONE = "the target alone is assigned: the record is to go"


S = ReassignmentStage


def find_stage(partition: Partition) -> ReassignmentStage:
    """Return where a partition stands."""
    flight, assigned = partition.reassignment, partition.assigned
    if flight is None or assigned is None:
        return S.REQUESTED if partition.requests else S.AT_REST
    if partition.drop_due:
        return S.DROPPING
    if any(replica not in assigned for replica in flight.target):
        return S.EXPANDING
    if partition.announce_due:
        return S.ANNOUNCING
    if not (partition.completing or is_target_in_sync(partition)):
        return S.WAITING
    if assigned != flight.target:
        return S.COMPLETING
    return S.DONE


_STATE: Final = (rules.check_epochs, rules.check_state)
_CHANGE: Final = lead_to(S.DROPPING, by=(record_rules.check_update_reassignment,))
_LAG: Final = lead_to(S.WAITING, by=(rules.check_change_isr,))
_DROP: Final = (
    assignment_rules.check_drop,
    assignment_rules.check_expansion,
    assignment_rules.check_completion,
)

MOVES: Final[Moves] = {
    (S.AT_REST, Request): lead_to(S.REQUESTED),
    (S.REQUESTED, DeleteRequest): lead_to(S.AT_REST, by=(record_rules.check_delete_request,)),
    (S.REQUESTED, CreateReassignment): lead_to(
        S.EXPANDING, by=(record_rules.check_create_reassignment,)
    ),
    (S.EXPANDING, WriteAssigned): lead_to(S.ANNOUNCING, by=(assignment_rules.check_expansion,)),
    (S.ANNOUNCING, WriteState): lead_to(S.WAITING, S.COMPLETING, S.DONE, by=_STATE),
    (S.WAITING, ChangeIsr): lead_to(S.COMPLETING, S.DONE, by=(rules.check_change_isr,)),
    (S.WAITING, UpdateReassignment): _CHANGE,
    (S.COMPLETING, ChangeIsr): _LAG,
    (S.COMPLETING, WriteState): lead_to(S.WAITING, by=_STATE),
    (S.COMPLETING, WriteAssigned): lead_to(S.DONE, by=(assignment_rules.check_completion,)),
    (S.COMPLETING, UpdateReassignment): _CHANGE,
    (S.DROPPING, WriteAssigned): lead_to(S.EXPANDING, S.ANNOUNCING, S.DONE, by=_DROP),
    (S.DONE, ChangeIsr): _LAG,
    (S.DONE, WriteState): lead_to(S.WAITING, by=_STATE),
    (S.DONE, UpdateReassignment): _CHANGE,
    (S.DONE, DeleteReassignment): lead_to(
        S.AT_REST, S.REQUESTED, by=(record_rules.check_delete_reassignment,)
    ),
}
"""Where a write, or a request that is submitted, leads from a stage that it ends."""

FORGETS: Final[Mapping[Enum, frozenset[Enum]]] = {
    S.DROPPING: frozenset({S.EXPANDING, S.WAITING, S.COMPLETING}),
    S.COMPLETING: frozenset({S.WAITING}),
    S.DONE: frozenset({S.WAITING}),
}
"""Where the next controller finds a partition, who remembers neither drop nor completion."""

LIFECYCLE: Final[Lifecycle[System]] = Lifecycle(
    "a reassignment",
    ReassignmentStage,
    lambda system, _: {"": find_stage(system.partition)},
    MOVES,
    FORGETS,
)
