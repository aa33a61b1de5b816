"""Replication across elections: the shortest way to each finding, and none with all amendments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from reassure_model.environment import NotPossible
from reassure_model.outcome import Accepted, Rejected
from reassure_model.protocols.kafka_4485.invariants import GOALS, INVARIANTS, is_promised
from reassure_model.protocols.kafka_4485.replication import (
    ACTIONS,
    Action,
    Advance,
    Answer,
    Append,
    CatchUp,
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
STORED = replace(SHARED, hw_over_stored_isr="yes")
SERVED = replace(STORED, hw_served_from="end-at-election")
AMENDED = replace(SERVED, isr_entry="end-at-election")
OWN_MARK = replace(AMENDED, follower_truncation="own-high-watermark")
LEADER_END = replace(AMENDED, follower_truncation="leader-end")

SLOW = frozenset({CatchUp, Remove, Refresh})
"""Left out with three brokers: no shortest way needs them, and they triple the states."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How far a search goes."""

    brokers: int
    depth: int
    records: int = 1
    elections: int = 2
    same_leader: bool = False
    """Whether the leader may be elected again."""
    without: frozenset[type[Action]] = frozenset()


@dataclass(frozen=True, slots=True)
class Search:
    """What a search met."""

    broken: Mapping[str, tuple[Action, ...]]
    """The shortest way to a state that breaks each clause."""
    reached: frozenset[str]
    """The goals that were reached."""
    states: int

    def lengths(self) -> dict[str, int]:
        """Return how many steps break each clause."""
        return {clause_id: len(way) for clause_id, way in self.broken.items()}


def normalise(state: Replication) -> Replication:
    """Return the state with versions counted from the one that the leader knows."""
    term = state.term
    return replace(state, version=state.version - term.version, term=replace(term, version=0))


def actions_within(state: Replication, scope: Scope) -> Iterator[Action]:
    """Yield the actions that the scope leaves possible."""
    for action in enabled(state):
        if type(action) in scope.without:
            continue
        if isinstance(action, Append) and len(state.replicas[state.leader].log) >= scope.records:
            continue
        if isinstance(action, Elect):
            again = action.broker == state.leader and not scope.same_leader
            if again or state.leader_epoch >= scope.elections:
                continue
        yield action


def search(readings: Readings, scope: Scope, stop: int = len(INVARIANTS)) -> Search:
    """Go breadth first until the depth is reached or `stop` clauses are broken."""
    start = normalise(make_replication(scope.brokers))
    seen: dict[Replication, tuple[Action, ...]] = {start: ()}
    broken: dict[str, tuple[Action, ...]] = {}
    reached: set[str] = set()
    level = [start]
    for _ in range(scope.depth):
        following: list[Replication] = []
        for state, action in ((s, a) for s in level for a in actions_within(s, scope)):
            outcome = step(state, action, readings)
            if isinstance(outcome, Rejected):
                continue
            after = normalise(outcome.state)
            if after in seen:
                continue
            seen[after] = (*seen[state], action)
            following.append(after)
            reached |= {name for name, is_reached in GOALS.items() if is_reached(after)}
            for clause_id, find in INVARIANTS.items():
                if clause_id not in broken and find(after) is not None:
                    broken[clause_id] = seen[after]
        if len(broken) >= stop:
            break
        level = following
    return Search(broken, frozenset(reached), len(seen))


def walk(brokers: int, readings: Readings, *steps: tuple[type[Action], int]) -> Replication:
    """Return the state after the steps, each of which must be accepted."""
    state = make_replication(brokers)
    for kind, broker in steps:
        outcome = step(state, kind(broker), readings)
        assert isinstance(outcome, Accepted), outcome
        state = outcome.state
    return state


@pytest.mark.clause(MONOTONE, "hw.over-stored-isr", "isr.entry.end-at-election")
@pytest.mark.clause("follower.truncation.common-prefix")
@pytest.mark.parametrize(
    ("readings", "scope", "broken"),
    [
        pytest.param(Readings(), Scope(2, 5), {MEMBERS: 3, MONOTONE: 4, KEPT: 4}, id="as written"),
        pytest.param(STORED, Scope(2, 9, records=2), {MONOTONE: 5}, id="over the stored set"),
        pytest.param(
            replace(AMENDED, hw_over_stored_isr="no"), Scope(2, 3), {MEMBERS: 3}, id="pseudo-isr"
        ),
        pytest.param(
            replace(AMENDED, hw_served_from="at-once"), Scope(2, 5), {MONOTONE: 5}, id="at once"
        ),
        pytest.param(
            SERVED,
            Scope(3, 9, without=SLOW),
            {MEMBERS: 8, MONOTONE: 9, KEPT: 9},
            id="entry at a stale mark",
        ),
        pytest.param(
            OWN_MARK,
            Scope(2, 7, same_leader=True),
            {MEMBERS: 6, MONOTONE: 7, KEPT: 7},
            id="own mark, same leader again",
        ),
        pytest.param(
            OWN_MARK, Scope(2, 9, elections=1), {}, id="own mark, two brokers, one change"
        ),
        pytest.param(
            OWN_MARK,
            Scope(2, 8, elections=3),
            {MEMBERS: 7, MONOTONE: 8, KEPT: 8},
            id="own mark, there and back",
        ),
        pytest.param(
            OWN_MARK,
            Scope(3, 9, without=SLOW),
            {MEMBERS: 8, MONOTONE: 9, KEPT: 9},
            id="own mark, three brokers",
        ),
        pytest.param(
            LEADER_END, Scope(2, 8, elections=3), {MEMBERS: 7, KEPT: 8}, id="leader's end"
        ),
    ],
)
def test_without_all_amendments_something_breaks(
    readings: Readings, scope: Scope, broken: dict[str, int]
) -> None:
    """Each of the four amendments is needed; so many steps break a clause without it."""
    assert search(readings, scope, stop=max(len(broken), 1)).lengths() == broken


@pytest.mark.clause(KEPT)
@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(Scope(2, 13, 1, 2, same_leader=True), id="two-brokers"),
        pytest.param(Scope(2, 9, 2, 3, same_leader=True), id="two-brokers-two-records"),
        pytest.param(Scope(3, 8, 1, 2, without=SLOW), id="three-brokers"),
    ],
)
def test_all_four_amendments_break_nothing(scope: Scope) -> None:
    """With all four amendments no story of the scope breaks a clause."""
    found = search(AMENDED, scope)
    assert found.lengths() == {}
    assert found.states > 1000


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
    found = search(AMENDED, Scope(2, 9, elections=3, same_leader=True))
    assert found.reached == set(GOALS)


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


@pytest.mark.clause("hw.never-decreases")
@pytest.mark.clause("hw.at-most-leader-end")
def test_watermark_of_one_leader_never_goes_back_whatever_the_readings() -> None:
    """On every step within one leader epoch the mark stays or grows, and ends within the log."""
    for readings in (Readings(), AMENDED):
        level = {normalise(make_replication(2))}
        for _ in range(7):
            following = set()
            for state in level:
                for action in actions_within(state, Scope(2, 7)):
                    outcome = step(state, action, readings)
                    if isinstance(outcome, Rejected):
                        continue
                    after = outcome.state
                    following.add(normalise(after))
                    assert INVARIANTS["hw.at-most-leader-end"](after) is None
                    if after.leader_epoch == state.leader_epoch:
                        marks = [s.replicas[s.leader].high_watermark for s in (state, after)]
                        assert marks == sorted(marks), (state, action)
            level = following


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


def list_states(readings: Readings, depth: int) -> frozenset[Replication]:
    """Return the states of two brokers that some actions lead to, the first left out."""
    first = make_replication(2)
    seen, frontier = {first}, [first]
    for _ in range(depth):
        taken = [step(s, action, readings) for s in frontier for action in enabled(s)]
        reached = {outcome.state for outcome in taken if isinstance(outcome, Accepted)}
        frontier = list(reached - seen)
        seen |= reached
    return frozenset(seen - {first})


@pytest.mark.clause("isr.member.at-or-above-hw", "isr.lagging-leaves")
def test_defined_set_is_what_it_says_at_every_moment() -> None:
    """Without a memory the set is its definition after every action; the stored one is not."""
    found = [find_undefined_member(s) for s in list_states(Readings(isr_members="memoryless"), 6)]
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
