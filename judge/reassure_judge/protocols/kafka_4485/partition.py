"""One partition: each of its replicas in the order of its own lines, and the terms they share."""

from reassure_judge.observed.ledger import Evidence, Ledger, Line
from reassure_judge.protocols.kafka_4485.contents import Contents, tell
from reassure_judge.protocols.kafka_4485.leading import Leading
from reassure_judge.protocols.kafka_4485.terms import Followed, ToldTerm, ToldTerms
from reassure_model.protocols.kafka_4485.replication import restore_mark
from reassure_spec.clauses import clause
from reassure_spec.observations import (
    NOBODY,
    Answer,
    Evaluate,
    Fetch,
    Follow,
    IsrRead,
    IsrWrite,
    Lead,
    Produce,
    Replica,
    Restored,
    Serve,
    Stopped,
    Stored,
    name_kind,
)
from reassure_spec.readings import Readings


class ReplicaHistory:
    """What one broker says of its replica."""

    def __init__(self, readings: Readings, ledger: Ledger, terms: ToldTerms, broker: int) -> None:
        self._readings = readings
        self._ledger = ledger
        self._terms = terms
        self._broker = broker
        self._order = (0, 0)
        """Controller epoch and leader epoch of the last order."""
        self._log = Contents(0)
        self._mark = 0
        self._highest: int | None = None
        """The highest mark that it had since it was empty; None where it may have had another."""
        self._whole = False
        """Whether nothing is missing since somebody said what is in the log."""
        self._followed = False
        """Whether it follows in the term of the last order."""
        self._leading: Leading | None = None
        self._run = -1
        self._is_torn = False
        self._stopped: Stopped | None = None
        """What it said when it was stopped, until it leads or follows again, or begins anew."""

    def tear(self) -> None:
        """Note that lines of the writer are missing here."""
        self._whole = False
        self._highest = None
        self._is_torn = True
        self._log = self._log._replace(pieces=None)
        if self._leading is not None:
            self._leading.whole = False
        if self._run >= 0:
            self._terms.get(self._order[1]).ragged.add(self._broker)

    def feed(self, line: Line, tells: frozenset[str]) -> None:
        """Judge one line; those of one broker must come in order."""
        said = line.said
        is_restored, leading = isinstance(said.what, Restored), self._leading
        if said.run != self._run >= 0 and not is_restored:
            self.tear()
        if not is_restored and not self._take_order(line):
            return
        if self._is_torn:
            # What is missing may be of any term up to this one, though an older line came between.
            self._terms.get(said.leader_epoch).ragged.add(self._broker)
            self._is_torn = False
        self._check_silent(line)
        if leading is not None and isinstance(said.what, Follow | Stopped):
            leading.finish(line)
        before, self._run = self._run, said.run
        match said.what:
            case Restored():
                self._restore(line, said.what, before)
            case Stopped():
                self._stop(said.what)
            case Follow():
                self._follow(line, said.what, tells)
            case Lead():
                self._lead(line, said.what, tells)
            case Replica() if self._leading is None:
                self._replicate(line, said.what, tells)
            case _:
                self._judge_leader(line, tells)
        if self._highest is not None:
            says_all = {"replica", "follow", "lead", "evaluate"} <= tells
            self._highest = max(self._highest, self._mark) if says_all else None

    def _knows_log(self, tells: frozenset[str]) -> bool:
        """Whether all that became of the log was said."""
        return self._whole and {"replica", "follow"} <= tells

    @clause("epoch.replica.never-back")
    def _take_order(self, line: Line) -> bool:
        """Judge whether the replica acts upon an older order than before; then ignore the line."""
        said, before = line.said, self._order
        controller_epoch, epoch = said.controller_epoch, said.leader_epoch
        late = controller_epoch < before[0] or epoch < before[1]
        evidence = Evidence(
            "an order of these epochs or later ones",
            f"controller epoch {before[0]}, leader epoch {before[1]}",
            f"controller epoch {controller_epoch}, leader epoch {epoch}",
        )
        kept = not late or "it has acted upon a later order"
        if not self._ledger.check(line, "epoch.replica.never-back", kept, evidence):
            return False
        if epoch != before[1]:
            self._followed, self._leading = False, None
        self._order = controller_epoch, epoch
        return True

    @clause("replica.stopped.silent")
    def _check_silent(self, line: Line) -> None:
        """Judge whether a replica that was stopped goes on."""
        what = line.said.what
        if isinstance(what, Stopped):
            self._ledger.keep("replica.stopped.silent")
        elif self._stopped is None:
            return
        elif isinstance(what, Restored | Follow | Lead):
            self._check_empty(line, what.log_end_offset, self._stopped)
            self._stopped = None
        else:
            was = "deleted" if self._stopped.deleted else "stopped"
            evidence = Evidence("nothing before a line of kind follow or lead", was)
            reason = f"a line of kind {name_kind(what)}"
            self._ledger.check(line, "replica.stopped.silent", reason, evidence)

    def _stop(self, said: Stopped) -> None:
        self._stopped, self._followed, self._leading = said, False, None
        if said.deleted:
            self._log, self._mark, self._highest = Contents(0), 0, 0

    @clause("replica.deleted.empty")
    def _check_empty(self, line: Line, end: int, said: Stopped) -> None:
        """Judge whether a replica that was deleted begins again."""
        if said.deleted:
            kept = end == 0 or f"it has records up to {end}"
            evidence = Evidence("log end 0", "deleted", f"log end {end}")
            self._ledger.check(line, "replica.deleted.empty", kept, evidence)

    def _restore(self, line: Line, said: Restored, run: int) -> None:
        """Take in what a replica begins with; `run` is the one of its line before."""
        end, log = said.log_end_offset, self._log.cut(said.log_end_offset)
        if said.epochs is not None:
            log = tell(end, said.epochs)
        elif end == 0:
            log = Contents(0)
        elif run < 0 or end > self._log.end:
            log = Contents(end, None)
        if line.said.run != run:
            # A replica that was deleted and is made anew has not forgotten what it has obeyed.
            self._order = line.said.controller_epoch, line.said.leader_epoch
        self._check_restored(line, said, run)
        self._log, self._mark = log, said.high_watermark
        self._whole, self._followed, self._leading = True, False, None

    @clause("hw.restored-not-raised")
    def _check_restored(self, line: Line, said: Restored, run: int) -> None:
        """Judge the mark that a replica begins with by those of its life before, and by its log."""
        mark, end, before = said.high_watermark, said.log_end_offset, self._highest
        if run in (-1, line.said.run):
            before = None  # it has no life before this one
        most = restore_mark(mark if before is None else before, end)
        self._highest = mark
        if before is None and mark <= most:
            return
        was = f"log end {end}" if before is None else f"log end {end}, high watermark {before}"
        kept = mark <= most or f"it may begin with {most} at most"
        evidence = Evidence(f"at most {most}", was, f"{mark} restored")
        if self._ledger.check(line, "hw.restored-not-raised", kept, evidence):
            self._highest = before

    # Following

    def _follow(self, line: Line, said: Follow, tells: frozenset[str]) -> None:
        term, end = self._terms.get(line.said.leader_epoch), said.log_end_offset
        first = not any(f.broker == self._broker for f in term.follows)
        sure = self._knows_log(tells)
        before = self._log if sure else Contents(max(end, self._log.end), None)
        term.follows.append(Followed(line, self._broker, before, end, self._mark, first, sure))
        self._note_end(term, end, tells)
        self._followed, self._leading = True, None
        grown = end > self._log.end
        self._log = Contents(end, None) if grown else self._log.cut(end)
        self._mark = said.high_watermark
        self._check_mark(line, said.high_watermark, end)

    @clause("follower.truncates-first")
    def _replicate(self, line: Line, said: Replica, tells: frozenset[str]) -> None:
        """Judge what a follower has taken."""
        epoch, grown = line.said.leader_epoch, said.log_end_offset > self._log.end
        term = self._terms.get(epoch)
        if grown:
            kept = self._followed or f"nothing was truncated in leader epoch {epoch}"
            was, now = f"log end {self._log.end}", f"log end {said.log_end_offset}"
            evidence = Evidence("a line of kind follow first", was, now)
            certain = self._whole and {"follow", "lead"} <= tells
            self._ledger.check(line, "follower.truncates-first", kept, evidence, certain=certain)
        self._log = self._log.extend(said.log_end_offset, epoch).cut(said.log_end_offset)
        if said.high_watermark > self._mark:
            term.take_mark(line, self._broker, said.high_watermark)
        self._mark = said.high_watermark
        self._check_mark(line, said.high_watermark, said.log_end_offset)
        self._note_end(term, said.log_end_offset, tells)

    def _note_end(self, term: ToldTerm, end: int, tells: frozenset[str]) -> None:
        """Note where the log ended in a term, of a broker that tells it every time."""
        if {"replica", "follow"} <= tells:
            term.ends[self._broker] = max(term.ends.get(self._broker, 0), end)

    @clause("hw.follower.from-leader")
    def _check_mark(self, line: Line, mark: int, end: int) -> None:
        kept = mark <= end or f"{mark} of a log that ends at {end}"
        evidence = Evidence(f"at most {end}", f"log end {end}", f"high watermark {mark}")
        self._ledger.check(line, "hw.follower.from-leader", kept, evidence)

    # Leading

    def _begin(self, line: Line, tells: frozenset[str]) -> Leading:
        term = self._terms.get(line.said.leader_epoch)
        term.tells_mark = "evaluate" in tells
        self._leading = Leading(self._readings, self._ledger, term, self._broker, tells)
        return self._leading

    def _lead(self, line: Line, said: Lead, tells: frozenset[str]) -> None:
        if said.epochs is not None:
            self._log, self._whole = tell(said.log_end_offset, said.epochs), True
        elif said.log_end_offset <= self._log.end and self._knows_log(tells):
            self._log = self._log.cut(said.log_end_offset)
        else:
            # It may have taken records that it did not speak of.
            self._log = Contents(said.log_end_offset, None)
        self._mark = said.high_watermark
        self._begin(line, tells).lead(line, said, self._log)

    def _judge_leader(self, line: Line, tells: frozenset[str]) -> None:
        leading = self._leading
        if leading is None:
            leading = self._begin(line, tells)
            leading.whole = False
        said, epoch = line.said.what, line.said.leader_epoch
        match said:
            case Replica():
                self._log = self._log.extend(said.log_end_offset, epoch).cut(said.log_end_offset)
                self._mark = said.high_watermark
                leading.replica(line, said)
            case Fetch():
                leading.fetch(line, said)
                self._log = self._log.extend(leading.end, epoch)
            case Evaluate():
                self._mark = said.high_watermark
                leading.evaluate(line, said)
            case IsrWrite():
                leading.isr_write(line, said)
            case IsrRead():
                leading.isr_read(line, said)
            case Serve():
                leading.serve(line, said, self._log)
            case Produce():
                leading.produce(said)
            case Answer():  # one way: a leader says nothing else
                leading.answer(line, said)


class PartitionHistory:
    """All that is said of one partition."""

    def __init__(self, readings: Readings, ledger: Ledger) -> None:
        self._readings = readings
        self._ledger = ledger
        self._terms = ToldTerms(readings, ledger)
        self._replicas: dict[int, ReplicaHistory] = {}

    def feed(self, line: Line, tells: frozenset[str], *, is_torn: bool) -> None:
        """Judge one line; `is_torn` where lines of its writer are missing before it."""
        said = line.said
        if isinstance(said.what, Stored):
            what = said.what
            self._terms.get(said.leader_epoch).note_version(
                line, what.isr_version, what.isr, is_write=True, leader=what.leader
            )
            return
        assert said.broker != NOBODY
        replica = self._replicas.get(said.broker)
        if replica is None:
            replica = ReplicaHistory(self._readings, self._ledger, self._terms, said.broker)
            self._replicas[said.broker] = replica
        if is_torn:
            replica.tear()
        replica.feed(line, tells)
        self._ledger.close(line)

    def tear(self, broker: int) -> None:
        """Note that lines of the writer that speaks for this replica are missing at its end."""
        if broker in self._replicas:
            self._replicas[broker].tear()

    def judge(self, *, is_over: bool) -> None:
        """Judge what only several writers together show.

        Unless the history `is_over`, more may follow on each replica's last line.
        """
        if not is_over:
            for replica in self._replicas.values():
                replica.tear()
        self._terms.judge()
