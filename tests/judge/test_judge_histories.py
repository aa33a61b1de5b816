"""The judge accepts what the reference controller does, and names what a wrong one breaks."""

from dataclasses import replace
from typing import Any

import pytest
from history_steps import (
    Act,
    ask,
    change_isr,
    die,
    elect,
    move,
    perform,
    put,
    put_state,
    run,
    settle,
    tell,
    write,
)

from reassure_model.partition import Reassignment
from reassure_model.writes import CreateReassignment, DeleteRequest, WriteAssigned, WriteState
from reassure_spec import znodes
from reassure_zookeeper.transactions import Create, Delete, SetData

STATE = znodes.state_path("orders", 0)


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_reference_controller_is_accepted(make_simulation: Any, profile: str) -> None:
    """Reassignment, change, cancel, failover and broker death break nothing and end as asked."""
    cluster = make_simulation(profile, chroot="/some/chroot")
    cluster.start()
    acts = (ask(3, 2), run, change_isr(1, 2, 3), run, ask(2, 1), run, ask(2, 4), run, elect(), run)
    perform(cluster, (*acts, die(4), ask(3, 2), run))
    assert cluster.broken() == []
    assert cluster.partition.assigned == (3, 2)
    assert cluster.partition.reassignment is None
    for clause in ("complete.carried-out", "drop.carried-out", "request.consumed"):
        assert cluster.judge.exercised[clause] > 0


def test_drop_of_an_in_sync_replica_is_followed(simulation: Any) -> None:
    """A drop that takes replicas out of the in-sync set and then off the assignment is accepted."""
    simulation.in_flight(3, 4)
    simulation.run()
    simulation.change_isr(1, 2, 3)
    simulation.submit(2, 4)
    simulation.run()
    assert simulation.broken() == []
    assert simulation.judge.exercised["drop.isr-at-least-min"] == 1
    assert simulation.state.isr == (1, 2)


def assign(*replicas: int) -> Act:
    """Return a controller's write of the assignment."""
    return put(WriteAssigned(replicas))


MOVING = (move(2, 3), run)
"""A move to 2, 3 waits for 3 to join."""
REPLACING = (move(3, 4), run)
JOINED = (*REPLACING, change_isr(1, 2, 3, 4))
CHANGED = (*MOVING, move(2, 4, until=WriteAssigned))
"""A change from 2, 3 to 2, 4 is recorded, with its drop still to come."""
ELECTED = (*MOVING, change_isr(1, 2, 3), put_state(leader=2))


def start(target: tuple[int, ...], top: int, *asked: tuple[int, ...]) -> tuple[Act, ...]:
    """Return requests, or one for the target, and a record of the target."""
    made = put(CreateReassignment(Reassignment(target, top)))
    return (*(ask(*each) for each in asked or (target,)), made)


BY = "complete.target-in-sync"
BROKEN = {
    "wrong top": tell(*start((2, 3), 3), broken="top.original-length"),
    "unasked record": tell(*start((1, 3), 2, (2, 3)), broken="child.from-request"),
    "wrong order": tell(*start((2, 4), 2, (2, 3), (2, 4)), broken="request.order.sequence"),
    "duplicate accepted": tell(*start((2, 2), 2), broken="request.refuse.duplicate-replica"),
    "unknown broker accepted": tell(*start((2, 9), 2), broken="request.refuse.unknown-broker"),
    "expanded without record": tell(ask(2, 3), assign(1, 2, 3), broken="child.before-effects"),
    "completed too early": tell(move(2, 3), assign(2, 3), broken=BY),
    "stopped too early": tell(move(1, 3), run, put_state(isr=(1,)), broken=BY),
    "leader stopped too early": tell(*REPLACING, put_state(leader=-1, isr=(2,)), broken=BY),
    "leader stopped in office": tell(
        *JOINED, put_state(isr=(2, 3, 4)), broken="complete.leader-in-target"
    ),
    "leader left behind": tell(
        *JOINED, put_state(isr=(1, 3, 4)), broken="complete.leader-in-target"
    ),
    "wrong target leader": tell(
        *JOINED, put_state(leader=4), broken="complete.leader-first-in-sync-target"
    ),
    "old replica kept in sync": tell(*ELECTED, assign(2, 3), broken="complete.isr-before-assigned"),
    "target replica stopped": tell(
        *ELECTED, put_state(isr=(2,)), broken="isr.remove.only-when-due"
    ),
    "target reordered": tell(
        *(move(3, 2), run, change_isr(1, 2, 3), put_state(leader=3), put_state(isr=(2, 3))),
        assign(2, 3),
        broken="complete.target-order",
    ),
    "drop skipped": tell(*CHANGED, assign(1, 2, 3, 4), broken="drop.before-expansion"),
    "drop too much": tell(*CHANGED, put_state(isr=(1,)), broken="drop.keep-top"),
    "drop the leader": tell(*CHANGED, assign(2, 3), broken="drop.leader-kept"),
    "stranger added": tell(
        move(2, 3, until=WriteAssigned), assign(1, 2, 3, 4), broken="expand.target-only"
    ),
    "old controller epoch": tell(elect(), put_state(), broken="state.controller-epoch-stamped"),
    # The leader's change of the in-sync set is overwritten.
    "replica brought back": tell(
        change_isr(1), put_state(isr=(1, 2)), broken="state.write-conditional"
    ),
    "healthy replica removed": tell(put_state(isr=(1,)), broken="isr.remove.only-when-due"),
    "unclean leader": tell(
        change_isr(1), die(1), put_state(leader=2, isr=(2,)), broken="election.clean"
    ),
    "leaderless without need": tell(
        die(1), put_state(leader=-1), broken="leader.none-only-without-candidate"
    ),
    "unfenced": tell(move(2, 3), put_state(fenced=False), broken="controller.write.epoch-checked"),
    "in-sync set by a follower": tell(change_isr(1, session=2), broken="isr.change.by-leader"),
    "in-sync set without leader": tell(change_isr(2), broken="isr.change.leader-kept"),
    "in-sync set with a stranger": tell(change_isr(1, 2, 4), broken="isr.change.assigned-only"),
    "in-sync set with a dead one": tell(
        change_isr(1), die(2), settle, change_isr(1, 2), broken="isr.change.live-only"
    ),
    "unreadable state": tell(
        write(SetData(STATE, b"leader: 1", 1), session=1), broken="znode.well-formed"
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_mistake_is_named(simulation: Any, name: str) -> None:
    """Each mistake is one violation, of the clause it breaks, at the transaction that made it."""
    BROKEN[name].check(simulation)


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


def put_foreign_record(sim: Any) -> None:
    """Make a record for a partition that does not exist, as somebody else."""
    record = znodes.encode_reassignment(znodes.ReassignmentZnode(2, (1, 2)))
    sim.write(Create(znodes.reassignment_path("nowhere", 0), record), session=50)


OWED: dict[str, tuple[Act, ...]] = {
    "request.consumed": (ask(2, 3), take_another),
    "request.refuse.empty-target": (ask(), take_another),
    "request.refuse.duplicate-replica": (ask(2, 2), take_another),
    "request.refuse.negative-replica": (ask(2, -1), take_another),
    "request.refuse.unknown-broker": (ask(2, 9), take_another),
    "request.refuse.unknown-partition": (lambda sim: sim.submit(2, 3, partition=7), take_another),
    "child.foreign-removed": (put_foreign_record,),
    "election.held": (die(1),),
    "isr.remove.dead": (die(2),),
    "complete.carried-out": (*MOVING, change_isr(1, 2, 3)),
    "expand.carried-out": (
        ask(2, 3),
        put(CreateReassignment(Reassignment((2, 3), 2))),
        put(DeleteRequest(0)),
    ),
    "drop.carried-out": CHANGED,
    "expand.announced": (move(2, 3, until=WriteState),),
}
"""By clause: what has a controller owe what it says."""


@pytest.mark.parametrize("clause", OWED)
def test_what_is_left_undone_at_rest_is_named(simulation: Any, clause: str) -> None:
    """What is owed at rest breaks the clause that says what to do, once."""
    perform(simulation, OWED[clause])
    owing(simulation, clause)


def test_what_is_still_wrong_is_not_counted_again(simulation: Any) -> None:
    """A write that leaves wrong what was wrong already is a follow-up; another one is not."""
    simulation.change_isr(1)
    simulation.die(1)
    simulation.judge.router.settle("")
    empty = simulation.perform_raised(leader=-1, isr=())
    simulation.perform_raised(leader=-1, isr=())
    found = [("isr.never-empty", empty)]
    assert simulation.broken() == found
    assert simulation.judge.report().follow_ups == 1
    found.append(("leader-epoch.raised-by-one", put_state(by=2)(simulation)))
    assert simulation.broken() == found


def test_drop_decided_before_a_replica_joined_is_not_owed(make_simulation: Any) -> None:
    """A controller that found nothing to drop owes nothing because of who joins afterwards."""
    simulation = make_simulation("kip-236-amended")
    simulation.start(assigned=(3, 4))
    simulation.in_flight(1, 2, 4)
    simulation.run()
    simulation.change_isr(3)
    simulation.in_flight(2, 1, 3, until=WriteState)
    simulation.perform_raised()
    simulation.change_isr(3, 2)
    simulation.perform(DeleteRequest(1))
    simulation.judge.quiesce("")
    assert simulation.broken() == []


def test_drop_that_waits_for_a_leader_stays_due(make_simulation: Any) -> None:
    """A change recorded without a leader has its drop once there is one, across moments of rest."""
    simulation = make_simulation("kip-236-amended")
    simulation.start()
    perform(simulation, (ask(3, 4), run, change_isr(1), die(1), ask(2, 3), run))
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
    simulation.in_flight(1, 2, 4)
    simulation.run()
    simulation.in_flight(4, 3, until=WriteAssigned)
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
