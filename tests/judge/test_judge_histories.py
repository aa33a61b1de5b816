"""The judge accepts what the reference controller does, and names what a wrong one breaks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reassure_model.partition import LeaderAndIsr, Reassignment
from reassure_model.writes import (
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_zookeeper.transactions import Create, Delete, SetData


def raised(simulation: Any, **changes: Any) -> WriteState:
    """Return a controller's write of the state with the next epoch and these changes."""
    state: LeaderAndIsr = simulation.state
    return WriteState(replace(state, leader_epoch=state.leader_epoch + 1, **changes))


def in_flight(simulation: Any, *target: int, until: type = DeleteRequest) -> None:
    """Submit a request and let the controller work until it would write such a thing."""
    simulation.submit(*target)
    for write in simulation.steps():
        if isinstance(write, until):
            return
        simulation.perform(write)


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_reference_controller_is_accepted(make_simulation: Any, profile: str) -> None:
    """Reassignment, change, cancel, failover and broker death break nothing and end as asked."""
    cluster = make_simulation(profile, chroot="/some/chroot")
    cluster.start()
    cluster.submit(3, 2)
    cluster.run()
    cluster.change_isr(1, 2, 3)
    cluster.run()
    cluster.submit(2, 1)
    cluster.run()
    cluster.submit(2, 4)
    cluster.run()
    cluster.elect()
    cluster.run()
    cluster.die(4)
    cluster.submit(3, 2)
    cluster.run()
    assert cluster.broken() == []
    assert cluster.partition.assigned == (3, 2)
    assert cluster.partition.reassignment is None
    for clause in ("complete.carried-out", "drop.carried-out", "request.consumed"):
        assert cluster.judge.exercised[clause] > 0


def test_drop_of_an_in_sync_replica_is_followed(simulation: Any) -> None:
    """A drop that takes replicas out of the in-sync set and then off the assignment is accepted."""
    in_flight(simulation, 3, 4)
    simulation.run()
    simulation.change_isr(1, 2, 3)
    simulation.submit(2, 4)
    simulation.run()
    assert simulation.broken() == []
    assert simulation.judge.exercised["drop.isr-at-least-min"] == 1
    assert simulation.state.isr == (1, 2)


def wrong_top(simulation: Any) -> int:
    """Record a top that is not the length of the assignment."""
    simulation.submit(2, 3)
    return simulation.perform(CreateReassignment(Reassignment((2, 3), 3)))


def unasked_record(simulation: Any) -> int:
    """Record a target that nobody asked for."""
    simulation.submit(2, 3)
    return simulation.perform(CreateReassignment(Reassignment((1, 3), 2)))


def wrong_order(simulation: Any) -> int:
    """Carry out the second request first."""
    simulation.submit(2, 3)
    simulation.submit(2, 4)
    return simulation.perform(CreateReassignment(Reassignment((2, 4), 2)))


def request_removed_first(simulation: Any) -> int:
    """Remove a request before its record is written."""
    sequence = simulation.submit(2, 3)
    return simulation.perform(DeleteRequest(sequence))


def duplicate_accepted(simulation: Any) -> int:
    """Record a target that names a replica twice."""
    simulation.submit(2, 2)
    return simulation.perform(CreateReassignment(Reassignment((2, 2), 2)))


def unknown_broker_accepted(simulation: Any) -> int:
    """Record a target with a broker that never was."""
    simulation.submit(2, 9)
    return simulation.perform(CreateReassignment(Reassignment((2, 9), 2)))


def expanded_without_record(simulation: Any) -> int:
    """Add the target before the record is written."""
    simulation.submit(2, 3)
    return simulation.perform(WriteAssigned((1, 2, 3)))


def top_changed(simulation: Any) -> int:
    """Change top together with the target."""
    in_flight(simulation, 2, 3)
    simulation.run()
    simulation.submit(2, 4)
    return simulation.perform(UpdateReassignment(Reassignment((2, 4), 3)))


def record_made_anew(simulation: Any) -> int:
    """Remove the record in order to make it anew."""
    in_flight(simulation, 2, 3)
    simulation.run()
    simulation.submit(2, 4)
    return simulation.perform(DeleteReassignment())


def completed_too_early(simulation: Any) -> int:
    """Assign the target before it is in sync."""
    in_flight(simulation, 2, 3)
    return simulation.perform(WriteAssigned((2, 3)))


def stopped_too_early(simulation: Any) -> int:
    """Take an old replica out of the in-sync set before the target is in it."""
    in_flight(simulation, 1, 3)
    simulation.run()
    return simulation.perform(raised(simulation, isr=(1,)))


def leader_stopped_too_early(simulation: Any) -> int:
    """Stop the leader as an old replica while the target is not in sync."""
    in_flight(simulation, 3, 4)
    simulation.run()
    return simulation.perform(raised(simulation, leader=-1, isr=(2,)))


def leader_stopped_in_office(simulation: Any) -> int:
    """Stop the leader as an old replica without an election first."""
    in_flight(simulation, 3, 4)
    simulation.run()
    simulation.change_isr(1, 2, 3, 4)
    return simulation.perform(raised(simulation, isr=(2, 3, 4)))


def leader_left_behind(simulation: Any) -> int:
    """Stop an old replica while the other old one still leads."""
    in_flight(simulation, 3, 4)
    simulation.run()
    simulation.change_isr(1, 2, 3, 4)
    return simulation.perform(raised(simulation, isr=(1, 3, 4)))


def wrong_target_leader(simulation: Any) -> int:
    """Elect the second replica of the target."""
    in_flight(simulation, 3, 4)
    simulation.run()
    simulation.change_isr(1, 2, 3, 4)
    return simulation.perform(raised(simulation, leader=4))


def old_replica_kept_in_sync(simulation: Any) -> int:
    """Assign the target while an old replica is still in sync."""
    in_flight(simulation, 2, 3)
    simulation.run()
    simulation.change_isr(1, 2, 3)
    simulation.perform(raised(simulation, leader=2))
    return simulation.perform(WriteAssigned((2, 3)))


def target_replica_stopped(simulation: Any) -> int:
    """Stop a live replica of the target along with the old one."""
    in_flight(simulation, 2, 3)
    simulation.run()
    simulation.change_isr(1, 2, 3)
    simulation.perform(raised(simulation, leader=2))
    return simulation.perform(raised(simulation, isr=(2,)))


def target_reordered(simulation: Any) -> int:
    """Assign the target in another order."""
    in_flight(simulation, 3, 2)
    simulation.run()
    simulation.change_isr(1, 2, 3)
    simulation.perform(raised(simulation, leader=3))
    simulation.perform(raised(simulation, isr=(2, 3)))
    return simulation.perform(WriteAssigned((2, 3)))


def change(simulation: Any) -> None:
    """Have a change from [2, 3] to [2, 4] recorded, with its drop still to come."""
    in_flight(simulation, 2, 3)
    simulation.run()
    in_flight(simulation, 2, 4, until=WriteAssigned)


def drop_skipped(simulation: Any) -> int:
    """Add the new target without the drop."""
    change(simulation)
    return simulation.perform(WriteAssigned((1, 2, 3, 4)))


def drop_too_much(simulation: Any) -> int:
    """Drop an in-sync replica that the rule keeps."""
    change(simulation)
    return simulation.perform(raised(simulation, isr=(1,)))


def drop_the_leader(simulation: Any) -> int:
    """Drop the leader."""
    change(simulation)
    return simulation.perform(WriteAssigned((2, 3)))


def stranger_added(simulation: Any) -> int:
    """Add a replica that is in no target."""
    in_flight(simulation, 2, 3, until=WriteAssigned)
    return simulation.perform(WriteAssigned((1, 2, 3, 4)))


def epoch_jumped(simulation: Any) -> int:
    """Raise the leader epoch by two."""
    state = simulation.state
    return simulation.perform(WriteState(replace(state, leader_epoch=state.leader_epoch + 2)))


def old_controller_epoch(simulation: Any) -> int:
    """Write with the epoch of an earlier controller."""
    simulation.elect()
    return simulation.perform(raised(simulation))


def replica_brought_back(simulation: Any) -> int:
    """Overwrite the leader's change of the in-sync set."""
    simulation.change_isr(1)
    return simulation.perform(raised(simulation, isr=(1, 2)))


def healthy_replica_removed(simulation: Any) -> int:
    """Take a healthy replica out of the in-sync set."""
    return simulation.perform(raised(simulation, isr=(1,)))


def unclean_leader(simulation: Any) -> int:
    """Elect a leader that is not in sync."""
    simulation.change_isr(1)
    simulation.die(1)
    return simulation.perform(raised(simulation, leader=2, isr=(2,)))


def unneeded_election(simulation: Any) -> int:
    """Replace a leader that is alive."""
    return simulation.perform(raised(simulation, leader=2))


def leaderless_without_need(simulation: Any) -> int:
    """Leave the partition without a leader while one could serve."""
    simulation.die(1)
    return simulation.perform(raised(simulation, leader=-1))


def unfenced(simulation: Any) -> int:
    """Write without the epoch check."""
    in_flight(simulation, 2, 3)
    return simulation.perform(raised(simulation), fenced=False)


def isr_of_another(simulation: Any) -> int:
    """Let a follower change the in-sync set."""
    return simulation.change_isr(1, session=2)


def isr_without_leader(simulation: Any) -> int:
    """Let the leader leave the in-sync set."""
    return simulation.change_isr(2)


def isr_with_stranger(simulation: Any) -> int:
    """Let a replica join that is not assigned."""
    return simulation.change_isr(1, 2, 4)


def isr_with_dead(simulation: Any) -> int:
    """Let a dead replica join."""
    simulation.change_isr(1)
    simulation.die(2)
    simulation.judge.router.settle("")
    return simulation.change_isr(1, 2)


def leader_changed_by_broker(simulation: Any) -> int:
    """Let a broker name another leader."""
    op = simulation.state_op(replace(simulation.state, leader=2))
    return simulation.write(op, session=1)


def unreadable_state(simulation: Any) -> int:
    """Write a state that is no JSON."""
    path = znodes.state_path("orders", 0)
    return simulation.write(SetData(path, b"leader: 1", 1), session=1)


def epoch_without_election(simulation: Any) -> int:
    """Raise the controller epoch without an election."""
    return simulation.write(SetData(znodes.CONTROLLER_EPOCH, b"2", 2), session=7)


def epoch_skipped(simulation: Any) -> int:
    """Skip a controller epoch at an election."""
    simulation.epoch += 1
    return simulation.elect()


BROKEN = {
    wrong_top: "top.original-length",
    unasked_record: "child.from-request",
    wrong_order: "request.order.sequence",
    request_removed_first: "request.delete.child-first",
    duplicate_accepted: "request.refuse.duplicate-replica",
    unknown_broker_accepted: "request.refuse.unknown-broker",
    expanded_without_record: "child.before-effects",
    top_changed: "top.once-per-chain",
    record_made_anew: "child.update-in-place",
    completed_too_early: "complete.target-in-sync",
    stopped_too_early: "complete.target-in-sync",
    leader_stopped_too_early: "complete.target-in-sync",
    leader_stopped_in_office: "complete.leader-in-target",
    leader_left_behind: "complete.leader-in-target",
    wrong_target_leader: "complete.leader-first-in-sync-target",
    old_replica_kept_in_sync: "complete.isr-before-assigned",
    target_replica_stopped: "isr.remove.only-when-due",
    target_reordered: "complete.target-order",
    drop_skipped: "drop.before-expansion",
    drop_too_much: "drop.keep-top",
    drop_the_leader: "drop.leader-kept",
    stranger_added: "expand.target-only",
    epoch_jumped: "leader-epoch.raised-by-one",
    old_controller_epoch: "state.controller-epoch-stamped",
    replica_brought_back: "state.write-conditional",
    healthy_replica_removed: "isr.remove.only-when-due",
    unclean_leader: "election.clean",
    unneeded_election: "election.only-when-due",
    leaderless_without_need: "leader.none-only-without-candidate",
    unfenced: "controller.write.epoch-checked",
    isr_of_another: "isr.change.by-leader",
    isr_without_leader: "isr.change.leader-kept",
    isr_with_stranger: "isr.change.assigned-only",
    isr_with_dead: "isr.change.live-only",
    leader_changed_by_broker: "isr.change.keeps-leader",
    unreadable_state: "znode.well-formed",
    epoch_without_election: "controller.election.atomic",
    epoch_skipped: "controller.epoch.raised-by-one",
}


@pytest.mark.parametrize(
    ("mistake", "clause"), BROKEN.items(), ids=lambda it: getattr(it, "__name__", it)
)
def test_mistake_is_named(simulation: Any, mistake: Callable[[Any], int], clause: str) -> None:
    """Each mistake is one violation, of the clause it breaks, at the transaction that made it."""
    zxid = mistake(simulation)
    assert simulation.broken() == [(clause, zxid)]


def owing(simulation: Any, clause: str) -> None:
    """Rest, and find that this clause is what was owed."""
    simulation.judge.quiesce("")
    assert [violation.clause for violation in simulation.judge.violations] == [clause]
    simulation.judge.quiesce("")
    assert len(simulation.judge.violations) == 1


def take_another(simulation: Any) -> None:
    """Let the controller take a request for another partition out of the queue."""
    sequence = simulation.submit(2, 3, partition=8)
    path = znodes.request_path(sequence)
    simulation.write(Delete(path), session=900, fenced=True)


@pytest.mark.parametrize(
    ("target", "clause"),
    [
        ((2, 3), "request.consumed"),
        ((), "request.refuse.empty-target"),
        ((2, 2), "request.refuse.duplicate-replica"),
        ((2, -1), "request.refuse.negative-replica"),
        ((2, 9), "request.refuse.unknown-broker"),
    ],
)
def test_request_left_lying_is_named(simulation: Any, target: tuple[int, ...], clause: str) -> None:
    """A request that is still there at rest breaks the clause that says what to do with it."""
    simulation.submit(*target)
    take_another(simulation)
    owing(simulation, clause)


def test_request_for_an_unknown_partition_left_lying_is_named(simulation: Any) -> None:
    """A request for a partition that does not exist must be removed."""
    simulation.submit(2, 3, partition=7)
    take_another(simulation)
    owing(simulation, "request.refuse.unknown-partition")


@pytest.mark.parametrize(
    ("name", "data", "clause"),
    [
        ("request_0000000009", b"{", "request.refuse.malformed"),
        ("request_0000000009", b"[" * 1_048_577, "request.refuse.too-large"),
        ("notes", b"", "request.foreign-removed"),
    ],
)
def test_bad_request_left_lying_is_named(
    simulation: Any, name: str, data: bytes, clause: str
) -> None:
    """What cannot be a request must be removed; removed it counts as exercised."""
    path = f"{znodes.REASSIGNMENT_REQUESTS}/{name}"
    simulation.write(Create(path, data), session=50)
    take_another(simulation)
    owing(simulation, clause)
    simulation.write(Delete(path), session=900, fenced=True)
    assert simulation.judge.exercised[clause] == 1


def test_foreign_record_left_lying_is_named(simulation: Any) -> None:
    """A record for a partition that does not exist, made by somebody else, must be removed."""
    path = znodes.reassignment_path("nowhere", 0)
    record = znodes.encode_reassignment(znodes.ReassignmentZnode(2, (1, 2)))
    simulation.write(Create(path, record), session=50)
    owing(simulation, "child.foreign-removed")


def test_leader_left_dead_is_named(simulation: Any) -> None:
    """A dead leader must be replaced."""
    simulation.die(1)
    owing(simulation, "election.held")


def test_dead_replica_left_in_sync_is_named(simulation: Any) -> None:
    """A dead replica must leave the in-sync set."""
    simulation.die(2)
    owing(simulation, "isr.remove.dead")


def test_completion_left_undone_is_named(simulation: Any) -> None:
    """A reassignment whose target is in sync must be completed."""
    in_flight(simulation, 2, 3)
    simulation.run()
    simulation.change_isr(1, 2, 3)
    owing(simulation, "complete.carried-out")


def test_expansion_left_undone_is_named(simulation: Any) -> None:
    """A reassignment in flight must have its target assigned."""
    sequence = simulation.submit(2, 3)
    simulation.perform(CreateReassignment(Reassignment((2, 3), 2)))
    simulation.perform(DeleteRequest(sequence))
    owing(simulation, "expand.carried-out")


def test_drop_left_undone_is_named(simulation: Any) -> None:
    """A change must have its drop carried out."""
    change(simulation)
    owing(simulation, "drop.carried-out")


def test_unannounced_expansion_is_named(simulation: Any) -> None:
    """An expansion must be followed by a new leader epoch."""
    in_flight(simulation, 2, 3, until=WriteState)
    owing(simulation, "expand.announced")


def test_what_is_still_wrong_is_not_counted_again(simulation: Any) -> None:
    """A write that leaves wrong what was wrong already is a follow-up; another one is not."""
    simulation.change_isr(1)
    simulation.die(1)
    simulation.judge.router.settle("")
    empty = simulation.perform(raised(simulation, leader=-1, isr=()))
    simulation.perform(raised(simulation, leader=-1, isr=()))
    found = [("isr.never-empty", empty)]
    assert simulation.broken() == found
    assert simulation.judge.report().follow_ups == 1
    found.append(("leader-epoch.raised-by-one", epoch_jumped(simulation)))
    assert simulation.broken() == found


def test_stale_view_of_a_broker_is_not_a_violation(simulation: Any) -> None:
    """A controller that has not noticed a return yet may still act on the death."""
    simulation.die(2)
    registration = znodes.encode_broker("127.0.0.1", 9092, 0)
    again = Create(znodes.broker_path(2), registration, ephemeral=True)
    simulation.judge.router.settle("")
    simulation.write(again, session=20)
    simulation.perform(raised(simulation, isr=(1,)))
    assert simulation.broken() == []
    simulation.change_isr(1, 2)
    simulation.judge.router.settle("")
    zxid = simulation.perform(raised(simulation, isr=(1,)))
    assert simulation.broken() == [("isr.remove.only-when-due", zxid)]


def test_drop_decided_before_a_replica_joined_is_not_owed(make_simulation: Any) -> None:
    """A controller that found nothing to drop owes nothing because of who joins afterwards."""
    simulation = make_simulation("kip-236-amended")
    simulation.start(assigned=(3, 4))
    in_flight(simulation, 1, 2, 4)
    simulation.run()
    simulation.change_isr(3)
    in_flight(simulation, 2, 1, 3, until=WriteState)
    simulation.perform(raised(simulation))
    simulation.change_isr(3, 2)
    simulation.perform(DeleteRequest(1))
    simulation.judge.quiesce("")
    assert simulation.broken() == []


def test_drop_that_waits_for_a_leader_stays_due(make_simulation: Any) -> None:
    """A change recorded without a leader has its drop once there is one, across moments of rest."""
    simulation = make_simulation("kip-236-amended")
    simulation.start()
    simulation.submit(3, 4)
    simulation.run()
    simulation.change_isr(1)
    simulation.die(1)
    simulation.submit(2, 3)
    simulation.run()
    assert len(simulation.partition.assigned) == 4
    registration = znodes.encode_broker("127.0.0.1", 9092, 0)
    simulation.write(Create(znodes.broker_path(1), registration, ephemeral=True), session=1)
    simulation.run()
    assert simulation.broken() == []
    assert simulation.partition.assigned == (1, 2, 3)


def test_drop_that_was_always_due_is_owed(make_simulation: Any) -> None:
    """A controller that never had a moment with nothing to drop owes the drop."""
    simulation = make_simulation("kip-236-amended")
    simulation.start(assigned=(3, 4))
    in_flight(simulation, 1, 2, 4)
    simulation.run()
    in_flight(simulation, 4, 3, until=WriteAssigned)
    owing(simulation, "drop.carried-out")


def test_refused_transactions_change_nothing(simulation: Any) -> None:
    """A transaction that ZooKeeper refused is not an observation."""
    before = simulation.partition
    state = simulation.state_op(replace(simulation.state, leader=2))
    refused = replace(simulation.history[-1], zxid=999, ops=(state,), error=-103)
    simulation.judge.feed(refused)
    assert simulation.partition == before
    assert simulation.broken() == []


def test_report_counts_what_was_fed(simulation: Any) -> None:
    """Each transaction that was looked at counts once, refused ones too, and each partition."""
    simulation.submit(2, 3)
    simulation.run()
    simulation.judge.feed(replace(simulation.history[-1], zxid=999, error=-103))
    report = simulation.judge.report()
    assert report.transactions == len(simulation.history) + 1
    assert (report.partitions, report.follow_ups) == (1, 0)


def test_view_is_of_one_cluster_as_it_is(make_simulation: Any) -> None:
    """A view holds the partitions that exist, or are asked for, in the cluster that it is of."""
    first, second = make_simulation(chroot="/one"), make_simulation(chroot="/two")
    second.judge, second.zxids = first.judge, first.zxids
    first.start()
    second.start(assigned=(3, 4))
    first.submit(1, 2, partition=5)
    other = znodes.encode_topic({0: (1, 2)})
    path = first.path(znodes.topic_path("other"))
    first.write(Create(path, other), session=50)
    assert set(first.judge.view("/one").partitions) == {("orders", 0), ("orders", 5), ("other", 0)}
    deletion = Create(first.path(f"{znodes.DELETED_TOPICS}/other"), b"")
    first.write(deletion, session=50)
    first.write(Delete(path), session=900, fenced=True)
    assert set(first.judge.view("/one").partitions) == {("orders", 0), ("orders", 5)}
    assert first.judge.view("/two").partitions["orders", 0].assigned == (3, 4)
    assert set(first.judge.view("/two").partitions) == {("orders", 0)}
