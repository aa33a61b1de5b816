"""What a leader notes of its followers, and what it concludes: KAFKA-4485's implementation.

For each follower the leader keeps four values and learns of it from fetch requests only. Between
two fetches the follower may have come further: the leader's estimate of the lag is never shorter
than the lag (`lag`), and can be longer by the gap between fetches, or without bound where responses
do not carry all there is (findings watermark-1 to watermark-3).

`rule` is "lag" for the rule of the document and "before" for the one that it replaces, which is
kept so that its two problems can be shown. There is no timer: `evaluate` is asked when the caller
says so.
"""

from dataclasses import dataclass, replace
from typing import Final

from reassure_model.protocols.kafka_4485.insync import (
    compute_high_watermark,
    compute_isr,
    compute_pseudo_isr,
)
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

NEVER_MS: Final = -(10**12)
"""A time before all times, for a follower that was never seen caught up."""


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
