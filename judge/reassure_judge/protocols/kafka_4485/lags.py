"""What a leader should assume of its followers' lags, by what it noted of their fetches.

The notes are the model's own (`record_fetch`, `estimate_lag`). Beside them stands how the leader's
log moved, as far back as the limit: what the definition of replica lag asks for
(`lag.compute_replica_lag`).
"""

from collections import deque

from reassure_judge.observed.ledger import Evidence, Ledger, Line
from reassure_model.protocols.kafka_4485 import (
    Follower,
    compute_pseudo_isr,
    estimate_lag,
    record_fetch,
    start_leader,
)
from reassure_spec.clauses import clause
from reassure_spec.observations import Evaluate, Fetch
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


class Past:
    """How a leader's log end moved, back to one limit ago."""

    def __init__(self, began_ms: int, end: int, lag_ms_max: int) -> None:
        self.began_ms = began_ms
        self._limit = lag_ms_max
        self._moves = deque([(began_ms, end)])

    def move(self, at_ms: int, end: int) -> bool:
        """Note where the log ends from now on; return whether that is elsewhere."""
        is_elsewhere = self._moves[-1][1] != end
        if is_elsewhere:
            self._moves.append((at_ms, end))
        return is_elsewhere

    def reaches(self, now_ms: int) -> bool:
        """Whether the term began a limit ago or before that."""
        return now_ms - self._limit >= self.began_ms

    def end_before(self, at_ms: int) -> int:
        """Return where the log ended at the start of a millisecond that is not long ago."""
        return next((end for when, end in reversed(self._moves) if when < at_ms), 0)

    def end_a_limit_ago(self, now_ms: int, *, of_ms: str = "end") -> int:
        """Return where the log ended one limit ago, as `end_at` does; times must not go back."""
        then = now_ms - self._limit
        moves = self._moves
        while len(moves) > 1 and moves[1][0] < then:
            moves.popleft()
        found = 0
        for when, end in moves:
            if when < then or (when == then and of_ms == "end"):
                found = end
            else:
                break
        return found


class Lags:
    """The lags that one leader should assume; it leads from `now_ms` on."""

    def __init__(
        self,
        replicas: ReplicaList,
        end: int,
        now_ms: int,
        isr: ReplicaList,
        lag_ms_max: int,
        readings: Readings,
    ) -> None:
        """Begin; the leader is the first of `replicas`."""
        self.past = Past(now_ms, end, lag_ms_max)
        self._limit = lag_ms_max
        self._readings = readings
        self._replicas = replicas
        first = start_leader(replicas, end, now_ms, isr, readings).followers
        self._notes: dict[int, Follower] = dict(zip(replicas[1:], first, strict=True))
        self._fetched: set[int] = set()
        self._evaluated_ms = now_ms
        self._due_ms: int | None = now_ms
        """Since when there is something to look at; None where nothing happened since a look."""
        self._waited: ReplicaList = ()
        """Who kept up at the last look."""

    def move(self, at_ms: int, end: int) -> None:
        """Note where the leader's log ends from now on."""
        if self.past.move(at_ms, end):
            self._wake(at_ms)

    def _wake(self, now_ms: int) -> None:
        self._due_ms = now_ms if self._due_ms is None else self._due_ms

    @clause("lag.credit.caught-up", "lag.credit.last-fetch", "lag.noted-after-serving")
    def note(self, ledger: Ledger, line: Line, fetch: Fetch, end: int, *, certain: bool) -> None:
        """Note a fetch, and hold the credit that the leader gave against the model's.

        `end` is the leader's own that it notes with it. Without a time there is nothing to note.
        """
        before = self._notes.get(fetch.follower)
        if before is None or fetch.time_ms is None:
            return
        now = fetch.time_ms
        after = record_fetch(before, fetch.offset, end, now, self._readings, "lag")
        given, due = fetch.caught_up_ms, max(after.last_caught_up_ms, 0)
        if given == due:
            ledger.keep(self._name_rule(before, after, given, now))
        elif given is not None:
            evidence = Evidence(
                f"counted as caught up at {due} ms",
                f"fetch from {before.offset} at {before.last_fetch_ms} ms, the leader ending at "
                f"{before.last_fetch_leader_end}; caught up at {before.last_caught_up_ms} ms",
                f"fetch from {fetch.offset} at {now} ms, the leader ending at {end}",
            )
            rule, reason = self._name_rule(before, after, given, now), f"at {given} ms"
            ledger.check(line, rule, f"counted as caught up {reason}", evidence, certain=certain)
            after = Follower(after.offset, now, end, given)
        self._check_clock(ledger, line, end, now)
        ends = before.offset, before.last_fetch_leader_end
        if fetch.follower not in self._waited or ends != (fetch.offset, end):
            self._wake(now)
        self._notes[fetch.follower] = after
        self._fetched.add(fetch.follower)

    def _name_rule(self, before: Follower, after: Follower, given: int, now_ms: int) -> str:
        """Return the clause that says when the follower counts as caught up."""
        due = after.last_caught_up_ms
        if due == now_ms and after.offset >= after.last_fetch_leader_end:
            return "lag.credit.caught-up"
        if after.offset >= before.last_fetch_leader_end:
            # Who notes first compares a request with itself.
            return "lag.noted-after-serving" if given == now_ms else "lag.credit.last-fetch"
        # No credit is due; one that was given before may not be taken back.
        return "lag.estimate-never-short" if given >= due else "lag.credit.last-fetch"

    @clause("lag.clock-before-end")
    def _check_clock(self, ledger: Ledger, line: Line, end: int, now_ms: int) -> None:
        if self._readings.lag_clock_read != "before-end":
            return
        past = self.past.end_before(now_ms)
        kept = end >= past or f"ended at {past} before {now_ms} ms, and {end} was noted"
        was, now = f"log end {past} before {now_ms} ms", f"log end {end} noted for {now_ms} ms"
        ledger.check(line, "lag.clock-before-end", kept, Evidence(f"at least {past}", was, now))

    @clause("isr.pseudo.by-lag", "lag.leader-none", "isr.pseudo.close-follower")
    def judge_pseudo(
        self, ledger: Ledger, line: Line, pseudo: ReplicaList, now_ms: int, *, certain: bool
    ) -> None:
        """Hold the pseudo-ISR that a leader concluded against its notes, and against the past."""
        leader, *followers = self._replicas
        lags = (0, *(estimate_lag(self._notes[f], now_ms) for f in followers))
        due = compute_pseudo_isr(self._replicas, lags, self._limit)
        told = set(pseudo) - {leader}
        wrong = sorted(told ^ (set(due) - {leader}))
        shown = ", ".join(f"{r} lags {lag} ms" for r, lag in zip(self._replicas, lags, strict=True))
        kept = not wrong or f"at a limit of {self._limit} ms: {shown}"
        now = f"pseudo-ISR {sorted(pseudo)}"
        evidence = Evidence(f"pseudo-ISR {sorted(due)}", after=now)
        ledger.check(line, "isr.pseudo.by-lag", kept, evidence, certain=certain)
        if not self.past.reaches(now_ms):
            return
        then = self.past.end_a_limit_ago(now_ms)
        for follower in followers:
            if follower in self._fetched and self._notes[follower].offset >= then:
                kept = follower in told or f"{follower} has all up to {then}"
                expected = f"{follower} in the pseudo-ISR: it lags {self._limit} ms at most"
                evidence = Evidence(expected, after=now)
                ledger.check(line, "isr.pseudo.close-follower", kept, evidence, certain=certain)

    @clause("lag.evaluated-in-time", "hw.stall-bounded")
    def judge_pace(
        self,
        ledger: Ledger,
        line: Line,
        said: Evaluate,
        now_ms: int,
        *,
        is_calm: bool,
        certain: bool,
    ) -> None:
        """Judge when a leader evaluates, and how far its mark may stay behind.

        Looks that find nothing new are not written while it `is_calm`: all is in sync, and the mark
        at the log's end. One is due again when something happens, or a member falls silent.
        """
        mark, leader = said.high_watermark, self._replicas[0]
        silent = [self._notes[r].last_fetch_ms for r in self._waited if r != leader]
        due = [now_ms if self._due_ms is None else self._due_ms]
        due += [ms + self._limit // 2 for ms in silent]
        gap = now_ms - max(self._evaluated_ms, min(due))
        kept = 2 * gap <= self._limit or f"{gap} ms after it was due"
        evidence = Evidence(f"at most {self._limit // 2} ms")
        ledger.check(line, "lag.evaluated-in-time", kept, evidence, certain=certain)
        self._evaluated_ms, self._due_ms = now_ms, None if is_calm else now_ms
        self._waited = tuple(r for r in said.pseudo_isr if r in self._replicas) if is_calm else ()
        waits = self._readings.hw_over_stored_isr == "yes"  # for whoever was not written out yet
        if not waits and self.past.reaches(now_ms):
            then = self.past.end_a_limit_ago(now_ms, of_ms="start")
            kept = mark >= then or f"the leader ended at {then} {self._limit} ms ago"
            evidence = Evidence(f"at least {then}", after=f"high watermark {mark}")
            ledger.check(line, "hw.stall-bounded", kept, evidence)
