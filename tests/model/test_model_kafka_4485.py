"""Replication across elections: no clause is broken with all four amendments.

The shortest way to each finding without them is among the explorer's counterexamples.
"""

from dataclasses import replace

import pytest

from reassure_model.environment import NotPossible
from reassure_model.outcome import Accepted, Rejected
from reassure_model.protocols.kafka_4485.invariants import GOALS, INVARIANTS, is_promised
from reassure_model.protocols.kafka_4485.machine import MACHINE
from reassure_model.protocols.kafka_4485.replication import (
    ACTIONS,
    Action,
    Advance,
    Answer,
    Append,
    Elect,
    Follow,
    Join,
    Lag,
    Leave,
    Refresh,
    Remove,
    Replication,
    Serve,
    count_common,
    enabled,
    make_replication,
    step,
)
from reassure_spec.readings import Readings, get_profile

MONOTONE = "hw.consumer.monotone"
MEMBERS = "isr.stored.holds-committed"
KEPT = "log.committed-kept"

SHARED = Readings(follower_truncation="common-prefix")
AMENDED = replace(
    SHARED,
    hw_over_stored_isr="yes",
    hw_served_from="end-at-election",
    isr_entry="end-at-election",
)


def list_states(
    readings: Readings, depth: int, records: int = 1, elections: int = 2
) -> set[Replication]:
    """Return the states of two brokers within so many steps, records and elections."""
    first = make_replication(2)
    seen, frontier = {first}, [first]
    for _ in range(depth):
        reached = set()
        for state in frontier:
            full = len(state.replicas[state.leader].log) >= records
            for action in enabled(state):
                barred = (isinstance(action, Append) and full) or (
                    isinstance(action, Elect) and state.leader_epoch >= elections
                )
                outcome = None if barred else step(state, action, readings)
                if isinstance(outcome, Accepted):
                    reached.add(MACHINE.normalise(outcome.state))
        frontier = list(reached - seen)
        seen |= reached
    return seen


def walk(brokers: int, readings: Readings, *steps: tuple[type[Action], int]) -> Replication:
    """Return the state after the steps, each of which must be accepted."""
    state = make_replication(brokers)
    for kind, broker in steps:
        outcome = step(state, kind(broker), readings)
        assert isinstance(outcome, Accepted), outcome
        state = outcome.state
    return state


@pytest.mark.clause(KEPT, MEMBERS, MONOTONE)
@pytest.mark.parametrize(("depth", "records", "elections"), [(13, 1, 2), (9, 2, 3)])
def test_all_four_amendments_break_nothing(depth: int, records: int, elections: int) -> None:
    """With all four amendments no state breaks a clause; what each is for is told by findings."""
    states = list_states(AMENDED, depth, records, elections)
    assert [find(state) for state in states for find in INVARIANTS.values() if find(state)] == []
    assert len(states) > 1000


def test_amended_profile_has_all_four_amendments() -> None:
    """The profile that is meant to keep every guarantee has the readings that keep it."""
    amended = get_profile("kip-236-amended")
    assert (
        amended.hw_over_stored_isr,
        amended.hw_served_from,
        amended.isr_entry,
        amended.follower_truncation,
    ) == ("yes", "end-at-election", "end-at-election", "common-prefix")
    assert get_profile("kafka-4485") == Readings()


def test_every_goal_is_reachable_with_all_amendments() -> None:
    """The invariants do not hold of nothing: each goal is reached within the amended rules."""
    states = list_states(AMENDED, 9, elections=3)
    assert {name for name, find in GOALS.items() if any(map(find, states))} == set(GOALS)


@pytest.mark.clause("fetch.epoch-fenced")
def test_request_of_an_earlier_epoch_is_not_noted() -> None:
    """A request that was sent to the leader before does not reach the next leader's notes."""
    state = walk(3, AMENDED, (Append, 0), (Answer, 2), (Elect, 1))
    outcome = step(state, Serve(2), AMENDED)
    assert outcome == Rejected("fetch.epoch-fenced", "sent in leader epoch 0, it is 1")


@pytest.mark.clause("isr.write.conditional")
def test_write_on_a_stale_version_is_rejected_until_refreshed() -> None:
    """The leader's write fails once the controller has written, and succeeds after a read."""
    state = walk(3, AMENDED, (Lag, 1), (Remove, 2))
    outcome = step(state, Leave(1), AMENDED)
    assert outcome == Rejected("isr.write.conditional", "version 0, it is 1")
    refreshed = walk(3, AMENDED, (Lag, 1), (Remove, 2), (Refresh, 0))
    after = step(refreshed, Leave(1), AMENDED)
    assert isinstance(after, Accepted)
    assert after.state.isr == {0}


@pytest.mark.clause("isr.entry.end-at-election")
def test_follower_enters_with_exactly_what_the_leader_had_at_its_election() -> None:
    """One record at the election, one more after it: a follower that has the first enters."""
    leave = ((Append, 0), (Answer, 1), (Serve, 1), (Lag, 1), (Leave, 1))
    again = ((Elect, 0), (Append, 0), (Follow, 1), (Serve, 1))
    state = walk(2, AMENDED, *leave, *again)
    assert (state.term.end_at_election, state.term.offsets) == (1, (0, 1))
    assert state.isr == {0}
    assert walk(2, AMENDED, *leave, *again, (Join, 1)).isr == {0, 1}


@pytest.mark.clause("hw.follower.from-leader")
def test_follower_keeps_its_watermark_under_a_leader_that_knows_less() -> None:
    """The old leader follows one whose mark is older: its own stays, as it was shown."""
    shown = ((Append, 0), (Answer, 1), (Serve, 1), (Advance, 0))
    follow = ((Elect, 1), (Follow, 0), (Serve, 0), (Answer, 0))
    state = walk(2, AMENDED, *shown, *follow)
    assert [replica.high_watermark for replica in state.replicas] == [1, 0]


@pytest.mark.clause("hw.follower.from-leader")
def test_follower_that_truncates_lowers_its_watermark_to_its_end() -> None:
    """As written a shown record is lost; the old leader that cuts it off keeps no mark beyond."""
    lost = ((Append, 0), (Lag, 1), (Advance, 0), (Elect, 1))
    state = walk(2, SHARED, *lost, (Follow, 0))
    assert (state.replicas[0].log, state.replicas[0].high_watermark) == ((), 0)


@pytest.mark.clause("election.clean")
def test_election_raises_leader_epoch_and_version_and_forgets_the_notes() -> None:
    """The new leader knows no offset, the version of its own state, and where it began."""
    state = walk(2, AMENDED, (Append, 0), (Answer, 1), (Serve, 1), (Elect, 1))
    assert (state.leader, state.leader_epoch, state.version) == (1, 1, 1)
    assert (state.term.version, state.term.offsets, state.term.end_at_election) == (1, (0, 0), 1)
    assert state.shown is None


@pytest.mark.clause("election.clean")
def test_replica_out_of_the_stored_isr_is_not_elected() -> None:
    """Only members of the stored in-sync set are elected."""
    outcome = step(make_replication(2, members=frozenset({0})), Elect(1), AMENDED)
    assert isinstance(outcome, Rejected)
    assert outcome.clause == "election.clean"


@pytest.mark.clause("hw.never-decreases", "hw.at-most-leader-end")
def test_watermark_of_one_leader_never_goes_back_whatever_the_readings() -> None:
    """On every step within one leader epoch the mark stays or grows, and ends within the log."""
    for readings in (Readings(), AMENDED):
        for state in list_states(readings, 6):
            for action in enabled(state):
                outcome = step(state, action, readings)
                if isinstance(outcome, Rejected):
                    continue
                after = outcome.state
                assert INVARIANTS["hw.at-most-leader-end"](after) is None
                if after.leader_epoch == state.leader_epoch:
                    marks = [s.replicas[s.leader].high_watermark for s in (state, after)]
                    assert marks == sorted(marks), (state, action)


def test_enabled_lists_exactly_what_step_takes() -> None:
    """What is not enabled raises, what is enabled is accepted or rejected by a clause."""
    state = walk(2, AMENDED, (Append, 0), (Answer, 1), (Elect, 1))
    possible = set(enabled(state))
    for kind in ACTIONS.values():
        for broker in range(2):
            action = kind(broker)
            if action in possible:
                step(state, action, AMENDED)
            else:
                with pytest.raises(NotPossible, match=kind.__name__):
                    step(state, action, AMENDED)


@pytest.mark.parametrize(
    ("log", "other", "shared"),
    [((), (), 0), ((0, 0), (0, 0, 1), 2), ((0, 1), (0, 2), 1), ((1,), (0,), 0)],
)
def test_common_prefix_is_counted_by_content(
    log: tuple[int, ...], other: tuple[int, ...], shared: int
) -> None:
    """Two logs share their records up to the first that differs, whichever is asked first."""
    assert count_common(log, other) == count_common(other, log) == shared


# The defined in-sync set ------------------------------------------------------------------------


def find_undefined_member(state: Replication) -> str | None:
    """Say so when the in-sync set is not what its definition says."""
    ends = {
        **dict(enumerate(state.term.offsets)),
        state.leader: len(state.replicas[state.leader].log),
    }
    mark = state.replicas[state.leader].high_watermark
    defined = frozenset(b for b in state.term.pseudo_isr if ends[b] >= mark)
    return None if state.isr == defined else f"{sorted(state.isr)}, defined {sorted(defined)}"


@pytest.mark.clause("isr.member.at-or-above-hw", "isr.lagging-leaves")
def test_defined_set_is_what_it_says_at_every_moment() -> None:
    """Without a memory the set is its definition after every action; the stored one is not."""
    memoryless = list_states(Readings(isr_members="memoryless"), 6) - {make_replication(2)}
    found = [find_undefined_member(state) for state in memoryless]
    assert len(found) > 100
    assert set(found) == {None}
    stored = {find_undefined_member(s) for s in list_states(Readings(), 2)}
    assert "[0, 1], defined [0]" in stored


@pytest.mark.clause("hw.consumer.monotone", "hw.never-decreases")
def test_scope_of_the_third_guarantee_is_a_promise() -> None:
    """Across elections the mark is promised under one reading only; all else always is."""
    across = Readings(hw_scope="across-clean-elections")
    assert [c for c in INVARIANTS if not is_promised(c, Readings())] == [MONOTONE]
    assert all(is_promised(clause_id, across) for clause_id in INVARIANTS)
