"""Judge transaction logs, whatever cluster left them: the local engine, and the way to Spark.

The local engine reads every file once, in order, and judges as it reads; memory is needed for the
partitions, not for the transactions. Both engines answer the same report.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols import get_rules, make_rules
from reassure_judge.rules import OBSERVATIONS, Rules
from reassure_judge.verdicts import Tally
from reassure_pipeline.archive import (
    Archive,
    Base,
    FileFacts,
    check_joint,
    find_archives,
    load_base,
)
from reassure_pipeline.observed import judge_observations, list_unjudged, sort_paths
from reassure_pipeline.passes import Judging, Routing
from reassure_pipeline.report import (
    ArchiveReport,
    AuditReport,
    join_facts,
    report_archive,
    report_audit,
)
from reassure_spec.readings import Readings
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import LogFile

_ALLOCATIONS: Final = 200_000

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
    progress: Progress | None = None,
) -> AuditReport:
    """Judge the logs that `paths` name, in this process.

    A path is a data directory, its `version-2`, or a log file (`reassure_pipeline.archive`). With
    `at_rest` the end of each history counts as a rest: what a controller owes by then is judged
    too. `grace_ms` is how long a change may be news (`reassure_judge.doubt`).
    `min_insync_replicas` is what the brokers' own files say, which are not in ZooKeeper.
    Raises `LogsMissing` where there is no transaction, `DamagedFile` for damage anywhere but
    at the end of the last log, `ReplayError` for a snapshot that the logs do not fit.
    """
    rules = make_rules(profile, readings)
    archives = find_archives(paths)
    total = sum(len(archive.files) for archive in archives)
    tally = Tally()
    reports: list[ArchiveReport] = []
    done = 0
    with _rare_collections():
        for archive in archives:
            base = load_base(archive)
            routing = Routing(
                archive.begins,
                base,
                rules,
                keep_keys=at_rest,
                min_insync_replicas=min_insync_replicas,
                grace_ms=grace_ms,
            )
            audit = _LocalAudit(archive, base, routing, rules)
            for file in archive.files:
                if progress is not None:
                    progress(f"reading {file.name}", done, total)
                audit.read(file)
                done += 1
            reports.append(audit.report(tally))
    return report_audit(profile, tally, reports)


def audit_spark(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    master: str = "local[2]",
    *,
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
    progress: Progress | None = None,
) -> AuditReport:
    """Do the same as `audit_local` on Spark; see `reassure_pipeline.spark`."""
    from reassure_pipeline.spark import audit_spark as audit

    return audit(
        paths,
        profile,
        readings,
        master,
        at_rest=at_rest,
        min_insync_replicas=min_insync_replicas,
        grace_ms=grace_ms,
        progress=progress,
    )


def audit_paths(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    master: str | None = None,
    *,
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
) -> AuditReport:
    """Judge transaction logs, on Spark where a `master` is given, and observations among them.

    A profile that is judged by observations alone takes of the logs what was stored.
    """
    sorted_paths = sort_paths(paths)
    observed, tally = None, Tally()
    if sorted_paths.files:
        with _rare_collections():
            observed, tally = judge_observations(sorted_paths, readings, is_over=at_rest)
    if get_rules(profile).reads == OBSERVATIONS:
        report = report_audit(profile, Tally(), ())
    else:
        options: dict[str, Any] = {
            "at_rest": at_rest,
            "min_insync_replicas": min_insync_replicas,
            "grace_ms": grace_ms,
        }
        if master is None:
            report = audit_local(sorted_paths.logs, profile, readings, **options)
        else:
            report = audit_spark(sorted_paths.logs, profile, readings, master, **options)
    given = observed is not None
    unjudged = list_unjudged(profile, readings, tally.exercised, given=given)
    return report.observing(observed, tally, unjudged)


@contextmanager
def _rare_collections() -> Iterator[None]:
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
        self, archive: Archive, base: Base | None, routing: Routing, rules: Rules[Any, Any]
    ) -> None:
        self._archive = archive
        self._after = -1 if base is None else base.zxid
        self._routing = routing
        self._judging = Judging(rules)
        self._files: list[FileFacts] = []
        self._before: FileFacts | None = None
        for seen in self._routing.begin():
            self._judging.observe(seen)

    def read(self, path: Path) -> None:
        """Judge one file, the next in order."""
        file = LogFile(path)
        first, judged = -1, 0
        for batch in file.batches():
            if first < 0:
                first = batch[0].zxid
                check_joint(self._before, path, first)
            judged += self._judge(batch)
        facts = FileFacts(path, first, file.last_zxid, judged, file.tail)
        self._before = join_facts(self._before, facts)
        self._files.append(facts)

    def _judge(self, batch: list[Transaction]) -> int:
        after, feed, observe = self._after, self._routing.feed, self._judging.observe
        if batch[0].zxid <= after:
            batch = [transaction for transaction in batch if transaction.zxid > after]
        for transaction in batch:
            for seen in feed(transaction):
                observe(seen)
        return len(batch)

    def report(self, tally: Tally) -> ArchiveReport:
        """Finish, and add what was found to the sums of the whole audit."""
        for rest in self._routing.finish():
            self._judging.rest(rest)
        judged = self._judging.sum_up()
        tally.add(judged.tally)
        return report_archive(self._archive, self._files, self._routing.known, judged)
