"""What controllers say of the states of replicas and partitions, judged."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from reassure_judge.live_events import ClusterView
from reassure_judge.messages import StoredStates, Told, ToldStates
from reassure_judge.state_moves import StateJudge
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_spec.znodes import ReplicaList, StateZnode

KEY = ("orders", 0)
DROPPED = ("ONLINE", "OFFLINE", "DELETION_STARTED", "DELETION_SUCCESSFUL", "NON_EXISTENT")
Move = tuple[int | None, str, str]


def walk(replica: int | None, *states: str) -> list[Move]:
    """Return the moves from state to state."""
    return [(replica, *pair) for pair in pairwise(states)]


class Cluster:
    """One partition on 1 and 2 that a controller in epoch 1 looks after."""

    def __init__(self, profile: str) -> None:
        self.stored = StoredStates()
        self.judge = StateJudge(profile, self.stored)
        self.found: list[str] = []
        self.kept: list[str] = []

    def say(self, moves: Sequence[Move], epoch: int = 1) -> None:
        """Have the controller of an epoch say moves."""
        self._note(self.judge.take(ToldStates(epoch, *KEY, tuple(moves))))

    def tell(self, broker: int, *, leader: int | None = None, is_new: bool = False) -> None:
        """Have a broker told who leads, or to delete its replica."""
        state = None if leader is None else StateZnode(leader, 3, 1, (1, 2))
        told = Told(broker, *KEY, 1, state, delete=state is None, is_new=is_new)
        self._note(self.judge.judge(told))

    def rest(self, assigned: ReplicaList, isr: ReplicaList, target: ReplicaList = ()) -> None:
        """Have the cluster rest."""
        flight = Reassignment(target, 2) if target else None
        partition = Partition(assigned, LeaderAndIsr(1, 3, 1, isr), flight)
        self.stored.note(9, {KEY: partition}, 1)
        live = frozenset({1, 2, 3})
        view = ClusterView({KEY: partition}, live, live, 1001, 1, (), {})
        self._note(self.judge.rest(view, set()))

    def _note(self, verdicts: object) -> None:
        for _, outcome in verdicts:  # type: ignore[attr-defined]
            broken = isinstance(outcome, Rejected)
            (self.found if broken else self.kept).append(outcome.clause if broken else outcome)


REPLICA = "replica.transition.valid-previous"
PARTITION = "partition.transition.valid-previous"


@pytest.mark.parametrize(
    ("profile", "moves", "broken"),
    [
        ("kip-236", walk(1, *DROPPED), []),
        ("kip-236", walk(1, "ONLINE", "DELETION_STARTED"), [REPLICA]),
        ("kip-236", walk(1, "OFFLINE", "NON_EXISTENT"), [REPLICA]),
        ("kafka-42", walk(1, "OFFLINE", "NON_EXISTENT"), []),
        ("kafka-42", walk(1, "OFFLINE", "DELETION_STARTED"), [REPLICA]),
        ("kip-236", [*walk(1, "ONLINE", "OFFLINE"), *walk(1, "NEW", "ONLINE")], [REPLICA]),
        ("kip-236", walk(None, "NON_EXISTENT", "NEW", "ONLINE", "OFFLINE", "NON_EXISTENT"), []),
        ("kip-236", walk(None, "NON_EXISTENT", "ONLINE"), [PARTITION]),
        ("kip-236", [*walk(None, "NEW", "ONLINE"), *walk(None, "NEW", "OFFLINE")], [PARTITION]),
    ],
)
@pytest.mark.clause(REPLICA, PARTITION)
def test_transitions_are_those_of_the_table(
    profile: str, moves: list[Move], broken: list[str]
) -> None:
    """A transition leads from where the controller said it was, to where the table allows."""
    cluster = Cluster(profile)
    cluster.say(moves)
    assert cluster.found == broken


def test_terms_are_judged_apart() -> None:
    """What an earlier controller said binds no later one, and a partition made anew begins anew."""
    cluster = Cluster("kip-236")
    cluster.say(walk(1, "ONLINE", "OFFLINE"))
    cluster.say(walk(1, "ONLINE", "OFFLINE"), epoch=2)
    cluster.say([*walk(None, "OFFLINE", "NON_EXISTENT")], epoch=2)
    cluster.say(walk(1, "NON_EXISTENT", "NEW"), epoch=2)
    assert not cluster.found


@pytest.mark.parametrize(
    ("profile", "clause", "path"),
    [
        ("kip-236", "drop.replica.states", DROPPED),
        ("kafka-42", "move.replica.states", (*DROPPED[:2], "NON_EXISTENT")),
    ],
)
@pytest.mark.clause("drop.replica.states", "move.replica.states")
def test_replica_that_was_dropped_does_not_exist(
    profile: str, clause: str, path: tuple[str, ...]
) -> None:
    """One that was told to be deleted and is assigned no more has gone all of its way at rest."""
    for known, found in ((len(path) - 1, [clause]), (len(path), [])):
        cluster = Cluster(profile)
        cluster.say(walk(2, *path[:known]))
        cluster.tell(2)
        cluster.rest((1,), (1,))
        assert cluster.found == found
        assert (clause in cluster.kept) == (not found)


@pytest.mark.clause("move.replica.states", "move.replica.online")
def test_started_replica_is_new_until_it_is_in_sync() -> None:
    """Online before it was ever in sync breaks one clause, new behind the move's end another."""
    early, late, right = (Cluster("kafka-42") for _ in range(3))
    for cluster, path in ((early, ("NEW", "ONLINE")), (late, ("NEW",)), (right, ("NEW",))):
        cluster.say(walk(3, "NON_EXISTENT", *path))
        cluster.tell(3, leader=1, is_new=True)
        cluster.rest((1, 2), (1, 2), target=(1, 3))
    right.say(walk(3, "NEW", "ONLINE"))
    for cluster in (late, right):
        cluster.rest((1, 3), (1, 3))
    assert early.found == ["move.replica.states"]
    assert late.found == ["move.replica.online"]
    assert right.found == []
    assert {"move.replica.states", "move.replica.online"} <= set(right.kept)


@pytest.mark.clause("move.replica.states", "move.replica.new-follows")
def test_new_replica_is_told_to_follow() -> None:
    """A broker whose replica is new may not be told to lead, nor one started that is offline."""
    cluster = Cluster("kafka-42")
    cluster.say(walk(3, "NON_EXISTENT", "NEW"))
    cluster.tell(3, leader=1, is_new=True)
    assert not cluster.found
    assert "move.replica.new-follows" in cluster.kept
    cluster.tell(3, leader=3)
    assert cluster.found == ["move.replica.new-follows"]
    cluster.say(walk(3, "NEW", "OFFLINE"))
    cluster.tell(3, leader=1, is_new=True)
    assert cluster.found[1:] == ["move.replica.states"]
