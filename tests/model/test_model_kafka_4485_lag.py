"""Replica lag by definition and as a leader estimates it, and the in-sync sets that follow.

The instances of the findings, and the rule that the document replaces, are scenarios.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reassure_model.environment import NotPossible
from reassure_model.protocols.kafka_4485 import (
    NEVER_MS,
    EndHistory,
    Follower,
    Leader,
    compute_replica_lag,
    compute_views,
    end_at,
    estimate_lag,
    evaluate,
    fetch,
    matching_lags,
    record_fetch,
    start_leader,
)
from reassure_model.protocols.kafka_4485.leader_clock import (
    Settings,
    Truncate,
    make_watched,
    step,
)
from reassure_spec.readings import Readings

WRITTEN = Readings()
SETTLED = Readings(lag_initial="now-if-in-sync", lag_initial_leader_end="leader-end")


@dataclass(frozen=True, slots=True)
class Millisecond:
    """What happens in one millisecond: records written, then perhaps a fetch."""

    written: int
    fetches: bool
    taken: int | None = None
    """How much of the response the follower gets; all without it."""


@dataclass(frozen=True, slots=True)
class Told:
    """A leader after a story, and the true logs."""

    leader: Leader
    ends: EndHistory
    follower_end: int
    now_ms: int

    @property
    def estimated(self) -> int:
        """The lag that the leader assumes, in ms."""
        return estimate_lag(self.leader.followers[0], self.now_ms)

    def lag(self, of_ms: str = "end") -> int:
        """Return the follower's true lag in ms."""
        return compute_replica_lag(self.ends, self.follower_end, self.now_ms, of_ms=of_ms)

    def known_lag(self, of_ms: str = "end") -> int:
        """Return the lag of the offset that the leader knows, in ms."""
        offset = self.leader.followers[0].offset
        return compute_replica_lag(self.ends, offset, self.now_ms, of_ms=of_ms)


def tell(
    story: tuple[Millisecond, ...], limit: int, readings: Readings = WRITTEN
) -> tuple[Told, ...]:
    """Return what is so at the end of each millisecond, from ms 1 on."""
    leader = start_leader((1, 2), 0, 0, (1, 2), readings)
    ends: EndHistory = ((0, 0),)
    follower_end = 0
    told: list[Told] = []
    for now, ms in enumerate(story, start=1):
        if ms.written:
            leader = replace(leader, end=leader.end + ms.written)
            ends = (*ends, (now, leader.end))
        if ms.fetches:
            leader = fetch(leader, 2, follower_end, now, readings)
            rest = leader.end - follower_end
            follower_end += rest if ms.taken is None else min(rest, ms.taken)
        leader = evaluate(leader, now, limit)
        told.append(Told(leader, ends, follower_end, now))
    return tuple(told)


FULL = st.builds(Millisecond, st.integers(0, 3), st.booleans())
PARTIAL = st.builds(Millisecond, st.integers(0, 3), st.booleans(), st.integers(0, 3))
FULL_STORIES = st.lists(FULL, min_size=1, max_size=25).map(tuple)
STORIES = st.lists(st.one_of(FULL, PARTIAL), min_size=1, max_size=25).map(tuple)


# Definitions ------------------------------------------------------------------------------------


@pytest.mark.clause("lag.definition")
def test_literal_definition_is_neither_total_nor_unique() -> None:
    """No lag fits an end where the leader never ended, and every lag fits an idle partition."""
    assert matching_lags(((0, 0), (1, 2)), 1, 4, 4) == ()
    assert matching_lags(((0, 0),), 0, 5, 5) == (0, 1, 2, 3, 4, 5)


@pytest.mark.clause("lag.definition")
@settings(deadline=None, max_examples=60)
@given(STORIES)
def test_settled_lag_is_the_shortest_of_those_that_fit(story: tuple[Millisecond, ...]) -> None:
    """Where the literal definition has an answer, the settled one is its shortest."""
    last = tell(story, 3)[-1]
    fitting = matching_lags(last.ends, last.follower_end, last.now_ms, last.now_ms)
    assert last.lag() == min(fitting, default=last.lag())
    assert end_at(last.ends, last.now_ms - last.lag()) <= last.follower_end


@pytest.mark.clause("lag.leader-none")
def test_leader_has_no_lag() -> None:
    """By definition and in its own view the leader is in the pseudo-ISR, alone if need be."""
    assert compute_replica_lag(((1, 2), (4, 7)), 7, 9) == 0
    alone = evaluate(start_leader((1, 2), 7, 0, (1,), SETTLED), 10, 5)
    assert (alone.pseudo_isr, alone.high_watermark, alone.isr) == ((1,), 7, (1,))


@pytest.mark.clause("hw.stall-bounded")
@settings(deadline=None, max_examples=60)
@given(STORIES, st.integers(0, 6))
def test_watermark_by_definition_stalls_no_longer_than_the_limit(
    story: tuple[Millisecond, ...], limit: int
) -> None:
    """The defined high watermark lies between the leader's end one limit ago and its end."""
    last = tell(story, limit)[-1]
    follower: EndHistory = tuple((told.now_ms, told.follower_end) for told in tell(story, limit))
    times = tuple(range(1, last.now_ms + 1))
    views = compute_views((1, 2), (last.ends, follower), times, limit)
    marks = [view.high_watermark for view in views]
    assert marks == sorted(marks)
    for now, view in zip(times, views, strict=True):
        assert end_at(last.ends, now - limit) <= view.high_watermark <= end_at(last.ends, now)
        assert view.isr[0] == 1
        assert set(view.isr) <= set(view.pseudo_isr)


# The leader's notes -----------------------------------------------------------------------------


@pytest.mark.clause("lag.credit.caught-up", "lag.credit.last-fetch", "lag.noted-after-serving")
@pytest.mark.parametrize(
    ("offset", "credit", "caught_up_ms"),
    [
        (9, "two-cases", 20),
        (8, "two-cases", 20),
        (5, "two-cases", 10),
        (4, "two-cases", 3),
        (8, "last-fetch", 10),
        (5, "last-fetch", 10),
        (4, "last-fetch", 3),
    ],
)
def test_fetch_is_compared_first_and_noted_after(
    offset: int, credit: str, caught_up_ms: int
) -> None:
    """Leader ends at 8, ended at 5 at the fetch before: each version of item 2 gives its credit."""
    before = Follower(4, last_fetch_ms=10, last_fetch_leader_end=5, last_caught_up_ms=3)
    after = record_fetch(before, offset, 8, 20, Readings(lag_credit=credit), "lag")
    assert after == Follower(offset, 20, 8, caught_up_ms)


@pytest.mark.clause("isr.pseudo.by-lag")
@pytest.mark.parametrize(("now", "members"), [(10, (1, 2)), (11, (1,))])
def test_lag_at_the_limit_is_within_it(now: int, members: tuple[int, ...]) -> None:
    """A lag of the limit stays, one millisecond more leaves."""
    assert evaluate(start_leader((1, 2), 0, 0, (1, 2), WRITTEN), now, 10).pseudo_isr == members


@pytest.mark.clause("lag.estimate-never-short")
@settings(deadline=None, max_examples=60)
@given(STORIES)
def test_estimate_is_never_shorter_than_the_lag_at_the_start_of_the_millisecond(
    story: tuple[Millisecond, ...],
) -> None:
    """What the leader assumes is at least the lag, and one short at most at the end of the ms."""
    for told in tell(story, 3, SETTLED):
        assert told.estimated >= told.lag("start")
        assert told.estimated >= told.lag("end") - 1


@pytest.mark.clause("lag.estimate-never-short")
@settings(deadline=None, max_examples=60)
@given(FULL_STORIES)
def test_estimate_with_full_responses_is_off_by_at_most_the_longest_gap(
    story: tuple[Millisecond, ...],
) -> None:
    """With full responses the estimate is at most the known offset's lag plus the longest gap."""
    fetched = 0
    gap = 0
    for told, ms in zip(tell(story, 3, SETTLED), story, strict=True):
        gap = max(gap, told.now_ms - fetched)
        fetched = told.now_ms if ms.fetches else fetched
        assert told.estimated <= told.known_lag() + gap


@settings(deadline=None, max_examples=60)
@given(STORIES, st.integers(0, 6))
@pytest.mark.clause("isr.member.at-or-above-hw", "hw.minimum-of-pseudo-isr", "isr.lagging-leaves")
def test_guarantees_two_to_four_hold_at_each_evaluation(
    story: tuple[Millisecond, ...], limit: int
) -> None:
    """The mark never goes back, nobody in sync is below it, nobody in sync lags too far."""
    before = 0
    for told in tell(story, limit, SETTLED):
        mark, offset = told.leader.high_watermark, told.leader.followers[0].offset
        assert before <= mark <= told.leader.end
        if mark > before and 2 in told.leader.pseudo_isr:
            assert mark <= offset
        if 2 in told.leader.isr:
            assert offset >= mark
        if told.lag("start") > limit:
            assert 2 not in told.leader.pseudo_isr
        before = mark


@pytest.mark.clause("isr.pseudo.by-lag")
def test_follower_never_seen_is_out_at_every_clock() -> None:
    """A follower out of sync that never fetched is out at time 0 too, where the clock is small."""
    leader = start_leader((1, 2), 11, 0, (1,), SETTLED)
    assert leader.followers[0].last_caught_up_ms == NEVER_MS
    assert evaluate(leader, 0, 10_000).pseudo_isr == (1,)


def test_who_does_not_follow_has_no_log_to_cut() -> None:
    """An action on a broker that is no follower is not possible."""
    watched = make_watched((1, 2), 0, 0, (1, 2), 0, WRITTEN)
    with pytest.raises(NotPossible, match="9 is no follower"):
        step(watched, Truncate(9, 0), Settings(5), WRITTEN)
