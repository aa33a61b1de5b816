"""What several writers say of one partition, term by term: judged when all of it is there.

Lines of different writers have no order in time. What orders them is the leader epoch: what was
shown, stored and truncated in one term comes before the next, whoever wrote it first. Within one
term only the order of each writer counts; where a verdict would need more, every order is thought
of, and the clause is left open if some of them keep it. So the verdict is the same in whichever
order the writers' lines come in.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from reassure_judge.observed.ledger import Evidence, Ledger, Line
from reassure_judge.protocols.kafka_4485.contents import (
    ENDLESS,
    NOTHING,
    Contents,
    Log,
    count_common,
    resolve,
)
from reassure_spec.clauses import clause
from reassure_spec.observations import Lead, Stored, name_kind
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

EMPTY: Final = Contents(0)


class IsrEntry(NamedTuple):
    """A follower was written into the stored in-sync set."""

    line: Line
    replica: int
    offset: int
    """Where it ended as far as the leader knew."""
    shown: int
    """What this leader had shown by then."""


class Followed(NamedTuple):
    """A replica began to follow in the term."""

    line: Line
    broker: int
    before: Contents
    after: int
    """Its log end offset after truncation."""
    mark: int
    """Its high watermark before."""
    is_first: bool
    """Whether it had not followed in this term before."""
    certain: bool
    """Whether nothing that the broker said before is missing."""


class Version(NamedTuple):
    """A version of the stored state, as somebody wrote or read it."""

    epoch: int
    line: Line
    isr: ReplicaList
    leader: int | None
    """None where the line does not say."""
    is_write: bool

    @property
    def rank(self) -> tuple[bool, bool, int, tuple[str, int, int]]:
        """What comes first is believed: the stored state itself, then writes, then reads."""
        is_stored = isinstance(self.line.said.what, Stored)
        return not is_stored, not self.is_write, self.epoch, _place(self.line)


@dataclass(slots=True)
class ToldTerm:
    """One leader epoch."""

    epoch: int
    leads: list[tuple[Line, Contents, Lead]] = field(default_factory=list)
    """Who says to lead, with its log and what it says."""
    top_mark: int = 0
    """The largest mark that the leader had."""
    tells_mark: bool = False
    """Whether the leader tells each mark."""
    shown: Contents = EMPTY
    """The longest log that consumers were shown, 0 for none."""
    first_shown: tuple[int, Line] | None = None
    noted: dict[int, tuple[int, Line]] = field(default_factory=dict)
    """By follower: the largest offset that the leader noted, and where first."""
    entries: list[IsrEntry] = field(default_factory=list)
    follows: list[Followed] = field(default_factory=list)
    marks: dict[int, tuple[int, Line]] = field(default_factory=dict)
    """By follower: the largest mark that it took, and where first."""
    ends: dict[int, int] = field(default_factory=dict)
    """By follower that tells each end: the largest."""
    ragged: set[int] = field(default_factory=set)
    """Brokers of whose lines in this term some are missing."""
    versions: list[tuple[int, Version]] = field(default_factory=list)

    def begin(self, line: Line, log: Contents, said: Lead) -> None:
        """Note who leads."""
        self.leads.append((line, log, said))
        if said.isr_version is not None:
            self.note_version(line, said.isr_version, said.isr, is_write=False)

    def note_version(
        self,
        line: Line,
        version: int,
        isr: ReplicaList,
        *,
        is_write: bool,
        leader: int | None = None,
    ) -> None:
        """Note what the stored state was at a version."""
        self.versions.append((version, Version(self.epoch, line, isr, leader, is_write)))

    def note_fetch(self, line: Line, follower: int, offset: int) -> None:
        """Note an offset that the leader noted."""
        if offset > self.noted.get(follower, (-1, line))[0]:
            self.noted[follower] = offset, line

    def take_mark(self, line: Line, broker: int, mark: int) -> None:
        """Note a mark that a follower took."""
        if mark > self.marks.get(broker, (-1, line))[0]:
            self.marks[broker] = mark, line

    def show(self, line: Line, log: Contents, mark: int) -> None:
        """Note what consumers were shown; the first is held against the leaders before."""
        if self.first_shown is None:
            self.first_shown = mark, line
        if mark > self.shown.end:
            self.shown = log


class ToldTerms:
    """All terms of one partition."""

    def __init__(self, readings: Readings, ledger: Ledger) -> None:
        self._readings = readings
        self._ledger = ledger
        self._terms: dict[int, ToldTerm] = {}
        self._leaders: dict[int, Log] = {}
        """By leader epoch: the log of its leader, as it may grow in the term."""

    def get(self, epoch: int) -> ToldTerm:
        """Return the term with this leader epoch."""
        term = self._terms.get(epoch)
        if term is None:
            term = self._terms[epoch] = ToldTerm(epoch)
        return term

    def judge(self) -> None:
        """Judge what only several writers together show."""
        committed = NOTHING
        versions = self._judge_versions()
        for epoch in sorted(self._terms):
            term = self._terms[epoch]
            elected = _find_elected(epoch, versions)
            term.leads.sort(key=lambda lead: (lead[0].said.broker != elected, _place(lead[0])))
            if term.leads:
                _, log, _ = term.leads[0]
                spans = resolve(log, self._leaders).spans
                # Of two who lead, and nobody knows whom the controller chose, neither is believed.
                contested = elected is None and len({x.said.broker for x, _, _ in term.leads}) > 1
                grown = None if spans is None or contested else (*spans, (epoch, log.end))
                self._leaders[epoch] = Log(ENDLESS, grown)
            self._judge_leads(term, committed, versions)
            self._judge_followers(term, committed)
            self._judge_entries(term, committed)
            if term.shown.end > committed.end:
                committed = resolve(term.shown, self._leaders)

    # What is stored

    @clause("isr.write.conditional")
    def _judge_versions(self) -> dict[int, Version]:
        """Hold what was written of each version against each other; return what is believed."""
        claims: dict[int, list[Version]] = {}
        for term in self._terms.values():
            for version, claim in term.versions:
                claims.setdefault(version, []).append(claim)
        believed = {}
        for version, found in sorted(claims.items()):
            first, *others = sorted(found, key=lambda claim: claim.rank)
            believed[version] = first
            for claim in others:
                # A write that ZooKeeper's log shows as well is the same one.
                alike = set(claim.isr) == set(first.isr)
                is_stored = isinstance(first.line.said.what, Stored)
                same = is_stored or claim.line.said.writer == first.line.said.writer
                if alike and (same or not (claim.is_write and first.is_write)):
                    continue
                reason = f"version {version} of the state is {_tell(first)}"
                evidence = Evidence(
                    "one write of each version",
                    f"in-sync set {sorted(first.isr)}, version {version}",
                    f"in-sync set {sorted(claim.isr)}, version {version}",
                )
                rule, certain = "isr.write.conditional", claim.is_write
                self._ledger.check(claim.line, rule, reason, evidence, certain=certain)
                self._ledger.close(claim.line)
        return believed

    # Leaders

    @clause("epoch.one-leader", "log.committed-kept", "election.clean")
    def _judge_leads(self, term: ToldTerm, committed: Log, versions: dict[int, Version]) -> None:
        elected = _find_elected(term.epoch, versions)
        brokers = [line.said.broker for line, _, _ in term.leads]
        rightful = elected if elected is not None else brokers[0] if brokers else NO_LEADER
        for line, log, said in term.leads:
            broker, words = line.said.broker, f"{rightful} leads in leader epoch {term.epoch}"
            evidence = Evidence(f"{rightful} alone", after=f"{broker} leads")
            self._ledger.check(line, "epoch.one-leader", broker == rightful or words, evidence)
            self._judge_contents(line, resolve(log, self._leaders), committed)
            if said.isr_version is not None and said.isr_version > 0:
                before = versions.get(said.isr_version - 1)
                elects = before is not None and before.epoch < term.epoch
                if before is not None and elects and self._readings.isr_members == "stored":
                    self._judge_election(line, broker, before)
            self._ledger.close(line)
        if term.first_shown is not None and self._readings.hw_scope == "across-clean-elections":
            mark, line = term.first_shown
            least = committed.end
            was, now = f"{least} shown by leaders before", f"{mark} shown"
            kept = mark >= least or f"{mark} after {least}"
            evidence = Evidence(f"at least {least}", was, now)
            self._ledger.check(line, "hw.consumer.monotone", kept, evidence)
            self._ledger.close(line)

    def _judge_contents(self, line: Line, log: Log, committed: Log) -> None:
        if committed.end == 0:
            return
        shared = count_common(log, committed)
        # Of logs whose epochs nobody has told, the shorter lacks something in any case.
        lost = log.end < committed.end if shared is None else shared < committed.end
        reason = f"it has {log.end if shared is None else shared} of them"
        evidence = Evidence(
            f"all records up to {committed.end}",
            f"records up to {committed.end} shown",
            f"a leader whose log ends at {log.end}",
        )
        kept = not (lost or shared is None) or reason
        self._ledger.check(line, "log.committed-kept", kept, evidence, certain=lost)

    def _judge_election(self, line: Line, leader: int, before: Version) -> None:
        was, now = f"in-sync set {sorted(before.isr)}", f"{leader} leads"
        kept = leader in before.isr or f"{leader} was not in sync"
        evidence = Evidence("a leader from the in-sync set", was, now)
        self._ledger.check(line, "election.clean", kept, evidence)

    # Followers

    @clause("hw.follower.from-leader", "fetch.epoch-fenced")
    def _judge_followers(self, term: ToldTerm, committed: Log) -> None:
        check, leader = self._ledger.check, self._leader_of(term)
        for broker, (mark, line) in () if leader is None else sorted(term.marks.items()):
            top = term.top_mark
            kept = mark <= top or f"{mark}, the leader's was {top} at most"
            evidence = Evidence(f"at most {top}", after=f"high watermark {mark}")
            certain = term.tells_mark and not term.ragged & {leader, broker}
            check(line, "hw.follower.from-leader", kept, evidence, certain=certain)
            self._ledger.close(line)
        for follower, (offset, line) in sorted(term.noted.items()):
            end = term.ends.get(follower)
            if end is None:
                continue
            reason = f"{follower} never ended at {offset} in leader epoch {term.epoch}"
            was, now = f"log end {end} of {follower} at most", f"offset {offset} noted"
            evidence, certain = Evidence(f"at most {end}", was, now), follower not in term.ragged
            check(line, "fetch.epoch-fenced", offset <= end or reason, evidence, certain=certain)
            self._ledger.close(line)
        for followed in sorted(term.follows, key=lambda f: _place(f.line)):
            self._judge_truncation(term, followed)
            self._judge_member(term, followed, committed)
            self._ledger.close(followed.line)

    def _leader_of(self, term: ToldTerm) -> int | None:
        return term.leads[0][0].said.broker if term.leads else None

    @clause("follower.truncation.common-prefix", "follower.truncates-first")
    def _judge_truncation(self, term: ToldTerm, followed: Followed) -> None:
        """Judge where a follower cut its log, as the reading says."""
        before, after = resolve(followed.before, self._leaders), followed.after
        reading = self._readings.follower_truncation
        end: int | None = followed.mark
        if reading != "own-high-watermark":
            if not term.leads:
                return
            end = term.leads[0][2].log_end_offset
            if reading == "common-prefix":
                end = count_common(before, self._leaders[term.epoch])
        if end is None:
            self._ledger.tally.leave_open(
                ("follower.truncation.common-prefix",), followed.line.place
            )
            return
        due = min(end, before.end)
        amended = reading == "common-prefix"
        rule = "follower.truncation.common-prefix" if amended else "follower.truncates-first"
        wrong = after != due if amended else after > due
        was = f"log end {before.end}, epochs {_list(before)}; high watermark {followed.mark}"
        evidence = Evidence(f"log end {due}", was, f"log end {after}")
        kept, certain = not wrong or f"cut at {after}", followed.certain
        self._ledger.check(followed.line, rule, kept, evidence, certain=certain)

    @clause("isr.stored.holds-committed")
    def _judge_member(self, term: ToldTerm, followed: Followed, committed: Log) -> None:
        """Judge whether a member of the stored set still holds what was shown."""
        if not term.leads or committed.end == 0:
            return
        isr, broker = term.leads[0][2].isr, followed.broker
        if broker not in isr:
            return
        held = count_common(resolve(followed.before, self._leaders), committed)
        kept = None if held is None else min(held, followed.after)
        lost = kept is not None and kept < committed.end
        had = held is not None and held < committed.end and followed.is_first
        # Who is written out in this term may have been so before it truncated, or after.
        stays = all(broker in version.isr for _, version in term.versions)
        certain = followed.certain and (had or stays)
        evidence = Evidence(
            f"all records up to {committed.end} in each of them",
            f"records up to {committed.end} shown, {sorted(isr)} in sync",
            f"log end {followed.after}",
        )
        holds = not (lost or kept is None) or f"{broker} has {kept} of them"
        rule, certain = "isr.stored.holds-committed", certain and kept is not None
        self._ledger.check(followed.line, rule, holds, evidence, certain=certain)

    def _judge_entries(self, term: ToldTerm, committed: Log) -> None:
        """Judge whether who entered the stored set held what leaders before had shown."""
        for entry in term.entries:
            shown = max(committed.end, entry.shown)
            end = term.ends.get(entry.replica)
            lacks = entry.offset < shown
            sure = end is not None and end < shown and entry.replica not in term.ragged
            evidence = Evidence(
                f"not before it has all up to {shown}",
                f"records up to {shown} shown",
                f"{entry.replica} enters the in-sync set",
            )
            kept = not lacks or f"{entry.replica} ended at {entry.offset}"
            self._ledger.check(
                entry.line, "isr.stored.holds-committed", kept, evidence, certain=sure
            )
            self._ledger.close(entry.line)


def _place(line: Line) -> tuple[str, int, int]:
    """Return what orders lines alike in whichever order, and in which files, they come."""
    return line.said.writer, line.said.run, line.said.sequence


def _find_elected(epoch: int, versions: dict[int, Version]) -> int | None:
    """Return whom the stored state says to lead in a term, None where it does not say."""
    said = (each.leader for each in versions.values() if each.epoch == epoch)
    return next((leader for leader in said if leader not in (None, NO_LEADER)), None)


def _tell(version: Version) -> str:
    said = version.line.said
    return (
        f"{sorted(version.isr)} by {said.writer}, {version.line.file}:{version.line.number} "
        f"({name_kind(said.what)})"
    )


def _list(log: Log) -> str:
    return "unknown" if log.spans is None else str([list(span) for span in log.spans])
