"""Brokers: what they obey, and what a leader may do to its in-sync set."""

from typing import Any

import pytest

from reassure_controller.broker import Broker
from reassure_controller.messages import LeaderAndIsr, Reply, StopReplica
from reassure_controller.registration import IdTaken
from reassure_controller.session import Indefinite, connect
from reassure_spec.znodes import (
    CONTROLLER_EPOCH,
    StateZnode,
    encode_controller_epoch,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)

TOLD = LeaderAndIsr(
    controller=100,
    controller_epoch=5,
    topic="t",
    partition=0,
    leader=1,
    leader_epoch=3,
    isr=(1, 2),
    state_controller_epoch=4,
    state_version=0,
    replicas=(1, 2, 3),
    is_new=False,
)


def told(**changes: Any) -> LeaderAndIsr:
    """Return the usual message with some fields changed."""
    return LeaderAndIsr(**{name: getattr(TOLD, name) for name in TOLD.__slots__} | changes)


@pytest.fixture
def leader(cluster: Any) -> tuple[Any, Broker]:
    """Broker 1, which leads t-0 in epoch 3, and its cluster; there is no controller."""
    path = state_path("t", 0)
    cluster.admin.create(path, encode_state(StateZnode(1, 3, 4, (1, 2))), makepath=True)
    broker = cluster.brokers[1]
    assert broker.handle(TOLD) == Reply("ok")
    return cluster, broker


def test_an_order_of_a_controller_that_was_never_elected_is_refused(
    leader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """An epoch that no election came to deafens nobody: it is refused, and that is logged."""
    cluster, broker = leader
    cluster.admin.create(CONTROLLER_EPOCH, encode_controller_epoch(6))
    made_up = StopReplica(100, 2**31 - 1, "t", 0, delete=True)
    assert broker.handle(made_up) == Reply("STALE_CONTROLLER_EPOCH")
    assert "an order of controller epoch 2147483647 is refused: it is 6" in caplog.text
    assert broker.hosted("t", 0) is not None
    assert broker.handle(told(leader_epoch=4, controller_epoch=6)) == Reply("ok")


def test_an_order_of_a_controller_that_was_superseded_is_refused_in_a_new_life(
    leader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that nobody has told anything yet asks who was elected last."""
    cluster, _ = leader
    cluster.admin.create(CONTROLLER_EPOCH, encode_controller_epoch(6))
    assert cluster.brokers[2].handle(told(controller_epoch=5)) == Reply("STALE_CONTROLLER_EPOCH")
    assert "an order of controller epoch 5 is refused: it is 6" in caplog.text
    assert cluster.brokers[2].hosted("t", 0) is None
    assert cluster.brokers[2].handle(told(controller_epoch=6)) == Reply("ok")


@pytest.mark.parametrize("order", ["lead", "stop"])
def test_an_order_of_a_leader_epoch_that_never_was_is_ignored(
    leader: Any, caplog: pytest.LogCaptureFixture, order: str
) -> None:
    """One frame with the right controller epoch deafens no broker to the orders that follow."""
    cluster, broker = leader
    made_up = {
        "lead": told(leader_epoch=2**31 - 1, leader=2),
        "stop": StopReplica(100, 5, "t", 0, delete=True, leader_epoch=2**31 - 1),
    }[order]
    assert broker.handle(made_up) == Reply("ignored")
    assert "t-0: an order of leader epoch 2147483647 is ignored: it is 3" in caplog.text
    assert broker.leads("t", 0)
    assert broker.handle(told(leader_epoch=4, leader=2)) == Reply("ok")
    cluster.admin.set(state_path("t", 0), encode_state(StateZnode(1, 9_000, 4, (1, 2))))
    assert broker.handle(told(leader_epoch=9_000)) == Reply("ok")


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        (told(leader_epoch=4, leader=2), "ok"),
        (told(leader_epoch=3, leader=2), "ignored"),
        (told(leader_epoch=2, leader=2), "ignored"),
        (told(leader_epoch=9, leader=2, controller_epoch=4), "STALE_CONTROLLER_EPOCH"),
        (told(leader_epoch=9, leader=2, replicas=(2, 3)), "not-a-replica"),
        (StopReplica(100, 4, "t", 0, delete=True), "STALE_CONTROLLER_EPOCH"),
    ],
)
def test_message_is_obeyed_only_when_it_is_news(leader: Any, message: Any, reply: str) -> None:
    """Old controllers and leader epochs that are not newer change nothing."""
    _, broker = leader
    assert broker.handle(message) == Reply(reply)
    assert broker.leads("t", 0) == (reply != "ok")


def test_stopped_replica_is_forgotten(leader: Any) -> None:
    """A broker that was told to stop a replica neither has it nor leads it."""
    _, broker = leader
    assert broker.handle(StopReplica(100, 5, "t", 0, delete=False)) == Reply("ok")
    assert broker.hosted("t", 0) is None
    assert broker.change_isr("t", 0, add=3) == "refused"


@pytest.mark.parametrize(
    ("change", "outcome", "isr"),
    [
        ({"add": 3}, "ok", (1, 2, 3)),
        ({"add": 2}, "ok", (1, 2)),
        ({"remove": 2}, "ok", (1,)),
        ({"remove": 1}, "refused", (1, 2)),
        ({"add": 4}, "refused", (1, 2)),
        ({"remove": 4}, "ok", (1, 2)),
    ],
)
def test_leader_changes_the_isr_within_its_rights(
    leader: Any, change: dict[str, int], outcome: str, isr: tuple[int, ...]
) -> None:
    """A leader takes in assigned replicas only, and never takes itself out; epochs stay."""
    cluster, broker = leader
    assert broker.change_isr("t", 0, **change) == outcome
    assert cluster.state("t", 0) == StateZnode(1, 3, 4, isr)


def test_dead_replica_is_not_taken_in(leader: Any) -> None:
    """A replica whose broker is not registered cannot join the in-sync set."""
    cluster, broker = leader
    cluster.die(3)
    assert broker.change_isr("t", 0, add=3) == "refused"
    assert cluster.state("t", 0).isr == (1, 2)


def test_follower_changes_nothing(leader: Any) -> None:
    """A broker that does not lead refuses."""
    cluster, _ = leader
    cluster.brokers[2].handle(TOLD)
    assert cluster.brokers[2].change_isr("t", 0, add=3) == "refused"


@pytest.mark.parametrize(
    ("stored", "outcome", "isr"),
    [
        (StateZnode(1, 3, 4, (1,)), "ok", (1, 3)),
        (StateZnode(1, 4, 4, (1, 2)), "refused", (1, 2)),
        (StateZnode(2, 3, 4, (1, 2)), "refused", (1, 2)),
    ],
    ids=["same term", "newer epoch", "other leader"],
)
def test_version_conflict_is_read_before_it_is_decided(
    leader: Any, stored: StateZnode, outcome: str, isr: tuple[int, ...]
) -> None:
    """On a conflict the leader goes on from what is stored, as long as its term is."""
    cluster, broker = leader
    cluster.admin.set(state_path("t", 0), encode_state(stored))
    assert broker.change_isr("t", 0, add=3) == outcome
    assert cluster.state("t", 0).isr == isr


def test_lost_answer_is_unknown(leader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write whose answer was lost is neither ok nor refused, and the next one finds its way."""
    from reassure_controller import broker as module

    cluster, broker = leader
    commit = module.commit

    def lose(client: Any, operations: Any) -> Any:
        commit(client, operations)
        raise Indefinite("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(module, "commit", lose)
        assert broker.change_isr("t", 0, add=3) == "unknown"
    assert broker.change_isr("t", 0, remove=2) == "ok"
    assert cluster.state("t", 0).isr == (1, 3)


def test_second_session_cannot_take_the_id(cluster: Any) -> None:
    """A broker id that a live session has registered is refused with advice."""
    other = Broker(connect(cluster.hosts), 1, address=("127.0.0.1", 9))
    with pytest.raises(IdTaken, match="/brokers/ids/1: another session is registered"):
        other.register()
    other.stop()
    assert cluster.brokers[1].is_registered


def test_registration_follows_the_configuration(cluster: Any) -> None:
    """A broker has a configuration znode whenever it is registered, and keeps it."""
    config = cluster.admin.exists("/config/brokers/1")
    registration = cluster.admin.exists("/brokers/ids/1")
    assert config.czxid <= registration.czxid
    assert registration.ephemeralOwner != 0
    cluster.die(1)
    assert cluster.admin.exists("/brokers/ids/1") is None
    assert cluster.admin.get("/config/brokers/1")[0] == b'{"version":1,"config":{}}'


@pytest.mark.parametrize(
    ("after", "stored", "assigned", "told_in", "reply"),
    [
        ("stopped", 0, (1, 2), 0, "ok"),
        ("stopped", 2, (2, 1), 2, "ok"),
        ("stopped", 3, (2, 1), 3, "ok"),
        ("stopped", 3, (2, 3), 3, "ignored"),
        ("stopped", 3, (1, 2), 0, "ignored"),
        ("stopped", 3, (1, 2), 2, "ignored"),
        ("hosting", 0, (1, 2), 0, "ignored"),
    ],
)
def test_replica_of_a_topic_made_anew_begins(
    leader: Any, after: str, stored: int, assigned: tuple[int, ...], told_in: int, reply: str
) -> None:
    """Who was moved away, and never heard of the deletion, obeys the orders for a new topic.

    An order of the old topic that comes late is not one: ZooKeeper has another epoch, or has
    assigned the replica to others; and who hosts a replica has missed no deletion.
    """
    cluster, broker = leader
    if after == "stopped":
        stop = StopReplica(100, 5, "t", 0, delete=True, leader_epoch=3)
        assert broker.handle(stop) == Reply("ok")
    cluster.admin.set(state_path("t", 0), encode_state(StateZnode(1, stored, 5, assigned)))
    cluster.admin.set(topic_path("t"), encode_topic({0: assigned}))
    assert broker.handle(told(leader_epoch=told_in)) == Reply(reply)
    assert broker.leads("t", 0) == (reply == "ok" or after == "hosting")
