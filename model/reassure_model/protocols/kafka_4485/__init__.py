"""KAFKA-4485: lag in time, the in-sync set and the high watermark.

In the order of the document, but that the records of what a leader keeps stand first. What it does
not speak of, elections and logs, is in `replication` and `invariants`.

Definitions are about histories: how the log end offset of each replica moved, as if all logs could
be seen at once. A leader learns of a follower from its fetch requests only. Between two fetches the
follower may have come further: the estimate of the lag is never shorter than the lag, and can be
longer by the gap between fetches, or without bound where responses do not carry all there is
(findings watermark-1 to watermark-3). There is no timer: `evaluate` is asked when the caller says
so. `rule` is "lag" for the rule of the document and "before" for the one that it replaces, which is
kept so that its two problems can be shown.

Times are whole milliseconds. A log may change several times in one of them, so a definition has to
say whether it means the state at the start or at the end of a millisecond; the text does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

Offsets = tuple[int, ...]
Lags = tuple[int, ...]
EndHistory = tuple[tuple[int, int], ...]
"""(time in ms, log end offset from then on), oldest first; 0 before the first."""
NEVER_MS: Final = -(10**12)
"""A time before all times, for a follower that was never seen caught up."""


# Implementation 1: what the leader keeps track of -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Follower:
    """What the leader notes of one follower."""

    offset: int
    """Begin offset of its last fetch request: the log end offset that the leader knows."""
    last_fetch_ms: int
    last_fetch_leader_end: int
    """Where the leader ended at the last fetch."""
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class Leader:
    """One leader's view of its partition; `followers` are aligned with `replicas[1:]`."""

    replicas: ReplicaList
    """The leader first."""
    end: int
    followers: tuple[Follower, ...]
    high_watermark: int = 0
    pseudo_isr: ReplicaList = ()
    isr: ReplicaList = ()


# The two problems: the rule as it was -------------------------------------------------------------


def evaluate_before(leader: Leader, now_ms: int, lag_ms_max: int) -> Leader:
    """Conclude as before the document: leave by time behind, enter by high watermark.

    Two tests that do not agree: a replica that fails the first passes the second a moment later.
    """
    behind = tuple(
        replica
        for replica, follower in zip(leader.replicas[1:], leader.followers, strict=True)
        if follower.offset < leader.end and estimate_lag(follower, now_ms) > lag_ms_max
    )
    left = tuple(replica for replica in leader.isr if replica not in behind)
    offsets = (leader.end, *(follower.offset for follower in leader.followers))
    mark = compute_high_watermark(leader.high_watermark, leader.replicas, offsets, left)
    return replace(leader, high_watermark=mark, pseudo_isr=left, isr=left)


def enter_before(leader: Leader, replica: int) -> Leader:
    """Take a replica in as before the document: as soon as it fetches at the high watermark."""
    follower = leader.followers[leader.replicas[1:].index(replica)]
    if replica in leader.isr or follower.offset < leader.high_watermark:
        return leader
    isr = tuple(r for r in leader.replicas if r in leader.isr or r == replica)
    return replace(leader, pseudo_isr=isr, isr=isr)


# Terminology: replica lag -------------------------------------------------------------------------


def end_at(history: EndHistory, at_ms: int, *, of_ms: str = "end") -> int:
    """Return the log end offset at the `end` or at the `start` of a millisecond.

    >>> end_at(((1, 3), (4, 5)), 4), end_at(((1, 3), (4, 5)), 4, of_ms="start")
    (5, 3)
    """
    found = 0
    for changed_ms, end in history:
        if changed_ms < at_ms or (changed_ms == at_ms and of_ms == "end"):
            found = end
    return found


def matching_lags(leader: EndHistory, end: int, now_ms: int, longest_ms: int) -> tuple[int, ...]:
    """Return every X up to `longest_ms` for which the sentence of the text is true.

    The sentence is that the replica ends where the leader ended X ms ago. It can be true of no X
    and of many (finding watermark-8).

    >>> matching_lags(((5, 2),), 1, 9, 9), matching_lags(((5, 2),), 2, 7, 9)
    ((), (0, 1, 2))
    """
    return tuple(x for x in range(longest_ms + 1) if end_at(leader, now_ms - x) == end)


@clause("lag.definition", "lag.leader-none")
def compute_replica_lag(leader: EndHistory, end: int, now_ms: int, *, of_ms: str = "end") -> int:
    """Return how long ago (ms) the leader last ended where the replica ends now, or before that.

    This settles the text: "or before" makes it total, "last" makes it unique. `leader` never goes
    back, as it is the log of one leader.

    >>> compute_replica_lag(((5, 2),), 1, 9), compute_replica_lag(((5, 2),), 2, 9)
    (5, 0)
    """
    if end_at(leader, now_ms, of_ms=of_ms) <= end:
        return 0
    passed_ms = next(changed_ms for changed_ms, leader_end in leader if leader_end > end)
    # At the start of the millisecond in which it passed, the leader still ended there.
    return now_ms - passed_ms + (0 if of_ms == "start" else 1)


# Terminology: pseudo-ISR, high watermark and ISR --------------------------------------------------


# The leader itself is one of the replicas, with its own log end offset and no lag. Sequences are
# aligned: element i of `offsets` (log end offsets) and of `lags_ms` belongs to element i of
# `replicas`.


@clause("isr.pseudo.by-lag")
def compute_pseudo_isr(replicas: ReplicaList, lags_ms: Lags, lag_ms_max: int) -> ReplicaList:
    """Return the replicas whose lag is at most `lag_ms_max`.

    >>> compute_pseudo_isr((1, 2, 3), (0, 10, 11), 10)
    (1, 2)
    """
    return tuple(r for r, lag in zip(replicas, lags_ms, strict=True) if lag <= lag_ms_max)


@clause("hw.never-decreases", "hw.minimum-of-pseudo-isr")
def compute_high_watermark(
    high_watermark: int, replicas: ReplicaList, offsets: Offsets, pseudo_isr: ReplicaList
) -> int:
    """Return the high watermark after an evaluation: the smallest pseudo-in-sync end, never less.

    The pseudo-ISR is never empty, as the leader is always in it.

    >>> compute_high_watermark(4, (1, 2), (9, 7), (1, 2))
    7
    >>> compute_high_watermark(8, (1, 2), (9, 7), (1, 2))
    8
    """
    ends = [end for r, end in zip(replicas, offsets, strict=True) if r in pseudo_isr]
    return max(high_watermark, min(ends))


@clause("isr.member.at-or-above-hw", "isr.entry.at-high-watermark")
def compute_isr(
    replicas: ReplicaList, offsets: Offsets, pseudo_isr: ReplicaList, high_watermark: int
) -> ReplicaList:
    """Return the in-sync replicas: those of the pseudo-ISR that hold all up to the high watermark.

    >>> compute_isr((1, 2), (9, 7), (1, 2), 8)
    (1,)
    """
    return tuple(
        r
        for r, end in zip(replicas, offsets, strict=True)
        if r in pseudo_isr and end >= high_watermark
    )


# Guarantees 1 and 2: who counts and who leaves, as everybody could see it -------------------------


@dataclass(frozen=True, slots=True)
class View:
    """What the definitions say of one partition at one time."""

    pseudo_isr: ReplicaList
    high_watermark: int
    isr: ReplicaList


@clause("isr.pseudo.close-follower", "isr.lagging-leaves", "hw.stall-bounded")
def compute_views(
    replicas: ReplicaList, histories: Sequence[EndHistory], times_ms: Sequence[int], lag_ms_max: int
) -> tuple[View, ...]:
    """Evaluate the three definitions at each time in turn, as the high watermark has a past.

    `histories` are aligned with `replicas`; the first replica leads.

    >>> compute_views((1, 2), (((1, 4),), ((1, 2),)), (3,), 2)
    (View(pseudo_isr=(1,), high_watermark=4, isr=(1,)),)
    """
    views: tuple[View, ...] = ()
    for now_ms in times_ms:
        before = views[-1].high_watermark if views else 0
        ends = tuple(end_at(history, now_ms) for history in histories)
        lags = tuple(compute_replica_lag(histories[0], end, now_ms) for end in ends)
        pseudo_isr = compute_pseudo_isr(replicas, lags, lag_ms_max)
        mark = compute_high_watermark(before, replicas, ends, pseudo_isr)
        isr = compute_isr(replicas, ends, pseudo_isr, mark)
        views = (*views, View(pseudo_isr, mark, isr))
    return views


# Guarantees 3 and 4: within one term by how the definitions are evaluated ------------------------


# `compute_high_watermark` never goes back, and `compute_isr` takes nobody below it. Across
# elections both are broken as written: `invariants` says when.


# Implementation 1 and 2: what is noted of a fetch, and the lag that follows -----------------------


def start_leader(
    replicas: ReplicaList, end: int, now_ms: int, isr: ReplicaList, readings: Readings
) -> Leader:
    """Return a leader that begins now; the text names no first values (finding watermark-9)."""
    leader_end = 0 if readings.lag_initial_leader_end == "zero" else end
    seen = replicas if readings.lag_initial == "now" else isr
    followers = tuple(
        Follower(0, now_ms, leader_end, now_ms if replica in seen else NEVER_MS)
        for replica in replicas[1:]
    )
    return Leader(replicas, end, followers, 0, seen, isr)


@clause("lag.credit.caught-up", "lag.credit.last-fetch", "lag.noted-after-serving")
def record_fetch(
    follower: Follower, offset: int, leader_end: int, now_ms: int, readings: Readings, rule: str
) -> Follower:
    """Note a fetch request that begins at `offset`; compare first, overwrite after.

    >>> record_fetch(Follower(0, 0, 2, 0), 2, 3, 5, Readings(), "lag").last_caught_up_ms
    0
    >>> record_fetch(Follower(0, 0, 2, 0), 3, 3, 5, Readings(), "lag").last_caught_up_ms
    5
    """
    caught_up_ms = follower.last_caught_up_ms
    if offset >= leader_end and (rule == "before" or readings.lag_credit == "two-cases"):
        caught_up_ms = now_ms
    elif offset >= follower.last_fetch_leader_end and rule == "lag":
        # It has all that the leader had at the last fetch: then it was caught up, as it turns out.
        caught_up_ms = follower.last_fetch_ms
    return Follower(offset, now_ms, leader_end, caught_up_ms)


@clause("lag.estimate-never-short")
def estimate_lag(follower: Follower, now_ms: int) -> int:
    """Return the lag (ms) as far as the leader knows."""
    return now_ms - follower.last_caught_up_ms


def fetch(
    leader: Leader, replica: int, offset: int, now_ms: int, readings: Readings, rule: str = "lag"
) -> Leader:
    """Note a fetch request of one follower. Raises ValueError where `replica` is no follower."""
    at = leader.replicas[1:].index(replica)
    noted = record_fetch(leader.followers[at], offset, leader.end, now_ms, readings, rule)
    followers = (*leader.followers[:at], noted, *leader.followers[at + 1 :])
    return replace(leader, followers=followers)


# Implementation 3: the leader evaluates the definitions -------------------------------------------


@clause("lag.leader-none", "lag.evaluated-in-time", "hw.at-most-leader-end")
def evaluate(leader: Leader, now_ms: int, lag_ms_max: int) -> Leader:
    """Conclude pseudo-ISR, high watermark and ISR, in this order; the leader has no lag."""
    lags = (0, *(estimate_lag(follower, now_ms) for follower in leader.followers))
    offsets = (leader.end, *(follower.offset for follower in leader.followers))
    pseudo_isr = compute_pseudo_isr(leader.replicas, lags, lag_ms_max)
    mark = compute_high_watermark(leader.high_watermark, leader.replicas, offsets, pseudo_isr)
    isr = compute_isr(leader.replicas, offsets, pseudo_isr, mark)
    return replace(leader, high_watermark=mark, pseudo_isr=pseudo_isr, isr=isr)


@clause("hw.acks-all.answered")
def is_answered(leader: Leader, end: int) -> bool:
    """Whether a producer that waits for all in sync has its answer for the records below `end`."""
    return end <= leader.high_watermark
