"""Which states a controller takes replicas and partitions through."""

import logging

import pytest

from reassure_controller.context import Context, LiveBroker, PartitionContext
from reassure_controller.states import P, R, States
from reassure_spec.znodes import ReassignmentZnode, StateZnode

KEY = ("t", 0)


def brokers(*live: int) -> dict[int, LiveBroker]:
    """Return these brokers by id."""
    return {one: LiveBroker(one, 0, "127.0.0.1", 1) for one in live}


def make_context(profile: str = "kip-236", *live: int) -> Context:
    """Return the memory of a controller in office: one partition on 1 and 2, led by 1."""
    context = Context(brokers=brokers(*(live or (1, 2, 3))), states=States(profile))
    context.put(KEY, PartitionContext((1, 2), StateZnode(1, 0, 1, (1, 2)), 0))
    context.states.begin(context)
    return context


def list_moves(context: Context) -> list[tuple[int | None, str]]:
    """Return where replicas and partitions went since the last call."""
    news = context.states.take_news(1)
    return [(who, after) for line in news for who, _, after in line.moves]


def test_refused_transition_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """What the tables do not allow is an error in the log, and the state stays."""
    context = make_context()
    with caplog.at_level(logging.ERROR):
        context.states.move(KEY, 1, R.DELETION_STARTED, R.DELETION_SUCCESSFUL)
    assert "replica 1 may not go from ONLINE to DELETION_STARTED" in caplog.text
    assert context.states.find(KEY, 1) is R.ONLINE
    assert not list_moves(context)


@pytest.mark.parametrize(
    ("profile", "deleting"),
    [
        ("kip-236", ["OFFLINE", "DELETION_STARTED", "DELETION_SUCCESSFUL", "NON_EXISTENT"]),
        ("kafka-42", ["OFFLINE", "NON_EXISTENT"]),
    ],
)
def test_moved_replicas_go_by_the_table(profile: str, deleting: list[str]) -> None:
    """One that is started is new until the target is in sync; one that leaves goes step by step."""
    context = make_context(profile)
    states = context.states
    child = ReassignmentZnode(2, (1, 3))
    context.put(KEY, PartitionContext((1, 2, 3), StateZnode(1, 1, 1, (1, 2)), 1, child, 0))
    states.tell(KEY, (1, 2, 3))
    states.settle(context, KEY)
    assert list_moves(context) == [(3, "NEW")]
    context.put(KEY, PartitionContext((1, 2, 3), StateZnode(1, 1, 1, (1, 2, 3)), 2, child, 0))
    states.settle(context, KEY)
    assert list_moves(context) == [(3, "ONLINE")]
    states.stop(KEY, (2,), delete=False)
    states.stop(KEY, (2,), delete=True)
    states.settle(context, KEY)
    states.end(KEY, 2, R.DELETION_SUCCESSFUL)
    context.put(KEY, PartitionContext((1, 3), StateZnode(1, 3, 1, (1, 3)), 4, child, 0))
    states.settle(context, KEY)
    assert list_moves(context) == [(2, state) for state in deleting]


def test_death_takes_replica_and_partition_offline() -> None:
    """A replica is offline while its broker is dead, and its partition while nobody leads."""
    context = make_context()
    del context.brokers[1]
    context.states.lose(context, {1})
    assert list_moves(context) == [(1, "OFFLINE"), (None, "OFFLINE")]
    context.put(KEY, PartitionContext((1, 2), StateZnode(2, 1, 1, (2,)), 1))
    context.states.settle(context, KEY)
    context.brokers.update(brokers(1))
    context.states.tell(KEY, (1,))
    assert list_moves(context) == [(None, "ONLINE"), (1, "ONLINE")]


def test_partition_that_is_dropped_does_not_exist() -> None:
    """Partition and deleted replicas of a topic that is gone do not exist."""
    context = make_context()
    for replica in (1, 2):
        context.states.move(KEY, replica, R.OFFLINE, R.DELETION_STARTED, R.DELETION_SUCCESSFUL)
    list_moves(context)
    context.drop(KEY)
    assert list_moves(context)[-1] == (None, "NON_EXISTENT")
    assert context.states.find(KEY, 1) is R.NON_EXISTENT
    assert context.states.find(KEY, None) is P.NON_EXISTENT
