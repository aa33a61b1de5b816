"""What one leader says in one term, judged line by line in its own order.

What depends on what others say of the same term waits for them in `Term` (`terms`).
"""

from collections import Counter
from heapq import heappop, heappush

from reassure_judge.observed.ledger import Ledger, Line
from reassure_judge.protocols.kafka_4485.contents import Contents
from reassure_judge.protocols.kafka_4485.lags import Lags
from reassure_judge.protocols.kafka_4485.terms import Entry, Term
from reassure_model.protocols.kafka_4485.insync import compute_high_watermark, compute_isr
from reassure_spec.clauses import clause
from reassure_spec.observations import (
    Answer,
    Evaluate,
    Fetch,
    IsrRead,
    IsrWrite,
    Lead,
    Produce,
    Replica,
    Serve,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


class Leading:
    """One leader in one term.

    Where its first line is not `lead`, it was leading before the history begins (or after a gap in
    it): what it knew is not known then.
    """

    def __init__(
        self, readings: Readings, ledger: Ledger, term: Term, broker: int, tells: frozenset[str]
    ) -> None:
        self.whole = False
        """Whether nothing that the leader said since it leads is missing."""
        self._readings = readings
        self._ledger = ledger
        self._term = term
        self._broker = broker
        self._tells = tells
        self._replicas: ReplicaList = ()
        self._isr: ReplicaList | None = None
        self._version: int | None = None
        self._end = self._mark = self._start = 0
        self._offsets: dict[int, int] = {}
        self._pseudo: ReplicaList | None = None
        self._heard: set[int] = set()
        """Who has fetched since the last evaluation, and may have caught up by that."""
        self._lags: Lags | None = None
        self._due_in: frozenset[int] = frozenset()
        self._due_out: frozenset[int] = frozenset()
        self._waiting: Counter[int] = Counter()
        self._waiting_order: list[int] = []

    @property
    def end(self) -> int:
        """Where its log ends."""
        return self._end

    def _tells_all(self, *kinds: str) -> bool:
        """Whether what it did not say did not happen."""
        return self.whole and self._tells.issuperset(kinds)

    @property
    def _knows_mark(self) -> bool:
        return self._tells_all("evaluate")

    # The beginning

    @clause("isr.change.leader-kept")
    def lead(self, line: Line, said: Lead, log: Contents) -> None:
        """Begin the term with a log."""
        self.whole = True
        self._replicas = (self._broker, *(r for r in said.replicas if r != self._broker))
        self._isr, self._version = said.isr, said.isr_version
        self._end = self._start = said.log_end_offset
        self._mark = said.high_watermark
        self._check_leader_kept(line, said.isr)
        if not self._check_end(line, self._mark):
            self._mark = self._end
        if said.time_ms is not None and said.lag_ms_max is not None:
            self._lags = Lags(
                self._replicas,
                self._end,
                said.time_ms,
                said.isr,
                said.lag_ms_max,
                self._readings,
            )
        self._term.begin(line, log, said)
        self._term.top_mark = max(self._term.top_mark, said.high_watermark)

    # Its log and its mark

    def replica(self, line: Line, said: Replica) -> None:
        """Judge where its log and its mark are."""
        self._end = said.log_end_offset
        if self._lags is not None and said.time_ms is not None:
            self._lags.past.move(said.time_ms, self._end)
        self._take_mark(line, said.high_watermark, self._pseudo)

    @clause("hw.never-decreases")
    def _take_mark(self, line: Line, mark: int, pseudo: ReplicaList | None) -> None:
        before, ledger = self._mark, self._ledger
        self._term.top_mark = max(self._term.top_mark, mark)
        if not self._check_end(line, mark):
            self._mark = max(before, self._end)
        elif mark == before:
            ledger.keep("hw.never-decreases")
        elif mark < before:
            self._mark = mark
            ledger.check(
                line,
                "hw.never-decreases",
                f"{mark} after {before}",
                before=f"high watermark {before}",
                after=f"high watermark {mark}",
                expected=f"at least {before}",
            )
        else:
            ledger.keep("hw.never-decreases")
            # A mark that is too high is not gone on from: what follows from it is no news.
            self._mark = min(mark, self._check_advance(line, mark, pseudo))

    @clause("hw.minimum-of-pseudo-isr", "hw.over-stored-isr")
    def _check_advance(self, line: Line, mark: int, pseudo: ReplicaList | None) -> int:
        """Judge how far the mark advances; answer how far it may, where that is certain."""
        if pseudo is None or not self._replicas:
            return mark
        offsets, waited, most = self._list_offsets(), (self._broker, *pseudo), mark
        tells = ["fetch", "evaluate", "replica"]
        rules = [("hw.minimum-of-pseudo-isr", waited, self._tells_all(*tells))]
        if self._readings.hw_over_stored_isr == "yes" and self._isr is not None:
            tells += ["isr_write", "isr_read"]
            rules.append(("hw.over-stored-isr", (*waited, *self._isr), self._tells_all(*tells)))
        for name, members, certain in rules:
            allowed = compute_high_watermark(self._mark, self._replicas, offsets, members)
            if mark <= allowed:
                self._ledger.keep(name)
                continue
            ends = {r: end for r, end in zip(self._replicas, offsets, strict=True) if r in members}
            kept = self._ledger.check(
                line,
                name,
                f"log ends {ends}",
                certain=certain,
                before=f"high watermark {self._mark}",
                after=f"high watermark {mark}",
                expected=f"at most {allowed}",
            )
            most = most if kept else min(most, allowed)
        return most

    @clause("hw.at-most-leader-end")
    def _check_end(self, line: Line, mark: int) -> bool:
        end = self._end
        if mark <= end:
            self._ledger.keep("hw.at-most-leader-end")
            return True
        certain = isinstance(line.said.what, Replica | Lead) or self._tells_all("replica")
        if not certain:
            self._end = mark
        return self._ledger.check(
            line,
            "hw.at-most-leader-end",
            f"{mark} of a log that ends at {end}",
            certain=certain,
            before=f"log end {end}",
            after=f"high watermark {mark}",
            expected=f"at most {end}",
        )

    def _list_offsets(self) -> tuple[int, ...]:
        """Return the log ends that the leader knows, by its replicas; 0 before a fetch."""
        return (self._end, *(self._offsets.get(r, 0) for r in self._replicas[1:]))

    # Followers

    @clause("fetch.epoch-fenced")
    def fetch(self, line: Line, said: Fetch) -> None:
        """Note a fetch."""
        if said.log_end_offset is not None:
            self._end = max(self._end, said.log_end_offset)
        sent, epoch = said.follower_epoch, line.said.leader_epoch
        if sent is not None and sent != epoch:
            self._ledger.check(
                line,
                "fetch.epoch-fenced",
                f"sent in leader epoch {sent}, it is {epoch}",
                after=f"fetch of {said.follower} from {said.offset} noted",
                expected="refused",
            )
            return
        if sent is not None:
            self._ledger.keep("fetch.epoch-fenced")
        self._offsets[said.follower] = said.offset
        self._heard.add(said.follower)
        self._term.note_fetch(line, said.follower, said.offset)
        if self._lags is not None:
            end = self._end if said.log_end_offset is None else said.log_end_offset
            self._lags.note(
                self._ledger, line, said, end, certain=self._tells_all("fetch", "replica")
            )

    @clause("lag.leader-none")
    def evaluate(self, line: Line, said: Evaluate) -> None:
        """Judge what the leader concluded."""
        pseudo, now_ms = said.pseudo_isr, said.time_ms
        self._ledger.check(
            line,
            "lag.leader-none",
            None if self._broker in pseudo else f"{self._broker} leads, and is not in it",
            after=f"pseudo-ISR {sorted(pseudo)}",
            expected="the leader among them",
        )
        if self._lags is not None and now_ms is not None:
            certain = self._tells_all("fetch", "replica")
            self._lags.judge_pseudo(self._ledger, line, pseudo, now_ms, certain=certain)
        passed = self._mark
        self._take_mark(line, said.high_watermark, pseudo)
        if self._lags is not None and now_ms is not None:
            certain = self._tells_all("evaluate")
            self._lags.judge_pace(self._ledger, line, said.high_watermark, now_ms, certain=certain)
        self._check_answered(line, passed)
        if self._readings.isr_members == "stored":
            self._check_due(line)
            self._note_due(pseudo, said.high_watermark)
        elif said.isr is not None:
            self._check_defined(line, said, pseudo)
        self._pseudo = pseudo
        self._heard.clear()

    # The in-sync set

    @clause("isr.entry.at-high-watermark", "isr.lagging-leaves")
    def _check_due(self, line: Line) -> None:
        """Judge whether the leader wrote what the evaluation before asked for."""
        isr = frozenset(self._isr or ())
        for name, left, words in (
            ("isr.entry.at-high-watermark", self._due_in - isr, "into"),
            ("isr.lagging-leaves", self._due_out & isr, "out of"),
        ):
            if left:
                self._ledger.check(
                    line,
                    name,
                    f"{sorted(left)} due since the evaluation before",
                    certain=self._tells_all("evaluate", "isr_write", "isr_read"),
                    before=f"in-sync set {sorted(isr)}",
                    expected=f"{sorted(left)} written {words} it before this evaluation",
                )

    def _note_due(self, pseudo: ReplicaList, mark: int) -> None:
        if self._isr is None or not self._replicas:
            return
        if self._readings.isr_entry == "end-at-election":
            mark = max(mark, self._start)
        due = compute_isr(self._replicas, self._list_offsets(), pseudo, mark)
        # Whom the leader has not heard of yet may well be there.
        heard = self._offsets.keys()
        self._due_in = frozenset(r for r in due if r not in self._isr and r in heard)
        self._due_out = frozenset(self._isr) - frozenset(pseudo) - {self._broker}

    @clause("isr.member.at-or-above-hw", "isr.entry.at-high-watermark", "isr.lagging-leaves")
    def _check_defined(self, line: Line, said: Evaluate, pseudo: ReplicaList) -> None:
        """Hold an in-sync set that nobody stores against its definition."""
        if not self._replicas or said.isr is None:
            return
        offsets = self._list_offsets()
        due = set(compute_isr(self._replicas, offsets, pseudo, said.high_watermark))
        told, close = set(said.isr), set(pseudo)
        certain = self._tells_all("fetch")
        for name, wrong in (
            ("isr.member.at-or-above-hw", (told - due) & close),
            ("isr.lagging-leaves", told - due - close),
            ("isr.entry.at-high-watermark", due - told),
        ):
            self._ledger.check(
                line,
                name,
                f"{sorted(wrong)} at high watermark {said.high_watermark}" if wrong else None,
                certain=certain,
                after=f"in-sync set {sorted(told)}",
                expected=f"{sorted(due)}",
            )

    @clause("isr.write.conditional")
    def isr_write(self, line: Line, said: IsrWrite) -> None:
        """Judge a write of the stored in-sync set."""
        self._check_leader_kept(line, said.isr)
        known = self._version
        if known is not None:
            stale = said.expected_version != known
            self._ledger.check(
                line,
                "isr.write.conditional",
                f"on top of version {said.expected_version}, it knows {known}" if stale else None,
                certain=self._tells_all("isr_write", "isr_read"),
                before=f"in-sync set {_show(self._isr)}, version {known}",
                after=f"in-sync set {sorted(said.isr)}",
                expected=f"on top of version {known}, or a read of the state first",
            )
        for replica in sorted(set(said.isr) - set(self._isr or said.isr)):
            self._check_entry(line, replica, said.isr_version is not None)
        self._note_done(line, frozenset(said.isr))
        if said.isr_version is None:
            return
        step = said.isr_version - said.expected_version
        self._ledger.check(
            line,
            "isr.write.conditional",
            f"version {said.isr_version} on top of {said.expected_version}" if step != 1 else None,
            expected=f"version {said.expected_version + 1}",
        )
        self._isr, self._version = said.isr, said.isr_version
        self._term.note_version(line, said.isr_version, said.isr, is_write=True)

    def _note_done(self, line: Line, isr: frozenset[int]) -> None:
        """Note what was due and is tried now."""
        if self._due_in & isr:
            self._ledger.check(line, "isr.entry.at-high-watermark", None)
        if self._due_out - isr:
            self._ledger.check(line, "isr.lagging-leaves", None)
        self._due_in -= isr
        self._due_out &= isr

    @clause("isr.member.at-or-above-hw", "isr.entry.end-at-election", "isr.entry.at-high-watermark")
    def _check_entry(self, line: Line, replica: int, is_done: bool) -> None:
        """Judge whether a follower may enter the stored set now."""
        offset, check = self._offsets.get(replica, 0), self._ledger.check
        certain = self._tells_all("fetch", "isr_write", "isr_read")
        was, now = f"in-sync set {_show(self._isr)}", f"{replica} enters it"
        kept = check(
            line,
            "isr.member.at-or-above-hw",
            f"{replica} ends at {offset}, high watermark {self._mark}"
            if offset < self._mark
            else None,
            certain=certain,
            expected=f"not before it has all up to {self._mark}",
            before=was,
            after=now,
        )
        if self._readings.isr_entry == "end-at-election":
            kept &= check(
                line,
                "isr.entry.end-at-election",
                f"{replica} ends at {offset}, the leader began with {self._start}"
                if offset < self._start
                else None,
                certain=certain,
                expected=f"not before it has all up to {self._start}",
                before=was,
                after=now,
            )
        if self._pseudo is not None:
            close = replica in self._pseudo or replica in self._heard
            check(
                line,
                "isr.entry.at-high-watermark",
                None if close and kept else f"{replica} is not close, or not at the mark",
                certain=certain and self._tells_all("evaluate"),
                expected="a replica of the pseudo-ISR that has reached the high watermark",
                before=was,
                after=now,
            )
        if is_done:
            self._term.entries.append(Entry(line, replica, offset, self._term.shown.end))

    def isr_read(self, line: Line, said: IsrRead) -> None:
        """Take in what the leader has read."""
        self._isr, self._version = said.isr, said.isr_version
        self._term.note_version(line, said.isr_version, said.isr, is_write=False)

    def _check_leader_kept(self, line: Line, isr: ReplicaList) -> None:
        self._ledger.check(
            line,
            "isr.change.leader-kept",
            None if self._broker in isr else f"{self._broker} leads, and is not in sync",
            after=f"in-sync set {sorted(isr)}",
            expected=f"{self._broker} in it",
        )

    # Consumers and producers

    @clause("hw.served-below", "hw.served-from-end-at-election", "hw.consumer.monotone")
    def serve(self, line: Line, said: Serve, log: Contents) -> None:
        """Judge what consumers are shown."""
        mark, check = said.high_watermark, self._ledger.check
        was, now = f"high watermark {self._mark}", f"{mark} shown"
        kept = check(
            line,
            "hw.served-below",
            f"{mark} shown, the mark is {self._mark}" if mark > self._mark else None,
            certain=self._knows_mark,
            expected=f"at most {self._mark}",
            before=was,
            after=now,
        )
        if said.offset is not None:
            kept &= check(
                line,
                "hw.served-below",
                f"records up to {said.offset} handed out, the mark is {mark}"
                if said.offset > mark
                else None,
                expected=f"records below {mark}",
                before=was,
                after=now,
            )
        if self._readings.hw_served_from == "end-at-election":
            check(
                line,
                "hw.served-from-end-at-election",
                f"the leader began with {self._start}" if mark < self._start else None,
                certain=self.whole,
                expected=f"nothing before the mark is at {self._start}",
                before=was,
                after=now,
            )
        if self._readings.hw_scope == "across-clean-elections":
            before = self._term.shown.end
            check(
                line,
                "hw.consumer.monotone",
                f"{mark} after {before}" if mark < before else None,
                expected=f"at least {before}",
                before=was,
                after=now,
            )
        if kept:
            # What is beyond what it has said of its log, it has written in this term.
            self._term.show(line, log.extend(mark, line.said.leader_epoch).cut(mark), mark)

    @clause("hw.acks-all.answered")
    def produce(self, said: Produce) -> None:
        """Note that a producer waits."""
        self._end = max(self._end, said.offset)
        self._waiting[said.offset] += 1
        heappush(self._waiting_order, said.offset)

    def answer(self, line: Line, said: Answer) -> None:
        """Judge an answer: not before the mark has passed the records."""
        self._waiting[said.offset] -= 1
        if said.error is None:
            early = said.offset > self._mark
            self._ledger.check(
                line,
                "hw.acks-all.answered",
                f"records end at {said.offset}, the mark is {self._mark}" if early else None,
                certain=self._knows_mark,
                before=f"high watermark {self._mark}",
                after=f"records up to {said.offset} answered",
                expected=f"no answer before the mark is at {said.offset}",
            )

    def _check_answered(self, line: Line, passed: int) -> None:
        """Judge at an evaluation whether the mark before it left a producer without an answer."""
        late = []
        while self._waiting_order and self._waiting_order[0] <= passed:
            offset = heappop(self._waiting_order)
            if self._waiting[offset] > 0:
                self._waiting[offset] -= 1
                late.append(offset)
        if late:
            self._ledger.check(
                line,
                "hw.acks-all.answered",
                f"records up to {late[0]} are not answered, and the mark was {passed}",
                certain=self._tells_all("produce", "answer"),
                before=f"high watermark {passed}",
                expected=f"an answer for the records up to {late[0]} before this evaluation",
            )


def _show(isr: ReplicaList | None) -> str:
    return "unknown" if isr is None else str(sorted(isr))
