"""The same watch on Structured Streaming: topics judged side by side, state in Spark's keeping.

1. A source follows the logs as the plain watch does (`reassure_pipeline.growing`), in one place:
   how far it has read, what is damaged and what is missing is the offset that Spark keeps.
2. What was added is decoded side by side and addressed to a share of the topics, or to all
   (`reassure_pipeline.addressing`).
3. Each share is one group with a state: what judging has in mind of every archive, pickled. It
   judges its rows in zxid order, and answers alerts and what it has come to.
4. What a batch answers is told on the driver: the journal first, then whoever listens.

Spark does a batch again that it has not noted as done; the journal knows what was told of it. Files
may be packed until then, or deleted: what was in them is missing then (`Gone`).
"""

import base64
import os
import pickle
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reassure_judge.rules import Rules
from reassure_pipeline.addressing import Addressing
from reassure_pipeline.alerts import Alert, tell_damage, tell_hole
from reassure_pipeline.archive import Archive, Base, Restart
from reassure_pipeline.audit_report import ArchiveReport
from reassure_pipeline.collecting import rare_collections
from reassure_pipeline.fleet import Present
from reassure_pipeline.gateway import find_cause, open_spark
from reassure_pipeline.growing import Follower, TakenBack
from reassure_pipeline.passes import Share
from reassure_pipeline.same_history import SameHistories, SameHistory
from reassure_pipeline.watch_loop import ArchiveStatus, Ending, Rate, Status, Teller
from reassure_pipeline.watched import (
    NOTHING,
    Extent,
    FirstOfEach,
    Options,
    Outcome,
    Sum,
    Watched,
    report_archive,
)
from reassure_zookeeper.codec import decode, decode_head
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.txnlog import LogFile

if TYPE_CHECKING:
    from pyarrow import RecordBatch

FORMAT: Final = "reassure-watch"
_ROWS: Final = "share int, archive int, zxid bigint, record binary"
_ANSWER: Final = "share int, answer binary"
_STATE: Final = "kept binary"
_NEWS: Final = -1
"""Stands where a zxid does, for what a share is told before the transactions of a batch."""
_GONE: Final = -2
"""So, for what it is told of transactions that are gone."""
_SHARES_OF_A_CLUSTER: Final = 16
_LOOK_S: Final = 0.2
_LAST_BATCH_S: Final = 6.0
"""How long the batch under way may take to end when nothing more is to be judged: an interrupt has
to be answered soon."""
_AT_ONCE: Final = 2_000
"""How many transactions are decoded before they are judged."""
_MOST: Final = 50_000
"""How many transactions one batch takes, so that what is told of many is told soon."""


def _pack(value: object) -> str:
    return base64.b85encode(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)).decode("ascii")


def _unpack(text: str) -> Any:
    return pickle.loads(base64.b85decode(text))


class Begun(NamedTuple):
    """An archive as its watch found it at first."""

    archive: Archive
    base: Base | None
    follower: Follower


class Plan(NamedTuple):
    """What every task has to know."""

    rules: Rules[Any, Any]
    options: Options
    begun: tuple[Begun, ...]
    shares: int


class Stretch(NamedTuple):
    """What was added to a file."""

    archive: int
    path: str
    start: int
    stop: int
    """The byte behind it."""
    first_zxid: int
    last_zxid: int
    transactions: int


class Gone(NamedTuple):
    """A stretch that was found, and is not there any more when it is to be judged."""

    archive: int
    hole: Hole
    transactions: int


class Look(NamedTuple):
    """How far reading has come, and what the last look found."""

    followers: tuple[Follower, ...]
    extents: tuple[Extent, ...]
    calm: tuple[tuple[int | None, ...], ...]
    """By archive, and chapter that begins from a snapshot: the first transaction that no news of
    before can excuse."""
    damaged: tuple[int, ...]
    """By archive: how many files could not be read to their end."""
    lost: tuple[str, ...]
    """By archive: why it is not followed any more, "" where it is."""
    stretches: tuple[Stretch, ...] = ()
    missing: tuple[Alert, ...] = ()
    """What could not be read since the look before."""
    restarts: tuple[tuple[int, Restart], ...] = ()
    """Archive, and from where it is to be judged anew, as was found since the look before."""
    news_ms: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Of the same chapters as `calm`: the zxid that each begins behind, and up to when there may
    be news of before."""
    same: str = ""
    """Why not all of the archives can be judged apart, "" where they can."""


class News(NamedTuple):
    """What every share is told of an archive with each batch."""

    holes: tuple[Hole, ...]
    calm: tuple[int | None, ...]
    times_ms: tuple[int, int] | None
    restarts: tuple[Restart, ...]
    last_zxid: int
    """The last transaction of the batch, or before it."""


def begin_looking(plan: Plan) -> Look:
    """Return the look that has found nothing yet."""
    begun = plan.begun
    return Look(
        tuple(each.follower for each in begun),
        tuple(NOTHING for _ in begun),
        tuple((None,) if each.base is not None else () for each in begun),
        tuple(0 for _ in begun),
        tuple("" for _ in begun),
        news_ms=tuple(
            (_find_news(plan, each.base),) if each.base is not None else () for each in begun
        ),
    )


def _find_news(plan: Plan, base: Base) -> tuple[int, int]:
    return base.zxid, base.news_ms + plan.options.grace_ms


def look_on(plan: Plan, before: Look, same: SameHistories) -> Look:
    """Return what was added since a look; the same look where there was nothing."""
    followers = pickle.loads(pickle.dumps(before.followers))
    try:
        looks = [_look_at(plan, before, n, each, same) for n, each in enumerate(followers)]
    except SameHistory as problem:  # raised where the command is: here it would be a fault of Spark
        return before._replace(stretches=(), missing=(), restarts=(), same=str(problem))
    stretches = tuple(stretch for each in looks for stretch in each.stretches)
    missing = tuple(alert for each in looks for alert in each.missing)
    if not stretches and not missing:
        return before
    return Look(
        followers,
        tuple(each.extents[0] for each in looks),
        tuple(each.calm[0] for each in looks),
        tuple(each.damaged[0] for each in looks),
        tuple(each.lost[0] for each in looks),
        stretches,
        missing,
        tuple(restart for each in looks for restart in each.restarts),
        tuple(each.news_ms[0] for each in looks),
    )


def _look_at(
    plan: Plan, before: Look, number: int, follower: Follower, same: SameHistories
) -> Look:
    """Return what was added to one archive."""
    begun = plan.begun[number]
    after = -1 if begun.base is None else begun.base.zxid
    extent, lost = before.extents[number], before.lost[number]
    calm, news = list(before.calm[number]), list(before.news_ms[number])
    restarts: list[tuple[int, Restart]] = []
    damaged, holes, name = before.damaged[number], len(follower.holes), begun.archive.name
    stretches: list[Stretch] = []
    missing: list[Alert] = []
    taken = 0
    try:
        for path, start, stop, batch in () if lost else follower.read_stretches():
            same.note(number, batch)
            restart = follower.look_for_restart(max(after, extent.last_zxid))
            if restart is not None:
                restarts.append((number, restart))
                calm.append(None)
                news.append(_find_news(plan, restart.base))
            place = number, str(path.absolute()), start, stop
            stretches.append(Stretch(*place, batch[0].zxid, batch[-1].zxid, len(batch)))
            fresh = [each for each in batch if each.zxid > after]
            if fresh:
                extent = extent.reach(fresh)
            for at, (base, now_ms) in enumerate(news):
                if calm[at] is None:
                    late = (e.zxid for e in fresh if e.zxid > base and e.time_ms > now_ms)
                    calm[at] = next(late, None)
            taken += len(batch)
            if taken >= _MOST:
                break
    except TakenBack as error:
        lost = str(error)
        follower.damaged.append(error)
    missing += [tell_damage(name, extent.last_zxid, damage) for damage in follower.damaged]
    missing += [tell_hole(name, hole) for hole in follower.holes[holes:]]
    damaged += len(follower.damaged)
    follower.damaged.clear()
    kept = (extent,), (tuple(calm),), (damaged,), (lost,)
    found = tuple(stretches), tuple(missing), tuple(restarts), (tuple(news),)
    return Look((follower,), *kept, *found)


# The source ---------------------------------------------------------------------------------------


class Part(InputPartition):
    """What one task decodes: part of a file; or else what all shares are told, a packed `Look`."""

    def __init__(self, what: Stretch | str) -> None:
        self.what = what


class WatchSource(DataSource):
    """What is added to logs, as rows for shares."""

    @classmethod
    def name(cls) -> str:
        """Return what the format is called."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns."""
        return _ROWS

    def streamReader(self, schema: Any) -> "WatchReader":  # noqa: N802  (Spark's name)
        """Return what follows the logs of a plan."""
        return WatchReader(_unpack(self.options["plan"]), Path(self.options["end"]))


class WatchReader(DataSourceStreamReader):
    """Follows logs, until the file `end` is there; its offsets are looks."""

    def __init__(self, plan: Plan, end: Path) -> None:
        self._plan = plan
        self._end = end
        self._same = SameHistories([begun.follower.path for begun in plan.begun])

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where reading begins."""
        return {"number": 0, "look": _pack(begin_looking(self._plan))}

    def latestOffset(self, start: dict[str, Any], limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return how far there is something to read."""
        before = _unpack(start["look"])
        if self._end.exists():
            return start
        look = look_on(self._plan, before, self._same)
        return start if look is before else {"number": start["number"] + 1, "look": _pack(look)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Part]:
        """Return what to decode between two offsets: what the look at the second one found."""
        look = _unpack(end["look"])
        merged: list[Stretch] = []
        for each in look.stretches:
            last = merged[-1] if merged else None
            if last is not None and last[:2] == each[:2] and last.stop == each.start:
                merged[-1] = last._replace(
                    stop=each.stop,
                    last_zxid=each.last_zxid,
                    transactions=last.transactions + each.transactions,
                )
            else:
                merged.append(each)
        return [*map(Part, merged), Part(end["look"])]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        """Yield the records of a part that may matter, each to its share, or what all are told."""
        import pyarrow

        assert isinstance(partition, Part)
        if isinstance(partition.what, str):
            rows = list(_list_news(self._plan, _unpack(partition.what)))
        else:
            rows = list(_read_stretch(self._plan, partition.what))
        kinds = pyarrow.int32(), pyarrow.int32(), pyarrow.int64(), pyarrow.binary()
        columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
        arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        names = ["share", "archive", "zxid", "record"]
        yield pyarrow.RecordBatch.from_arrays(arrays, names)

    def commit(self, end: dict[str, Any]) -> None:
        """Note that all up to here has been dealt with; nothing is kept that could go."""


Row = tuple[int, int, int, bytes]


def _list_news(plan: Plan, look: Look) -> Iterator[Row]:
    """Yield for every share what it must know of each archive; the first has the look, too."""
    for number, follower in enumerate(look.followers):
        restarts = tuple(restart for archive, restart in look.restarts if archive == number)
        extent, holes = look.extents[number], tuple(follower.holes)
        told = News(holes, look.calm[number], extent.times_ms, restarts, extent.last_zxid)
        news = pickle.dumps(told)
        yield from ((share, number, _NEWS, news) for share in range(plan.shares))
    yield 0, -1, _NEWS, pickle.dumps(look._replace(restarts=()))


def _read_stretch(plan: Plan, stretch: Stretch) -> Iterator[Row]:
    """Yield the records in a part of a file that may matter, each to its share."""
    begun = plan.begun[stretch.archive]
    after = -1 if begun.base is None else begun.base.zxid
    path = _find_file(Path(stretch.path))
    if path is None:
        hole = Hole(stretch.first_zxid - 1, stretch.last_zxid + 1)
        gone = pickle.dumps(Gone(stretch.archive, hole, stretch.transactions))
        yield from ((share, stretch.archive, _GONE, gone) for share in range(plan.shares))
        yield 0, -1, _NEWS, pickle.dumps(_tell_gone(begun.archive.name, stretch))
        return
    # What was judged cannot be judged anew, should a request come under a number used before.
    addressing = Addressing(plan.rules, plan.shares, requests_to_all=True)
    records: list[bytes] = []
    file = LogFile(path, records=records)
    file.offset, file.stop = stretch.start, stretch.stop
    file.decode = decode_head  # whoever follows the log has decoded it, to see that it makes sense
    for batch in file.batches():
        for transaction, record in zip(batch, records, strict=True):
            to = addressing.find(record) if transaction.zxid > after else ()
            yield from ((share, stretch.archive, transaction.zxid, record) for share in to)
        records.clear()


def _find_file(path: Path) -> Path | None:
    """Return where a log file is by now, which may have been packed since; None where it is not."""
    packed = (path.with_name(f"{path.name}{suffix}") for suffix in (".gz", ".zip"))
    return next((each for each in (path, *packed) if each.is_file()), None)


def _tell_gone(archive: str, stretch: Stretch) -> Alert:
    reason = (
        f"it is gone, and its transactions from 0x{stretch.first_zxid:x} to "
        f"0x{stretch.last_zxid:x} were not judged for certain; nor is what is found after them"
    )
    return tell_damage(
        archive, stretch.first_zxid, DamagedLog(Path(stretch.path), stretch.start, reason)
    )


# The judge ----------------------------------------------------------------------------------------


def judge_rows(plan: Plan, share: int, kept: dict[int, Watched], rows: Sequence[Row]) -> list[Any]:
    """Judge the rows of one share; return alerts, and a look where it is among the rows."""
    answers: list[Any] = []
    for archive, at_once in groupby(sorted(rows, key=itemgetter(1, 2)), key=itemgetter(1)):
        if archive < 0:
            answers += [pickle.loads(record) for *_, record in at_once]
            continue
        watched = kept.get(archive)
        if watched is None:
            begun, own = plan.begun[archive], Share(share, plan.shares)
            watched = Watched(begun.archive, begun.base, plan.rules, plan.options, own)
            kept[archive] = watched
        records, last_zxid = [], -1
        for _, _, zxid, record in at_once:
            if zxid == _GONE:
                gone: Gone = pickle.loads(record)
                watched.gone = (*watched.gone, gone.hole)
                answers += [gone] if share == 0 else []
            elif zxid == _NEWS:
                news: News = pickle.loads(record)
                watched.holes = tuple(sorted((*news.holes, *watched.gone)))
                watched.times_ms = news.times_ms
                watched.calm, last_zxid = news.calm, news.last_zxid
                watched.passes.coming += news.restarts
            else:
                records.append(record)
        for at in range(0, len(records), _AT_ONCE):
            answers += watched.judge([decode(each) for each in records[at : at + _AT_ONCE]])
        watched.passes.reach(last_zxid)
    return answers


def sum_up(share: int, kept: dict[int, Watched]) -> list[Any]:
    """Return what each archive has come to in one share; nothing is judged after that."""
    return [(archive, share, watched.sum_up()) for archive, watched in kept.items()]


def make_judge(plan: Plan, shares: dict[int, int]) -> Callable[..., Any]:
    """Return what Spark calls for each group; `shares` are the shares by the groups' keys."""

    def judge(key: tuple[Any, ...], frames: Any, state: Any) -> Iterator[Any]:
        import pandas

        share = shares[int(key[0])]
        kept = pickle.loads(bytes(state.get[0])) if state.exists else {}
        rows = [
            (share, int(archive), int(zxid), bytes(record))
            for frame in frames
            for archive, zxid, record in zip(
                frame["archive"], frame["zxid"], frame["record"], strict=True
            )
        ]
        with rare_collections():
            answers = judge_rows(plan, share, kept, rows)
            state.update((pickle.dumps(kept, pickle.HIGHEST_PROTOCOL),))
            answers += sum_up(share, kept)
        yield pandas.DataFrame({"share": [share], "answer": [pickle.dumps(answers)]})

    return judge


# The driver ---------------------------------------------------------------------------------------


class Standing(NamedTuple):
    """What a watch has come to, as the last batch left it."""

    look: Look
    sums: dict[tuple[int, int], Sum]
    """By archive and share."""
    journal: int
    """How large the journal was before that batch, which may be done again."""
    gone: frozenset[Gone] = frozenset()

    def list_gone(self, archive: int) -> list[Gone]:
        """Return what is gone of an archive, in order."""
        return sorted(gone for gone in self.gone if gone.archive == archive)


def run_stream(
    plan: Plan,
    folder: Path,
    master: str,
    standing: Standing,
    teller: Teller,
    ending: Ending,
    save: Callable[[Standing], None],
    show: Callable[[Status], None] | None = None,
) -> Standing:
    """Judge until it is to end; `folder` is for Spark's own state. Return how things stand then.

    `show` is told how it is doing, as the last batch left it.

    Raises `SparkUnavailable`, `JavaError`, and what the source or a task raises, in Spark's words.
    """
    state = [standing]
    failed: list[Exception] = []

    def take(frame: Any, number: int) -> None:
        try:
            answers = [each for row in frame.collect() for each in pickle.loads(bytes(row.answer))]
            state[0] = take_answers(answers, state[0], teller)
            save(state[0])
        except Exception as error:  # told by whoever waits for the query
            failed.append(error)
            raise

    begun, rate = time.monotonic(), Rate()

    def look() -> None:
        if show is not None:
            show(find_status(plan, state[0], time.monotonic() - begun, rate))

    look()
    with (
        TemporaryDirectory(prefix="reassure-") as scratch,
        open_spark(master, "reassure watch") as context,
    ):
        end = Path(scratch) / "end"
        query = _start(context, plan, folder, end, take)
        try:
            _await(query, ending, end, look)
        except Exception:
            if failed:
                raise failed[0] from None
            raise
    return state[0]


def _await(query: Any, ending: Ending, end: Path, look: Callable[[], None]) -> None:
    """Let a query run until it is to end. Raises `SparkUnavailable` where it failed.

    The file `end` lets no more batches begin, and the last one is waited for: what is broken off
    after it was told is told again by the next watch.
    """
    if ending.when_caught_up:
        query.processAllAvailable()
        look()
    else:
        while query.isActive and not ending.is_over():
            ending.wait(_LOOK_S)
            look()
        end.touch()
        until = time.monotonic() + _LAST_BATCH_S
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
            time.sleep(_LOOK_S)
        look()
    failure = query.exception()
    query.stop()
    if failure is not None:
        raise find_cause(failure)


def take_answers(answers: Iterable[Any], standing: Standing, teller: Teller) -> Standing:
    """Tell what a batch has answered, and return how things stand then. Raises SameHistory."""
    look, sums, journal = standing.look, dict(standing.sums), teller.size
    alerts: list[Alert] = []
    gone = set(standing.gone)
    for each in answers:
        if isinstance(each, Gone):
            gone.add(each)
        elif isinstance(each, Look):
            if each.same:
                raise SameHistory(each.same)
            look = each
            alerts += each.missing
        elif isinstance(each, Alert):
            alerts.append(each)
        else:
            archive, share, total = each
            sums[archive, share] = total
    teller.tell(sorted(alerts, key=attrgetter("archive", "seen_at", "id")))
    return Standing(look, sums, journal, frozenset(gone))


def _start(
    context: Any, plan: Plan, folder: Path, end: Path, take: Callable[[Any, int], None]
) -> Any:
    """Start the query."""
    from pyspark.sql import SparkSession

    session = SparkSession(context)
    session.dataSource.register(WatchSource)
    for name, value in {
        "spark.sql.shuffle.partitions": str(plan.shares),
        "spark.sql.streaming.pollingDelay": "50ms",
        "spark.sql.streaming.minBatchesToRetain": "2",
    }.items():
        session.conf.set(name, value)
    keys = _choose_keys(session, plan.shares)
    spread = ", ".join(str(keys[share]) for share in range(plan.shares))
    options = {"plan": _pack(plan), "end": str(end)}
    source = session.readStream.format(FORMAT).options(**options).load()
    grouped = source.selectExpr(
        f"element_at(array({spread}), share + 1) as key", "archive", "zxid", "record"
    ).groupBy("key")
    judge = make_judge(plan, {key: share for share, key in keys.items()})
    answered = grouped.applyInPandasWithState(judge, _ANSWER, _STATE, "append", "NoTimeout")
    writer = answered.writeStream.outputMode("append").foreachBatch(take)
    return writer.option("checkpointLocation", str(folder.absolute())).start()


def _choose_keys(session: Any, shares: int) -> dict[int, int]:
    """Return a key for each share such that each is a task of its own: by Spark's own hash."""
    rows = session.range(64 * shares).selectExpr(
        "cast(id as int) as key", f"pmod(hash(cast(id as int)), {shares}) as task"
    )
    return {row.task: row.key for row in rows.collect()}


def choose_shares(master: str) -> int:
    """Return into how many shares topics are cut for good: a task at a time for each core.

    >>> choose_shares("local[3]"), choose_shares("local"), choose_shares("spark://host:7077")
    (3, 1, 16)
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*).*\])?", master)
    if found is None:
        return _SHARES_OF_A_CLUSTER
    return len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1] or 1)


def begin_plan(
    places: Sequence[Path], rules: Rules[Any, Any], options: Options, master: str
) -> Plan | None:
    """Return what to do, once every archive has a transaction; None before.

    Raises what `Follower.begin` raises.
    """
    begun = []
    for place in places:
        follower = Follower(place)
        base = follower.begin()
        if follower.archive is None:
            return None
        follower.path = place.absolute()  # Spark follows it from a directory of its own
        begun.append(Begun(follower.archive, base, follower))
    return Plan(rules, options, tuple(begun), choose_shares(master))


def begin_standing(plan: Plan) -> Standing:
    """Return how things stand before there was a batch."""
    return Standing(begin_looking(plan), {}, 0)


def report_stream(plan: Plan, standing: Standing) -> list[tuple[ArchiveReport, Sum]]:
    """Put together what each archive has come to, of which there was something."""
    reports = []
    for number, begun in enumerate(plan.begun):
        there = (standing.sums.get((number, share)) for share in range(plan.shares))
        parts: list[Sum] = pickle.loads(pickle.dumps([each for each in there if each is not None]))
        if parts:
            total, *others = parts
            for other in others:
                total.add(other)
            gone = standing.list_gone(number)
            missing = (*standing.look.followers[number].holes, *(each.hole for each in gone))
            holes = tuple(sorted(missing))
            extent = standing.look.extents[number]
            judged = extent.transactions - sum(each.transactions for each in gone)
            extent = extent._replace(transactions=judged)
            begins = standing.look.followers[number].beginnings
            begins = begins[:1] + [each for each in begins[1:] if each.zxid < extent.last_zxid]
            reports.append((report_archive(begun.archive, extent, holes, begins, total), total))
    return reports


def find_status(plan: Plan, standing: Standing, seconds: float, rate: Rate) -> Status:
    """Return how the watch is doing, which goes on for some seconds."""
    found: Counter[tuple[str, str]] = Counter()
    exercised: set[str] = set()
    archives = []
    for number, outcome in enumerate(list_outcomes(plan, standing)):
        extent = standing.look.extents[number]
        last_ms = 0 if extent.times_ms is None else extent.times_ms[1]
        is_behind = outcome.state == "behind" and last_ms > 0
        mine = [total for (archive, _), total in standing.sums.items() if archive == number]
        present = Present() if plan.options.facts else None
        for total in mine:
            exercised |= {*total.tally.exercised}
            if present is not None and total.facts is not None:
                present.take_in(total.facts.present)
        for (kind, clause, _), times in outcome.findings.times.items():
            found[kind, clause] += times
        archives.append(
            ArchiveStatus(
                outcome.name,
                outcome.state,
                extent.transactions,
                sum(total.partitions for total in mine),
                extent.last_zxid,
                max(0.0, time.time() - last_ms / 1000) if is_behind else 0.0,
                outcome.holes + outcome.damaged,
                present,
            )
        )
    transactions = sum(archive.transactions for archive in archives)
    lately = rate.measure(time.monotonic(), transactions)
    return Status(seconds, lately, tuple(archives), found, len(exercised))


def list_outcomes(plan: Plan, standing: Standing) -> list[Outcome]:
    """Return what is told of each archive beside its report."""
    look, outcomes = standing.look, []
    for number, begun in enumerate(plan.begun):
        findings = FirstOfEach()
        for (archive, _), total in standing.sums.items():
            if archive == number:
                findings.add(total.findings)
        follower, lost = look.followers[number], look.lost[number]
        state = "lost" if lost else "caught up" if follower.is_caught_up else "behind"
        gone = len(standing.list_gone(number))
        holes, damaged = len(follower.holes) + gone, look.damaged[number] + gone
        outcomes.append(Outcome(begun.archive.name, state, findings, holes, damaged, lost))
    return outcomes
