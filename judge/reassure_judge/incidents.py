"""What is wrong, wound by wound: violations of which one is the consequence of another are one.

A partition is *wounded* from a violation until a write is accepted that leaves nothing wrong with
it. What it breaks meanwhile is a consequence (`Violation.cause`, noted by the tracker), and so is
what rules that look at several partitions at once find there between the first and the last of
these. What one transaction breaks in the same way in several partitions of a topic is one incident
as well.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from reassure_judge.verdicts import Tally, Violation
from reassure_spec.bugs import Bug, find_bugs, find_risk


class Wound:
    """Whether a partition is wounded, and since when."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self.since = 0
        """The transaction of the first violation, 0 where nothing is wrong."""
        self.standing: frozenset[tuple[str, str]] = frozenset()
        """What is wrong since a violation that was reported: clauses, and what breaks each."""
        self._last = 0, ""
        self._broken = set[str]()
        """Clauses that were broken by then and are still, in whatever way."""

    @property
    def is_open(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.since or self.standing)

    def report(self, violation: Violation) -> None:
        """Report a violation, with what it is a consequence of; each only once."""
        if (violation.zxid, violation.clause) == self._last:
            return
        self._last = violation.zxid, violation.clause
        self.since = self.since or violation.zxid
        cause = self.since if self.since < violation.zxid else 0
        self._tally.violations.append(replace(violation, cause=cause))

    def look(self, faults: frozenset[tuple[str, str]]) -> None:
        """Note what is wrong with the partition once a write was accepted."""
        broken = self._broken.union(clause_id for clause_id, _ in self.standing)
        self._broken = broken.intersection(clause_id for clause_id, _ in faults)
        self.standing &= faults
        if not self._broken:
            self.since = 0


@dataclass(frozen=True, slots=True)
class Incident:
    """One wound: what began it, and what followed from that."""

    cause: Violation
    partitions: tuple[int, ...]
    """Partitions of the topic to which it was done at once; (-1,) for the cluster itself."""
    consequences: tuple[Violation, ...]
    profile: str
    release: str | None = None
    """The first release that the cluster may be of, where that is known."""

    @property
    def last(self) -> Violation:
        """The last violation of all."""
        return max((self.cause, *self.consequences), key=lambda each: (each.zxid, each.time_ms))

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """The bugs that have this shape."""
        cause = self.cause
        shown = cause.clause, cause.author, cause.after, cause.reason
        return find_bugs(self.profile, *shown, self.release)

    def name_place(self) -> str:
        """Return the partition, or those of one topic, or the cluster, in words.

        >>> Incident(Violation(1, "", "a", 0, "c", "/p", 1, "", "", "", ""), (0, 2), (), "x"
        ... ).name_place()
        'a-0, a-2'
        """
        names = (f"{self.cause.topic}-{number}" for number in self.partitions)
        return ", ".join(names) if self.cause.topic else "the cluster"

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        cause, last, bugs = self.cause, self.last, self.bugs
        about = bugs[0] if bugs else find_risk(cause.clause)
        return {
            "chroot": cause.chroot,
            "topic": cause.topic,
            "partitions": list(self.partitions),
            "clause": cause.clause,
            "first_zxid": cause.zxid,
            "last_zxid": last.zxid,
            "first_ms": cause.time_ms,
            "last_ms": last.time_ms,
            "author": cause.author,
            "path": cause.chroot + cause.path,
            "reason": cause.reason,
            "besides": list(cause.besides),
            "consequences": [
                {
                    "clause": each.clause,
                    "partition": each.partition,
                    "zxid": each.zxid,
                    "time_ms": each.time_ms,
                    "reason": each.reason,
                }
                for each in self.consequences
            ],
            "risk": about.risk,
            "remedy": about.remedy,
            "bugs": [bug.as_dict() for bug in bugs],
        }


def gather_incidents(
    found: Iterable[Violation], profile: str, release: str | None = None
) -> list[Incident]:
    """Return violations of one history as incidents, in the order in which these began."""
    wounds: dict[tuple[object, ...], list[Violation]] = {}
    for each in sorted(found):
        place = each.chroot, each.topic, each.partition
        wounds.setdefault((*place, each.cause or each.zxid, each.file, each.line), []).append(each)
    alike: dict[tuple[object, ...], list[list[Violation]]] = {}
    for group in _join(wounds.values()):
        cause = group[0]
        key = (cause.chroot, cause.topic, cause.zxid, cause.clause, cause.file, cause.line)
        alike.setdefault(key, []).append(group)
    incidents = []
    for groups in alike.values():
        numbers = tuple(sorted(group[0].partition for group in groups))
        followed = sorted(each for group in groups for each in group[1:])
        cause = min(group[0] for group in groups)
        incidents.append(Incident(cause, numbers, tuple(followed), profile, release))
    return sorted(incidents, key=lambda each: each.cause)


def _join(wounds: Iterable[list[Violation]]) -> Iterator[list[Violation]]:
    """Yield wounds, given in order, with those that began within another one as parts of that."""
    found: dict[tuple[object, ...], list[list[Violation]]] = {}
    for group in wounds:
        first = group[0]
        there = found.setdefault((*first.place[1:4], first.file, first.line), [])
        around = next((w for w in there if w[0].zxid < first.zxid <= w[-1].zxid), None)
        if around is None:
            there.append(group)
        else:
            around[:] = sorted((*around, *group))
    return chain.from_iterable(found.values())
