"""Judge transaction logs, whatever cluster left them: the local engine, and the way to Spark.

The local engine reads every file in order, and judges as it reads; memory is needed for the
partitions, not for the transactions. With several jobs every process reads all the files, skips
what is written about topics that are another's, and judges its own (`Share`). Both
engines answer the same report.
"""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols import get_rules, make_rules
from reassure_judge.rules import OBSERVATIONS, Rules
from reassure_judge.verdicts import Tally
from reassure_pipeline.archive import (
    RECOGNISED,
    Archive,
    Base,
    FileFacts,
    check_joint,
    contain,
    find_times,
    load_base,
    open_piece,
)
from reassure_pipeline.audit_report import (
    ArchiveReport,
    AuditReport,
    find_gaps_amid,
    join_facts,
    report_archive,
    report_audit,
)
from reassure_pipeline.facts import Facts
from reassure_pipeline.observed import judge_observations, list_unjudged, sort_paths
from reassure_pipeline.passes import ALL, Judged, Judging, Known, Routing, Share
from reassure_spec.readings import Readings
from reassure_zookeeper.members import Piece
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import log_files

_ALLOCATIONS: Final = 200_000
_BYTES_PER_JOB: Final = 8_000_000
"""Below this starting a process takes longer than it saves."""

Progress = Callable[[str, int, int], None]
"""Called with what is going on, how much is done and how much there is."""


def audit_local(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    *,
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
    jobs: int = 1,
    facts: bool = False,
    members: str = RECOGNISED,
    progress: Progress | None = None,
) -> AuditReport:
    """Judge the logs that `paths` name, in this process and in `jobs` - 1 more.

    A path is a data directory, its `version-2`, or a log file (`reassure_pipeline.archive`). With
    `at_rest` the end of each history counts as a rest: what a controller owes by then is judged
    too. `grace_ms` is how long a change may be news (`reassure_judge.doubt`).
    `min_insync_replicas` is what the brokers' own files say, which are not in ZooKeeper.
    `members` says which paths are members of one ensemble (`archive.MEMBERSHIPS`).
    Raises `LogsMissing` where there is no transaction, `DamagedLog` where nothing of an archive can
    be read, `DamagedSnapshot`, and `ReplayError` for a snapshot that the logs do not fit.
    """
    rules = make_rules(profile, readings)
    judge = partial(
        _judge_archives,
        rules=rules,
        keep_keys=at_rest,
        min_insync_replicas=min_insync_replicas,
        grace_ms=grace_ms,
        facts=facts,
    )

    def work(archives: Sequence[Archive]) -> AuditReport:
        return _audit_archives(archives, profile, judge, jobs, progress)

    return contain(paths, work, members)


def _audit_archives(
    archives: Sequence[Archive],
    profile: str,
    judge: "Callable[..., list[_LocalAudit]]",
    jobs: int,
    progress: Progress | None,
) -> AuditReport:
    judge = partial(judge, archives)
    with rare_collections():
        if jobs == 1:
            audits = judge(share=ALL, progress=progress)
            sums = [audit.sum_up() for audit in audits]
        else:
            audits, sums = _judge_in_shares(judge, jobs, progress)
    tally = Tally()
    reports = []
    for audit, judged in zip(audits, sums, strict=True):
        tally.add(judged.tally)
        reports.append(audit.report(judged))
    return report_audit(profile, tally, reports)


def _judge_archives(
    archives: Sequence[Archive],
    *,
    rules: Rules[Any, Any],
    share: Share,
    facts: bool,
    progress: Progress | None = None,
    **options: Any,
) -> "list[_LocalAudit]":
    """Read every archive to its end, and judge the partitions of one share."""
    total = sum(len(archive.pieces) for archive in archives)
    done = 0
    audits = []
    for archive in archives:
        base = load_base(archive)
        routing = Routing(archive.begins, base, rules, share=share, **options)
        judging = Judging(rules, Facts(archive.name, rules) if facts else None)
        audit = _LocalAudit(archive, base, routing, judging)
        for piece in archive.pieces:
            if progress is not None:
                progress(f"reading {piece.path.name}", done, total)
            audit.read(piece)
            done += 1
        audit.finish()
        audits.append(audit)
    return audits


def _judge_in_shares(
    judge: "Callable[..., list[_LocalAudit]]", jobs: int, progress: Progress | None
) -> "tuple[list[_LocalAudit], list[Judged]]":
    """Judge the first share here and each of the others in a process; answer the sums of all.

    Every process reads all there is, so what cannot be read is met, and raised, here as well.
    """
    others = [Share(number, jobs) for number in range(1, jobs)]
    with ProcessPoolExecutor(len(others), get_context("fork")) as pool:
        waiting = [pool.submit(_sum_up_share, judge, share) for share in others]
        audits = judge(share=Share(0, jobs), progress=progress)
        sums = [audit.sum_up() for audit in audits]
        for each in waiting:
            for audit, whole, (known, part) in zip(audits, sums, each.result(), strict=True):
                audit.known.add(known)
                whole.add(part)
    return audits, sums


def _sum_up_share(
    judge: "Callable[..., list[_LocalAudit]]", share: Share
) -> list[tuple[Known, Judged]]:
    return [(audit.known, audit.sum_up()) for audit in judge(share=share)]


def choose_jobs(paths: Sequence[Path]) -> int:
    """Return how many processes are worth starting for these logs, at most one for each core."""
    size = sum(file.stat().st_size for path in paths for file in log_files(path))
    return max(1, min(len(os.sched_getaffinity(0)), size // _BYTES_PER_JOB))


def audit_paths(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    master: str | None = None,
    *,
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
    jobs: int | None = None,
    facts: bool = False,
    members: str = RECOGNISED,
    parquet: Path | None = None,
) -> AuditReport:
    """Judge transaction logs, on Spark where a `master` is given, and observations among them.

    With `facts` the report tells besides what was under way and when (`reassure_pipeline.facts`).
    Spark leaves what its stages came to in the folder `parquet`, where one is given.

    Without Spark it takes `jobs` processes, or as many as are worth it (`choose_jobs`).

    A profile that is judged by observations alone takes of the logs what was stored.
    """
    sorted_paths = sort_paths(paths)
    observed, tally = None, Tally()
    if sorted_paths.files:
        with rare_collections():
            observed, tally = judge_observations(
                sorted_paths, readings, is_over=at_rest, members=members
            )
    if get_rules(profile).reads == OBSERVATIONS:
        report = report_audit(profile, Tally(), ())
    else:
        options: dict[str, Any] = {
            "at_rest": at_rest,
            "min_insync_replicas": min_insync_replicas,
            "grace_ms": grace_ms,
            "facts": facts,
            "members": members,
        }
        if master is None:
            jobs = choose_jobs(sorted_paths.logs) if jobs is None else jobs
            report = audit_local(sorted_paths.logs, profile, readings, jobs=jobs, **options)
        else:
            from reassure_pipeline.spark import audit_spark

            options["parquet"] = parquet
            report = audit_spark(sorted_paths.logs, profile, readings, master, **options)
    given = observed is not None
    unjudged = list_unjudged(profile, readings, tally.exercised, given=given)
    return report.observing(observed, tally, unjudged)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for cycles rarely: what judging leaves behind forms none, and is much."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _LocalAudit:
    """One archive on its way through both passes."""

    def __init__(
        self, archive: Archive, base: Base | None, routing: Routing, judging: Judging
    ) -> None:
        self._archive = archive
        self._after = -1 if base is None else base.zxid
        self._routing = routing
        self._judging = judging
        self.known = routing.known
        self._files: list[FileFacts] = []
        self._before: FileFacts | None = None
        for seen in self._routing.begin():
            self._judging.observe(seen)

    def read(self, piece: Piece) -> None:
        """Judge one piece, the next in order."""
        file = open_piece(piece)
        file.decode = self._routing.make_decoder()
        first, judged = -1, 0
        times_ms: tuple[int, int] | None = None
        for batch in file.batches():
            if first < 0:
                first = batch[0].zxid
                check_joint(self._before, piece.path, first)
            if batch[0].zxid <= self._after:
                batch = [each for each in batch if each.zxid > self._after]
            if batch:
                self._judge(batch)
                judged += len(batch)
                first_ms = batch[0].time_ms if times_ms is None else times_ms[0]
                times_ms = first_ms, batch[-1].time_ms
        facts = FileFacts(piece.path, first, file.last_zxid, judged, file.tail, times_ms=times_ms)
        self._before = join_facts(self._before, facts)
        self._files.append(facts)

    def _judge(self, batch: list[Transaction]) -> None:
        feed, observe = self._routing.get_feed(), self._judging.observe
        for transaction in batch:
            for seen in feed(transaction):
                observe(seen)

    def finish(self) -> None:
        """Judge what must be true at the end."""
        for rest in self._routing.finish():
            self._judging.rest(rest)
        self._judging.end(find_times(self._files))

    def sum_up(self) -> Judged:
        """Return what judging this share came to, its findings told apart."""
        judged = self._judging.sum_up()
        judged.settle(self.known, find_gaps_amid(self._archive, self._files))
        return judged

    def report(self, judged: Judged) -> ArchiveReport:
        """Report what judging the archive came to, all shares together."""
        return report_archive(self._archive, self._files, self.known, judged)
