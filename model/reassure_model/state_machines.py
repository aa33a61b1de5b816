"""Transitions of replicas and partitions, by the tables of `reassure_spec.state_tables`."""

from collections.abc import Mapping
from typing import TypeVar

from reassure_model.outcome import Accepted, Rejected
from reassure_spec.clauses import checks
from reassure_spec.state_tables import (
    DROP_PATH,
    PARTITION_TABLES,
    REPLICA_TABLES,
    PartitionState,
    ReplicaState,
)

__all__ = [
    "DROP_PATH",
    "PARTITION_TABLES",
    "REPLICA_TABLES",
    "PartitionState",
    "ReplicaState",
    "move_partition",
    "move_replica",
]

Machine = TypeVar("Machine", ReplicaState, PartitionState)


def _move(
    previous: Machine, state: Machine, table: Mapping[Machine, frozenset[Machine]], clause_id: str
) -> Accepted[Machine] | Rejected:
    if state not in table:
        return Rejected(clause_id, f"{state.name} does not exist in this profile")
    if previous not in table[state]:
        return Rejected(clause_id, f"{previous.name} is no valid previous state of {state.name}")
    return Accepted(state, (clause_id,))


@checks
def move_replica(
    previous: ReplicaState, state: ReplicaState, profile: str
) -> Accepted[ReplicaState] | Rejected:
    """Move a replica to `state`, or say why it may not; a rejected move changes nothing."""
    return _move(previous, state, REPLICA_TABLES[profile], "replica.transition.valid-previous")


@checks
def move_partition(
    previous: PartitionState, state: PartitionState, profile: str
) -> Accepted[PartitionState] | Rejected:
    """Move a partition to `state`, or say why it may not; a rejected move changes nothing."""
    return _move(previous, state, PARTITION_TABLES[profile], "partition.transition.valid-previous")
