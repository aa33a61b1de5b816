"""Replica lag by definition and as a leader estimates it, and the in-sync sets that follow."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reassure_model.protocols.kafka_4485 import (
    NEVER_MS,
    EndHistory,
    Follower,
    Leader,
    compute_replica_lag,
    compute_views,
    end_at,
    enter_before,
    estimate_lag,
    evaluate,
    evaluate_before,
    fetch,
    matching_lags,
    read_clock_and_end,
    record_fetch,
    start_leader,
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
    story: tuple[Millisecond, ...], limit: int, readings: Readings = WRITTEN, rule: str = "lag"
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
            leader = fetch(leader, 2, follower_end, now, readings, rule)
            if rule == "before":
                leader = enter_before(leader, 2)
            rest = leader.end - follower_end
            follower_end += rest if ms.taken is None else min(rest, ms.taken)
        conclude = evaluate if rule == "lag" else evaluate_before
        leader = conclude(leader, now, limit)
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


@pytest.mark.clause("lag.credit.caught-up")
@pytest.mark.clause("lag.credit.last-fetch")
@pytest.mark.clause("lag.noted-after-serving")
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
@pytest.mark.clause("isr.member.at-or-above-hw")
@pytest.mark.clause("hw.minimum-of-pseudo-isr")
@pytest.mark.clause("isr.lagging-leaves")
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


# Findings ---------------------------------------------------------------------------------------


@pytest.mark.clause("isr.pseudo.close-follower")
def test_watermark_1_silent_follower_without_lag_is_taken_out() -> None:
    """Limit 1: one record, fetched at ms 1, no fetch at ms 2: no lag, estimated 2, out."""
    last = tell((Millisecond(1, True), Millisecond(0, False)), 1)[-1]
    assert (last.lag(), last.estimated, last.leader.isr) == (0, 2, (1,))


@pytest.mark.clause("isr.pseudo.close-follower")
def test_watermark_1_needs_two_milliseconds() -> None:
    """No story of one millisecond refutes guarantee 1 at a limit of 1: the instance is smallest."""
    for written in range(3):
        for fetches in (False, True):
            last = tell((Millisecond(written, fetches),), 1)[-1]
            assert last.lag() > 1 or 2 in last.leader.pseudo_isr


@pytest.mark.clause("isr.pseudo.close-follower")
def test_watermark_2_partial_responses_refute_guarantee_1() -> None:
    """Limit 2, a fetch each ms, partial responses: lag 2, estimated 3."""
    story = (Millisecond(2, True, 1), Millisecond(2, True, 1), Millisecond(0, True, 0))
    last = tell(story, 2)[-1]
    assert (last.known_lag(), last.estimated, last.leader.pseudo_isr) == (2, 3, (1,))


@pytest.mark.clause("isr.pseudo.close-follower")
@pytest.mark.parametrize(("behind", "estimated"), [(1, 1), (2, 10_000)])
def test_watermark_3_constant_lag_above_the_gap_is_never_credited(
    behind: int, estimated: int
) -> None:
    """One record and one fetch each ms, each from where the leader ended `behind` ms before."""
    leader = start_leader((1, 2), 0, 0, (1, 2), WRITTEN)
    for now in range(1, 10_001):
        leader = fetch(replace(leader, end=now), 2, max(now - behind, 0), now, WRITTEN)
    assert estimate_lag(leader.followers[0], 10_000) == estimated


def run_steadily(gap: int, limit: int, length: int) -> tuple[int, int, int]:
    """Return ms in the ISR, ms with the mark behind the end, entries into the pseudo-ISR.

    One record each ms, a full fetch every `gap` ms, a follower that is out of sync at first.
    """
    leader = replace(start_leader((1, 2), 1, 0, (1,), SETTLED), high_watermark=1)
    follower_end = inside = stalled = entries = 0
    for now in range(1, length + 1):
        leader = replace(leader, end=leader.end + 1)
        if now % gap == 0:
            leader = fetch(leader, 2, follower_end, now, SETTLED)
            follower_end = leader.end
        before = leader.pseudo_isr
        leader = evaluate(leader, now, limit)
        inside += 2 in leader.isr
        stalled += leader.high_watermark < leader.end
        entries += 2 in leader.pseudo_isr and 2 not in before
    return inside, stalled, entries


@pytest.mark.clause("hw.minimum-of-pseudo-isr")
def test_watermark_4_a_gap_above_half_the_limit_is_never_in_the_isr() -> None:
    """A gap of half the limit is in the ISR 93 % of the time; one more unit, and it never is."""
    assert run_steadily(50, 100, 2000) == (1851, 1901, 1)
    inside, stalled, entries = run_steadily(51, 100, 2000)
    assert (inside, entries) == (0, 38)
    assert stalled > 1800


@pytest.mark.clause("hw.minimum-of-pseudo-isr")
def test_watermark_4_and_5_smallest_instance() -> None:
    """Limit 2, a fetch every 2 ms: the mark stands still at ms 3 and 5 for one never in sync."""
    leader = replace(start_leader((1, 2), 1, 0, (1,), SETTLED), high_watermark=1)
    follower_end, seen = 0, []
    for now in range(1, 7):
        leader = replace(leader, end=leader.end + 1)
        if now % 2 == 1:
            leader = fetch(leader, 2, follower_end, now, SETTLED)
            follower_end = leader.end
        leader = evaluate(leader, now, 2)
        seen.append((leader.end - leader.high_watermark, 2 in leader.pseudo_isr, 2 in leader.isr))
    still, moving = (1, True, False), (0, False, False)
    assert seen == [moving, moving, still, moving, still, moving]


@pytest.mark.clause("lag.clock-before-end")
@pytest.mark.parametrize(("order", "estimated"), [("before-end", 1), ("after-end", 0)])
def test_watermark_6_only_the_clock_first_is_sound(order: str, estimated: int) -> None:
    """A record is written between the two reads: with the end first it counts as held."""
    readings = replace(SETTLED, lag_clock_read=order)
    ends: EndHistory = ((0, 1),)
    now, end = read_clock_and_end(ends, -1, 0, readings)
    noted = record_fetch(Follower(0, -1, 0, -1), 0, end, now, readings, "lag")
    assert estimate_lag(noted, 0) == estimated
    assert compute_replica_lag(ends, 0, 0) == 1


@pytest.mark.clause("lag.estimate-never-short")
def test_watermark_7_record_in_the_millisecond_of_the_fetch_is_off_by_one() -> None:
    """Fetch at ms 0 from the end, then a record in ms 0: at the limit of 2 it is in and lags 3."""
    leader = fetch(start_leader((1, 2), 0, 0, (1, 2), WRITTEN), 2, 0, 0, WRITTEN)
    leader = evaluate(replace(leader, end=1), 2, 2)
    assert leader.pseudo_isr == (1, 2)
    assert compute_replica_lag(((0, 1),), 0, 2) == 3
    assert compute_replica_lag(((0, 1),), 0, 2, of_ms="start") == 2


@pytest.mark.clause("isr.pseudo.by-lag")
@pytest.mark.parametrize(
    ("initial", "leader_end", "pseudo"),
    [
        ("now", "zero", (1, 2)),
        ("now", "leader-end", (1, 2)),
        ("now-if-in-sync", "zero", (1, 2)),
        ("now-if-in-sync", "leader-end", (1,)),
    ],
)
def test_watermark_9_only_both_first_values_keep_a_new_follower_out(
    initial: str, leader_end: str, pseudo: tuple[int, ...]
) -> None:
    """An empty follower that fetches once enters the pseudo-ISR unless both values are amended."""
    readings = Readings(lag_initial=initial, lag_initial_leader_end=leader_end)
    leader = start_leader((1, 2), 11, 0, (1,), readings)
    leader = evaluate(fetch(leader, 2, 0, 0, readings), 0, 5)
    assert leader.pseudo_isr == pseudo


@pytest.mark.clause("isr.pseudo.by-lag")
def test_follower_never_seen_is_out_at_every_clock() -> None:
    """A follower out of sync that never fetched is out at time 0 too, where the clock is small."""
    leader = start_leader((1, 2), 11, 0, (1,), SETTLED)
    assert leader.followers[0].last_caught_up_ms == NEVER_MS
    assert evaluate(leader, 0, 10_000).pseudo_isr == (1,)


@pytest.mark.clause("isr.member.at-or-above-hw")
def test_watermark_10_offset_may_go_back_between_evaluations() -> None:
    """A member whose log is wiped is below the mark until the leader evaluates again."""
    last = tell((Millisecond(1, True), Millisecond(0, True)), 5)[-1].leader
    assert (last.high_watermark, last.isr) == (1, (1, 2))
    wiped = fetch(last, 2, 0, 3, WRITTEN)
    assert (wiped.followers[0].offset, wiped.isr) == (0, (1, 2))
    assert evaluate(wiped, 3, 5).isr == (1,)


@pytest.mark.clause("lag.evaluated-in-time")
def test_watermark_11_nothing_happens_without_an_evaluation() -> None:
    """Time alone changes nothing of what the leader concluded; the next evaluation does."""
    last = tell((Millisecond(1, True),), 5)[-1].leader
    assert last.isr == (1, 2)
    assert evaluate(last, 1000, 5).isr == (1,)


# The rule before --------------------------------------------------------------------------------

ALWAYS_BEHIND = tuple(Millisecond(1, True) for _ in range(12))


@pytest.mark.clause("lag.credit.last-fetch")
def test_rule_before_removes_a_follower_that_keeps_up() -> None:
    """Something is written before each fetch: the rule before removes, the document's keeps."""
    before = tell(ALWAYS_BEHIND, 3, rule="before")
    after = tell(ALWAYS_BEHIND, 3)
    assert all(told.lag() == 0 for told in before)
    assert [2 in told.leader.isr for told in before] == [True] * 3 + [False] * 9
    assert all(2 in told.leader.isr for told in after)


@pytest.mark.clause("isr.pseudo.by-lag")
def test_rule_before_takes_in_and_out_by_two_tests() -> None:
    """A follower one record behind enters at the mark and leaves at the next evaluation."""
    leader = start_leader((1, 2), 0, 0, (1, 2), WRITTEN)
    leader = evaluate_before(replace(leader, end=1), 4, 3)
    entered = []
    for now in range(5, 9):
        offset = leader.high_watermark
        leader = fetch(replace(leader, end=offset + 1), 2, offset, now, WRITTEN, "before")
        leader = enter_before(leader, 2)
        entered.append(2 in leader.isr)
        leader = evaluate_before(leader, now, 3)
        entered.append(2 in leader.isr)
    assert entered == [True, False] * 4


@pytest.mark.clause("isr.pseudo.close-follower")
def test_rule_before_lets_the_mark_run_away_from_a_close_follower() -> None:
    """The mark over the ISR alone is past a follower that takes everything each millisecond."""
    leader = start_leader((1, 2), 0, 0, (1,), WRITTEN)
    offset = 0
    for now in range(1, 50):
        leader = evaluate_before(replace(leader, end=leader.end + 1), now, 3)
        leader = enter_before(fetch(leader, 2, offset, now, WRITTEN, "before"), 2)
        offset = leader.end
    assert leader.isr == (1,)
    assert leader.high_watermark == leader.end


@pytest.mark.clause("isr.pseudo.close-follower")
def test_rule_before_keeps_a_silent_follower_at_the_end() -> None:
    """Before the document only who is behind the end leaves; who is at it may be silent."""
    story = (Millisecond(1, True), Millisecond(0, True), *(Millisecond(0, False),) * 9)
    assert tell(story, 3, rule="before")[-1].leader.isr == (1, 2)
    assert tell(story, 3)[-1].leader.isr == (1,)
