"""The life of a reassignment: its stages, and the writes that lead from one to the next.

A stage is read off the partition; nobody stores it. It says what comes next where nothing gets in
the way. Between any two writes a replica may leave the in-sync set, a leader may die or a request
may change the target, so that a stage can be left towards an earlier one. Elections, and what dead
brokers leave behind, may come in every stage and leave it as it is, but for those that cut a target
replica out of the in-sync set.

Which write is allowed in a stage is for the rules to say (`kip_236.rules`), which is due for
`kip_236.obligations`. That these moves are the ones that there are is shown by exploration.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from reassure_model.kip_236.state import Partition, Request, is_target_in_sync
from reassure_model.kip_236.writes import (
    ChangeIsr,
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
    WriteState,
)


class Stage(Enum):
    """Where a partition stands; the value says what there is to do."""

    AT_REST = "nothing is asked for"
    REQUESTED = "the lowest request is to be recorded, or refused"
    DROPPING = "the target has changed: some replicas leave before others come"
    EXPANDING = "the rest of the target is to be assigned"
    ANNOUNCING = "the leader is to be told of the assignment, by a new epoch"
    WAITING = "the target is to get in sync"
    COMPLETING = "the target is in sync: it is to lead, the old replicas are to stop"
    DONE = "the target alone is assigned: the record is to go"


def find_stage(partition: Partition) -> Stage:
    """Return where a partition stands."""
    flight, assigned = partition.reassignment, partition.assigned
    if flight is None or assigned is None:
        return Stage.REQUESTED if partition.requests else Stage.AT_REST
    if partition.drop_due:
        return Stage.DROPPING
    if any(replica not in assigned for replica in flight.target):
        return Stage.EXPANDING
    if partition.announce_due:
        return Stage.ANNOUNCING
    if not (partition.completing or is_target_in_sync(partition)):
        return Stage.WAITING
    if assigned != flight.target:
        return Stage.COMPLETING
    return Stage.DONE


S = Stage

MOVES: Final[Mapping[tuple[Stage, type], frozenset[Stage]]] = MappingProxyType(
    {
        (S.AT_REST, Request): frozenset({S.REQUESTED}),
        (S.REQUESTED, DeleteRequest): frozenset({S.AT_REST}),
        (S.REQUESTED, CreateReassignment): frozenset({S.EXPANDING}),
        (S.EXPANDING, WriteAssigned): frozenset({S.ANNOUNCING}),
        (S.ANNOUNCING, WriteState): frozenset({S.WAITING, S.COMPLETING, S.DONE}),
        (S.WAITING, ChangeIsr): frozenset({S.COMPLETING, S.DONE}),
        (S.WAITING, UpdateReassignment): frozenset({S.DROPPING}),
        (S.COMPLETING, ChangeIsr): frozenset({S.WAITING}),
        (S.COMPLETING, WriteState): frozenset({S.WAITING}),
        (S.COMPLETING, WriteAssigned): frozenset({S.DONE}),
        (S.COMPLETING, UpdateReassignment): frozenset({S.DROPPING}),
        (S.DROPPING, WriteAssigned): frozenset({S.EXPANDING, S.ANNOUNCING, S.DONE}),
        (S.DONE, ChangeIsr): frozenset({S.WAITING}),
        (S.DONE, WriteState): frozenset({S.WAITING}),
        (S.DONE, UpdateReassignment): frozenset({S.DROPPING}),
        (S.DONE, DeleteReassignment): frozenset({S.AT_REST, S.REQUESTED}),
    }
)
"""Where a write, or a request that is submitted, leads from a stage that it ends."""

FORGETS: Final[Mapping[Stage, frozenset[Stage]]] = MappingProxyType(
    {
        S.DROPPING: frozenset({S.EXPANDING, S.WAITING, S.COMPLETING}),
        S.COMPLETING: frozenset({S.WAITING}),
        S.DONE: frozenset({S.WAITING}),
    }
)
"""Where the next controller finds a partition, who remembers neither drop nor completion."""
