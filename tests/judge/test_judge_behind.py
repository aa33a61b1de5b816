"""What is wrong behind something wrong is named too, and what merely stays wrong is not."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from history_steps import Act, change_isr, put, put_state, rest

from reassure_judge.messages import describe
from reassure_judge.protocols import kip_236, make_rules
from reassure_judge.protocols.kip_236.possible import look_past
from reassure_model.invariants import GOALS
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Create


def test_last_replica_cut_behind_another_mistake_is_named(simulation: Any) -> None:
    """An in-sync set that is cut to nothing (KAFKA-5083) is named behind an earlier rejection."""
    first = simulation.perform(WriteAssigned((1, 2, 4)))
    empty = simulation.perform_raised(isr=(), leader=-1)
    found = {v.zxid: (v.clause, *v.besides) for v in simulation.judge.violations}
    assert list(found) == [first, empty]
    assert "isr.never-empty" in found[empty]
    verdicts = {v.id: v.verdict for v in simulation.judge.report().verdicts}
    assert verdicts["isr.never-empty"] == "violated"
    simulation.perform_raised(isr=(), leader=-1)
    assert len(simulation.judge.violations) == 2
    assert simulation.judge.report().follow_ups == 1


def test_leader_outside_the_assignment_is_named_once(simulation: Any) -> None:
    """A leader that is not assigned is named where it is elected, and not with each write since."""
    first = simulation.perform(WriteAssigned((2, 3)))
    assert [v.zxid for v in simulation.judge.violations] == [first]
    assert "leader.assigned" in simulation.judge.violations[0].besides
    simulation.change_isr(1)
    second = simulation.perform_raised(leader=3, isr=(3,))
    assert [v.zxid for v in simulation.judge.violations] == [first, second]


STRANGER, TWICE = "isr.change.assigned-only", "assigned.no-duplicates"
MISTAKES: tuple[tuple[str, Act], ...] = (
    ("leader-epoch.raised-by-one", put_state(by=2)),
    ("isr.change.by-leader", change_isr(1, 2, session=3)),
    ("child.from-request", put(CreateReassignment(Reassignment((4, 3), 2)))),
    (TWICE, put(WriteAssigned((1, 2, 1)))),
)
SERIES = [
    *permutations(MISTAKES),
    # Strangers are named one by one.
    ((STRANGER, change_isr(1, 2, 3)), (STRANGER, change_isr(1, 2, 3, 4)), ("", rest)),
    # A list that holds a replica twice does not hide what else is put into it.
    (MISTAKES[3], ("assigned.change.only-as-due", put(WriteAssigned((1, 2, 1, 4))))),
]


@pytest.mark.parametrize("series", SERIES)
def test_each_mistake_of_a_series_is_named(
    simulation: Any, series: tuple[tuple[str, Act], ...]
) -> None:
    """Of mistakes on one partition each is named where it was made, whatever came before."""
    expected = [(clause, act(simulation)) for clause, act in series]
    assert simulation.broken() == [each for each in expected if each[0]]


def test_controller_that_removed_the_request_too_early_may_go_on(simulation: Any) -> None:
    """Who removes a request before he records it has it in mind, and one thing was wrong."""
    sequence = simulation.submit(2, 3)
    steps = simulation.steps()
    write = next(steps)
    zxid = simulation.perform(DeleteRequest(sequence))
    simulation.perform(write)
    simulation.run()
    assert simulation.broken() == [("request.delete.child-first", zxid)]
    assert simulation.partition.assigned == (1, 2, 3)


def test_controller_that_completed_too_early_may_go_on(simulation: Any) -> None:
    """Who assigns the target too early takes it for complete, and removes the record."""
    simulation.submit(2, 3)
    simulation.run()
    first = simulation.perform(WriteAssigned((2, 3)))
    assert [v.zxid for v in simulation.judge.violations] == [first]
    states = simulation.judge.tracking.partitions["", "orders", 0].states
    assert {s.partition.completing for s in states} == {True, False}
    assert {s.partition.assigned for s in states} == {(2, 3)}


def test_what_is_owed_and_was_reported_is_not_reported_at_each_rest(simulation: Any) -> None:
    """One debt is one violation until it is paid, and the next one is another."""
    simulation.die(2)
    simulation.judge.quiesce("")
    simulation.judge.quiesce("")
    assert [v.clause for v in simulation.judge.violations] == ["isr.remove.dead"]
    simulation.run()
    simulation.die(1)
    simulation.judge.quiesce("")
    assert [v.clause for v in simulation.judge.violations] == ["isr.remove.dead", "election.held"]


def test_debt_of_an_earlier_term_is_what_the_next_one_can_see(simulation: Any) -> None:
    """A controller that was elected since owes no drop that cannot be seen any more."""
    simulation.submit(3, 4)
    simulation.run()
    sequence = simulation.submit(3, 1)
    simulation.perform(next(simulation.steps()))
    simulation.write(simulation.find_op(DeleteRequest(sequence)), session=50)
    tracked = simulation.judge.tracking.partitions["", "orders", 0]
    assert all(state.partition.drop_due for state in tracked.states)
    simulation.elect()
    simulation.judge.quiesce("")
    assert simulation.broken() == []


def test_faults_are_told_by_their_culprits() -> None:
    """Each wrong replica is a fault of its own."""
    rules = make_rules("kip-236", get_profile("kip-236"))
    state = LeaderAndIsr(9, 1, 1, (1, 1, 2))
    faults = rules.list_faults(Partition(assigned=(1, 3, 3, 4, 4), state=state))
    assert {clause for clause, _ in faults} == {
        "leader.in-isr",
        "leader.assigned",
        "isr.within-assigned",
        "assigned.no-duplicates",
        "isr.no-duplicates",
    }
    assert {what for clause, what in faults if clause == "assigned.no-duplicates"} == {"3", "4"}
    sound = Partition(assigned=(1, 2), state=replace(state, leader=1, isr=(1,)))
    assert rules.list_faults(sound) == frozenset()


def test_looking_past_faults_mends_both_sides() -> None:
    """What stood wrong is right in the partition and in the write, and the rest is as it was."""
    old, new = LeaderAndIsr(3, 1, 1, (1, 1)), LeaderAndIsr(3, 2, 1, (1, 1, 2))
    partition = Partition(assigned=(1, 2, 1), state=old)
    mended = Partition(assigned=(1, 2), state=replace(old, isr=(1, 3)))
    right = replace(new, isr=(1, 2, 3))
    assert look_past(partition, WriteState(new)) == (mended, WriteState(right))
    assert look_past(partition, CreateState(new)) == (mended, CreateState(right))
    assert look_past(partition, ChangeIsr(new, 3)) == (mended, ChangeIsr(right, 3))
    assert look_past(partition, WriteAssigned((4, 4))) == (mended, WriteAssigned((4,)))
    assert look_past(Partition(), DeleteRequest(1)) == (Partition(), DeleteRequest(1))
    nobody = replace(old, leader=-1, isr=())
    assert look_past(Partition(state=nobody), DeleteRequest(1))[0].state == nobody


def test_what_becomes_of_a_partition_does_not_depend_on_the_view(
    simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the readings by default every view that allows a write leads to the same state."""
    assert simulation.judge.readings == get_profile("kip-236")
    found: list[tuple[Any, Any]] = []

    def spy(partition: Any, write: Any, around: Any, readings: Any) -> Any:
        outcome = accept_write(partition, write, around, readings)
        other = replace(around, live=around.live | {77}, known=around.known | {77})
        found.append((outcome, accept_write(partition, write, other, readings)))
        return outcome

    monkeypatch.setattr(kip_236, "accept_write", spy)
    simulation.submit(3, 2)
    simulation.run()
    simulation.change_isr(1, 2, 3)
    simulation.run()
    assert len(found) > 5
    assert all(one == other for one, other in found)


GOAL_STATES = {
    "a reassignment waits for its target": (
        Partition(assigned=(1, 2), state=LeaderAndIsr(1, 0, 1, (1,))),
        Partition(assigned=(1, 2), reassignment=Reassignment((2,), 1)),
    ),
    "the whole target is in sync": (
        Partition(state=LeaderAndIsr(1, 0, 1, (1,)), reassignment=Reassignment((1, 2), 1)),
        Partition(state=LeaderAndIsr(1, 0, 1, (1, 2)), reassignment=Reassignment((1, 2), 1)),
    ),
    "a change is due to drop something": (Partition(), Partition(drop_due=True)),
    "a replica of the target leads while old ones are in sync": (
        Partition(state=LeaderAndIsr(2, 0, 1, (2,)), reassignment=Reassignment((2,), 1)),
        Partition(state=LeaderAndIsr(2, 0, 1, (1, 2)), reassignment=Reassignment((2,), 1)),
    ),
    "no replica leads": (
        Partition(state=LeaderAndIsr(1, 0, 1, (1,))),
        Partition(state=LeaderAndIsr(-1, 0, 1, (1,))),
    ),
}


@pytest.mark.parametrize("goal", GOALS)
def test_goal_tells_states_apart(goal: str) -> None:
    """A goal is reached in one state and not in another that is nearly the same."""
    before, after = GOAL_STATES[goal]
    assert not GOALS[goal](before)
    assert GOALS[goal](after)


def test_request_that_was_withdrawn_stays_so_behind_a_violation(simulation: Any) -> None:
    """A record that nobody asked for does not bring back a request that its maker withdrew."""
    sequence = simulation.submit(2, 3)
    simulation.write(simulation.find_op(DeleteRequest(sequence)), session=50)
    zxid = simulation.perform(CreateReassignment(Reassignment((4, 1), 2)))
    simulation.perform(UpdateReassignment(Reassignment((2, 3), 2)))
    simulation.run()
    assert simulation.broken() == [("child.from-request", zxid)]


def test_what_nobody_says_by_a_write_has_no_session(simulation: Any) -> None:
    """What is found at rest, or in what brokers were told, is the doing of no session."""
    simulation.die(2)
    path = znodes.reassignment_path("nowhere", 0)
    data = znodes.encode_reassignment(znodes.ReassignmentZnode(2, (1, 2)))
    simulation.write(Create(path, data), session=50)
    simulation.judge.quiesce("")
    told = describe("", ("orders", 0), 7, Rejected("message.replica-told", "why"))
    found = [*simulation.judge.violations, told]
    assert {v.clause for v in found} == {
        "isr.remove.dead",
        "child.foreign-removed",
        "message.replica-told",
    }
    assert {v.session for v in found} == {0}
    assert {(v.before, v.after) for v in found if v.topic != "orders"} == {("", "")}


@pytest.mark.parametrize("pending", [True, False])
def test_what_was_owed_of_a_partition_that_is_not_there(simulation: Any, pending: bool) -> None:
    """Where there is no partition nothing was owed, but for the requests that name it."""
    if pending:
        simulation.submit(2, 3, partition=7)
    data = znodes.encode_reassignment(znodes.ReassignmentZnode(2, (1, 2)))
    child = Create(znodes.reassignment_path("orders", 7), data)
    simulation.write(child, session=900, fenced=True)
    (found,) = simulation.judge.violations
    removed = "request 0 removed (request.refuse.unknown-partition)"
    assert found.expected == (removed if pending else "nothing: the partition does not exist")
    assert found.path == child.path
    assert found.clause == "child.from-request"


def test_what_the_rules_let_through_is_never_right_all_the_same(
    simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may never be is named at the write that brings it, whatever allows that, and once."""

    def allow(partition: Any, write: Any, around: Any, readings: Any) -> Any:
        return Accepted(replace(partition, state=write.state), ("election.held",))

    monkeypatch.setattr(kip_236, "accept_write", allow)
    strange = simulation.perform_raised(leader=4, isr=(1, 2))
    simulation.perform_raised(leader=4, isr=(1, 2))
    (found,) = simulation.judge.violations
    assert (found.zxid, {found.clause, *found.besides}) == (
        strange,
        {"leader.in-isr", "leader.assigned"},
    )
    simulation.judge.quiesce("")
    clauses = [violation.clause for violation in simulation.judge.violations]
    assert not {"leader.in-isr", "leader.assigned"} & set(clauses[1:])
