"""Each field of what brokers were told is held against what its sender knew by then."""

from typing import Any, Final

import pytest

from reassure_model.messages import EPOCH_DURING_DELETE, are_assigned
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_spec import znodes
from reassure_spec.znodes import NO_LEADER
from reassure_zookeeper.transactions import Create, SetData

KEY: Final = ("orders", 0)


def find_life(cluster: Any, broker: int) -> int:
    """Return the broker epoch: the last transaction that registered the broker."""
    path = znodes.broker_path(broker)
    return int(
        next(t.zxid for t in reversed(cluster.history) if any(op.path == path for op in t.ops))
    )


def list_broken(cluster: Any, broker: int, *, replicas: Any = (1, 2), **said: Any) -> list[str]:
    """Tell a broker what is stored, but for what is said; return the clauses that this breaks."""
    zxid = cluster.history[-1].zxid
    right = {"controller": 1, "broker_epoch": find_life(cluster, broker)}
    right |= {"leader_epoch": 0} if replicas is None else {"state_version": 0, "is_new": True}
    cluster.found.clear()
    cluster.tell(broker, zxid=zxid, replicas=replicas, **(right | said))
    cluster.look(rests=False)
    found: list[str] = cluster.found
    return found


@pytest.mark.clause("message.sender", "message.broker-epoch", "message.state-version")
@pytest.mark.clause("message.replicas-assigned", "message.stop-epoch")
@pytest.mark.parametrize(
    ("said", "broken"),
    [
        ({}, None),
        ({"controller": 2}, "message.sender"),
        ({"controller_epoch": 0}, "message.sender"),
        ({"controller_epoch": 2, "controller": None}, "message.sender"),
        ({"controller": None}, None),
        ({"broker_epoch": 1}, "message.broker-epoch"),
        ({"broker_epoch": -1}, "message.broker-epoch"),
        ({"broker_epoch": None}, None),
        ({"state_version": 1}, "message.state-version"),
        ({"state_version": None}, None),
        ({"replicas": (1,)}, "message.replicas-assigned"),
        ({"replicas": (1, 2, 3)}, "message.replicas-assigned"),
        ({"replicas": (1, 2, 2)}, "message.replicas-assigned"),
        ({"replicas": (2, 1)}, None),
        ({"is_new": None}, None),
    ],
)
def test_field_is_judged(drive: Any, said: dict[str, Any], broken: str | None) -> None:
    """A wrong field breaks its clause; one that is not given, or is right, breaks nothing."""
    cluster = drive("kip-236", hears=True)
    assert list_broken(cluster, 2, **said) == ([] if broken is None else [broken])


@pytest.mark.parametrize(
    ("epoch", "broken"),
    [(1, False), (None, False), (0, True), (2, True), (-1, True), (EPOCH_DURING_DELETE, True)],
)
def test_epoch_of_a_stop_is_judged(drive: Any, epoch: int | None, broken: bool) -> None:
    """A replica is stopped as of the leader epoch that is stored, and that number is judged."""
    cluster = drive("kip-236", hears=True)
    cut = LeaderAndIsr(1, 1, 1, (1,))
    cluster.write(cluster.state_op(cut), session=900, fenced=True)
    found = list_broken(cluster, 2, replicas=None, leader_epoch=epoch)
    assert found == (["message.stop-epoch"] if broken else [])


def test_epoch_of_a_deletion_is_later_than_all(drive: Any) -> None:
    """In the deletion of a topic the number for it is right as well."""
    cluster = drive("kip-236", hears=True)
    cluster.write(Create(znodes.deleted_topic_path("orders")), session=50)
    assert list_broken(cluster, 2, replicas=None, leader_epoch=EPOCH_DURING_DELETE) == []
    assert list_broken(cluster, 2, replicas=None, leader_epoch=3) == ["message.stop-epoch"]


@pytest.mark.clause("message.is-new")
def test_replica_is_new_once(drive: Any) -> None:
    """Who is told a second time is not new; who was assigned under its controller's eyes is."""
    cluster = drive("kip-236", hears=True)
    assert list_broken(cluster, 2, is_new=False) == []  # nobody knows if the controller knew it
    assert list_broken(cluster, 2, is_new=True) == ["message.is-new"]
    cluster.look()
    grown = znodes.encode_topic({0: (1, 2, 3)})
    path = znodes.topic_path("orders")
    cluster.write(SetData(path, grown, 1), session=900, fenced=True)
    assert list_broken(cluster, 3, replicas=(1, 2, 3), is_new=False) == ["message.is-new"]
    cluster.tell(3, zxid=cluster.history[-1].zxid)
    assert list_broken(cluster, 3, replicas=(1, 2, 3), is_new=True) == []


def test_replica_may_be_new_that_was_dropped(drive: Any) -> None:
    """Who is dropped while its broker is down, and is of the target, may have its replica still."""
    cluster = drive("kip-236", hears=True)
    record = znodes.encode_reassignment(znodes.ReassignmentZnode(2, (2, 3)))
    cluster.write(Create(znodes.reassignment_path(*KEY), record), session=900, fenced=True)
    cluster.write(cluster.state_op(LeaderAndIsr(1, 1, 1, (1,))), session=900, fenced=True)
    assert list_broken(cluster, 2, state_version=1) == []
    for version, assigned in enumerate(((1,), (1, 2)), 1):
        topic = SetData(znodes.topic_path("orders"), znodes.encode_topic({0: assigned}), version)
        cluster.write(topic, session=900, fenced=True)
        cluster.look()
    assert list_broken(cluster, 2, state_version=1) == []
    assert list_broken(cluster, 2, state_version=1) == ["message.is-new"]


def test_superseded_controller_is_obeyed_by_nobody(drive: Any) -> None:
    """Of one that has been replaced only its own epoch is judged."""
    cluster = drive("kip-236", hears=True)
    cluster.elect()
    wrong = {"controller_epoch": 1, "broker_epoch": 1}
    assert list_broken(cluster, 2, **wrong, controller=None) == []
    assert list_broken(cluster, 2, **wrong) == ["message.sender"]  # it was elected again since
    assert list_broken(cluster, 2, broker_epoch=1) == ["message.broker-epoch"]


@pytest.mark.parametrize(
    ("replicas", "kept"),
    [((1, 2, 3), True), ((1, 3), True), ((1, 3, 4), True), ((2, 3), False), ((1, 2, 5), False)],
)
def test_replicas_in_flight_come_and_go(replicas: tuple[int, ...], kept: bool) -> None:
    """Those that go may be missing, and those that come be there already."""
    moving = Partition(assigned=(1, 2, 3), reassignment=Reassignment((1, 3, 4), 2))
    assert are_assigned(replicas, moving) is kept


@pytest.mark.parametrize(("leader", "kept"), [(5, True), (6, False), (NO_LEADER, False)])
def test_leader_that_is_not_assigned_is_told_of(leader: int, kept: bool) -> None:
    """Who was elected out of the in-sync set alone is among the replicas; nobody else is."""
    moving = Partition(assigned=(1, 2), reassignment=Reassignment((2, 3), 2))
    assert are_assigned((1, 2, 3, 5), moving, leader) is kept
