"""What an audit found in one archive."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple

from reassure_judge.incidents import Incident, gather_incidents
from reassure_judge.recognise import Recognised, find_first_release
from reassure_judge.transaction_reader import BEFORE
from reassure_judge.trees import KAFKAS_OWN, describe_tree, gather
from reassure_judge.verdicts import HOLDS, UNKNOWN, VIOLATED, Location, Violation, binds
from reassure_pipeline.archives.archive import Archive, Beginning, FileFacts, check_joint
from reassure_pipeline.archives.beginnings import lies_behind
from reassure_pipeline.audit.listed_findings import Findings
from reassure_pipeline.audit.passes import Judged, KnownHistory
from reassure_pipeline.fleet.totals import Sums
from reassure_spec.znodes import REASSIGNMENT_REQUESTS
from reassure_zookeeper.ensemble import Divergence, Hole
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import TornTail

GO_ON: Final = "continue with --resume, or use a larger --budget"

VACUOUS: Final = "vacuous"
"""The verdict on a history that put nothing to the test."""


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What one archive came to."""

    archive: Archive
    transactions: int
    """Transactions judged, refused ones included; those before a snapshot are not."""
    partitions: Mapping[str, int]
    """How many were met, by chroot."""
    first_zxid: int
    """First transaction in the files."""
    last_zxid: int
    partial: bool
    """Whether something that the judge should know is missing: the beginning, or a part amid."""
    settled: Findings
    """All that was broken, advice included."""
    open: Findings
    """Findings that may be due to what is missing."""
    undecided: Mapping[str, Location]
    """Where each clause that may have been kept or broken was so first."""
    undecided_in: Set[tuple[str, str]]
    """The chroots of which clusters that was, with the clause."""
    hidden: Mapping[tuple[str, str], int]
    """By such a clause and fact that no znode shows: how often it was kept if that is so."""
    explained: Mapping[tuple[str, str], int]
    """By clause and such a fact that shows afterwards: how often only that makes it kept."""
    follow_ups: int
    """Rejected writes that only follow from a finding."""
    clusters: tuple[str, ...]
    """Chroots of the clusters that were met."""
    unjudged: Mapping[str, int]
    """How often each tree was written that no rule is about."""
    earlier: Mapping[str, tuple[int, str]]
    """By chroot: up to where a cluster is of an earlier version, and the profile of that."""
    passed_over: Mapping[str, int]
    """By reason: how many of the transactions no rule was asked about."""
    silent: frozenset[str]
    """Those of the clusters in which there is no sign of KIP-236."""
    holes: tuple[Hole, ...]
    torn_tail: TornTail | None
    """The unfinished last record of the last file; normal where a server was killed."""
    facts: Sums | None = None
    """What is told beyond verdicts, where that was asked for."""
    judged_to: int | None = None
    """The last transaction that was judged, where the budget was spent before the end."""
    beginnings: tuple[Beginning, ...] = ()
    """Where each chapter begins that was judged, the first one included."""
    exercised: bool = False
    """Whether any clause was put to the test."""
    profile: str | None = None
    """By what it was judged, where that is not one for all that are watched."""
    readings: Mapping[str, str] = field(default_factory=dict)
    recognised: Recognised | None = None
    """What the logs told of that; None where somebody named it, or they told of none."""

    def find_verdict(self, *, strict: bool) -> str:
        """Return the verdict on this history, as `AuditReport.verdict` is that on all."""

        def counts(clauses: Iterable[str]) -> bool:
            return any(strict or binds(clause) for clause in clauses)

        if counts(self.settled.counts):
            return VIOLATED
        found = self.exercised or self.undecided or self.open.counts or self.settled.counts
        if not found and self.judged_to is None:
            return VACUOUS
        doubts = counts(self.open.counts) or counts(self.undecided)
        return UNKNOWN if doubts or any(self.find_needs()) else HOLDS

    def find_cluster_verdict(self, chroot: str, *, strict: bool) -> str:
        """Return the verdict on one of the clusters."""
        if len(self.clusters) == 1:
            return self.find_verdict(strict=strict)
        settled, doubted = self.settled.by_cluster, {*self.open.by_cluster, *self.undecided_in}
        broken = [clause for at, clause in settled if at == chroot and (strict or binds(clause))]
        if broken:
            return VIOLATED
        doubts = [clause for at, clause in doubted if at == chroot]
        if not self.partitions.get(chroot) and not doubts:
            return VACUOUS
        unsure = any(strict or binds(clause) for clause in doubts)
        return UNKNOWN if unsure or any(self.find_needs(chroot)) else HOLDS

    def _describe_cluster(self, chroot: str, *, strict: bool) -> dict[str, Any]:
        found = self.settled.by_cluster.items()
        own = {clause: n for (at, clause), n in found if at == chroot}
        count = sum(n for clause, n in own.items() if strict or binds(clause))
        versions = {} if self.recognised is None else self.recognised.versions
        return {
            "chroot": chroot,
            "verdict": self.find_cluster_verdict(chroot, strict=strict),
            "profile": self.profile,
            "version": versions.get(chroot),
            "partitions": self.partitions.get(chroot, 0),
            "violations": count,
            "not_followed": sum(own.values()) - count,
        }

    def find_certain(self, hole: Hole) -> Beginning | None:
        """Return where judging begins anew behind a hole, None where it does not."""
        for beginning in self.beginnings:
            if beginning.snapshot is not None and lies_behind(beginning.snapshot, hole):
                return beginning
        return None

    def _list_doubts(self) -> dict[str, Any]:
        """Return what is undecided, and what was settled, with the facts that no znode shows."""
        undecided = [
            {"clause": clause, **place.as_dict()}
            | {"unless": sorted(fact for each, fact in self.hidden if each == clause)}
            for clause, place in self.undecided.items()
        ]
        explained = [
            {"clause": clause, "by": fact, "times": times}
            for (clause, fact), times in sorted(self.explained.items())
        ]
        return {"undecided": undecided, "explained": explained}

    def list_incidents(
        self, *, strict: bool, found: Iterable[Violation] | None = None
    ) -> list[Incident]:
        """Return the settled findings that count, wound by wound: those listed, or those given."""
        profile = self.profile or ""
        versions = {} if self.recognised is None else self.recognised.versions
        settled = self.violations if found is None else found
        counted = [v for v in settled if strict or binds(v.clause)]
        incidents: list[Incident] = []
        for chroot in sorted({each.chroot for each in counted}):
            own = (each for each in counted if each.chroot == chroot)
            release = find_first_release(versions.get(chroot))
            incidents += gather_incidents(own, profile, release)
        return sorted(incidents, key=lambda each: each.cause)

    def account(self) -> dict[str, Any]:
        """Return what became of every transaction of the files, as far as these were read.

        `gaps_uncounted` are those of which nobody can say how many transactions they are.
        """
        passed_over = {why: n for why, n in sorted(self.passed_over.items()) if n}
        gone = [hole.count_missing() for hole in self.holes]
        read = self.transactions + passed_over.get(BEFORE, 0)
        return {
            "read": read,
            "judged": read - sum(passed_over.values()),
            "passed_over": passed_over,
            "missing": sum(count for count in gone if count is not None),
            "gaps_uncounted": gone.count(None),
        }

    def _describe_hole(self, hole: Hole) -> dict[str, Any]:
        certain = None if hole.before < 0 else self.find_certain(hole)
        return {
            "after": hole.after,
            "before": hole.before,
            "until": -1 if certain is None else certain.zxid,
            "snapshot": None if certain is None else str(certain.snapshot),
        }

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The settled findings that are listed, by zxid."""
        return tuple(self.settled.listed)

    @property
    def unsettled(self) -> tuple[Violation, ...]:
        """The others that are listed."""
        return tuple(self.open.listed)

    def as_dict(self, *, strict: bool) -> dict[str, Any]:
        """Return the record that reports print; with `strict` advice counts as well."""
        counts = self.settled.counts
        count = sum(number for clause, number in counts.items() if strict or binds(clause))
        tail, snapshot = self.torn_tail, self.archive.snapshot
        return {
            "path": self.archive.name,
            "verdict": self.find_verdict(strict=strict),
            "profile": self.profile,
            "readings": dict(self.readings),
            "recognised": None if self.recognised is None else self.recognised.as_dict(),
            "members": list(self.archive.members),
            "begins": self.archive.begins,
            "snapshot": None if snapshot is None else str(snapshot),
            "partial": self.partial,
            "since": self.archive.since,
            "judged_to": self.judged_to,
            "first_zxid": self.first_zxid,
            "last_zxid": self.last_zxid,
            "transactions": self.transactions,
            "accounted": self.account(),
            "partitions": sum(self.partitions.values()),
            "violations": count,
            "not_followed": counts.total() - count,
            "unsettled": self.open.counts.total(),
            **self._list_doubts(),
            "follow_ups": self.follow_ups,
            "clusters": list(self.clusters),
            "by_cluster": [self._describe_cluster(c, strict=strict) for c in self.clusters],
            "seen_not_judged": [
                {"tree": tree, "writes": count, "what": describe_tree(tree)}
                for tree, count in self.unjudged.items()
            ],
            "unread": [str(file) for file in self.archive.unread],
            "holes": [self._describe_hole(hole) for hole in self.holes],
            "damages": [
                {**asdict(damage), "file": str(damage.file)} for damage in self.archive.damages
            ],
            "divergences": [
                {
                    "member": each.member,
                    "file": str(each.file),
                    "offset": each.offset,
                    "first_zxid": each.first,
                    "last_zxid": each.last,
                    "transactions": each.count,
                    "certain": each.certain,
                }
                for each in self.archive.divergences
            ],
            "torn_tail": None if tail is None else {**asdict(tail), "file": str(tail.file)},
        }

    def find_foreign(self) -> Iterator[str]:
        """Yield, in words, the clusters that speak Kafka's own protocol and none with rules."""
        for chroot in sorted(self.silent):
            tree = next((chroot + t for t in KAFKAS_OWN if chroot + t in self.unjudged), None)
            if tree is not None:
                yield (
                    f"{self.archive.name}: the cluster at {chroot or '/'} uses Apache Kafka's "
                    f"own protocol: {tree} was written {self.unjudged[tree]} times, and there is "
                    f"no {chroot}{REASSIGNMENT_REQUESTS}"
                )

    def _tell_span(self, hole: Hole) -> str:
        """Say up to where what is found behind a hole is not certain."""
        if hole.before < 0:
            return ""
        certain = self.find_certain(hole)
        if certain is None:
            return ", and violations after them are uncertain"
        name = "" if certain.snapshot is None else certain.snapshot.name
        return (
            f", and violations from 0x{hole.before:x} up to 0x{certain.zxid:x} are uncertain, "
            f"where judging restarts from {name}"
        )

    def find_needs(self, cluster: str | None = None) -> Iterator[str]:
        """Yield what is missing for a verdict on the whole history, and what to do about it.

        With the chroot of a cluster, for a verdict on that one.
        """
        name = self.archive.name
        for file in self.archive.unread:
            yield f"{file} is not read: unpack it, and name it log.ZXID as the server did"
        if self.judged_to is not None:
            yield (
                f"{name}: judged up to 0x{max(0, self.judged_to):x}, where the budget was spent: "
                f"{GO_ON}"
            )
        contested = [each for each in self.archive.divergences if not each.certain]
        for each in contested:
            yield (
                f"{name}: 0x{each.first:x} up to 0x{each.last:x}, which {each.member} has logged, "
                "may or may not be committed: add the logs of the other members, or judge each "
                "member by itself with --members apart"
            )
        for hole in self.holes:
            if any(_is_within(each, hole) for each in contested):
                continue
            upto = f"up to 0x{hole.before:x}" if hole.before >= 0 else "on"
            whole = ", whole," if self.archive.damages else ""
            yield (
                f"{name}: transactions from 0x{hole.after + 1:x} {upto} are missing"
                f"{self._tell_span(hole)}: add the log file that holds them{whole} or the logs of "
                "another member of the ensemble"
            )
        for chroot, (zxid, profile) in sorted(self.earlier.items()):
            if cluster not in (None, chroot):
                continue
            yield (
                f"{name}: up to 0x{zxid:x} the cluster at {chroot or '/'} is of an earlier "
                f"version: judge those writes with --profile {profile}"
            )
        if not self.clusters and self.judged_to is None:
            yield (
                f"{name}: it has no Kafka cluster: nothing was written below /brokers/ids or "
                "/brokers/topics: name the logs of the ensemble that Kafka uses"
            )
        elif self.partial and not self.holes and self.first_zxid >= 0:
            yield (
                f"{name}: begins inside a history, at 0x{self.first_zxid:x}: add the earlier log "
                "files, or the snapshot that precedes the first file"
            )


def find_holes(files: Iterable[FileFacts]) -> tuple[Hole, ...]:
    """Return the holes of files in order; raises `DamagedLog` as `check_joint` does."""
    holes: list[Hole] = []
    before: FileFacts | None = None
    for facts in files:
        if facts.first_zxid >= 0:
            hole = check_joint(before, facts.path, facts.first_zxid)
            holes += facts.holes if hole is None else (hole, *facts.holes)
        before = join_facts(before, facts)
    return tuple(holes)


def _is_within(divergence: Divergence, hole: Hole) -> bool:
    return hole.after < divergence.first and (hole.before < 0 or divergence.last < hole.before)


def join_facts(before: FileFacts | None, facts: FileFacts) -> FileFacts:
    """Return what the next file must go on from: a file without transactions changes nothing."""
    if facts.first_zxid >= 0 or before is None:
        return facts
    return replace(before, tail=before.tail or facts.tail)


def find_gaps(
    archive: Archive, files: Iterable[FileFacts], before: Iterable[Hole] = ()
) -> tuple[Hole, ...]:
    """Return all holes of an archive: between its files, in them, `before` what is judged."""
    return tuple(sorted({*find_holes(files), *archive.holes, *before}))


def find_gaps_amid(
    archive: Archive, files: Iterable[FileFacts], before: Iterable[Hole] = ()
) -> tuple[Hole, ...]:
    """Return those after which the history goes on."""
    return tuple(hole for hole in find_gaps(archive, files, before) if hole.before >= 0)


class Extent(NamedTuple):
    """How much of an archive was judged."""

    transactions: int
    """Refused ones included; those before a snapshot are not."""
    first_zxid: int
    last_zxid: int
    times_ms: tuple[int, int] | None = None
    """When the first and the last of these was, by the server's clock."""

    def reach(self, batch: Sequence[Transaction]) -> "Extent":
        """Return the extent with the transactions that come next, of which there are some."""
        first, last = batch[0], batch[-1]
        return Extent(
            self.transactions + len(batch),
            first.zxid if self.first_zxid < 0 else self.first_zxid,
            last.zxid,
            (first.time_ms if self.times_ms is None else self.times_ms[0], last.time_ms),
        )


def report_archive(
    archive: Archive,
    extent: Extent,
    known: KnownHistory,
    judged: Judged,
    beginnings: Iterable[Beginning],
    holes: tuple[Hole, ...],
    tail: TornTail | None = None,
    judged_to: int | None = None,
) -> ArchiveReport:
    """Put together what one archive came to; what was found is settled by then.

    `beginnings` are those of all chapters, and `judged_to` is the last zxid where that is not all.
    """
    return ArchiveReport(
        archive=archive,
        transactions=extent.transactions,
        partitions=judged.partitions,
        first_zxid=extent.first_zxid,
        last_zxid=extent.last_zxid,
        judged_to=judged_to,
        partial=known.unborn or bool(holes),
        settled=judged.settled,
        open=judged.unsettled,
        undecided=dict(sorted(judged.tally.first_undecided.items())),
        undecided_in=judged.tally.undecided_in,
        hidden=judged.tally.facts,
        explained=judged.tally.explained,
        follow_ups=judged.follow_ups,
        clusters=tuple(sorted(known.clusters)),
        unjudged=gather(known.unjudged, known.clusters),
        passed_over=known.passed_over,
        silent=known.silent,
        earlier=known.earlier,
        holes=holes,
        torn_tail=tail,
        facts=judged.facts,
        beginnings=tuple(beginnings),
        exercised=any(judged.tally.exercised.values()),
    )


def report_files(
    archive: Archive,
    files: list[FileFacts],
    known: KnownHistory,
    judged: Judged,
    beginnings: Iterable[Beginning],
    before: Iterable[Hole] = (),
    judged_to: int | None = None,
) -> ArchiveReport:
    """Put together what one archive came to whose files these are.

    `before` are the holes before what was judged.
    """
    filled = [facts for facts in files if facts.first_zxid >= 0]
    first, last = (filled[0].first_zxid, filled[-1].last_zxid) if filled else (-1, -1)
    extent = Extent(sum(facts.judged for facts in files), first, last)
    holes, tail = find_gaps(archive, files, before), archive.tail or files[-1].tail
    return report_archive(archive, extent, known, judged, beginnings, holes, tail, judged_to)
