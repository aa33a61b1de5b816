"""The same audit on Spark: files decoded side by side, topics judged side by side.

**What is whose.** Of all that the judge remembers, registrations, terms, defaults, requests and
signs of a cluster are the cluster's; everything else is a topic's: its assignment and settings, the
states of its partitions, their records (`Router.apart`). So a history is cut by topic:

1. **Decode.** One task per log file reads and checks it, leaves out what concerns no rule, and
   hands on Arrow batches: archive, zxid, the record's own bytes, and whom it is addressed to: one
   topic, or everybody (`reassure_pipeline.addressing`). What the file was worth comes last.
2. **Route.** Java's part: a row for a topic goes to the share that the topic's hash falls to, a
   row for everybody to every share; each share is sorted by archive and zxid. Java sorts on disk
   where it must, so that memory does not grow with a history, nor with one busy partition.
3. **Judge.** Each share runs through its rows once, with the routing and the judging that the local
   engine's processes run for theirs (`reassure_pipeline.passes`), and hands on what it came to.

The order inside a topic is all that matters to a verdict, and shares add up, so the report is the
local engine's, byte for byte. Nothing of the history comes to the driver: sums, findings, and
what each file was worth. A profile whose protocol keeps a book over all partitions has nothing that
is a topic's own: then every share routes everything, and judges its topics.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols import make_rules
from reassure_judge.rules import Rules
from reassure_judge.verdicts import Tally
from reassure_pipeline.addressing import Addressing
from reassure_pipeline.archive import (
    RECOGNISED,
    Archive,
    Base,
    FileFacts,
    check_joint,
    contain,
    find_archives,
    find_times,
    load_base,
    open_piece,
)
from reassure_pipeline.audit import Progress, rare_collections
from reassure_pipeline.audit_report import AuditReport, join_facts, report_archive, report_audit
from reassure_pipeline.facts import Facts
from reassure_pipeline.gateway import open_spark
from reassure_pipeline.passes import Judged, Judging, Known, Routing, Share
from reassure_pipeline.tables import write_tables
from reassure_spec.readings import Readings
from reassure_zookeeper.codec import decode
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.txnlog import TornTail

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_LAST: Final = (1 << 63) - 1
"""Stands where a zxid does, for what comes after all transactions of an archive."""
_FINDINGS: Final = 1000
"""How many findings travel in one row."""
_ADDRESSED: Final = "archive int, zxid bigint, place binary, record binary"
_OUTCOME: Final = "archive int, outcome binary"


class FileTask(NamedTuple):
    """One log file, or a piece of one, to decode."""

    archive: int
    file: int
    """Number of the piece of a log that is decoded."""
    path: str
    """Absolute, as a worker may run elsewhere."""
    after: int
    """Transactions up to this zxid are in the base."""
    calm_ms: int | None
    """Up to when there may be news of before the base; None where there is none."""


class FileResult(NamedTuple):
    """What decoding one file came to."""

    archive: int
    file: int
    facts: FileFacts
    last: tuple[int, int] | None
    """zxid and time of the last transaction that is judged."""
    calm_zxid: int | None
    """The first transaction after `FileTask.calm_ms`."""
    error: Exception | None
    """Why it was not read to its end."""


class Plan(NamedTuple):
    """What every task has to know."""

    rules: Rules[Any, Any]
    archives: Sequence[Archive]
    bases: Sequence[Base | None]
    shares: int
    at_rest: bool
    min_insync_replicas: int
    grace_ms: int
    facts: bool = False


Outcome = tuple[int, FileResult | Known | Judged | Exception]
"""A share, and what it has to tell of an archive. An error amid judging may come of a damaged file,
which is told first."""


def audit_spark(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    master: str = "local[2]",
    *,
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
    facts: bool = False,
    members: str = RECOGNISED,
    progress: Progress | None = None,
    parquet: Path | None = None,
) -> AuditReport:
    """Judge the logs that `paths` name on Spark; answers and raises what `audit_local` does.

    With `parquet` what each stage came to is written into that folder, to be queried
    (`reassure_pipeline.tables`).
    Besides raises `SparkUnavailable` and `JavaError`. Where `master` is not local, the paths must
    be readable on the workers, and the project installed there.
    """
    rules = make_rules(profile, readings)
    report = progress or _say_nothing
    loaded = contain(paths, _load, members)
    report("starting Spark", 0, 2)
    with open_spark(master) as context:
        from pyspark.sql import SparkSession

        session = SparkSession(context)
        shares = max(1, context.defaultParallelism)

        def judge(loaded: _Loaded) -> AuditReport:
            report("decoding and judging", 1, 2)
            plan = Plan(rules, *loaded, shares, at_rest, min_insync_replicas, grace_ms, facts)
            outcomes = judge_all(session, plan)
            if parquet is not None:
                outcomes.persist()
            rows = outcomes.collect()
            told = ((row.archive, pickle.loads(row.outcome)) for row in rows)
            result = sum_up(profile, plan, told)
            if parquet is not None:
                report("writing tables", 1, 2)
                write_tables(session, parquet, plan.archives, outcomes, map_arrow)
            return result

        try:
            return judge(loaded)
        except DamagedLog:
            return judge(_load(find_archives(paths, members, damaged=True)))


_Loaded = tuple[tuple[Archive, ...], list[Base | None]]


def _load(archives: tuple[Archive, ...]) -> _Loaded:
    return archives, [load_base(archive) for archive in archives]


def _say_nothing(what: str, done: int, total: int) -> None:
    pass


def judge_all(session: Any, plan: Plan) -> Any:
    """Return what each share came to, as a DataFrame (`_OUTCOME`)."""
    tasks = list_tasks(plan)
    sent = session.sparkContext.broadcast(plan)

    def read(batches: Iterable["RecordBatch"]) -> Iterator["RecordBatch"]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        return chain.from_iterable(read_file(tasks[number], sent.value) for number in numbers)

    def judge(batches: Iterable["RecordBatch"]) -> Iterator["RecordBatch"]:
        return judge_share(batches, sent.value)

    # A topic's hash, as `Share.has` takes it.
    own = f"array(cast(pmod(crc32(place), {plan.shares}) as int))"
    every = f"sequence(0, {plan.shares - 1})"
    spread = f"explode(if(length(place) = 0, {every}, {own})) as share"
    addressed = map_arrow(session.range(0, len(tasks), 1, len(tasks)), read, _ADDRESSED)
    routed = (
        addressed.selectExpr("archive", "zxid", "place", "record", spread)
        .repartitionById(plan.shares, "share")
        .sortWithinPartitions("archive", "zxid")
    )
    return map_arrow(routed.select("share", "archive", "zxid", "record"), judge, _OUTCOME)


def map_arrow(frame: Any, function: Callable[..., Any], schema: str) -> Any:
    """Do what `DataFrame.mapInArrow` does, which takes pandas though it needs none."""
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    column = UserDefinedFunction(function, schema, evalType=kind)(
        *(frame[c] for c in frame.columns)
    )
    mapped = frame._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001
    return DataFrame(mapped, frame.sparkSession)


# Decode -------------------------------------------------------------------------------------------


def list_tasks(plan: Plan) -> list[FileTask]:
    """Return a task for each log file."""
    return [
        FileTask(
            index,
            number,
            str(piece.path.absolute()),
            -1 if base is None else base.zxid,
            None if base is None else base.news_ms + plan.grace_ms,
        )
        for index, (archive, base) in enumerate(zip(plan.archives, plan.bases, strict=True))
        for number, piece in enumerate(archive.pieces)
    ]


def read_file(task: FileTask, plan: Plan) -> Iterator["RecordBatch"]:
    """Yield the records of one file that may matter, then what the file was worth.

    Whatever ends the reading is handed on rather than raised, so that it is told in file order.
    """
    records: list[bytes] = []
    piece = plan.archives[task.archive].pieces[task.file]
    path = piece.path
    file = open_piece(piece, path=Path(task.path), records=records)
    addressing = Addressing(plan.rules)
    first, judged = -1, 0
    last: tuple[int, int] | None = None
    first_ms = 0
    calm: int | None = None
    error: Exception | None = None
    try:
        for batch in file.batches():
            first = batch[0].zxid if first < 0 else first
            rows: list[tuple[int, bytes, bytes]] = []
            for transaction, record in zip(batch, records, strict=True):
                if transaction.zxid <= task.after:
                    continue
                first_ms = transaction.time_ms if not judged else first_ms
                judged += 1
                place = addressing.find(transaction)
                if place is not None:
                    rows.append((transaction.zxid, place, record))
                if calm is None and task.calm_ms is not None and transaction.time_ms > task.calm_ms:
                    calm = transaction.zxid
            records.clear()
            if batch[-1].zxid > task.after:
                last = batch[-1].zxid, batch[-1].time_ms
            yield _make_addressed(task.archive, rows)
    except DamagedLog as problem:
        error = DamagedLog(path, problem.offset, problem.reason)
    except Exception as problem:  # told by the driver, which knows what comes before
        error = problem
    tail = None if file.tail is None else TornTail(path, file.tail.offset, file.tail.reason)
    times_ms = None if last is None else (first_ms, last[1])
    facts = FileFacts(path, first, file.last_zxid, judged, tail, addressing.unjudged, times_ms)
    result = FileResult(task.archive, task.file, facts, last, calm, error)
    yield _make_addressed(task.archive, [(_LAST, b"", pickle.dumps(result))])


def _make_addressed(archive: int, rows: Sequence[tuple[int, bytes, bytes]]) -> "RecordBatch":
    import pyarrow

    zxids, places, records = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [
        pyarrow.array([archive] * len(rows), pyarrow.int32()),
        pyarrow.array(zxids, pyarrow.int64()),
        pyarrow.array(places, pyarrow.binary()),
        pyarrow.array(records, pyarrow.binary()),
    ]
    return pyarrow.RecordBatch.from_arrays(columns, ["archive", "zxid", "place", "record"])


# Judge --------------------------------------------------------------------------------------------


def judge_share(batches: Iterable["RecordBatch"], plan: Plan) -> Iterator["RecordBatch"]:
    """Judge what came to one share, archive after archive; yield what each came to."""
    judged: _ShareAudit | None = None
    with rare_collections():
        for batch in batches:
            shares, archives, zxids, records = (column.to_pylist() for column in batch.columns)
            for share, archive, zxid, record in zip(shares, archives, zxids, records, strict=True):
                if judged is None or judged.archive != archive:
                    if judged is not None:
                        yield _make_outcome(judged.archive, judged.finish())
                    judged = _ShareAudit(archive, Share(share, plan.shares), plan)
                if zxid == _LAST:
                    judged.end_file(pickle.loads(record))
                else:
                    judged.feed(record)
        if judged is not None:
            yield _make_outcome(judged.archive, judged.finish())


def _make_outcome(archive: int, outcomes: Iterable[Outcome]) -> "RecordBatch":
    import pyarrow

    packed = [pickle.dumps(outcome) for outcome in outcomes]
    columns = [
        pyarrow.array([archive] * len(packed), pyarrow.int32()),
        pyarrow.array(packed, pyarrow.binary()),
    ]
    return pyarrow.RecordBatch.from_arrays(columns, ["archive", "outcome"])


class _ShareAudit:
    """One archive on its way through both passes, as far as one share goes."""

    def __init__(self, archive: int, share: Share, plan: Plan) -> None:
        self.archive = archive
        self._share = share
        self._routing = Routing(
            plan.archives[archive].begins,
            plan.bases[archive],
            plan.rules,
            keep_keys=plan.at_rest,
            min_insync_replicas=plan.min_insync_replicas,
            grace_ms=plan.grace_ms,
            share=share,
        )
        facts = Facts(plan.archives[archive].name, plan.rules) if plan.facts else None
        self._judging = Judging(plan.rules, facts)
        self._files: list[FileResult] = []
        self._error: Exception | None = None
        for seen in self._routing.begin():
            self._judging.observe(seen)

    def feed(self, record: bytes) -> None:
        """Judge one transaction, the next in order."""
        if self._error is not None:
            return
        try:
            for seen in self._routing.feed(decode(record)):
                self._judging.observe(seen)
        except Exception as error:  # told by the driver, unless a file is damaged
            self._error = error

    def end_file(self, result: FileResult) -> None:
        """Take note of what a file was worth."""
        self._files.append(result)
        if result.last is not None:
            self._routing.skip(*result.last)

    def finish(self) -> Iterator[Outcome]:
        """Judge what must be true at the end, and yield what there is to tell."""
        number = self._share.number
        for result in self._files if number == 0 else ():
            yield number, result
        if self._error is not None:
            yield number, self._error
            return
        for rest in self._routing.finish():
            self._judging.rest(rest)
        files = sorted(self._files, key=lambda result: result.file)
        self._judging.end(find_times(result.facts for result in files))
        yield number, self._routing.known
        judged = self._judging.sum_up()
        found, judged.tally.violations = judged.tally.violations, []
        yield number, judged
        for at in range(0, len(found), _FINDINGS):
            yield number, Judged(Tally(violations=found[at : at + _FINDINGS]))


# Sum up -------------------------------------------------------------------------------------------


def sum_up(profile: str, plan: Plan, outcomes: Iterable[tuple[int, Outcome]]) -> AuditReport:
    """Put together what all shares came to.

    Raises what ended the reading of a file, the first in order, and then what ended the judging.
    """
    found = [(index, *outcome) for index, outcome in outcomes]
    results = [(index, what) for index, _, what in found if isinstance(what, FileResult)]
    files = collect_facts((result for _, result in results), plan.archives)
    for _, _, what in found:
        if isinstance(what, Exception):
            raise what
    tally, reports = Tally(), []
    for index, archive in enumerate(plan.archives):
        mine = sorted((each for each in found if each[0] == index), key=itemgetter(1))
        known, *others = [what for _, _, what in mine if isinstance(what, Known)]
        for other in others:
            known.add(other)
        calm = [result.calm_zxid for at, result in results if at == index]
        known.calm_zxid = min((zxid for zxid in calm if zxid is not None), default=None)
        judged = Judged()
        for _, _, what in mine:
            if isinstance(what, Judged):
                judged.add(what)
        tally.add(judged.tally)
        reports.append(report_archive(archive, files[index], known, judged))
    return report_audit(profile, tally, reports)


def collect_facts(
    results: Iterable[FileResult], archives: Sequence[Archive]
) -> list[list[FileFacts]]:
    """Return what the files are worth, by archive; raises what ended the reading of the first."""
    facts: list[list[FileFacts]] = [[] for _ in archives]
    before: FileFacts | None = None
    for result in sorted(results, key=lambda each: (each.archive, each.file)):
        before = None if result.file == 0 else before
        if result.facts.first_zxid >= 0:
            check_joint(before, result.facts.path, result.facts.first_zxid)
        if result.error is not None:
            raise result.error
        before = join_facts(before, result.facts)
        facts[result.archive].append(result.facts)
    return facts
