"""What an audit answers: verdicts, findings, and what each archive was worth.

The report is the same, byte for byte, whichever engine made it: everything is sorted, and nothing
in it tells of time or place of work.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reassure_judge.protocols import get_rules
from reassure_judge.rules import OBSERVATIONS
from reassure_judge.verdicts import (
    HOLDS,
    NOT_EXERCISED,
    NOT_FOLLOWED,
    UNKNOWN,
    VIOLATED,
    ClauseVerdict,
    Tally,
    Violation,
    binds,
    count_broken,
    merge_verdicts,
    summarise,
)
from reassure_pipeline.audit.archive_report import VACUOUS, ArchiveReport
from reassure_pipeline.audit.listed_findings import cut
from reassure_pipeline.audit.observed import PAGE, ObservedReport
from reassure_pipeline.fleet.totals import Sums
from reassure_spec.clauses import ADVICE

_SILENT: Final = ClauseVerdict("", "", NOT_EXERCISED, 0)
_WORST_FIRST: Final = (VIOLATED, NOT_FOLLOWED, UNKNOWN, HOLDS, NOT_EXERCISED)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit came to."""

    profile: str
    """By which they were judged; the first of several."""
    archives: tuple[ArchiveReport, ...]
    clauses: tuple[ClauseVerdict, ...]
    strict: bool = False
    """Whether a SHOULD binds like a MUST."""
    observed: ObservedReport | None = None
    """What files of observations came to, where there were any."""
    unjudged: tuple[tuple[str, str], ...] = ()
    """Clauses that take observations and were not judged, each with the reason."""

    def observing(
        self, observed: ObservedReport | None, tally: Tally, unjudged: Iterable[tuple[str, str]]
    ) -> "AuditReport":
        """Return the report with what observations came to beside the logs."""
        found = () if observed is None else observed.violations
        broken = count_broken(found)
        told = summarise(self.profile, tally.exercised, broken, undecided=tally.undecided)
        by_id = {clause.id: clause for clause in told}
        clauses = tuple(
            replace(
                clause,
                verdict=min(clause.verdict, other.verdict, key=_WORST_FIRST.index),
                exercised=clause.exercised + other.exercised,
                undecided=clause.undecided + other.undecided,
            )
            for clause in self.clauses
            for other in (by_id.get(clause.id, _SILENT),)
        )
        return replace(self, clauses=clauses, observed=observed, unjudged=tuple(unjudged))

    def strictly(self) -> "AuditReport":
        """Return the same report with every clause binding."""
        clauses = tuple(
            replace(c, verdict=VIOLATED) if c.verdict == NOT_FOLLOWED else c for c in self.clauses
        )
        return replace(self, clauses=clauses, strict=True)

    def _counts(self, clause: str) -> bool:
        return self.strict or binds(clause)

    @property
    def verdict(self) -> str:
        """The verdict on the whole.

        `violated`; `vacuous` where nothing was put to the test; `unknown` where findings are
        unsettled, or where a part of the history is missing; else `holds`.
        """
        if any(map(self._counts, self._count_found("settled"))):
            return VIOLATED
        is_whole = all(each.judged_to is None for each in self.archives)
        if is_whole and not any(each.exercised or each.undecided for each in self.clauses):
            return VACUOUS
        doubts = any(map(self._counts, self._count_found("open")))
        doubts = doubts or any(clause.verdict == UNKNOWN for clause in self._binding())
        return UNKNOWN if doubts or self.needs else HOLDS

    def _binding(self) -> tuple[ClauseVerdict, ...]:
        return tuple(c for c in self.clauses if self.strict or c.level not in ADVICE)

    @property
    def needs(self) -> tuple[str, ...]:
        """What is missing for a verdict on all that was asked for, in words."""
        found = [need for archive in self.archives for need in archive.find_needs()]
        if self.observed is not None:
            found += self.observed.find_needs()
        elif get_rules(self.profile).reads == OBSERVATIONS:
            found.append(f"no observations: add the files that the brokers wrote ({PAGE})")
        if not found and not any(c.exercised or c.undecided for c in self.clauses):
            found.append("no write that a clause is about: add logs in which partitions change")
        return tuple(found)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations listed that count: archive by archive, by zxid, then observations."""
        found = [v for archive in self.archives for v in archive.violations]
        found += () if self.observed is None else self.observed.violations
        return tuple(v for v in found if self._counts(v.clause))

    def _count_found(self, kind: str) -> Counter[str]:
        """Return how many findings there are of each clause, listed or not: settled, or open."""
        counts = Counter[str]()
        for archive in self.archives:
            counts.update(getattr(archive, kind).counts)
        if kind == "settled" and self.observed is not None:
            counts.update(found.clause for found in self.observed.violations)
        return counts

    def _list(self, *, counting: bool) -> list[dict[str, Any]]:
        """Return what was broken, archive by archive, by zxid: what counts, or what does not."""
        listed = [
            {**found.as_dict(), "archive": archive.archive.name}
            for archive in self.archives
            for found in archive.violations
            if self._counts(found.clause) is counting
        ]
        told = () if self.observed is None else self.observed.violations
        return listed + [
            found.as_dict() for found in told if self._counts(found.clause) is counting
        ]

    def sum_up_facts(self) -> Sums | None:
        """Return what is told beyond verdicts of all archives together, if anything is.

        The bins of time have the findings as well, by clause: `violations`, and `unsettled`.
        """
        if not any(archive.facts for archive in self.archives):
            return None
        sums = Sums()
        for archive in self.archives:
            if archive.facts is not None:
                sums.take_in(archive.facts)
            sums.bins.take_in(archive.settled.bins, "violations.")
            sums.bins.take_in(archive.open.bins, "unsettled.")
        return sums

    def as_json_dict(self) -> dict[str, Any]:
        """Return the body of the JSON document.

        `violations`, `not_followed` and `unsettled` are alike; each record says which archive it
        is of. They have the first of each clause, and `not_listed` says how many more there are.
        """
        settled = self._count_found("settled")
        count = sum(number for clause, number in settled.items() if self._counts(clause))
        lists = {
            "violations": self._list(counting=True),
            "not_followed": self._list(counting=False),
            "unsettled": [
                {**found.as_dict(), "archive": archive.archive.name}
                for archive in self.archives
                for found in archive.unsettled
            ],
        }
        incidents = [
            {**each.as_dict(), "archive": archive.archive.name}
            for archive in self.archives
            for each in archive.list_incidents(strict=self.strict)
        ]
        observed, facts = self.observed, self.sum_up_facts()
        told = {} if facts is None else {"facts": facts.as_dict()}
        return {
            "verdict": self.verdict,
            "counts": {
                "transactions": sum(archive.transactions for archive in self.archives),
                "partitions": sum(sum(archive.partitions.values()) for archive in self.archives)
                or (0 if observed is None else observed.partitions),
                **({} if observed is None else {"observations": observed.lines}),
                "violations": count,
                "incidents": len(incidents),
                "not_followed": settled.total() - count,
                "damaged": sum(len(archive.archive.damages) for archive in self.archives),
            },
            **lists,
            "incidents": incidents,
            "not_listed": self._count_not_listed(settled, lists),
            "needs": list(self.needs),
            "clauses": [clause.as_dict() for clause in self.clauses],
            "archives": [archive.as_dict(strict=self.strict) for archive in self.archives],
            "observed": None if observed is None else observed.as_dict(),
            "unjudged": [{"clause": clause, "reason": why} for clause, why in self.unjudged],
            **told,
        }

    def _count_not_listed(
        self, settled: Counter[str], lists: Mapping[str, list[dict[str, Any]]]
    ) -> dict[str, dict[str, int]]:
        """Return by list, and by clause, how many findings are counted only."""
        whole = {
            "violations": {c: number for c, number in settled.items() if self._counts(c)},
            "not_followed": {c: number for c, number in settled.items() if not self._counts(c)},
            "unsettled": self._count_found("open"),
        }
        shown = {name: Counter(each["clause"] for each in found) for name, found in lists.items()}
        return {
            name: {c: n - shown[name][c] for c, n in sorted(counts.items()) if n > shown[name][c]}
            for name, counts in whole.items()
        }


def report_audit(profile: str, tally: Tally, archives: Iterable[ArchiveReport]) -> AuditReport:
    """Put together what an audit came to; `tally` sums up all archives."""
    listed = tuple(archives)
    _list_first(listed)
    broken, doubts = Counter[str](), Counter[str]()
    for archive in listed:
        broken.update(archive.settled.counts)
        doubts.update(archive.open.counts)
    besides = {clause for archive in listed for clause in archive.settled.besides}
    violated = {**dict.fromkeys(besides, 0), **broken}
    clauses = []
    for clause in summarise(profile, tally.exercised, violated, undecided=tally.undecided):
        count = doubts[clause.id]
        unknown = count and clause.verdict in (HOLDS, NOT_EXERCISED)
        verdict = UNKNOWN if unknown else clause.verdict
        clauses.append(replace(clause, verdict=verdict, exercised=clause.exercised + count))
    return AuditReport(profile, listed, tuple(clauses))


def join_reports(reports: Sequence[AuditReport], archives: Sequence[ArchiveReport]) -> AuditReport:
    """Put together reports by several profiles; `archives` are all that are in them, in order."""
    first, *others = reports
    if not others:
        return first
    by_id: dict[str, list[ClauseVerdict]] = {}
    for report in reports:
        for clause in report.clauses:
            by_id.setdefault(clause.id, []).append(clause)
    listed = tuple(archives)
    _list_first(listed)
    return replace(first, archives=listed, clauses=tuple(map(merge_verdicts, by_id.values())))


def _list_first(archives: Iterable[ArchiveReport]) -> None:
    """Leave of the findings listed the first of each clause in all archives together."""
    settled, unsettled = Counter[str](), Counter[str]()
    for archive in archives:
        archive.settled.listed = cut(archive.settled.listed, settled)
        archive.open.listed = cut(archive.open.listed, unsettled)
