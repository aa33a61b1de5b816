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
from typing import Any, Final, NamedTuple

from reassure_judge.rules import Rules
from reassure_pipeline.alerts import Alert
from reassure_pipeline.archive_report import ArchiveReport
from reassure_pipeline.collecting import rare_collections
from reassure_pipeline.fleet_sums import Present
from reassure_pipeline.gateway import find_cause, open_spark
from reassure_pipeline.growing import Follower
from reassure_pipeline.passes import Share
from reassure_pipeline.same_history import SameHistory
from reassure_pipeline.watch_loop import ArchiveStatus, Ending, Rate, Status, Teller
from reassure_pipeline.watch_source import (
    FORMAT,
    GONE,
    NEWS,
    Begun,
    Gone,
    Look,
    News,
    Plan,
    Row,
    WatchSource,
    begin_looking,
    pack,
)
from reassure_pipeline.watched import (
    FirstOfEach,
    Options,
    Outcome,
    Sum,
    Watched,
    report_archive,
)
from reassure_zookeeper.codec import decode

_ANSWER: Final = "share int, answer binary"
_STATE: Final = "kept binary"


_SHARES_OF_A_CLUSTER: Final = 16
_LOOK_S: Final = 0.2
_LAST_BATCH_S: Final = 6.0
"""How long the batch under way may take to end when nothing more is to be judged: an interrupt has
to be answered soon."""
_AT_ONCE: Final = 2_000
"""How many transactions are decoded before they are judged."""


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
            if zxid == GONE:
                gone: Gone = pickle.loads(record)
                watched.gone = (*watched.gone, gone.hole)
                answers += [gone] if share == 0 else []
            elif zxid == NEWS:
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
        open_spark(master, "reassure audit --follow") as context,
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
    options = {"plan": pack(plan), "end": str(end)}
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
