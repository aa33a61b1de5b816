"""What one leader says in one term, judged line by line in its own order.

What depends on what others say of the same term waits for them in `ToldTerm` (`terms`).
"""

from collections import Counter
from heapq import heappop, heappush

from reassure_judge.observed.ledger import Evidence, Ledger, Line
from reassure_judge.protocols.kafka_4485.contents import Contents
from reassure_judge.protocols.kafka_4485.lags import Lags
from reassure_judge.protocols.kafka_4485.terms import IsrEntry, ToldTerm
from reassure_model.protocols.kafka_4485 import compute_high_watermark, compute_isr
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
        self, readings: Readings, ledger: Ledger, term: ToldTerm, broker: int, tells: frozenset[str]
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
        self._told_mark = 0
        """The largest mark that it has said, which may be more than it may have."""
        self._offsets: dict[int, int] = {}
        self._pseudo: ReplicaList | None = None
        self._heard: set[int] = set()
        """Who has fetched since the last evaluation, and may have caught up by that."""
        self._lags: Lags | None = None
        self._due_in: frozenset[int] = frozenset()
        self._due_out: frozenset[int] = frozenset()
        self._waiting: Counter[int] = Counter()
        self._turned_away = False
        """Whether the last that it said was an error to who waited."""
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
                self._replicas, self._end, said.time_ms, said.isr, said.lag_ms_max, self._readings
            )
        self._term.begin(line, log, said)
        self._term.top_mark = max(self._term.top_mark, said.high_watermark)

    # Its log and its mark

    def replica(self, line: Line, said: Replica) -> None:
        """Judge where its log and its mark are."""
        self._end = said.log_end_offset
        if self._lags is not None and said.time_ms is not None:
            self._lags.move(said.time_ms, self._end)
        self._take_mark(line, said.high_watermark, self._pseudo)

    @clause("hw.never-decreases")
    def _take_mark(self, line: Line, mark: int, pseudo: ReplicaList | None) -> None:
        before, ledger = self._mark, self._ledger
        self._term.top_mark = max(self._term.top_mark, mark)
        if not self._check_end(line, mark):
            self._mark = max(before, self._end)
            return
        kept, was, now = mark >= before, f"high watermark {before}", f"high watermark {mark}"
        evidence = Evidence(f"at least {before}", was, now)
        ledger.check(line, "hw.never-decreases", kept or f"{mark} after {before}", evidence)
        if mark > before:
            mark = min(mark, self._check_advance(line, mark, pseudo))
        self._mark = mark

    @clause("hw.minimum-of-pseudo-isr", "hw.over-stored-isr")
    def _check_advance(self, line: Line, mark: int, pseudo: ReplicaList | None) -> int:
        """Judge how far the mark advances; answer how far it may, where that is certain.

        A mark that is too high is not gone on from, and does not advance where it is said again.
        """
        before, self._told_mark = self._told_mark, max(self._told_mark, mark)
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
            kept = mark <= allowed
            if kept:
                self._ledger.keep(name)
            elif mark > before:
                known = zip(self._replicas, offsets, strict=True)
                ends = {r: end for r, end in known if r in members}
                was, now = f"high watermark {self._mark}", f"high watermark {mark}"
                evidence = Evidence(f"at most {allowed}", was, now)
                kept = self._ledger.check(line, name, f"log ends {ends}", evidence, certain=certain)
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
        evidence = Evidence(f"at most {end}", f"log end {end}", f"high watermark {mark}")
        reason = f"{mark} of a log that ends at {end}"
        return self._ledger.check(line, "hw.at-most-leader-end", reason, evidence, certain=certain)

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
        if sent is not None:
            kept = sent == epoch or f"sent in leader epoch {sent}, it is {epoch}"
            now = f"fetch of {said.follower} from {said.offset} noted"
            if not self._ledger.check(
                line, "fetch.epoch-fenced", kept, Evidence("refused", after=now)
            ):
                return
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
        self._turned_away = False
        pseudo, now_ms = said.pseudo_isr, said.time_ms
        kept = self._broker in pseudo or f"{self._broker} leads, and is not in it"
        evidence = Evidence("the leader among them", after=f"pseudo-ISR {sorted(pseudo)}")
        self._ledger.check(line, "lag.leader-none", kept, evidence)
        if self._lags is not None and now_ms is not None:
            certain = self._tells_all("fetch", "replica")
            self._lags.judge_pseudo(self._ledger, line, pseudo, now_ms, certain=certain)
        passed = self._mark
        self._take_mark(line, said.high_watermark, pseudo)
        if self._lags is not None and now_ms is not None:
            stored = self._readings.isr_members == "stored" and set(self._isr or ()) == set(pseudo)
            self._lags.judge_pace(
                self._ledger,
                line,
                said,
                now_ms,
                is_calm=stored and said.high_watermark == self._end,
                certain=self._tells_all("evaluate"),
            )
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
                reason = f"{sorted(left)} due since the evaluation before"
                expected = f"{sorted(left)} written {words} it before this evaluation"
                evidence = Evidence(expected, f"in-sync set {sorted(isr)}")
                certain = self._tells_all("evaluate", "isr_write", "isr_read")
                self._ledger.check(line, name, reason, evidence, certain=certain)

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
            kept = not wrong or f"{sorted(wrong)} at high watermark {said.high_watermark}"
            evidence = Evidence(f"{sorted(due)}", after=f"in-sync set {sorted(told)}")
            self._ledger.check(line, name, kept, evidence, certain=certain)

    @clause("isr.write.conditional")
    def isr_write(self, line: Line, said: IsrWrite) -> None:
        """Judge a write of the stored in-sync set."""
        self._check_leader_kept(line, said.isr)
        known = self._version
        if known is not None:
            on_top = said.expected_version
            kept = on_top == known or f"on top of version {on_top}, it knows {known}"
            evidence = Evidence(
                f"on top of version {known}, or a read of the state first",
                f"in-sync set {_show(self._isr)}, version {known}",
                f"in-sync set {sorted(said.isr)}",
            )
            certain = self._tells_all("isr_write", "isr_read")
            self._ledger.check(line, "isr.write.conditional", kept, evidence, certain=certain)
        for replica in sorted(set(said.isr) - set(self._isr or said.isr)):
            self._check_entry(line, replica, said.isr_version is not None)
        self._note_done(frozenset(said.isr))
        if said.isr_version is None:
            return
        due, reason = said.expected_version + 1, f"version {said.isr_version} on top of"
        kept = said.isr_version == due or f"{reason} {said.expected_version}"
        self._ledger.check(line, "isr.write.conditional", kept, Evidence(f"version {due}"))
        self._isr, self._version = said.isr, said.isr_version
        self._term.note_version(line, said.isr_version, said.isr, is_write=True)

    def _note_done(self, isr: frozenset[int]) -> None:
        """Note what was due and is tried now."""
        if self._due_in & isr:
            self._ledger.keep("isr.entry.at-high-watermark")
        if self._due_out - isr:
            self._ledger.keep("isr.lagging-leaves")
        self._due_in -= isr
        self._due_out &= isr

    @clause("isr.member.at-or-above-hw", "isr.entry.end-at-election", "isr.entry.at-high-watermark")
    def _check_entry(self, line: Line, replica: int, is_done: bool) -> None:
        """Judge whether a follower may enter the stored set now."""
        offset, check = self._offsets.get(replica, 0), self._ledger.check
        certain = self._tells_all("fetch", "isr_write", "isr_read")
        was, now = f"in-sync set {_show(self._isr)}", f"{replica} enters it"
        kept = offset >= self._mark or f"{replica} ends at {offset}, high watermark {self._mark}"
        evidence = Evidence(f"not before it has all up to {self._mark}", was, now)
        may = check(line, "isr.member.at-or-above-hw", kept, evidence, certain=certain)
        if self._readings.isr_entry == "end-at-election":
            began = f"the leader began with {self._start}"
            kept = offset >= self._start or f"{replica} ends at {offset}, {began}"
            evidence = Evidence(f"not before it has all up to {self._start}", was, now)
            may &= check(line, "isr.entry.end-at-election", kept, evidence, certain=certain)
        if self._pseudo is not None:
            close = replica in self._pseudo or replica in self._heard
            kept = (close and may) or f"{replica} is not close, or not at the mark"
            expected = "a replica of the pseudo-ISR that has reached the high watermark"
            certain = certain and self._tells_all("evaluate")
            evidence = Evidence(expected, was, now)
            check(line, "isr.entry.at-high-watermark", kept, evidence, certain=certain)
        if is_done:
            self._term.entries.append(IsrEntry(line, replica, offset, self._term.shown.end))

    def isr_read(self, line: Line, said: IsrRead) -> None:
        """Take in what the leader has read."""
        self._isr, self._version = said.isr, said.isr_version
        self._term.note_version(line, said.isr_version, said.isr, is_write=False)

    def _check_leader_kept(self, line: Line, isr: ReplicaList) -> None:
        kept = self._broker in isr or f"{self._broker} leads, and is not in sync"
        evidence = Evidence(f"{self._broker} in it", after=f"in-sync set {sorted(isr)}")
        self._ledger.check(line, "isr.change.leader-kept", kept, evidence)

    # Consumers and producers

    @clause("hw.served-below", "hw.served-from-end-at-election", "hw.consumer.monotone")
    def serve(self, line: Line, said: Serve, log: Contents) -> None:
        """Judge what consumers are shown."""
        mark, check = said.high_watermark, self._ledger.check
        was, now = f"high watermark {self._mark}", f"{mark} shown"
        kept = mark <= self._mark or f"{mark} shown, the mark is {self._mark}"
        evidence = Evidence(f"at most {self._mark}", was, now)
        may = check(line, "hw.served-below", kept, evidence, certain=self._knows_mark)
        if said.offset is not None:
            reason = f"records up to {said.offset} handed out, the mark is {mark}"
            evidence = Evidence(f"records below {mark}", was, now)
            may &= check(line, "hw.served-below", said.offset <= mark or reason, evidence)
        if self._readings.hw_served_from == "end-at-election":
            kept = mark >= self._start or f"the leader began with {self._start}"
            evidence = Evidence(f"nothing before the mark is at {self._start}", was, now)
            rule = "hw.served-from-end-at-election"
            check(line, rule, kept, evidence, certain=self.whole)
        if self._readings.hw_scope == "across-clean-elections":
            before = self._term.shown.end
            evidence = Evidence(f"at least {before}", was, now)
            check(
                line, "hw.consumer.monotone", mark >= before or f"{mark} after {before}", evidence
            )
        if may:
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
        self._turned_away = said.error is not None
        if said.error is None:
            offset, mark = said.offset, self._mark
            evidence = Evidence(
                f"no answer before the mark is at {offset}",
                f"high watermark {mark}",
                f"records up to {offset} answered",
            )
            kept = offset <= mark or f"records end at {offset}, the mark is {mark}"
            certain = self._knows_mark
            self._ledger.check(line, "hw.acks-all.answered", kept, evidence, certain=certain)

    @clause("hw.acks-all.answered-at-end")
    def finish(self, line: Line) -> None:
        """Judge, now that it leads no more, whether a producer waits on."""
        left = sorted(offset for offset, count in self._waiting.items() if count > 0)
        certain = self.whole and self._tells_all("produce", "answer")
        if left:
            reason = f"records up to {left[0]} are not answered"
            evidence = Evidence("an answer, or an error, before this")
            name = "hw.acks-all.answered-at-end"
            self._ledger.check(line, name, reason, evidence, certain=certain)
        elif certain and self._turned_away:
            self._ledger.keep("hw.acks-all.answered-at-end")

    def _check_answered(self, line: Line, passed: int) -> None:
        """Judge at an evaluation whether the mark before it left a producer without an answer."""
        late = []
        while self._waiting_order and self._waiting_order[0] <= passed:
            offset = heappop(self._waiting_order)
            if self._waiting[offset] > 0:
                self._waiting[offset] -= 1
                late.append(offset)
        if late:
            reason = f"records up to {late[0]} are not answered, and the mark was {passed}"
            expected = f"an answer for the records up to {late[0]} before this evaluation"
            evidence = Evidence(expected, f"high watermark {passed}")
            certain = self._tells_all("produce", "answer")
            self._ledger.check(line, "hw.acks-all.answered", reason, evidence, certain=certain)


def _show(isr: ReplicaList | None) -> str:
    return "unknown" if isr is None else str(sorted(isr))
