"""Findings in bounded memory: all are counted, and of each clause the first are kept.

A history can break one clause ten million times. What an audit needs of that is the number, when it
was, and enough examples to look at; so that is what shares hand to each other, what the driver of
Spark collects, and what the report says. Which examples are kept does not depend on how the work
was spread.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from reassure_judge.verdicts import Violation
from reassure_pipeline.fleet.aggregates import TimeBins

LISTED_FINDINGS: Final = 200
"""How many findings of each clause are listed, of each kind: the first by archive and zxid."""


@dataclass(slots=True)
class Findings:
    """Findings of one kind, settled or not, of one archive; sums of these are the same again."""

    counts: Counter[str] = field(default_factory=Counter)
    """How many there are of each clause."""
    by_cluster: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The same by chroot and clause."""
    besides: set[str] = field(default_factory=set)
    """Clauses that were broken as a consequence of others."""
    listed: list[Violation] = field(default_factory=list)
    """The first of each clause, by zxid."""
    bins: TimeBins = field(default_factory=TimeBins)
    """How many there are of each clause, by time."""

    @classmethod
    def gather(cls, found: Iterable[Violation]) -> "Findings":
        """Return what some findings come to, in whatever order they are."""
        findings = cls()
        for violation in found:
            findings.counts[violation.clause] += 1
            findings.by_cluster[violation.chroot, violation.clause] += 1
            findings.besides.update(violation.besides)
            findings.listed.append(violation)
            if violation.time_ms:
                findings.bins.add(violation.clause, violation.time_ms)
        findings.listed = cut(sorted(findings.listed), Counter())
        return findings

    def take_in(self, other: "Findings") -> None:
        """Add the findings of other partitions."""
        self.counts.update(other.counts)
        self.by_cluster.update(other.by_cluster)
        self.besides |= other.besides
        self.bins.take_in(other.bins)
        self.listed = cut(sorted([*self.listed, *other.listed]), Counter())


def cut(found: Iterable[Violation], taken: Counter[str]) -> list[Violation]:
    """Return the first findings of each clause in order; `taken` counts those of each so far."""
    kept = []
    for violation in found:
        if taken[violation.clause] < LISTED_FINDINGS:
            taken[violation.clause] += 1
            kept.append(violation)
    return kept
