"""Deletion of topics, preferred leaders, and brokers that stop in good order."""

import threading
from typing import Any

import pytest

from reassure_controller.elections import Shutdown
from reassure_lab.node.controller_requests import ControllerRequests
from reassure_lab.node.handover import ask_to_stop
from reassure_lab.wire.listener import WireServer
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import (
    DELETED_TOPICS,
    NO_LEADER,
    PREFERRED_ELECTION,
    TOPICS,
    decode_topic_content,
    deleted_topic_path,
    encode_preferred_election,
    encode_topic,
    state_path,
    topic_config_path,
    topic_path,
)

from .conftest import Cluster, settling, wait_for

ORDER = [
    "deletion.replica-stopped",
    "deletion.isr-shrunk",
    "deletion.replica-stopped",
    "deletion.replicas-deleted",
    "deletion.topic-removed",
    "deletion.settings-removed",
    "deletion.ended",
]
"""What is done for a topic of two replicas with settings."""


def make_topic(cluster: Cluster) -> None:
    """Make a topic of two replicas, with settings."""
    cluster.create_topic("orders", {0: (1, 2)}, min_insync_replicas="1")


def is_gone(cluster: Cluster, topic: str = "orders") -> bool:
    """Whether nothing is left of a topic and of its deletion."""
    paths = (topic_path(topic), topic_config_path(topic), deleted_topic_path(topic))
    return all(cluster.admin.exists(path) is None for path in paths)


@settling
def ask(cluster: Cluster, topic: str = "orders") -> None:
    """Ask for a topic to be deleted."""
    cluster.admin.create(deleted_topic_path(topic))


def begin(cluster: Cluster, *, asked: bool = False) -> Any:
    """Return a controller that has seen the topic; `asked`: and is asked to delete it."""
    controller = cluster.controller()
    make_topic(cluster)
    controller.drain()
    if asked:
        ask(cluster)
    return controller


def run_to_end(controller: Any) -> list[str]:
    """Carry out one effect after another and return their points."""
    points = []
    while True:
        result = controller.drain(max_effects=0)
        if not result.held:
            return points
        points.append(result.next_point)
        controller.drain(max_effects=1)


def test_a_deletion_goes_step_by_step(cluster: Any) -> None:
    """Replicas stop, delete their logs and answer; then topic, settings and request go."""
    controller = begin(cluster, asked=True)
    assert run_to_end(controller) == ORDER
    assert is_gone(cluster)
    assert all(cluster.brokers[one].hosted("orders", 0) is None for one in (1, 2))


@pytest.mark.parametrize("effects", range(len(ORDER)))
def test_the_next_controller_ends_a_deletion(cluster: Any, effects: int) -> None:
    """Wherever a controller dies in a deletion, the next one carries it to its end."""
    first = begin(cluster, asked=True)
    assert first.drain(max_effects=effects).held
    first.kill()
    second = cluster.controller()
    second.drain()
    assert is_gone(cluster)
    assert cluster.admin.get_children(DELETED_TOPICS) == []


def test_a_deletion_waits_for_a_broker(cluster: Any) -> None:
    """While a broker with a replica is down nothing is done; when it is back the topic goes."""
    controller = begin(cluster)
    cluster.die(2, then=controller)
    before = cluster.state("orders", 0)
    ask(cluster)
    assert controller.drain().effects_done == 0
    assert cluster.state("orders", 0) == before
    cluster.come(2, then=controller)
    assert is_gone(cluster)


@pytest.mark.parametrize("broker", [1, 3], ids=["told of another", "told of nothing"])
def test_a_partition_added_under_a_deletion_goes_with_it(cluster: Any, broker: int) -> None:
    """What is added while a topic is to be deleted is never started, and its replicas are told."""
    controller = begin(cluster, asked=True)
    assert controller.drain(max_effects=ORDER.index("deletion.topic-removed")).held
    path = topic_path("orders")
    content = decode_topic_content(path, cluster.admin.get(path)[0])
    cluster.admin.set(path, content.replace(1, (broker,)).encode())
    controller.drain()
    assert is_gone(cluster)
    assert cluster.brokers[broker].hosted("orders", 1) is None


def test_nobody_is_elected_in_a_topic_that_waits_to_be_deleted(cluster: Any) -> None:
    """A topic whose deletion waits for a broker is left alone, by the next controller as well."""
    controller = begin(cluster, asked=True)
    controller.drain(max_effects=2)
    cluster.die(2, then=controller)
    stopped = cluster.state("orders", 0)
    assert stopped.leader == NO_LEADER and stopped.isr == (2,)
    controller.kill()
    second = cluster.controller()
    second.drain()
    assert cluster.state("orders", 0) == stopped
    assert cluster.brokers[1].hosted("orders", 0) is None
    cluster.come(2, then=second)
    assert is_gone(cluster)


def test_a_deletion_waits_for_a_reassignment(cluster: Any) -> None:
    """A reassignment in flight is ended first, and no other one of the topic begins."""
    controller = cluster.begin({0: (1, 2), 1: (1, 2)}, topic="orders")
    cluster.request({("orders", 0): (1, 3)}, then=controller)
    ask(cluster)
    cluster.request({("orders", 1): (1, 3)}, then=controller)
    assert cluster.child("orders", 0) is not None
    assert cluster.child("orders", 1) is None and cluster.requests() == []
    cluster.join("orders", 0, 3, then=controller)
    assert is_gone(cluster) and cluster.reassigning() == []


def test_a_replica_that_did_not_answer_is_told_again(cluster: Any) -> None:
    """The topic stays until each replica has answered; a life of its broker later it is asked."""
    controller = begin(cluster)
    cluster.transport.unregister(2)
    ask(cluster, then=controller)
    assert cluster.admin.exists(topic_path("orders")) is not None
    cluster.die(2, then=controller)
    cluster.come(2, then=controller)
    assert is_gone(cluster)


def test_a_deletion_that_is_taken_back_leaves_the_topic(cluster: Any) -> None:
    """Where the client takes its request back the partition gets a leader again."""
    controller = begin(cluster, asked=True)
    assert controller.drain(max_effects=2).held
    cluster.admin.delete(deleted_topic_path("orders"))
    controller.drain()
    assert cluster.admin.get_children(TOPICS) == ["orders"]
    state = cluster.state("orders", 0)
    assert state.leader == 2 and cluster.brokers[2].leads("orders", 0)


def test_the_deletion_of_no_topic_is_removed(cluster: Any) -> None:
    """What asks for a topic that there is not goes, with settings that were left behind."""
    controller = cluster.controller()
    controller.drain()
    cluster.admin.create(topic_config_path("orders"), b'{"version":1,"config":{}}')
    ask(cluster, then=controller)
    assert is_gone(cluster)


def test_a_topic_can_be_made_anew(cluster: Any) -> None:
    """A topic of the same name begins from nothing after a deletion."""
    controller = begin(cluster, asked=True)
    controller.drain()
    cluster.create_topic("orders", {0: (2, 3)}, then=controller)
    state = cluster.state("orders", 0)
    assert (state.leader, state.leader_epoch, state.isr) == (2, 0, (2, 3))


@settling
def prefer(cluster: Cluster, *partitions: tuple[str, int]) -> None:
    """Ask for preferred leaders."""
    cluster.admin.create(PREFERRED_ELECTION, encode_preferred_election(partitions))


def test_preferred_leaders_are_elected(cluster: Any) -> None:
    """The first assigned replica leads where it is in sync; elsewhere nothing changes."""
    controller = cluster.begin({0: (1, 2), 1: (1, 3)}, topic="orders")
    cluster.die(1, then=controller)
    cluster.come(1, then=controller)
    cluster.join("orders", 0, 1)
    prefer(cluster, ("orders", 0), ("orders", 1), ("nowhere", 0), then=controller)
    assert cluster.state("orders", 0).leader == 1 and cluster.brokers[1].leads("orders", 0)
    assert cluster.state("orders", 1).leader == 3
    assert cluster.admin.exists(PREFERRED_ELECTION) is None


def test_the_next_controller_holds_the_preferred_election(cluster: Any) -> None:
    """What was asked of a controller that died is found by the next one, and what is bad goes."""
    first = begin(cluster)
    cluster.die(1, then=first)
    cluster.come(1, then=first)
    cluster.join("orders", 0, 1)
    prefer(cluster, ("orders", 0))
    assert first.drain(max_effects=0).next_point == "preferred.leader-elected"
    first.kill()
    second = cluster.controller()
    second.drain()
    assert cluster.state("orders", 0).leader == 1
    cluster.admin.create(PREFERRED_ELECTION, b"not this")
    second.drain()
    assert cluster.admin.exists(PREFERRED_ELECTION) is None


def shut_down(cluster: Cluster, controller: Any, broker: int) -> Shutdown:
    """Have a broker ask the controller, and return the answer."""
    epoch = cluster.brokers[broker].find_broker_epoch(broker)
    assert epoch is not None
    asked: Shutdown = controller.ask(Shutdown(broker, epoch))
    controller.drain()
    assert asked.answered.is_set()
    return asked


def test_brokers_that_stop_hand_over(cluster: Any) -> None:
    """Three brokers stop in turn: they leave the in-sync set, and the last one keeps leading."""
    controller = cluster.begin({0: (1, 2, 3)}, topic="orders")
    assert shut_down(cluster, controller, 3).remaining == ()
    assert cluster.state("orders", 0).isr == (1, 2)
    assert shut_down(cluster, controller, 1).remaining == ()
    state = cluster.state("orders", 0)
    assert (state.leader, state.isr) == (2, (2,)) and cluster.brokers[2].leads("orders", 0)
    assert shut_down(cluster, controller, 2).remaining == (("orders", 0),)
    assert cluster.state("orders", 0).leader == 2


def test_nothing_is_handed_over_to_the_dead(cluster: Any) -> None:
    """A broker asks to stop before another one dies, and its controller looks after both."""
    controller = cluster.begin({0: (3, 1)}, topic="orders")
    asked = controller.ask(Shutdown(3, cluster.brokers[3].find_broker_epoch(3)))
    cluster.die(1)
    controller.drain()
    state = cluster.state("orders", 0)
    assert (state.leader, state.isr, asked.remaining) == (3, (3,), (("orders", 0),))


def test_an_earlier_life_is_not_heard(cluster: Any) -> None:
    """Who asks for an earlier life of a broker, or of no controller, is refused."""
    controller = begin(cluster)
    before = cluster.admin.get(state_path("orders", 0))[0]
    stale, strange = controller.ask(Shutdown(1, 1)), controller.ask(Shutdown(99, 1))
    controller.drain()
    assert (stale.error, strange.error) == ("STALE_BROKER_EPOCH", "BROKER_NOT_AVAILABLE")
    assert cluster.admin.get(state_path("orders", 0))[0] == before
    controller.resign()
    late = controller.ask(Shutdown(1, 1))
    controller.pump()
    assert late.error == "NOT_CONTROLLER"


def test_a_broker_asks_over_the_wire(cluster: Any) -> None:
    """A broker finds the controller by `/controller` and asks in Kafka's own format."""
    controller = cluster.controller()
    controller.resign()
    with WireServer(ControllerRequests(controller, cluster.admin)) as server:
        controller.candidate.address = server.address
        ended = threading.Event()
        working = threading.Thread(target=controller.run_forever, args=(ended,))
        working.start()
        try:
            make_topic(cluster)
            wait_for(lambda: cluster.admin.exists(state_path("orders", 0)) is not None)
            epoch = cluster.brokers[1].find_broker_epoch(1)
            assert epoch is not None
            assert ask_to_stop(cluster.admin, 1, epoch)
            assert cluster.state("orders", 0).leader == 2
            assert not ask_to_stop(cluster.admin, 1, epoch - 1)
        finally:
            ended.set()
            working.join()


@pytest.mark.clause("act.preferred-election")
@pytest.mark.parametrize("value", ["asked", "automatic"])
def test_preferred_leader_comes_back_unasked(cluster: Any, value: str) -> None:
    """Where the reading says automatic the first assigned replica leads again once in sync."""
    readings = override_readings(get_profile("kip-236"), {"election.preferred": value})
    controller = cluster.begin({0: (1, 2)}, topic="orders", readings=readings)
    cluster.die(1, then=controller)
    cluster.come(1, then=controller)
    assert cluster.state("orders", 0).leader == 2
    cluster.join("orders", 0, 1, then=controller)
    assert cluster.state("orders", 0).leader == (1 if value == "automatic" else 2)


@pytest.mark.parametrize("value", ["asked", "automatic"])
def test_broker_that_stops_is_not_given_leadership(cluster: Any, value: str) -> None:
    """Who has handed over and is in sync once more before it ends does not lead again."""
    readings = override_readings(get_profile("kip-236"), {"election.preferred": value})
    controller = cluster.begin({0: (1, 2)}, topic="orders", readings=readings)
    assert shut_down(cluster, controller, 1).remaining == ()
    cluster.join("orders", 0, 1)
    prefer(cluster, ("orders", 0), then=controller)
    assert (cluster.state("orders", 0).leader, cluster.state("orders", 0).isr) == (2, (2, 1))


def test_a_partition_that_has_left_its_topic_is_forgotten(cluster: Any) -> None:
    """Who takes a partition out of a topic's znode is believed: nobody looks after it any more."""
    controller = cluster.begin({0: (1, 2), 1: (1, 2)}, topic="orders")
    path = topic_path("orders")
    cluster.admin.set(path, encode_topic({0: (1, 2)}))
    controller.drain()
    assert list(controller.context.partitions) == [("orders", 0)]
    before = cluster.state("orders", 1)
    cluster.die(1, then=controller)
    assert cluster.state("orders", 0).leader == 2
    assert cluster.state("orders", 1) == before
