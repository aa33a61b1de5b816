"""What a leader keeps of each follower: KAFKA-4485, implementation, items 1 and 2.

A leader sees its followers by their fetch requests only. A request says where the follower's log
ends (its offset); when the follower had all that the leader had is worked out from two requests:

* it asks from the leader's end: it has everything now;
* it asks from where the leader ended at its request before: so it had, at that earlier time,
  everything there was then, as only now turns out.

The second case is the document's point. While producers write, a follower that takes all there is
with every response still never asks from the leader's end, which has moved on meanwhile.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from reassure_controller.replication.rules import ReplicationRules
from reassure_spec.clauses import clause

NEVER_MS: Final = -(10**15)
"""Before all times: when a follower was caught up that never was."""


@dataclass(frozen=True, slots=True)
class Follower:
    """The four values."""

    offset: int
    """Where its last fetch began, which is where its log ended then; 0 before the first."""
    last_fetch_ms: int
    last_fetch_leader_end: int
    """Where the leader ended at the last fetch."""
    last_caught_up_ms: int

    def lag_ms(self, now_ms: int) -> int:
        """Return how long ago it was caught up, as far as the leader can know."""
        return now_ms - self.last_caught_up_ms


def begin_follower(
    follower: int, isr: Collection[int], leader_end: int, now_ms: int, rules: ReplicationRules
) -> Follower:
    """Return the first values that a new leader gives a follower; the document names none.

    Readings `lag.initial` and `lag.initial-leader-end`: who is not in sync was never seen caught
    up, or else an empty replica would hold the high watermark back for one limit.
    """
    trusted = rules.readings.lag_initial == "now" or follower in isr
    leader_end = leader_end if rules.readings.lag_initial_leader_end == "leader-end" else 0
    return Follower(0, now_ms, leader_end, now_ms if trusted else NEVER_MS)


@clause("lag.credit.caught-up", "lag.credit.last-fetch", "lag.noted-after-serving")
def note_fetch(
    before: Follower, offset: int, leader_end: int, now_ms: int, rules: ReplicationRules
) -> Follower:
    """Return the four values after a fetch from `offset`: compared with the old, then replaced."""
    leader_end_then, time_then = before.last_fetch_leader_end, before.last_fetch_ms
    caught_up_ms = before.last_caught_up_ms
    by_both = rules.rule == "before" or rules.readings.lag_credit == "two-cases"
    by_last = rules.rule == "lag"
    if offset >= leader_end and by_both:
        caught_up_ms = now_ms
    elif offset >= leader_end_then and by_last:
        caught_up_ms = time_then
    return Follower(offset, now_ms, leader_end, caught_up_ms)
