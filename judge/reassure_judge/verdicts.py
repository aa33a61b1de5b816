"""What the judge says: a verdict for each clause, and the evidence for each violation.

Verdicts per clause: `holds` (exercised n times, never violated), `violated`, `not followed`
(broken, but the clause does not bind), `unknown` (what is recorded cannot settle it) and `not
exercised`. One violation is one (clause, partition, zxid); what follows from a broken step is
counted under it, not as a further violation.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reassure_model.outcome import Rejected
from reassure_spec.clauses import ADVICE, clauses_of_profile, load_clauses

HOLDS: Final = "holds"
VIOLATED: Final = "violated"
NOT_FOLLOWED: Final = "not followed"
UNKNOWN: Final = "unknown"
NOT_EXERCISED: Final = "not exercised"
NOT_DISCRIMINATED: Final = "not discriminated"
"""It was exercised, though only where every mutant of it is right as well."""

BY_CONTENT: Final = frozenset(
    {
        "assigned.no-duplicates",
        "isr.never-empty",
        "isr.no-duplicates",
        "leader.in-isr",
        "shipped.assignment.lists-within",
        "znode.well-formed",
    }
)
"""The clauses that the content of one znode breaks, whatever was before."""
BY_CHANGE: Final = BY_CONTENT | {
    "isr.change.keeps-leader",
    "isr.change.leader-kept",
    "leader-epoch.raised-by-one",
    "partition.state-kept",
    "shipped.assignment.original-derivable",
    "shipped.assignment.target-first",
    "state.controller-epoch-stamped",
    "topic.partitions-kept",
}
"""Those that it breaks on top of what stood there, whatever its author had seen or begun."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One broken clause, with its evidence."""

    zxid: int
    """The transaction that broke it; for an obligation, the last one before the quiet point."""
    chroot: str
    """Chroot of the cluster, "" for none."""
    topic: str
    """Topic, "" where the clause is about the cluster."""
    partition: int
    """Partition number, -1 where the clause is about the cluster."""
    clause: str
    path: str
    """The znode that was written, or that should have been."""
    session: int
    """ZooKeeper session that wrote; 0 for an obligation that nobody met."""
    before: str
    """Content before, as text; "" where there was none."""
    after: str
    """Content after, as text; "" where it was deleted or is missing."""
    reason: str
    """What is wrong, in words."""
    expected: str
    """What would have been allowed, in words."""
    author: str = ""
    """Who wrote, in words; "" for an obligation that nobody met."""
    time_ms: int = 0
    """The server's clock at that transaction, in milliseconds since 1970."""
    besides: tuple[str, ...] = ()
    """Clauses that the same write broke as a consequence; no violations of their own."""
    file: str = ""
    """The file of an observation; "" for what ZooKeeper's log shows."""
    line: int = 0
    """The line of that file, counted from 1."""
    seen_zxid: int = 0
    """The transaction that brought it to light, where that is a later one."""
    cause: int = 0
    """The transaction of the violation that this is a consequence of, 0 where it is of none."""

    @classmethod
    def unwritten(
        cls, place: "Location", broken: Rejected, expected: str, before: str = "", time_ms: int = 0
    ) -> "Violation":
        """Return what no transaction shows; the place has the last one before it."""
        return cls(
            zxid=place.zxid,
            chroot=place.chroot,
            topic=place.topic,
            partition=place.partition,
            clause=broken.clause,
            path=place.path,
            session=0,
            before=before,
            after="",
            reason=broken.reason,
            expected=expected,
            time_ms=time_ms,
        )

    @property
    def place(self) -> "Location":
        """Where it happened."""
        return Location(self.zxid, self.chroot, self.topic, self.partition, self.path)

    def binds(self) -> bool:
        """Whether this counts against the verdict: not where the clause is only advice."""
        return binds(self.clause)

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print: of a transaction, or of a line of a file."""
        place: dict[str, Any] = {
            "zxid": self.zxid,
            "path": self.chroot + self.path,
            "session": f"0x{self.session & 0xFFFFFFFFFFFFFFFF:x}",
        }
        if self.file:
            place = {"file": self.file, "line": self.line, "chroot": self.chroot}
        return {
            "clause": self.clause,
            "topic": self.topic,
            "partition": self.partition,
            **place,
            "author": self.author,
            "time_ms": self.time_ms,
            "before": self.before,
            "after": self.after,
            "reason": self.reason,
            "expected": self.expected,
            "besides": list(self.besides),
        }


class Location(NamedTuple):
    """Where in a history something happened."""

    zxid: int
    """The transaction; for what is owed, the last one before the quiet point."""
    chroot: str
    topic: str
    """Topic, "" for the cluster itself."""
    partition: int
    """Partition number, -1 for the cluster itself."""
    path: str
    """The znode, without the chroot; "" for what is owed."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "zxid": self.zxid,
            "path": self.chroot + self.path,
        }


@dataclass(slots=True)
class Tally:
    """What judging has come to so far; sums of these are the same again."""

    passed: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Clauses that one write put to the test, and how often that has yet to be counted by each."""
    _exercised: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    """By clause: how often it may have been kept or broken, and nobody can say which."""
    first_undecided: dict[str, Location] = field(default_factory=dict)
    """By such a clause: where that came up first."""
    undecided_in: set[tuple[str, str]] = field(default_factory=set)
    """Chroots of clusters, and the clauses of which nobody can say whether they kept them."""
    facts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By such a clause and hidden fact (`reassure_judge.hidden`): how often it was kept if that is
    so."""
    explained: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By clause and hidden fact that the log shows: how often only that makes it kept."""
    violations: list[Violation] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)
    """Steps that are taken often (`reassure_judge.memo`), with how often each was."""

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Return what is put aside, field by field: the sums, without the steps they are of."""
        self.exercised  # noqa: B018  (counts what is not yet)
        kept = {name: getattr(self, name) for name in self.__slots__}
        return None, kept | {"steps": []}

    def count(self, clauses: tuple[str, ...], times: int = 1) -> None:
        """Count clauses that were put to the test, and kept."""
        if times:
            self.passed[clauses] += times

    @property
    def exercised(self) -> Counter[str]:
        """By clause: how often it was put to the test, with an answer that is certain."""
        # Few combinations of clauses come up, each very often.
        for clauses, times in self.passed.items():
            for clause_id in clauses:
                self._exercised[clause_id] += times
        self.passed.clear()
        self.count_steps()
        return self._exercised

    def count_steps(self) -> None:
        """Count what was put to the test by the steps that were taken since."""
        for step in self.steps:
            if step.times:
                for clause_id, times in step.passed.items():
                    self._exercised[clause_id] += times * step.times
                step.times = 0

    def leave_open(
        self, clauses: Iterable[str], place: Location, facts: Iterable[str] = ()
    ) -> None:
        """Note that nobody can say whether these clauses were kept there or broken.

        `facts` are those of which each alone would make them kept.
        """
        named = tuple(facts)
        for clause_id in clauses:
            self.facts.update((clause_id, fact) for fact in named)
            self.undecided[clause_id] += 1
            self.undecided_in.add((place.chroot, clause_id))
            self._note_first(clause_id, place)

    def _note_first(self, clause_id: str, place: Location) -> None:
        self.first_undecided[clause_id] = min(place, self.first_undecided.get(clause_id, place))

    def add(self, other: "Tally") -> None:
        """Take in another sum."""
        self.exercised.update(other.exercised)
        self.undecided.update(other.undecided)
        self.undecided_in |= other.undecided_in
        self.facts.update(other.facts)
        self.explained.update(other.explained)
        for clause_id, place in other.first_undecided.items():
            self._note_first(clause_id, place)
        self.violations.extend(other.violations)


@dataclass(frozen=True, slots=True)
class ClauseVerdict:
    """The verdict on one clause."""

    id: str
    level: str
    verdict: str
    """`holds`, `violated`, `not followed`, `unknown` or `not exercised`."""
    exercised: int
    """How often the history put the clause to the test, with an answer that is certain."""
    undecided: int = 0
    """How often nobody can say whether it was kept or broken."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return asdict(self)


def merge_verdicts(verdicts: Iterable[ClauseVerdict]) -> ClauseVerdict:
    """Return the verdict on one clause where several histories put it to the test: the worst.

    >>> merge_verdicts([
    ...     ClauseVerdict("a", "MUST", "not exercised", 0), ClauseVerdict("a", "MUST", "holds", 2)
    ... ]).verdict
    'holds'
    """
    found = list(verdicts)
    worst = min(found, key=lambda each: _WORST_FIRST.index(each.verdict))
    exercised = sum(each.exercised for each in found)
    return replace(worst, exercised=exercised, undecided=sum(each.undecided for each in found))


_WORST_FIRST: Final = (
    VIOLATED,
    UNKNOWN,
    NOT_FOLLOWED,
    HOLDS,
    NOT_DISCRIMINATED,
    NOT_EXERCISED,
)


def binds(clause_id: str) -> bool:
    """Whether breaking this clause violates anything: a SHOULD or a MAY is only not followed."""
    clause = load_clauses().get(clause_id)
    return clause is None or clause.level not in ADVICE


def count_broken(violations: Iterable[Violation]) -> dict[str, int]:
    """Return how often each clause was broken; 0 for one that only was besides others."""
    broken: dict[str, int] = {}
    for violation in violations:
        broken[violation.clause] = broken.get(violation.clause, 0) + 1
        for clause_id in violation.besides:
            broken.setdefault(clause_id, 0)
    return broken


def summarise(
    profile: str,
    exercised: Mapping[str, int],
    violated: Mapping[str, int],
    *,
    undecided: Mapping[str, int] = MappingProxyType({}),
    settled: bool = False,
    strict: bool = False,
) -> tuple[ClauseVerdict, ...]:
    """Return the verdict on every clause of the profile, in the order of the spec.

    `violated` says how often each clause was broken (`count_broken`); a violation counts as one
    exercise of its clause. With `strict` every clause binds.

    One occurrence that is undecided makes a clause unknown, whatever others have shown. With
    `settled` it does not where others have shown that the clause holds: for a history that was
    driven, and brought to rest again and again, so that the same thing came up with nothing in
    doubt.
    """
    verdicts = []
    for clause in clauses_of_profile(profile):
        count = exercised.get(clause.id, 0) + violated.get(clause.id, 0)
        unsure = undecided.get(clause.id, 0)
        if clause.id in violated:
            verdict = VIOLATED if strict or binds(clause.id) else NOT_FOLLOWED
        elif unsure and not (settled and count):
            verdict = UNKNOWN
        elif count:
            verdict = HOLDS
        else:
            verdict = NOT_EXERCISED
        verdicts.append(ClauseVerdict(clause.id, clause.level, verdict, count, unsure))
    return tuple(verdicts)
