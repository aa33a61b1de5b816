"""Requests for many partitions: each partition is carried on with for itself."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reassure_controller.controller import Controller
from reassure_controller.effects import PartitionEffect
from reassure_controller.messages import Reply, StopReplica
from reassure_controller.planned_job import StuckError
from reassure_controller.protocols.kip_236 import RECORDED_AT_ONCE
from reassure_lab.cluster.supervisor import ProcessCluster
from reassure_spec.znodes import state_path

from .conftest import wait_for

MANY = 150
"""More partitions than one piece of work may be planned again in vain."""
TARGET = (2, 3)


def find_partition(controller: Controller) -> int:
    """Return the number of the partition that the next effect is about."""
    assert isinstance(controller.next_effect, PartitionEffect)
    return controller.next_effect.partition


def is_in_sync(hands: Any, number: int) -> bool:
    """Whether a partition is online with both its replicas in sync."""
    if hands.admin.exists(state_path("t", number)) is None:
        return False
    return set(hands.state("t", number).isr) == {1, 2}


def test_a_conflict_in_each_of_many_partitions_is_got_through(cluster: Any) -> None:
    """A conflict in each partition of a request plans that one again, and no other."""
    points: Counter[str] = Counter()
    left: set[int] = set()

    def on_point(point: str) -> None:
        points[point] += 1
        if point == "completion.isr-shrunk" and (key := find_partition(controller)) not in left:
            left.add(key)
            cluster.leave("t", key, 1)  # the leader is faster

    cluster.create_topic("t", dict.fromkeys(range(MANY), (1, 2)))
    controller = cluster.controller(on_point=on_point)
    controller.drain(60)
    cluster.request(dict.fromkeys((("t", number) for number in range(MANY)), TARGET))
    controller.drain(60)
    for number in range(MANY):
        cluster.join("t", number, 3)
    controller.drain(120)
    assert len(left) == MANY
    assert {cluster.assigned("t", number) for number in range(MANY)} == {TARGET}
    assert cluster.reassigning() == []
    assert points["completion.leader-moved"] == MANY
    assert points["completion.epoch-raised"] == MANY  # once more, by the plan after the conflict
    assert points["request.epoch-raised"] == MANY


def test_a_topic_is_brought_online_while_a_request_is_recorded(cluster: Any) -> None:
    """A request for many partitions is recorded in parts, and what comes meanwhile has its turn."""
    records: list[bool] = []

    def on_point(point: str) -> None:
        if point == "request.child-written":
            if not records:
                cluster.create_topic("other", {0: (1, 2)})
            records.append(cluster.admin.exists(state_path("other", 0)) is not None)

    cluster.create_topic("t", dict.fromkeys(range(MANY), (1, 2)))
    controller = cluster.controller(on_point=on_point, at_once=RECORDED_AT_ONCE)
    controller.drain(60)
    cluster.request(dict.fromkeys((("t", number) for number in range(MANY)), TARGET))
    controller.drain(60)
    assert records == [False] * RECORDED_AT_ONCE + [True] * (MANY - RECORDED_AT_ONCE)
    assert cluster.requests() == []


def test_a_death_is_got_through_though_every_leader_is_faster(cluster: Any) -> None:
    """A piece of work for many partitions may conflict in each of them: each is got through."""
    left: set[int] = set()

    def on_point(point: str) -> None:
        if point == "partition.isr-shrunk" and (key := find_partition(controller)) not in left:
            left.add(key)
            cluster.leave("t", key, 2)

    cluster.create_topic("t", dict.fromkeys(range(MANY), (1, 2)))
    controller = cluster.controller(on_point=on_point)
    controller.drain(60)
    cluster.die(2)
    controller.drain(120)
    assert len(left) == MANY
    assert {cluster.state("t", number).isr for number in range(MANY)} == {(1,)}


def test_a_partition_that_never_gets_through_is_named(cluster: Any) -> None:
    """What conflicts again and again, and never comes further, is an error that names it."""

    def on_point(point: str) -> None:
        if point == "request.epoch-raised" and find_partition(controller) == 1:
            change = cluster.leave if 2 in cluster.state("t", 1).isr else cluster.join
            change("t", 1, 2)

    cluster.create_topic("t", dict.fromkeys(range(3), (1, 2)))
    controller = cluster.controller(on_point=on_point)
    controller.drain()
    cluster.request(dict.fromkeys((("t", number) for number in range(3)), TARGET))
    with pytest.raises(StuckError, match="advance of t-1 was planned 100 times"):
        controller.drain(60)


@pytest.mark.slow
def test_three_brokers_move_many_partitions_by_one_request(make_hands: Any, tmp_path: Path) -> None:
    """Live brokers leave what the controller writes to it: no write of a move is refused."""
    with ProcessCluster.start(tmp_path / "cluster", 3, 1, 1) as processes:
        hands = make_hands(processes.zookeeper)
        hands.create_topic("t", dict.fromkeys(range(MANY), (1, 2)))
        wait_for(lambda: all(is_in_sync(hands, number) for number in range(MANY)), 120)
        versions = [hands.admin.get(state_path("t", number))[1].version for number in range(MANY)]
        hands.request(dict.fromkeys((("t", number) for number in range(MANY)), TARGET))
        wait_for(lambda: not hands.requests() and not hands.reassigning(), 120)
        assert {hands.assigned("t", number) for number in range(MANY)} == {TARGET}
        written = [hands.admin.get(state_path("t", number))[1].version for number in range(MANY)]
        # The epoch is raised, 3 joins, 2 leads, 1 leaves.
        writes = Counter(after - before for before, after in zip(versions, written, strict=True))
        assert writes == {4: MANY}


def test_who_was_not_reached_is_told_of_what_was_missed_alone(cluster: Any) -> None:
    """An order that nobody answered is given again, and none of the others of that broker."""
    controller = cluster.begin(dict.fromkeys(range(20), (1, 2)))
    deaf = cluster.brokers[2]
    cluster.transport.unregister(2)
    cluster.request({("t", 7): (1, 2, 3)}, then=controller)
    told: list[Any] = []

    def hear(message: Any) -> Any:
        told.append(message)
        return deaf.handle(message)

    cluster.transport.register(2, hear)
    controller._agenda.tell_again()
    controller.drain()
    assert [(one.topic, one.partition, one.leader_epoch) for one in told] == [("t", 7, 1)]
    assert controller.context.unreached == set()


@pytest.mark.parametrize("how", ["refuses", "is not reached", "is down"])
def test_order_to_delete_is_given_until_it_is_obeyed(cluster: Any, how: str) -> None:
    """Who drops out of an assignment is told to delete its replica again, until it has."""
    controller = cluster.begin({0: (2, 1)})
    told: list[Any] = []

    def deliver(message: Any) -> Any:
        told.append(message)
        return answer

    if how == "is down":
        cluster.die(1, then=controller)
    answer = None if how == "is not reached" else Reply("KAFKA_STORAGE_ERROR")
    cluster.transport.register(1, deliver)
    cluster.request({("t", 0): (2, 3)}, then=controller)
    cluster.join("t", 0, 3, then=controller)
    assert cluster.assigned("t", 0) == (2, 3) and cluster.reassigning() == []
    for _ in range(2):
        told.clear()
        controller._agenda.tell_again()
        controller.drain()
        deletes = [isinstance(one, StopReplica) and one.delete for one in told]
        assert deletes == [True] * (how != "is down")
    if how == "is down":
        cluster.come(1, then=controller)
        cluster.transport.register(1, deliver)
    answer = Reply("ok")
    controller._agenda.tell_again()
    controller.drain()
    last = told[-1]
    assert replace(last, leader_epoch=0) == StopReplica(
        controller.broker_id, controller.epoch, "t", 0, True, last.broker_epoch, 0
    )
    told.clear()
    controller._agenda.tell_again()
    controller.drain()
    assert told == [] and controller.context.unreached == set()
