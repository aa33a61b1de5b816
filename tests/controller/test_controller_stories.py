"""Whole reassignments on a real ZooKeeper."""

import json
from dataclasses import replace
from typing import Any

from reassure_spec.readings import get_profile
from reassure_spec.znodes import (
    CONTROLLER_EPOCH,
    NO_LEADER,
    ReassignmentZnode,
    StateZnode,
    topic_path,
)


def test_first_controller_raises_the_epoch_to_one(cluster: Any) -> None:
    """The first controller of a fresh cluster has epoch 1, and its znode version 1."""
    controller = cluster.controller()
    data, stat = cluster.admin.get(CONTROLLER_EPOCH)
    assert (controller.is_active, controller.epoch, data, stat.version) == (True, 1, b"1", 1)


def test_new_topic_is_brought_online(cluster: Any) -> None:
    """A new partition is led by its first live replica, all live ones in sync, with epoch 0."""
    controller = cluster.controller()
    cluster.die(2, then=controller)
    cluster.create_topic("t", {0: (2, 3, 1), 1: (2,)}, then=controller)
    assert cluster.state("t", 0) == StateZnode(3, 0, 1, (3, 1))
    assert cluster.admin.exists("/brokers/topics/t/partitions/1") is None
    cluster.come(2, then=controller)
    assert cluster.state("t", 1) == StateZnode(2, 0, 1, (2,))


def test_reassignment_moves_a_partition(cluster: Any) -> None:
    """A move expands the assignment, waits for the target, moves the leader, then completes."""
    controller = cluster.begin({0: (1, 2), 1: (1,)})
    cluster.request({("t", 0): (3, 4)}, then=controller)
    assert cluster.child("t", 0) == ReassignmentZnode(top=2, target=(3, 4))
    assert cluster.assigned("t", 0) == (1, 2, 3, 4)
    assert cluster.state("t", 0) == StateZnode(1, 1, 1, (1, 2))
    cluster.join("t", 0, 3, then=controller)
    assert cluster.assigned("t", 0) == (1, 2, 3, 4)
    cluster.join("t", 0, 4, then=controller)
    assert cluster.state("t", 0) == StateZnode(3, 4, 1, (3, 4))
    assert (cluster.assigned("t", 0), cluster.assigned("t", 1)) == ((3, 4), (1,))
    assert (cluster.reassigning(), cluster.requests()) == ([], [])
    assert cluster.brokers[3].leads("t", 0)
    assert cluster.brokers[1].hosted("t", 0) is None


def test_moving_a_partition_keeps_what_else_the_topic_znode_says(cluster: Any) -> None:
    """A topic id and the lists of another protocol are not the controller's to lose."""
    content = {
        "version": 3,
        "topic_id": "c3RpbGwgaGVyZSAoMTYp",
        "partitions": {"0": [1, 2], "1": [2, 3]},
        "adding_replicas": {"1": [3]},
        "removing_replicas": {},
    }
    cluster.admin.create(topic_path("orders"), json.dumps(content).encode())
    controller = cluster.controller()
    controller.drain()
    cluster.request({("orders", 0): (2, 1)}, then=controller)
    found = json.loads(cluster.admin.get(topic_path("orders"))[0])
    assert found == content | {"partitions": {"0": [2, 1], "1": [2, 3]}}


def test_reorder_completes_at_once(cluster: Any) -> None:
    """A target of the same replicas in another order needs no waiting and keeps the leader."""
    controller = cluster.controller()
    cluster.create_topic("t", {0: (1, 2)})
    cluster.request({("t", 0): (2, 1)}, then=controller)
    assert cluster.assigned("t", 0) == (2, 1)
    assert cluster.state("t", 0).leader == 1
    assert cluster.reassigning() == []


def test_change_in_flight_drops_the_surplus(cluster: Any) -> None:
    """A change drops what the rule ranks below top, and sets the child's data with top kept."""
    controller = cluster.controller()
    cluster.create_topic("t", {0: (1, 2)})
    cluster.request({("t", 0): (2, 3)}, then=controller)
    before = cluster.admin.exists("/admin/reassignments/t/0")
    cluster.request({("t", 0): (2, 4)}, then=controller)
    after = cluster.admin.exists("/admin/reassignments/t/0")
    assert (after.czxid, after.version) == (before.czxid, before.version + 1)
    assert cluster.child("t", 0) == ReassignmentZnode(top=2, target=(2, 4))
    assert cluster.assigned("t", 0) == (1, 2, 4)
    assert cluster.brokers[3].hosted("t", 0) is None


def test_cancel_returns_to_the_old_list(cluster: Any) -> None:
    """Asking for the old list while a move is in flight restores it and leaves nothing behind."""
    controller = cluster.controller()
    cluster.create_topic("t", {0: (1, 2)})
    cluster.request({("t", 0): (3, 4)}, then=controller)
    cluster.request({("t", 0): (1, 2)}, then=controller)
    assert cluster.assigned("t", 0) == (1, 2)
    assert set(cluster.state("t", 0).isr) == {1, 2}
    assert (cluster.reassigning(), cluster.requests()) == ([], [])


def test_amended_profile_protects_the_target(cluster: Any) -> None:
    """Under the amended profile a change does not drop an in-sync replica of the new target."""
    controller = cluster.begin({0: (1, 2)}, readings=get_profile("kip-236-amended"))
    cluster.request({("t", 0): (3, 4)}, then=controller)
    cluster.join("t", 0, 3)
    cluster.request({("t", 0): (3, 1)}, then=controller)
    assert cluster.assigned("t", 0) == (3, 1)
    assert set(cluster.state("t", 0).isr) == {1, 3}


def test_dead_leader_is_replaced_in_assigned_order(cluster: Any) -> None:
    """When the leader dies the first live in-sync replica of the assignment leads."""
    controller = cluster.begin({0: (1, 2, 3)})
    cluster.leave("t", 0, 2)
    cluster.die(1, then=controller)
    assert cluster.state("t", 0) == StateZnode(3, 1, 1, (3,))


def test_last_in_sync_replica_stays_in_the_isr(cluster: Any) -> None:
    """When nobody in sync is left there is no leader, and the in-sync set stays as it was."""
    controller = cluster.begin({0: (1, 2)})
    cluster.die(2, then=controller)
    cluster.die(1, then=controller)
    assert cluster.state("t", 0) == StateZnode(NO_LEADER, 2, 1, (1,))
    cluster.come(2, then=controller)
    assert cluster.state("t", 0).leader == NO_LEADER
    cluster.come(1, then=controller)
    assert cluster.state("t", 0) == StateZnode(1, 3, 1, (1,))
    cluster.join("t", 0, 2)


def test_bounce_between_two_looks_is_noticed(cluster: Any) -> None:
    """A broker that died and came back before the controller looked is treated as new."""
    controller = cluster.begin({0: (1, 2)})
    cluster.die(1)
    cluster.come(1, then=controller)
    assert cluster.state("t", 0) == StateZnode(2, 1, 1, (2,))
    assert cluster.brokers[1].hosted("t", 0) is not None


def test_target_broker_that_is_down_is_waited_for(cluster: Any) -> None:
    """A dead broker in the target is no reason to refuse; the move goes on when it returns."""
    controller = cluster.begin({0: (1,)})
    cluster.die(3)
    cluster.request({("t", 0): (3,)}, then=controller)
    assert cluster.assigned("t", 0) == (1, 3)
    cluster.come(3, then=controller)
    cluster.join("t", 0, 3, then=controller)
    assert cluster.assigned("t", 0) == (3,)


def test_leader_change_by_a_broker_is_not_overwritten(cluster: Any) -> None:
    """A state written since it was remembered is read again, not written over."""
    controller = cluster.begin({0: (1, 2)})
    cluster.request({("t", 0): (1, 3)})
    assert controller.drain(max_effects=2).next_point == "request.epoch-raised"
    cluster.leave("t", 0, 2, then=controller)
    assert cluster.state("t", 0) == StateZnode(1, 1, 1, (1,))
    assert cluster.child("t", 0) == ReassignmentZnode(top=2, target=(1, 3))


def test_drop_is_decided_again_when_the_isr_changed(cluster: Any) -> None:
    """A drop is conditional on the in-sync set it was decided from."""
    controller = cluster.begin({0: (1, 2)})
    cluster.request({("t", 0): (3, 4)}, then=controller)
    cluster.request({("t", 0): (4, 3)})
    held = controller.drain(max_effects=2)
    assert held.next_point == "change.isr-shrunk"
    cluster.leave("t", 0, 2)
    cluster.join("t", 0, 4, then=controller)
    assert cluster.assigned("t", 0) == (1, 4, 3)
    assert cluster.state("t", 0).isr == (1, 4)


def test_leader_takes_nobody_in_by_what_it_knew_before_a_drop(cluster: Any) -> None:
    """The leader epoch is raised before a dropped log is deleted, though it was not in sync.

    A leader that had heard the dropped replica fetch could else take it in without a log, and where
    a further change has assigned the broker again nothing would put it out.
    """
    controller = cluster.begin({0: (1, 2)})
    cluster.request({("t", 0): (3,)}, then=controller)
    before = cluster.state("t", 0)
    cluster.request({("t", 0): (4,)})
    while controller.drain(max_effects=1).next_point != "change.replicas-deleted":
        pass
    assert cluster.state("t", 0) == replace(before, leader_epoch=before.leader_epoch + 1)
    controller.drain()
    assert cluster.assigned("t", 0) == (1, 2, 4)


def test_completion_waits_when_the_target_left_again(cluster: Any) -> None:
    """Completion stops when a target replica left the in-sync set before the leader moved."""
    controller = cluster.begin({0: (1,)})
    cluster.request({("t", 0): (2,)}, then=controller)
    cluster.join("t", 0, 2)
    assert controller.drain(max_effects=0).next_point == "completion.leader-moved"
    cluster.leave("t", 0, 2, then=controller)
    assert cluster.assigned("t", 0) == (1, 2)
    assert cluster.state("t", 0).leader == 1
    cluster.join("t", 0, 2, then=controller)
    assert cluster.assigned("t", 0) == (2,)


def test_amended_completion_looks_again_before_it_stops(cluster: Any) -> None:
    """Under the amended profile no old replica is stopped when a target replica left the ISR."""
    controller = cluster.begin({0: (1, 2)}, readings=get_profile("kip-236-amended"))
    cluster.request({("t", 0): (2, 3)}, then=controller)
    cluster.join("t", 0, 3)
    assert controller.drain(max_effects=2).next_point == "completion.replica-stopped"
    cluster.leave("t", 0, 3, then=controller)
    assert cluster.brokers[1].hosted("t", 0) is not None
    assert cluster.assigned("t", 0) == (1, 2, 3)
    cluster.join("t", 0, 3, then=controller)
    assert cluster.assigned("t", 0) == (2, 3)


def test_requests_are_taken_in_sequence_order(cluster: Any) -> None:
    """Requests that were made while there was no controller are carried out by their numbers."""
    cluster.create_topic("t", {0: (1,)})
    targets = [(2,), (3,), (4,), (1, 2), (2, 4), (3, 4), (4, 1), (2, 3), (1, 3), (3, 1), (2, 1)]
    for target in targets:
        cluster.request({("t", 0): target})
    cluster.controller().drain()
    assert cluster.child("t", 0) == ReassignmentZnode(top=1, target=(2, 1))
    assert cluster.requests() == []


def test_many_reassignments_need_one_watch_on_the_requests(cluster: Any) -> None:
    """However many reassignments are in flight, each of the admin paths carries one watch."""
    controller = cluster.controller()
    cluster.create_topic("t", dict.fromkeys(range(8), (1, 2)))
    cluster.request({("t", partition): (3, 4) for partition in range(8)}, then=controller)
    assert len(controller.context.in_flight()) == 8
    client = controller._client
    admin = f"{client.chroot}/admin/"
    assert [path for path in client.below if path.startswith(admin)] == [
        f"{admin}reassignment_requests"
    ]
    watched = [*client._child_watchers.items(), *client._data_watchers.items()]
    counts = {path: len(found) for path, found in watched if path.startswith(admin) and found}
    assert counts == {
        f"{admin}{path}": 1 for path in ("delete_topics", "preferred_replica_election")
    }


def test_idle_drain_finds_nothing(cluster: Any) -> None:
    """A drain of a controller that has nothing to do does nothing and says so."""
    controller = cluster.controller()
    controller.drain()
    result = controller.drain()
    assert (result.effects_done, result.idle, result.held) == (0, True, False)
