"""Replica lag, pseudo-ISR, high watermark and ISR as KAFKA-4485 defines them: over histories.

A history says how the log end offset of one replica moved: pairs of the time of a change and the
offset from then on, oldest first. Nothing here is measured by anybody: it is what would be true if
all logs could be seen at once. What a leader can know of it is in `leader`; the two are compared by
tests and proofs.

Times are whole milliseconds. A log may change several times in one of them, so a definition has to
say whether it means the state at the start or at the end of a millisecond; the text does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reassure_model.protocols.kafka_4485.insync import (
    compute_high_watermark,
    compute_isr,
    compute_pseudo_isr,
)
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

EndHistory = tuple[tuple[int, int], ...]
"""(time in ms, log end offset from then on), oldest first; 0 before the first."""


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


@dataclass(frozen=True, slots=True)
class View:
    """What the definitions say of one partition at one time."""

    pseudo_isr: ReplicaList
    high_watermark: int
    isr: ReplicaList


@clause("isr.pseudo.close-follower", "isr.lagging-leaves", "hw.stall-bounded")
def compute_views(
    replicas: ReplicaList,
    histories: Sequence[EndHistory],
    times_ms: Sequence[int],
    lag_ms_max: int,
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


@clause("lag.clock-before-end")
def read_clock_and_end(
    leader: EndHistory, first_ms: int, second_ms: int, readings: Readings
) -> tuple[int, int]:
    """Return the time and the leader's end that a leader notes when it reads them one by one.

    The clock first is sound: the end is then never older than its time says (finding watermark-6).

    >>> read_clock_and_end(((0, 1),), -1, 0, Readings())
    (-1, 1)
    """
    if readings.lag_clock_read == "after-end":
        return second_ms, end_at(leader, first_ms)
    return first_ms, end_at(leader, second_ms)
