"""The state machines, each transition of the grid by name."""

import pytest

from reassure_model.outcome import Accepted, Rejected
from reassure_model.state_machines import (
    DROP_PATH,
    PARTITION_TABLES,
    REPLICA_TABLES,
    PartitionState,
    ReplicaState,
    move_partition,
    move_replica,
)

# Rows: from. Columns: to New, Online, Offline, DeletionStarted, DeletionSuccessful,
# DeletionIneligible, NonExistent.
REPLICA_GRIDS = {
    "kip-236": """
        NEW                 . x x . . . .
        ONLINE              . x x . . . .
        OFFLINE             . x x x . x .
        DELETION_STARTED    . . . . x x .
        DELETION_SUCCESSFUL . . . . . . x
        DELETION_INELIGIBLE . x x . . . .
        NON_EXISTENT        x . . . . . .
    """,
    "kafka-42": """
        NEW                 . x x . . . .
        ONLINE              . x x . . . .
        OFFLINE             . x . . . . x
        DELETION_STARTED    . . . . . . .
        DELETION_SUCCESSFUL . . . . . . .
        DELETION_INELIGIBLE . . . . . . .
        NON_EXISTENT        x . . . . . .
    """,
}
# Columns: to New, Online, Offline, NonExistent.
PARTITION_GRIDS = {
    "kip-236": """
        NEW          . x x .
        ONLINE       . x x .
        OFFLINE      . x x x
        NON_EXISTENT x . . .
    """,
    "kafka-42": """
        NEW          . x x .
        ONLINE       . x x .
        OFFLINE      . x . x
        NON_EXISTENT x . . .
    """,
}


def read_grid(text: str) -> dict[str, list[bool]]:
    """Return for each previous state which states may follow, in enum order."""
    rows = [line.split() for line in text.strip().splitlines()]
    return {row[0]: [cell == "x" for cell in row[1:]] for row in rows}


@pytest.mark.clause("replica.transition.valid-previous")
@pytest.mark.parametrize("profile", REPLICA_TABLES)
@pytest.mark.parametrize("previous", ReplicaState)
def test_replica_transition_follows_grid(profile: str, previous: ReplicaState) -> None:
    """From each replica state exactly the transitions of the grid are accepted."""
    expected = read_grid(REPLICA_GRIDS.get(profile, REPLICA_GRIDS["kip-236"]))[previous.name]
    found = [move_replica(previous, state, profile) for state in ReplicaState]
    assert [isinstance(outcome, Accepted) for outcome in found] == expected


@pytest.mark.clause("partition.transition.valid-previous")
@pytest.mark.parametrize("profile", PARTITION_TABLES)
@pytest.mark.parametrize("previous", PartitionState)
def test_partition_transition_follows_grid(profile: str, previous: PartitionState) -> None:
    """From each partition state exactly the transitions of the grid are accepted."""
    expected = read_grid(PARTITION_GRIDS.get(profile, PARTITION_GRIDS["kip-236"]))[previous.name]
    found = [move_partition(previous, state, profile) for state in PartitionState]
    assert [isinstance(outcome, Accepted) for outcome in found] == expected


@pytest.mark.clause("replica.transition.valid-previous")
def test_rejected_transition_names_clause() -> None:
    """A transition that the table does not have is rejected by its clause, with both states."""
    outcome = move_replica(ReplicaState.NEW, ReplicaState.NON_EXISTENT, "kip-236")
    assert isinstance(outcome, Rejected)
    assert outcome.clause == "replica.transition.valid-previous"
    assert "NEW" in outcome.reason
    assert "NON_EXISTENT" in outcome.reason


def test_drop_path_legal_from_each_running_state() -> None:
    """A dropped replica gets from running to gone by valid transitions only."""
    for start in (ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE):
        previous = start
        for state in DROP_PATH:
            assert isinstance(move_replica(previous, state, "kip-236"), Accepted)
            previous = state


def test_codes_are_kafkas() -> None:
    """The states carry the numbers that Kafka gives them."""
    assert [state.value for state in ReplicaState] == [1, 2, 3, 4, 5, 6, 7]
    assert [state.value for state in PartitionState] == [0, 1, 2, 3]
