"""Planning as pure functions: from memory to steps."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reassure_controller.context import Context, LiveBroker, PartitionContext, apply_step
from reassure_controller.effects import (
    CreateReassignment,
    Mark,
    Phase,
    RequestRead,
    SendLeaderAndIsr,
    SendStopReplica,
    Step,
    WriteAssigned,
    WriteState,
)
from reassure_controller.protocols.kip_236 import choose_drop, plan_request
from reassure_controller.reassignment_steps import plan_changes, plan_failover
from reassure_controller.repairs import plan_repair
from reassure_controller.rules import Rules
from reassure_spec.readings import Readings
from reassure_spec.rooms import RefusedReading
from reassure_spec.znodes import (
    NO_LEADER,
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
    StateZnode,
    decode_topic_content,
    encode_topic,
    request_path,
)

KEY = ("t", 0)
READ = RequestRead(request_path(0), 5)


def context(
    assigned: ReplicaList,
    *,
    leader: int | None = None,
    isr: ReplicaList | None = None,
    child: ReassignmentZnode | None = None,
    phase: Phase | None = None,
    live: tuple[int, ...] = (1, 2, 3, 4, 5),
) -> Context:
    """Return the memory of a controller in epoch 7 of one partition."""
    used = assigned if isr is None else isr
    state = StateZnode(assigned[0] if leader is None else leader, 10, 6, used)
    memory = Context(
        epoch=7,
        epoch_version=9,
        brokers={one: LiveBroker(one, 0, "127.0.0.1", 1) for one in live},
        known_brokers={1, 2, 3, 4, 5, 6},
        topic_versions={"t": 20},
        topic_contents={"t": decode_topic_content("/t", encode_topic({0: assigned}))},
        directories={"/brokers/topics/t/partitions", "/brokers/topics/t/partitions/0"},
    )
    memory.put(KEY, PartitionContext(assigned, state, 30, child, 40, phase))
    return memory


def points(steps: Sequence[Step]) -> list[str]:
    """Return the points of the effects among the steps."""
    return [step.point for step in steps if not isinstance(step, Mark)]


def end(start: Context, steps: tuple[Step, ...]) -> PartitionContext:
    """Return the partition after the steps."""
    for step in steps:
        apply_step(start, step)
    return start.partitions[KEY]


def carry_out(start: Context, targets: dict[PartitionKey, ReplicaList]) -> list[Step]:
    """Return all steps of a request, carried out: each partition is planned for itself."""
    request = RequestZnode(targets)
    record = plan_request(start, READ, request, Rules())
    end(start, record)
    changes: list[Step] = []
    for key in sorted(targets):
        steps = plan_changes(start, [key], Rules())
        end(start, steps)
        changes += steps
    delete = plan_request(start, READ, request, Rules())
    end(start, delete)
    return [*record, *changes, *delete]


def test_new_request_is_planned_in_order() -> None:
    """The child comes first, then the expansion, the epoch and the message, then the deletion."""
    steps = carry_out(context((1, 2)), {KEY: (2, 3)})
    assert points(steps) == [
        "request.child-written",
        "request.assigned-expanded",
        "request.epoch-raised",
        "request.replicas-started",
        "request.deleted",
    ]
    assert steps[0] == CreateReassignment(
        point="request.child-written",
        key=KEY,
        reassignment=ReassignmentZnode(2, (2, 3)),
        with_parent=True,
        request=READ,
    )
    sent = [step for step in steps if isinstance(step, SendLeaderAndIsr)]
    assert (sent[0].to, sent[0].new) == ((1, 2, 3), frozenset({3}))


def test_planning_leaves_the_context_alone() -> None:
    """A plan is made on a fork: the memory it was made from is unchanged."""
    before = context((1, 2))
    plan_request(before, READ, RequestZnode({KEY: (2, 1)}), Rules())
    assert before == context((1, 2))


def test_versions_are_those_each_write_will_find() -> None:
    """Within one plan each write is conditional on the version that the one before it leaves."""
    steps = carry_out(context((1, 2, 3)), {KEY: (3,)})
    states = [step for step in steps if isinstance(step, WriteState)]
    assert [step.version for step in states] == [30, 31, 32, 33]
    assert [step.state.leader_epoch for step in states] == [11, 12, 13, 14]
    assert {step.state.controller_epoch for step in states} == {7}
    assert [step.version for step in steps if isinstance(step, WriteAssigned)] == [20]


def test_two_partitions_of_a_topic_share_its_version() -> None:
    """All are recorded before one expands; their expansions have consecutive topic versions."""
    start = context((1, 2))
    start.put(("t", 1), PartitionContext((1,), StateZnode(1, 0, 1, (1,)), 0))
    steps = carry_out(start, {("t", 1): (2,), KEY: (3,)})
    assert points(steps[:2]) == ["request.child-written"] * 2
    assert points(steps[-1:]) == ["request.deleted"]
    writes = [step for step in steps if isinstance(step, WriteAssigned)]
    assert [(step.partition, step.version) for step in writes] == [(0, 20), (1, 21)]
    children = [step for step in steps if isinstance(step, CreateReassignment)]
    assert [step.with_parent for step in children] == [True, False]


def test_completion_moves_stops_and_finishes_in_order() -> None:
    """Leader first, then each old replica, then deletion, assignment and child."""
    child = ReassignmentZnode(2, (4, 3))
    start = context((1, 2, 4, 3), isr=(1, 2, 3, 4), child=child, phase=Phase.WAIT)
    steps = plan_changes(start, [KEY], Rules())
    assert points(steps) == [
        "completion.leader-moved",
        "completion.leader-sent",
        "completion.replica-stopped",
        "completion.isr-shrunk",
        "completion.isr-sent",
        "completion.replica-stopped",
        "completion.isr-shrunk",
        "completion.isr-sent",
        "completion.replicas-deleted",
        "completion.target-assigned",
        "completion.child-deleted",
    ]
    final = end(start, steps)
    assert final.state == StateZnode(4, 13, 7, (3, 4))
    assert (final.assigned, final.child, final.phase) == ((4, 3), None, None)


@pytest.mark.parametrize(
    ("isr", "leader", "live"),
    [((1, 3), 1, (1, 3, 4)), ((1, 3, 4), 1, (1,)), ((1, 3, 4), 3, (1,))],
    ids=["not in sync", "target dead, old leader", "target dead, its leader too"],
)
def test_completion_waits(isr: ReplicaList, leader: int, live: tuple[int, ...]) -> None:
    """Nothing is done before the target is in sync and can be led by a live replica of it."""
    child = ReassignmentZnode(1, (3, 4))
    start = context((1, 3, 4), isr=isr, leader=leader, live=live, child=child, phase=Phase.WAIT)
    assert plan_changes(start, [KEY], Rules()) == ()


def test_completion_is_taken_up_after_any_prefix() -> None:
    """Planned again after any prefix of itself, a completion ends in the same partition."""
    child = ReassignmentZnode(2, (4, 3))
    start = context((1, 2, 4, 3), isr=(1, 2, 3, 4), child=child, phase=Phase.WAIT)
    whole = plan_changes(start, [KEY], Rules())
    for cut in range(len(whole)):
        again = context((1, 2, 4, 3), isr=(1, 2, 3, 4), child=child, phase=Phase.WAIT)
        for step in whole[:cut]:
            apply_step(again, step)
        again.put(KEY, replace(again.partitions[KEY], phase=Phase.EXPAND))
        end(again, plan_failover(again, Rules()))
        final = end(again, plan_changes(again, [KEY], Rules()))
        assert (final.assigned, final.child) == ((4, 3), None), f"cut at {cut}"
        assert final.state is not None
        assert (final.state.leader, set(final.state.isr)) == (4, {3, 4})


def test_change_drops_before_it_expands() -> None:
    """A change stops, shrinks, tells, deletes and unassigns the surplus, and only then expands."""
    child = ReassignmentZnode(2, (2, 5))
    start = context((1, 2, 3, 4), isr=(1, 2, 3), child=child, phase=Phase.DROP)
    steps = plan_changes(start, [KEY], Rules())
    assert points(steps) == [
        "change.replicas-stopped",
        "change.isr-shrunk",
        "change.isr-sent",
        "change.replicas-deleted",
        "change.replicas-dropped",
        "request.assigned-expanded",
        "request.epoch-raised",
        "request.replicas-started",
    ]
    (dropped, *_) = [step for step in steps if isinstance(step, WriteAssigned)]
    assert (dropped.assigned, dropped.state_version) == ((1, 2), 31)
    stops = [step for step in steps if isinstance(step, SendStopReplica)]
    assert [(step.to, step.delete) for step in stops] == [((3, 4), False), ((3, 4), True)]


@pytest.mark.parametrize(("leader", "isr"), [(NO_LEADER, (2,)), (1, (2,))])
def test_change_waits_for_a_leader_in_sync(leader: int, isr: ReplicaList) -> None:
    """Without a leader in sync the drop, which could name the last copy in sync, waits."""
    child = ReassignmentZnode(1, (3,))
    start = context((1, 2), leader=leader, isr=isr, child=child, phase=Phase.DROP)
    assert plan_changes(start, [KEY], Rules()) == ()


def test_failover_finishes_a_change_that_was_cut_short() -> None:
    """A change whose target is not assigned yet was not dropped for either; a successor does so."""
    child = ReassignmentZnode(2, (1, 4))
    start = context((1, 2, 3), isr=(1, 2), child=child, phase=Phase.EXPAND)
    end(start, plan_failover(start, Rules()))
    assert end(start, plan_changes(start, [KEY], Rules())).assigned == (1, 2, 4)


def test_failover_drops_nothing_once_a_change_is_expanded() -> None:
    """A reassignment that was expanded before the failover keeps every replica."""
    child = ReassignmentZnode(2, (3, 4))
    start = context((1, 2, 3, 4), isr=(1, 2), child=child, phase=Phase.EXPAND)
    end(start, plan_failover(start, Rules()))
    assert end(start, plan_changes(start, [KEY], Rules())).assigned == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("assigned", "leader", "isr", "dead", "expected"),
    [
        ((1, 2, 3), 1, (3, 2, 1), {1}, [(2, (3, 2))]),
        ((1, 2, 3), 1, (1, 2, 3), {2, 3}, [(1, (1, 3)), (1, (1,))]),
        ((1, 2), 1, (1,), {1}, [(NO_LEADER, (1,))]),
        ((1, 2), NO_LEADER, (1,), {1}, []),
        ((1, 2), 1, (1,), {2}, []),
    ],
)
def test_dead_brokers_are_replaced_and_removed(
    assigned: ReplicaList,
    leader: int,
    isr: ReplicaList,
    dead: set[int],
    expected: list[tuple[int, ReplicaList]],
) -> None:
    """Elections go by assigned order; followers leave one at a time; the last one stays."""
    live = tuple({1, 2, 3} - dead)
    start = context(assigned, leader=leader, isr=isr, live=live)
    steps = plan_repair(start, [KEY], Rules())
    writes = [step for step in steps if isinstance(step, WriteState)]
    assert [(step.state.leader, step.state.isr) for step in writes] == expected


def test_new_partition_waits_for_a_live_replica() -> None:
    """Without a live replica a partition stays new."""
    start = context((4, 5), live=(1,))
    start.put(KEY, PartitionContext((4, 5)))
    assert plan_repair(start, [KEY], Rules()) == ()


@pytest.mark.parametrize(
    ("readings", "assigned", "leader", "isr", "top", "target", "expected"),
    [
        (Readings(), (1, 2, 3), 1, (1, 2), 2, (4,), (3,)),
        (Readings(), (1, 2, 3), 3, (1, 2), 2, (4,), (2,)),
        (Readings(), (1, 2, 3), 1, (3, 1), 2, (2, 4), (2,)),
        (Readings(), (1, 2), 1, (1, 2), 2, (4,), ()),
        (Readings(), (1, 2), NO_LEADER, (2,), 1, (3,), (1, 2)),
        (Readings(offline_drop="skip"), (1, 2), NO_LEADER, (2,), 1, (3,), ()),
        (Readings(offline_drop="skip"), (1, 2), 1, (2,), 1, (3,), ()),
        (Readings(drop_slice="exclusive"), (1, 2), 1, (1, 2), 2, (4,), (2,)),
        (Readings(drop_protects="target"), (1, 2, 3), 1, (1, 2), 2, (3, 4), ()),
    ],
)
def test_drop_rule_keeps_the_best_top(
    readings: Readings,
    assigned: ReplicaList,
    leader: int,
    isr: ReplicaList,
    top: int,
    target: ReplicaList,
    expected: ReplicaList,
) -> None:
    """The leader ranks first, then the in-sync replicas, then the others; readings change it."""
    assert choose_drop(assigned, leader, isr, top, target, readings) == expected


def test_unsupported_reading_is_refused() -> None:
    """A reading that would silently be carried out as another one is an error that names it."""
    with pytest.raises(RefusedReading, match=r"move\.expand-first=no is not"):
        Rules(Readings(move_expand_first="no"))
