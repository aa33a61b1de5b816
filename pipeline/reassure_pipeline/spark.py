"""The same audit on Spark: decode by file, route by archive, judge by partition.

1. **Decode.** One task per log file reads it, checks it and hands on the transactions that may
   matter; a file cannot be split, since records are found only one after the other.
2. **Route.** One task per archive takes its transactions in zxid order; this part of the work is
   sequential by nature, and cheap.
3. **Judge.** Observations are spread by archive, chroot, topic and partition, and sorted by zxid
   and step inside; each partition is judged by itself.

Rows go between the passes by `repartitionAndSortWithinPartitions`: everything of one key reaches
one task, in order. (Grouping would not keep the order.) The rows are Python's own records, so plain
RDDs carry them, and neither a SQL session nor pandas is needed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from reassure_judge.doubt import GRACE_MS
from reassure_judge.history import Observation, written_paths
from reassure_judge.protocols import make_rules
from reassure_judge.rules import Rules
from reassure_judge.trees import name_tree
from reassure_judge.verdicts import Tally
from reassure_pipeline.archive import (
    Archive,
    Base,
    FileFacts,
    check_joint,
    find_archives,
    load_base,
    matters,
)
from reassure_pipeline.audit import Progress
from reassure_pipeline.audit_report import AuditReport, join_facts, report_archive, report_audit
from reassure_pipeline.gateway import hand_on, open_spark
from reassure_pipeline.passes import Judged, Judging, Known, Rest, Routing
from reassure_spec.readings import Readings
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import LogFile, TornTail

OrderedKey = tuple[int, str, str, int, int, int]
"""Archive, chroot, topic and partition; then zxid and step, which only order."""

_LAST_STEP: Final = 1 << 30
_ABOUT_ARCHIVE: Final = -2
"""The partition number of rows that concern an archive as a whole."""


class FileTask(NamedTuple):
    """One log file to decode."""

    archive: int
    file: int
    path: str
    """Absolute, as a worker may run elsewhere."""
    after: int
    """Transactions up to this zxid are in the base."""


class FileResult(NamedTuple):
    """What decoding one file came to."""

    archive: int
    file: int
    first_zxid: int
    last_zxid: int
    judged: int
    tail: tuple[int, str] | None
    """Offset and reason of a torn tail."""
    damage: tuple[int, str] | None
    """Offset and reason of damage, after which nothing was read."""
    unjudged: Counter[str]
    """How often each tree was written of which nothing was handed on."""


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
    """Judge the logs that `paths` name on Spark; answers and raises what `audit_local` does.

    Besides raises `SparkUnavailable` and `JavaError`. Where `master` is not local, the paths must
    be readable on the workers, and the project installed there.
    """
    rules = make_rules(profile, readings)
    report = progress or _say_nothing
    archives = find_archives(paths)
    bases = [load_base(archive) for archive in archives]
    report("starting Spark", 0, 3)
    with open_spark(master) as context:
        report("decoding", 1, 3)
        decoded = _decode_all(context, archives, bases)
        files = collect_facts(decoded.filter(_is_result).values().collect(), archives)
        report("judging", 2, 3)
        route = partial(
            route_archive,
            rules=rules,
            keep_keys=at_rest,
            min_insync_replicas=min_insync_replicas,
            grace_ms=grace_ms,
        )
        results = _judge_all(context, decoded, archives, bases, rules, route)
    tally = Tally()
    reports = []
    for index, archive in enumerate(archives):
        known, judged = results[index]
        tally.add(judged.tally)
        reports.append(report_archive(archive, files[index], known, judged))
    return report_audit(profile, tally, reports)


def _say_nothing(what: str, done: int, total: int) -> None:
    pass


# Decode -------------------------------------------------------------------------------------------


def _decode_all(context: Any, archives: Sequence[Archive], bases: Sequence[Base | None]) -> Any:
    from pyspark import StorageLevel

    tasks = [
        FileTask(index, number, str(file.absolute()), -1 if base is None else base.zxid)
        for index, (archive, base) in enumerate(zip(archives, bases, strict=True))
        for number, file in enumerate(archive.files)
    ]
    # Looked at twice: first for what the files are worth, then for the transactions.
    decoded = context.parallelize(tasks, len(tasks)).flatMap(decode_file)
    return decoded.persist(StorageLevel.MEMORY_AND_DISK)


@hand_on
def decode_file(task: FileTask) -> Iterator[tuple[tuple[int, int], Transaction | FileResult]]:
    """Yield the transactions of one file that may matter, then what the file was worth.

    Damage is handed on rather than raised, so that it is reported as what it is, in file order.
    """
    file = LogFile(task.path)
    first, judged = -1, 0
    damage: tuple[int, str] | None = None
    unjudged: Counter[str] = Counter()
    try:
        for batch in file.batches():
            if first < 0:
                first = batch[0].zxid
            for transaction in batch:
                if transaction.zxid > task.after:
                    judged += 1
                    if matters(transaction):
                        yield (task.archive, transaction.zxid), transaction
                    elif transaction.error is None:
                        unjudged.update(filter(None, map(name_tree, written_paths(transaction))))
    except DamagedLog as problem:
        damage = problem.offset, problem.reason
    tail = None if file.tail is None else (file.tail.offset, file.tail.reason)
    result = FileResult(
        task.archive, task.file, first, file.last_zxid, judged, tail, damage, unjudged
    )
    yield (task.archive, -1), result


def _is_transaction(row: tuple[Any, Any]) -> bool:
    return isinstance(row[1], Transaction)


def _is_result(row: tuple[Any, Any]) -> bool:
    return isinstance(row[1], FileResult)


def collect_facts(
    results: Iterable[FileResult], archives: Sequence[Archive]
) -> list[list[FileFacts]]:
    """Return what the files are worth, by archive; raises `DamagedLog` for the first damage."""
    facts: list[list[FileFacts]] = []
    before: FileFacts | None = None
    for result in sorted(results):
        if result.file == 0:
            facts.append([])
            before = None
        path = archives[result.archive].files[result.file]
        if result.first_zxid >= 0:
            check_joint(before, path, result.first_zxid)
        if result.damage is not None:
            raise DamagedLog(path, *result.damage)
        tail = None if result.tail is None else TornTail(path, *result.tail)
        found = FileFacts(
            path, result.first_zxid, result.last_zxid, result.judged, tail, result.unjudged
        )
        before = join_facts(before, found)
        facts[-1].append(found)
    return facts


# Route and judge ----------------------------------------------------------------------------------


def _judge_all(
    context: Any,
    decoded: Any,
    archives: Sequence[Archive],
    bases: Sequence[Base | None],
    rules: Rules[Any, Any],
    route_one: Callable[..., Any],
) -> list[tuple[Known, Judged]]:
    begins = [archive.begins for archive in archives]
    sent = context.broadcast(list(bases))

    def route(index: int, rows: Iterable[tuple[Any, Transaction]]) -> Any:
        return route_one(index, begins[index], sent.value[index], rows)

    def judge(rows: Iterable[tuple[OrderedKey, Any]]) -> Iterator[tuple[int, Known | Judged]]:
        return judge_partitions(rules, rows)

    spread = max(2, context.defaultParallelism)
    rows = (
        decoded.filter(_is_transaction)
        .repartitionAndSortWithinPartitions(len(archives), _get_archive)
        .mapPartitionsWithIndex(route)
        .repartitionAndSortWithinPartitions(spread, hash_partition)
        .mapPartitions(judge)
        .collect()
    )
    known: dict[int, Known] = {}
    judged = [Judged() for _ in archives]
    for index, row in rows:
        if isinstance(row, Known):
            known[index] = row
        else:
            judged[index].add(row)
    return [(known[index], judged[index]) for index in range(len(archives))]


def _get_archive(key: tuple[int, int]) -> int:
    return key[0]


def hash_partition(key: OrderedKey) -> int:
    """Return a number that is the same for all rows of one partition, in every process."""
    return crc32(repr(key[:4]).encode())


@hand_on
def route_archive(
    index: int,
    begins: str,
    base: Base | None,
    rows: Iterable[tuple[Any, Transaction]],
    *,
    rules: Rules[Any, Any],
    keep_keys: bool,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
) -> Iterator[tuple[OrderedKey, Observation | Rest | Known]]:
    """Yield the observations of one archive, then what is to be judged at rest, then its facts."""
    routing = Routing(
        begins,
        base,
        rules,
        keep_keys=keep_keys,
        min_insync_replicas=min_insync_replicas,
        grace_ms=grace_ms,
    )
    for seen in routing.begin():
        yield (index, seen.chroot, seen.topic, seen.partition, seen.zxid, seen.step), seen
    for _, transaction in rows:
        for seen in routing.feed(transaction):
            yield (index, seen.chroot, seen.topic, seen.partition, seen.zxid, seen.step), seen
    for rest in routing.finish():
        yield (index, rest.chroot, rest.topic, rest.partition, rest.zxid, _LAST_STEP), rest
    yield (index, "", "", _ABOUT_ARCHIVE, 0, 0), routing.known


@hand_on
def judge_partitions(
    rules: Rules[Any, Any], rows: Iterable[tuple[OrderedKey, Any]]
) -> Iterator[tuple[int, Known | Judged]]:
    """Judge partition after partition; yield one sum per archive, and the facts passed through."""
    sums: dict[int, Judged] = {}
    for key, group in groupby(rows, key=lambda row: row[0][:4]):
        if key[3] == _ABOUT_ARCHIVE:
            yield key[0], next(group)[1]
            continue
        judging = Judging(rules)
        for _, row in group:
            if isinstance(row, Rest):
                judging.rest(row)
            else:
                judging.observe(row)
        sums.setdefault(key[0], Judged()).add(judging.sum_up())
    yield from sums.items()
