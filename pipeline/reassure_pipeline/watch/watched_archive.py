"""Both passes of an audit over one archive that grows, transaction by transaction.

A `WatchedArchive` judges one archive and answers what there is to tell. It can be put aside
between two transactions (pickled) and goes on elsewhere, as if nothing had been.

**When a finding is told.** As soon as the transaction is read that shows it. Whether the history
before it is known well enough to call it a violation is settled by then, with one exception: where
a cluster turns out later to have been of an earlier version at that time (`Rules.earlier`), an
audit of the whole calls unsettled what was told as a violation.

What a controller owes at rest is not judged: nobody says of a log that grows when it rests. What
may yet turn out either way is undecided so far.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final

from reassure_judge.rules import Rules
from reassure_judge.verdicts import Tally, Violation, binds
from reassure_pipeline.archives.archive import Archive, Beginning
from reassure_pipeline.archives.beginnings import Base, Restart, find_open
from reassure_pipeline.audit.archive_report import ArchiveReport, Extent
from reassure_pipeline.audit.audit_report import AuditReport, report_audit
from reassure_pipeline.audit.listed_findings import Findings
from reassure_pipeline.audit.passes import (
    ALL,
    Judged,
    KnownHistory,
    Options,
    Passes,
    is_settled,
)
from reassure_pipeline.fleet.aggregates import TimeBins
from reassure_pipeline.fleet.totals import Present
from reassure_pipeline.watch.alerts import NOT_FOLLOWED, UNSETTLED, VIOLATION, Alert, tell_findings
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.transactions import Transaction


@dataclass(slots=True)
class FirstOfEach:
    """How often and when what was found; of each kind, clause by clause, the first is kept."""

    firsts: dict[tuple[str, str, tuple[str, ...]], Violation] = field(default_factory=dict)
    """By kind, clause, and what the same write broke besides."""
    times: Counter[tuple[str, str, tuple[str, ...]]] = field(default_factory=Counter)
    bins: dict[str, TimeBins] = field(default_factory=dict)
    """By kind: how many there were of each clause, by time."""

    def note(self, kind: str, violation: Violation) -> None:
        """Count one finding."""
        key = kind, violation.clause, violation.besides
        self.times[key] += 1
        self.firsts[key] = min(violation, self.firsts.get(key, violation))
        if violation.time_ms:
            self.bins.setdefault(kind, TimeBins()).add(violation.clause, violation.time_ms)

    def count(self, kind: str) -> int:
        """Return how many of a kind there were."""
        return sum(times for key, times in self.times.items() if key[0] == kind)

    def gather(self, *kinds: str) -> Findings:
        """Return the first of each of some kinds, in order, and when all of them were."""
        findings = Findings.gather(first for key, first in self.firsts.items() if key[0] in kinds)
        findings.bins = TimeBins()
        for kind in kinds:
            findings.bins.take_in(self.bins.get(kind, TimeBins()))
        return findings


class WatchedArchive:
    """Both passes over one archive."""

    def __init__(
        self, archive: Archive, base: Base | None, rules: Rules[Any, Any], options: Options
    ) -> None:
        self.name = archive.name
        self.findings = FirstOfEach()
        self.holes: tuple[Hole, ...] = ()
        self.times_ms: tuple[int, int] | None = None
        """When the first and the last transaction of the archive was that is judged."""
        self._strict = options.strict
        share = ALL._replace(chroots=options.chroots)
        self.passes = Passes(archive, base, rules, options, share)

    def begin_anew(self, restart: Restart) -> None:
        """Judge anew from there, once it has come to that."""
        self.passes.coming.append(restart)

    def judge(self, batch: Sequence[Transaction]) -> list[Alert]:
        """Judge the transactions that come next, and answer what there is to tell of them."""
        told: list[Alert] = []
        for part in self.passes.cut(batch, attrgetter("zxid")):
            feed, observe = self.passes.routing.feed, self.passes.judging.observe
            found = self.passes.judging.tally.violations
            for transaction in part:
                for seen in feed(transaction):
                    observe(seen)
                if found:
                    told += self._tell(transaction.zxid, found)
                    found.clear()
        return told

    def count_partitions(self) -> int:
        """Return how many partitions were met."""
        return self.passes.count_partitions().total()

    def list_exercised(self) -> set[str]:
        """Return the clauses that were put to the test."""
        return self.passes.list_exercised()

    def _tell(self, zxid: int, found: Iterable[Violation]) -> Iterator[Alert]:
        known, beginnings = self.passes.routing.take_stock(), self.passes.beginnings
        holes = find_open(self.holes, beginnings[-1].snapshot)
        sorted_out = [(self._sort(violation, known, holes), violation) for violation in found]
        for kind, violation in sorted_out:
            self.findings.note(kind, violation)
        return tell_findings(self.name, zxid, sorted_out)

    def _sort(self, violation: Violation, known: KnownHistory, holes: tuple[Hole, ...]) -> str:
        """Return what kind of finding it is."""
        if not is_settled(violation, known, holes):
            return UNSETTLED
        return VIOLATION if self._strict or binds(violation.clause) else NOT_FOLLOWED

    def look(self) -> Present | None:
        """Return how partitions and controllers stand so far, where facts are taken."""
        facts = self.passes.facts
        return None if facts is None or self.times_ms is None else facts.look(self.times_ms[1])

    def sum_up(self) -> "Sum":
        """Return what it has come to so far; where facts are taken, nothing is judged after it."""
        self.passes.judging.end(self.times_ms)
        chapters, judged = self.passes.list_chapters(), Judged()
        for _, _, each in chapters:
            judged.add(each)
        judged.partitions = self.passes.count_partitions()
        known = KnownHistory.join([known for _, known, _ in chapters])
        return Sum(known, judged, self.findings, tuple(self.passes.beginnings))


@dataclass(slots=True)
class Sum:
    """What judging an archive has come to."""

    known: KnownHistory
    judged: Judged
    """All but the findings."""
    findings: FirstOfEach
    beginnings: tuple[Beginning, ...]
    """Where each chapter begins that was judged."""

    def settle(self) -> Judged:
        """Return all that it has come to, with the first finding of each clause."""
        settled = self.findings.gather(VIOLATION, NOT_FOLLOWED)
        return replace(self.judged, settled=settled, unsettled=self.findings.gather(UNSETTLED))


NOTHING: Final = Extent(0, -1, -1)


def report_watch(
    profile: str, archives: Sequence[tuple[ArchiveReport, Sum]], *, strict: bool
) -> AuditReport:
    """Put together what a watch has come to; findings count however few of them are kept."""
    tally = Tally()
    for _, total in archives:
        tally.add(total.judged.tally)
        for (_, clause, _), times in total.findings.times.items():
            tally.exercised[clause] += times - 1
    report = report_audit(profile, tally, [archive for archive, _ in archives])
    return report.strictly() if strict else report
