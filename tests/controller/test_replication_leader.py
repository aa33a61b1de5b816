"""What a leader concludes of its followers, from values alone."""

from dataclasses import replace

import pytest

from reassure_controller.replication.followers import NEVER_MS, Follower, begin_follower, note_fetch
from reassure_controller.replication.leading import (
    Leadership,
    begin,
    evaluate,
    find_shown,
    note,
    propose_isr,
)
from reassure_controller.replication.quota import Quota
from reassure_controller.replication.rules import ReplicationRules
from reassure_model.protocols import kafka_4485 as model
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.rooms import RefusedReading

AMENDED = override_readings(
    get_profile("kafka-4485"),
    {
        "hw.over-stored-isr": "yes",
        "hw.served-from": "end-at-election",
        "isr.entry": "end-at-election",
        "lag.initial": "now-if-in-sync",
        "lag.initial-leader-end": "leader-end",
    },
)
RULES = ReplicationRules(AMENDED, lag_ms_max=10)
AS_WRITTEN = ReplicationRules(lag_ms_max=10)


def lead(
    rules: ReplicationRules = RULES, *, isr: tuple[int, ...] = (1, 2), end: int = 4
) -> Leadership:
    """Return broker 1, which begins to lead 1, 2 and 3 at 100 ms."""
    return begin(1, (1, 2, 3), isr, end, 2, 100, rules)


@pytest.mark.parametrize(
    ("offset", "caught_up_ms"),
    [
        pytest.param(9, 20, id="all there is"),
        pytest.param(7, 15, id="all there was at the fetch before"),
        pytest.param(6, 3, id="less than that"),
    ],
)
@pytest.mark.clause("lag.credit.caught-up", "lag.credit.last-fetch", "lag.noted-after-serving")
def test_fetch_is_credited(offset: int, caught_up_ms: int) -> None:
    """A fetch counts for now, for the time of the fetch before, or not at all."""
    before = Follower(5, last_fetch_ms=15, last_fetch_leader_end=7, last_caught_up_ms=3)
    assert note_fetch(before, offset, 9, 20, RULES) == Follower(offset, 20, 9, caught_up_ms)


@pytest.mark.parametrize("rule", ["lag", "before"])
@pytest.mark.parametrize("credit", ["two-cases", "last-fetch"])
def test_credit_is_the_models(rule: str, credit: str) -> None:
    """For every small history of fetches the broker notes what the model notes."""
    readings = override_readings(AMENDED, {"lag.credit": credit})
    rules = ReplicationRules(readings, rule="before" if rule == "before" else "lag")
    for then in range(4):
        for caught_up in (NEVER_MS, 1):
            for end in range(then, 4):
                for offset in range(end + 1):
                    before = Follower(0, 2, then, caught_up)
                    noted = note_fetch(before, offset, end, 5, rules)
                    theirs = model.Follower(0, 2, then, caught_up)
                    due = model.record_fetch(theirs, offset, end, 5, readings, rule)
                    assert noted == Follower(*(getattr(due, name) for name in due.__slots__))


def test_first_values_follow_the_reading() -> None:
    """Who is not in sync was never caught up, unless the reading says now."""
    assert begin_follower(3, (1, 2), 4, 100, RULES) == Follower(0, 100, 4, NEVER_MS)
    assert begin_follower(3, (1, 2), 4, 100, AS_WRITTEN) == Follower(0, 100, 0, 100)


@pytest.mark.clause("isr.pseudo.by-lag", "hw.minimum-of-pseudo-isr", "hw.over-stored-isr")
def test_mark_waits_for_who_keeps_up_and_for_who_is_stored() -> None:
    """A stored member that lags holds the mark back until it is written out, by the amendment."""
    leader = lead()
    leader = note(leader, 3, 4, 4, 105, RULES)
    late = evaluate(leader, 4, 111, RULES)
    assert (late.pseudo_isr, late.high_watermark) == ((1, 3), 2)
    assert propose_isr(late, RULES) == (1, 3)
    assert evaluate(replace(late, isr=(1, 3)), 4, 111, RULES).high_watermark == 4
    assert evaluate(replace(late, attempted=(1, 3)), 4, 111, RULES).high_watermark == 2
    as_written = evaluate(note(lead(AS_WRITTEN), 3, 4, 4, 105, AS_WRITTEN), 4, 111, AS_WRITTEN)
    assert as_written.high_watermark == 4


@pytest.mark.clause("isr.entry.end-at-election", "isr.entry.at-high-watermark")
def test_entry_needs_mark_and_start() -> None:
    """A follower enters with all that the leader had at its election, not with the mark alone."""
    leader = evaluate(note(lead(isr=(1,)), 3, 3, 4, 101, RULES), 4, 101, RULES)
    assert leader.high_watermark == 4
    behind = replace(leader, high_watermark=2)
    close = replace(behind, pseudo_isr=(1, 3))
    assert propose_isr(close, RULES) == (1,)
    assert propose_isr(close, AS_WRITTEN) == (1, 3)
    there = note(close, 3, 4, 4, 102, RULES)
    assert propose_isr(there, RULES) == (1, 3)


@pytest.mark.clause("hw.served-from-end-at-election", "hw.served-below")
def test_new_leader_shows_nothing_it_is_not_sure_of() -> None:
    """Below its end at the election a leader shows no mark, unless the reading lets it."""
    leader = lead()
    assert find_shown(leader, 4, RULES) is None
    assert find_shown(leader, 4, AS_WRITTEN) == 2
    assert find_shown(replace(leader, high_watermark=4), 6, RULES) == 4


def test_memoryless_set_is_refused() -> None:
    """A broker elects by what is stored: it refuses to define the in-sync set at every moment."""
    with pytest.raises(RefusedReading, match=r"isr.members=memoryless"):
        ReplicationRules(Readings(isr_members="memoryless"))


def test_quota_counts_what_is_throttled_only() -> None:
    """Bytes of throttled replicas count against the limit; those of others do not."""
    quota = Quota(throttled={"t": frozenset({0}), "all": None})
    assert quota.allow(("t", 0), 50, 5) == 50
    quota.limit(10)
    quota.note(("t", 1), 50, 5)
    assert [quota.allow(("t", one), 50, 5) for one in (0, 1)] == [10, 50]
    quota.note(("all", 7), 25, 5)
    assert [quota.allow((topic, 0), 50, 6) for topic in ("t", "all", "other")] == [0, 0, 50]


def test_quota_makes_up_for_what_passed_too_much() -> None:
    """A batch larger than the limit is waited for as long as it is large, and nothing is saved up.

    A limit that is set once more changes nothing; another one begins anew.
    """
    quota = Quota(throttled={"t": None})
    quota.limit(10)
    quota.note(("t", 0), 100, 1_000)
    assert [quota.allow(("t", 0), 50, 1_000 + ms) for ms in (9_000, 9_100, 99_000)] == [0, 1, 10]
    quota.note(("t", 0), 100, 100_000)
    quota.limit(10)
    assert quota.allow(("t", 0), 50, 100_000) == 0
    quota.limit(20)
    assert quota.allow(("t", 0), 50, 100_000) == 20
