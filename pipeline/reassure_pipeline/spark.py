"""The same audit on Spark: parts of files read side by side, topics judged side by side.

**What is whose.** Of all that the judge remembers, registrations, terms, defaults, requests and
signs of a cluster are the cluster's; everything else is a topic's: its assignment and settings, the
states of its partitions, their records (`Router.apart`). So a history is cut by topic:

1. **Address.** Each part of a log file (`reassure_pipeline.parts`) is read and checked, what
   concerns no rule is left out, and of each other record it is found whom it is addressed to: one
   share of the topics, a few, or everybody (`reassure_pipeline.addressing`). Some hundred records
   that go to one share are one *block*. What the part was worth comes last.
2. **Route.** Spark brings the blocks of each share together, and they are sorted, on disk where
   there are many, so that memory does not grow with a history, nor with one busy partition. A block
   is bytes to Spark: neither Java nor Arrow sees a record.
3. **Judge.** Each share runs through its records once, decodes them, and does the routing and the
   judging that the local engine's processes do for theirs (`reassure_pipeline.passes`).

The order inside a topic is all that matters to a verdict, and shares add up, so the report is the
local engine's, byte for byte. Nothing of the history comes to the driver: sums, findings, and
what each part was worth. A profile whose protocol keeps a book over all partitions has nothing that
is a topic's own: then every share routes everything, and judges its topics.

**Why blocks.** With a row for each record, in Arrow and sorted by Java, more was spent on rows than
on judging; and Spark's SQL takes longer to start than plain tasks over bytes take to run.
"""

import pickle
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, pairwise
from math import inf
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols import make_rules
from reassure_judge.rules import Rules
from reassure_judge.verdicts import Tally
from reassure_pipeline.addressing import Addressing, Asked, is_growing, list_asked
from reassure_pipeline.archive import (
    RECOGNISED,
    Archive,
    Base,
    Beginning,
    FileFacts,
    Restart,
    Since,
    check_joint,
    contain,
    find_archives,
    find_times,
    load_base,
    measure_piece,
    open_piece,
    plan_restarts,
)
from reassure_pipeline.audit_report import (
    AuditReport,
    find_gaps_amid,
    find_known_gaps,
    join_facts,
    report_archive,
    report_audit,
)
from reassure_pipeline.budget import NO_BUDGET, Budget
from reassure_pipeline.collecting import rare_collections
from reassure_pipeline.fleet import Facts, Move
from reassure_pipeline.gateway import open_spark
from reassure_pipeline.jobs import Progress
from reassure_pipeline.keeping import own_directory
from reassure_pipeline.kept_shares import Kept, KeptShares
from reassure_pipeline.parts import PartOfLog, WholeLog
from reassure_pipeline.passes import (
    Judged,
    Known,
    Passes,
    Share,
    list_settled,
    settle_chapters,
)
from reassure_pipeline.resuming import Say, say_nothing
from reassure_pipeline.tables import Rows, write_tables
from reassure_spec.readings import Readings
from reassure_zookeeper.codec import HEADER, decode
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.jute import Malformed
from reassure_zookeeper.txnlog import TornTail, is_next

_LAST: Final = 1 << 62
"""Stands where the number of a piece does, for what comes after all records of an archive."""
_ROWS: Final = 1000
"""How many findings, or reassignments, travel together to the tables."""
_PART_SIZES: Final = (4 << 20, 32 << 20)
"""Bytes of the smallest and the largest part: a task takes some hundredths of a second by itself,
and a part has to fit into memory."""
_PARTS_PER_SHARE: Final = 4
_BLOCK_SIZE: Final = 64 << 10
"""Bytes of a block, at least: Spark's sorting takes thousands of them before it looks at how much
memory that is."""

Place = tuple[int, int]
"""Number of the archive, and of the piece of a log in it."""
Key = tuple[int, int, int, int, int]
"""Where a block goes, and in which order: share, archive, piece, part, and number in the part."""
Block = tuple[Key, Any]
"""Records, or a `PartResult`."""


class PartTask(NamedTuple):
    """A part of a piece of a log to read."""

    archive: int
    piece: int
    part: int
    path: Path
    """Absolute, as a worker may run elsewhere."""
    start: int
    stop: int | None
    """Up to which byte records may begin; None for all of the file."""
    is_first: bool
    is_last: bool
    whole: bool
    """Whether the piece is read as the local engine reads it, decoding everything."""
    after: int
    """Transactions up to this zxid are in the base."""
    calm: tuple[tuple[int, int], ...]
    """Of each chapter that begins from a base: the zxid of that, and up to when there may be news
    of before."""


class PartResult(NamedTuple):
    """What reading one part came to."""

    archive: int
    piece: int
    part: int
    facts: FileFacts
    last: tuple[int, int] | None
    """zxid and time of the last transaction that is judged."""
    calm_zxids: tuple[int | None, ...]
    """The first transactions after what `PartTask.calm` says."""
    error: Exception | None
    """Why it was not read to its end."""
    whole: bool
    """Whether it is all of a piece, read as the local engine reads it."""
    fits: bool
    """Whether it could be read by itself."""
    begins: int | None
    """Where its first record begins; None where there is none."""
    ends: int | None
    """Where the first record behind it begins; None where none does."""
    asked: dict[str, Asked]
    """By chroot: the numbers of the requests that were written in it."""


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
    tables: bool = False
    """Whether every finding and every reassignment is told, for the tables."""
    requests_to_all: bool = False
    """Whether requests go to every share, as one may come under a number that was used before."""
    holes: tuple[tuple[Hole, ...], ...] = ()
    """By archive: those that are known of before it is read."""
    restarts: tuple[tuple[Restart, ...], ...] = ()
    """By archive: where judging begins anew behind these."""
    done: frozenset[int] = frozenset()
    """The shares that were judged before: nothing is addressed to them."""

    def knowing(self, holes: Iterable[tuple[Hole, ...]]) -> "Plan":
        """Return the same, with what is to be done about these holes of the archives."""
        holes = tuple(holes)
        each = zip(self.archives, self.bases, holes, strict=True)
        return self._replace(holes=holes, restarts=tuple(plan_restarts(*one) for one in each))

    def get_restarts(self, archive: int) -> tuple[Restart, ...]:
        """Return where judging an archive begins anew, as far as holes are known."""
        return self.restarts[archive] if self.restarts else ()

    def list_bases(self, archive: int) -> list[Base]:
        """Return what the chapters of an archive begin from; the first one may begin from none."""
        base, restarts = self.bases[archive], self.get_restarts(archive)
        return [*([] if base is None else [base]), *(restart.base for restart in restarts)]

    def list_beginnings(self, archive: int) -> list[Beginning]:
        """Return where the chapters of an archive begin."""
        base = self.bases[archive]
        first = Beginning(self.archives[archive].snapshot, -1 if base is None else base.zxid)
        restarts = self.get_restarts(archive)
        return [first, *(Beginning(each.snapshot, each.base.zxid) for each in restarts)]

    def describe(self, whole: Set[Place]) -> list[Any]:
        """Return what is judged and how, as JSON has it: where that is the same, so is the outcome.

        Raises OSError.
        """
        pieces = [
            [index, *_identify(piece.path), piece.start, piece.stop]
            for index, archive in enumerate(self.archives)
            for piece in (*archive.pieces, *archive.earlier)
        ]
        beginnings = [
            [index, each.zxid, [] if each.snapshot is None else _identify(each.snapshot)]
            for index in range(len(self.archives))
            for each in self.list_beginnings(index)
        ]
        holes = [[list(hole) for hole in each] for each in self.holes]
        begins = [[each.name, each.members, each.begins, each.since] for each in self.archives]
        return [pieces, beginnings, holes, begins, sorted(whole), self.requests_to_all]


class Unread(NamedTuple):
    """That a share was not given all of a part: the first one tells of all parts what they are."""

    error: Exception


Outcome = tuple[int, PartResult | Unread | Known | Judged | Exception]
"""A share, and what it has to tell of an archive. An error amid judging may come of a damaged file,
which is told first."""
Told = tuple[int, bool, bytes]
"""An archive, whether the driver takes it in, and pickled an `Outcome`, or else `Rows`."""


def _identify(path: Path) -> list[Any]:
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


class Misfits(Exception):
    """What was taken for granted when the work was cut, and is not so: it has to be cut anew."""

    def __init__(self, places: Set[Place] = frozenset(), *, requests: bool = False) -> None:
        super().__init__(f"{len(places)} pieces have to be read as a whole")
        self.places = places
        """Pieces whose parts do not fit together: read as a whole they tell why."""
        self.requests = requests
        """Whether a request came under a number that was used before."""


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
    since: Since | None = None,
    progress: Progress | None = None,
    parquet: Path | None = None,
    budget: Budget = NO_BUDGET,
    resume: Path | None = None,
    say: Say = say_nothing,
) -> AuditReport:
    """Judge the logs that `paths` name on Spark; answers and raises what `audit_local` does.

    With `parquet` what each stage came to is written into that folder, to be queried
    (`reassure_pipeline.tables`). With `resume` what each share came to is kept in that folder, and
    those that are there are not judged again (`reassure_pipeline.kept_shares`): there are several
    for each core then, which are judged some at a time: when the seconds of a `budget` are over no
    more are begun, and the report is of those that were. A budget counts no transactions here.
    It is the tables or one of these two, for they take all shares.
    Besides raises `SparkUnavailable` and `JavaError`. Where `master` is not local, the paths must
    be readable on the workers.
    """
    rules = make_rules(profile, readings)
    in_turn = resume is not None or budget != NO_BUDGET
    assert parquet is None or not in_turn, "tables take all shares"
    assert budget.transactions is None, "topics are judged side by side"
    report = progress or _show_nothing
    ends = inf if budget.seconds is None else time.monotonic() + budget.seconds
    with ExitStack() as stack:
        kept: KeptShares | None = None
        if in_turn:
            place = resume or Path(stack.enter_context(TemporaryDirectory(prefix="reassure-")))
            options = at_rest, min_insync_replicas, grace_ms, facts
            identity = {"profile": profile, "readings": readings.as_dict(), "options": options}
            kept = KeptShares(stack.enter_context(own_directory(place)), identity, say)
        is_damaged = kept is not None and kept.is_damaged
        loaded = contain(paths, _load, members, since, damaged=is_damaged)
        report("starting Spark", 0, 2)
        context = stack.enter_context(open_spark(master))
        cores = max(1, context.defaultParallelism)
        shares = cores if kept is None else kept.choose_shares(cores)

        def judge(loaded: _Loaded) -> AuditReport:
            report("addressing and judging", 1, 2)
            plan = Plan(rules, *loaded, shares, at_rest, min_insync_replicas, grace_ms, facts)
            if kept is not None:
                return _judge_and_keep(context, plan, profile, kept, cores, ends, report)
            plan = plan._replace(tables=parquet is not None)
            result, outcomes = _judge_on(context, plan, profile, keep=parquet is not None)
            if parquet is not None:
                report("writing tables", 1, 2)
                write_tables(context, parquet, plan.archives, outcomes)
            return result

        try:
            return judge(loaded)
        except DamagedLog:
            if kept is not None:
                kept.note_damage()
            return judge(_load(find_archives(paths, members, since, damaged=True)))


_Loaded = tuple[tuple[Archive, ...], list[Base | None]]


def _load(archives: tuple[Archive, ...]) -> _Loaded:
    return archives, [load_base(archive) for archive in archives]


def _show_nothing(what: str, done: int, total: int) -> None:
    pass


def _judge_and_keep(
    context: Any,
    plan: Plan,
    profile: str,
    kept: KeptShares,
    cores: int,
    ends: float,
    report: Progress,
) -> AuditReport:
    """Judge on Spark what was not judged before, some shares at a time, and keep each.

    No more are begun when it `ends`, by the clock that never goes back, but for the first ones:
    without these there is nothing to report.
    """
    judged = 0

    def judge(plan: Plan, whole: Set[Place]) -> list[tuple[int, Outcome]]:
        nonlocal judged
        there = kept.load(plan.describe(whole), plan.shares)
        plan = plan._replace(done=frozenset(there))
        told = [*there.values()]
        left = [share for share in range(plan.shares) if share not in there]
        # What was addressed serves all of these jobs: Spark keeps what it has shuffled.
        outcomes = judge_all(context, plan, list_tasks(plan, whole)) if left else None
        sound = True
        for at in range(0, len(left), cores):
            if at and time.monotonic() >= ends:
                break
            report("judging, shares", len(told), plan.shares)
            some = left[at : at + cores]
            came = context.runJob(outcomes, _join, some)
            # What one of them could not be given in whole the others may not have been given.
            sound = sound and all(map(is_for_good, came))
            for share, outcome in zip(some, came, strict=True):
                if sound:
                    kept.keep(share, outcome)
            told += came
        judged = len(told)
        return [(index, pickle.loads(packed)) for each in told for index, packed in each]

    result = judge_until_it_fits(plan, profile, judge)
    kept.clear_others()
    return result if judged == plan.shares else replace(result, judged=(judged, plan.shares))


def _join(told: Iterable["Told"]) -> list[Kept]:
    """Return as one what a share has for the driver."""
    return [[(index, packed) for index, is_taken, packed in told if is_taken]]


def is_for_good(told: Kept) -> bool:
    """Whether a share came to what it would come to again: what failed may work the next time."""
    outcomes = [pickle.loads(packed)[1] for _, packed in told]
    errors = [each.error if isinstance(each, PartResult | Unread) else each for each in outcomes]
    return not any(isinstance(error, Exception) for error in errors)


def _judge_on(context: Any, plan: Plan, profile: str, *, keep: bool) -> tuple[AuditReport, Any]:
    """Judge all on Spark; return the report, and what all shares came to."""
    outcomes: Any = None

    def judge(plan: Plan, whole: Set[Place]) -> list[tuple[int, Outcome]]:
        nonlocal outcomes
        if keep and outcomes is not None:
            outcomes.unpersist()
        outcomes = judge_all(context, plan, list_tasks(plan, whole))
        if keep:
            outcomes.persist()
        taken = outcomes.filter(itemgetter(1)).collect()
        return [(index, pickle.loads(packed)) for index, _, packed in taken]

    return judge_until_it_fits(plan, profile, judge), outcomes


def judge_until_it_fits(
    plan: Plan,
    profile: str,
    judge: Callable[[Plan, Set[Place]], Iterable[tuple[int, Outcome]]],
) -> AuditReport:
    """Judge all, and again with those pieces read as a whole that could not be cut.

    And again where holes were met that nobody knew of and behind which judging begins anew, and
    where numbers of requests come again. `judge` does it, given the pieces that are not cut.
    """
    whole: frozenset[Place] = frozenset()
    plan = plan.knowing(find_known_gaps(archive) for archive in plan.archives)
    while True:
        try:
            report = sum_up(profile, plan, judge(plan, whole))
            better = find_better_plan(plan, report)
            if better is None:
                return report
            plan = better
        except Misfits as misfits:
            whole |= misfits.places
            plan = plan._replace(requests_to_all=plan.requests_to_all or misfits.requests)


def find_better_plan(plan: Plan, report: AuditReport) -> Plan | None:
    """Return what to do instead, now that all holes are known; None where that is the same."""
    last = [archive.last_zxid for archive in report.archives]
    found = tuple(tuple(h for h in archive.holes if h.before >= 0) for archive in report.archives)
    better = plan if found == plan.holes else plan.knowing(found)
    # Where nothing comes behind a snapshot nothing begins there.
    restarts = tuple(
        tuple(each for each in restarts if each.base.zxid < zxid)
        for restarts, zxid in zip(better.restarts, last, strict=True)
    )
    if _list_names(restarts) == _list_names(plan.restarts):
        return None
    return better._replace(restarts=restarts)


def _list_names(restarts: Iterable[Iterable[Restart]]) -> list[list[Path]]:
    return [[each.snapshot for each in those] for those in restarts]


def judge_all(context: Any, plan: Plan, tasks: Sequence[PartTask]) -> Any:
    """Return what each share came to, as an RDD of archives' numbers and pickled outcomes."""
    sent = context.broadcast(plan)

    def read(tasks: Iterable[PartTask]) -> Iterator[Block]:
        return chain.from_iterable(read_part(task, sent.value) for task in tasks)

    def judge(blocks: Iterable[Block]) -> Iterator[Told]:
        return judge_share(blocks, sent.value)

    # A survey leaves small pieces, of which a task reads several.
    size = sum(measure_piece(piece) for archive in plan.archives for piece in archive.pieces)
    slices = max(plan.shares * _PARTS_PER_SHARE, size // _PART_SIZES[0])
    blocks = context.parallelize(tasks, min(len(tasks), slices)).mapPartitions(read)
    routed = blocks.repartitionAndSortWithinPartitions(plan.shares, itemgetter(0))
    return routed.mapPartitions(judge)


# Address ------------------------------------------------------------------------------------------


def list_tasks(plan: Plan, whole: Set[Place] = frozenset()) -> list[PartTask]:
    """Return what there is to read, in order; the pieces in `whole` are not cut."""
    pieces = {
        (index, number): (piece, measure_piece(piece))
        for index, archive in enumerate(plan.archives)
        for number, piece in enumerate(archive.pieces)
    }
    smallest, largest = _PART_SIZES
    part = sum(size for _, size in pieces.values()) // (plan.shares * _PARTS_PER_SHARE)
    part = min(max(part, smallest), largest)
    tasks = []
    for place, (piece, size) in pieces.items():
        base, since = plan.bases[place[0]], plan.archives[place[0]].since
        bases = plan.list_bases(place[0])
        is_whole = place in whole or piece.path.suffix in (".gz", ".zip")
        starts = range(piece.start, piece.start + (1 if is_whole else max(size, 1)), part)
        tasks += [
            PartTask(
                *place,
                number,
                piece.path.absolute(),
                at,
                piece.stop if at == starts[-1] else at + part,
                at == starts[0],
                at == starts[-1],
                is_whole,
                (since or 0) - 1 if base is None else base.zxid,
                tuple((each.zxid, each.news_ms + plan.grace_ms) for each in bases),
            )
            for number, at in enumerate(starts)
        ]
    return tasks


def read_part(task: PartTask, plan: Plan) -> Iterator[Block]:
    """Yield the records of a part that may matter, in blocks, then what the part was worth.

    Whatever ends the reading is handed on rather than raised, so that it is told in file order.
    """
    reading = _Reading(task, plan)
    try:
        yield from reading.blocks()
    except Exception as problem:  # told by the driver, which knows what comes before
        reading.error = problem
    result = reading.sum_up()
    for share in range(plan.shares):
        if share not in plan.done:
            yield (share, task.archive, _LAST, task.piece, task.part), result


class _Reading:
    """Reads a part and puts its records into blocks."""

    def __init__(self, task: PartTask, plan: Plan) -> None:
        self.error: Exception | None = None
        self._task = task
        piece = plan.archives[task.archive].pieces[task.piece]
        self._path = piece.path
        self._log = (
            WholeLog(open_piece(piece, path=task.path, records=[]))
            if task.whole
            else PartOfLog(
                task.path,
                task.start,
                task.stop,
                is_first=task.is_first,
                is_last=task.is_last,
            )
        )
        to_all = plan.at_rest or plan.requests_to_all
        self._addressing = Addressing(plan.rules, plan.shares, requests_to_all=to_all)
        self._done = plan.done
        self._blocks: list[list[bytes]] = [[] for _ in range(plan.shares)]
        self._sizes = [0] * plan.shares
        self._number = self._judged = 0
        self._first_ms = 0
        self._last: tuple[int, int] | None = None
        self._calm: list[int | None] = [None for _ in task.calm]

    def blocks(self) -> Iterator[Block]:
        """Yield the records that may matter, by share."""
        find, blocks, sizes = self._addressing.find, self._blocks, self._sizes
        for batch in self._log.batches():
            for record in self._leave_out(batch):
                for number in find(record):
                    blocks[number].append(record)
                    sizes[number] += len(record)
            yield from self._take(_BLOCK_SIZE)
        yield from self._take(1)

    def _leave_out(self, batch: list[bytes]) -> list[bytes]:
        """Return those that are judged: all that are not in the base."""
        task, log = self._task, self._log
        if task.after >= log.first_zxid:
            # Decoded, as nobody else looks whether they make sense.
            batch = [record for record in batch if decode(record).zxid > task.after]
        if batch:
            if not self._judged:
                self._first_ms = HEADER.unpack_from(batch[0])[3]
            self._judged += len(batch)
            self._last = log.last_zxid, log.last_ms
        for number, (base, news_ms) in enumerate(task.calm):
            if self._calm[number] is None and log.last_zxid > base:
                heads = map(HEADER.unpack_from, batch)
                calm = (z for _, _, z, now_ms, _ in heads if z > base and now_ms > news_ms)
                self._calm[number] = next(calm, None)
        return batch

    def _take(self, least: int) -> Iterator[Block]:
        """Yield the blocks that have so many bytes by now."""
        task = self._task
        for share, size in enumerate(self._sizes):
            if share in self._done:
                self._blocks[share].clear()
            elif size >= least:
                key = share, task.archive, task.piece, task.part, self._number
                yield key, self._blocks[share]
                self._blocks[share] = []  # the old one is whoever's it was handed to
                self._sizes[share] = 0
        self._number += 1

    def sum_up(self) -> PartResult:
        """Return what the part was worth, as far as it was read."""
        task, log, path, error = self._task, self._log, self._path, self.error
        if isinstance(error, DamagedLog):
            error = DamagedLog(path, error.offset, error.reason)
        tail = None if log.tail is None else TornTail(path, log.tail.offset, log.tail.reason)
        facts = FileFacts(
            path,
            log.first_zxid,
            log.last_zxid,
            self._judged,
            tail,
            self._addressing.unjudged,
            None if self._last is None else (self._first_ms, self._last[1]),
            tuple(log.holes),
        )
        # Reading it as a whole says where what makes no sense stands.
        fits = log.fits and not isinstance(error, Malformed)
        return PartResult(
            task.archive,
            task.piece,
            task.part,
            facts,
            self._last,
            tuple(self._calm),
            error,
            task.whole,
            fits,
            log.begins,
            log.ends,
            self._addressing.asked,
        )


# Judge --------------------------------------------------------------------------------------------


def judge_share(blocks: Iterable[Block], plan: Plan) -> Iterator[Told]:
    """Judge what came to one share, archive after archive; yield what each came to."""
    judged: _ShareAudit | None = None
    with rare_collections():
        for (share, archive, piece, *_), block in blocks:
            if judged is None or judged.archive != archive:
                if judged is not None:
                    yield from judged.finish()
                judged = _ShareAudit(archive, Share(share, plan.shares), plan)
            if piece == _LAST:
                judged.end_part(block)
            else:
                judged.feed(block)
                yield from judged.take_rows(_ROWS)
        if judged is not None:
            yield from judged.finish()


class _ShareAudit:
    """One archive on its way through both passes, as far as one share goes."""

    def __init__(self, archive: int, share: Share, plan: Plan) -> None:
        self.archive = archive
        self._share = share
        self._plan = plan
        self._moves: list[Move] = []
        tell = self._moves.append if plan.tables else None
        wanted = plan.facts or plan.tables
        found = plan.archives[archive]
        facts = Facts(found.name, plan.rules, tell) if wanted else None
        options = {
            "keep_keys": plan.at_rest,
            "min_insync_replicas": plan.min_insync_replicas,
            "grace_ms": plan.grace_ms,
            "share": share,
        }
        self._passes = Passes(found, plan.bases[archive], plan.rules, options, facts)
        self._passes.coming += plan.get_restarts(archive)
        self._parts: list[PartResult] = []
        self._error: Exception | None = None

    def feed(self, records: Sequence[bytes]) -> None:
        """Judge some transactions, the next in order."""
        if self._error is not None:
            return
        try:
            for part in self._passes.cut(records, _get_zxid):
                feed, observe = self._passes.routing.feed, self._passes.judging.observe
                for record in part:
                    for seen in feed(decode(record)):
                        observe(seen)
        except Exception as error:  # told by the driver, unless a file is damaged
            self._error = error

    def end_part(self, result: PartResult) -> None:
        """Take note of what a part was worth."""
        self._parts.append(result)
        if result.last is not None:
            self._passes.reach(result.last[0])
            self._passes.routing.skip(*result.last)

    def take_rows(self, least: int) -> Iterator[Told]:
        """Yield the reassignments that have ended, where there are so many by now."""
        if len(self._moves) >= max(1, least):
            yield self.archive, False, pickle.dumps(Rows(moves=tuple(self._moves)))
            self._moves.clear()

    def finish(self) -> Iterator[Told]:
        """Judge what must be true at the end, and yield what there is to tell."""
        number = self._share.number
        outcomes: list[PartResult] | list[Unread] = self._parts
        if number > 0:
            # A part may be read twice, for shares that are judged at another time.
            errors = (part.error for part in self._parts if part.error is not None)
            outcomes = [Unread(error) for error in errors]
        for outcome in outcomes:
            yield self.archive, True, pickle.dumps((number, outcome))
        if self._error is None:
            try:
                yield from self._sum_up(number)
            except Exception as error:  # told by the driver, with what comes before
                self._error = error
        if self._error is not None:
            yield self.archive, True, pickle.dumps((number, self._error))

    def _sum_up(self, number: int) -> Iterator[Told]:
        plan, archive = self._plan, self.archive
        judging = self._passes.judging
        for rest in self._passes.routing.finish():
            judging.rest(rest)
        files = collect_facts(self._parts, plan.archives)[archive]
        judging.end(find_times(files))
        chapters = self._passes.list_chapters()
        base = plan.bases[archive]
        count = len(plan.list_bases(archive))
        for number, (_, known, _) in enumerate(chapters[len(chapters) - count :]):
            known.calm_zxid = find_calm(self._parts, number)
        holes = find_gaps_amid(plan.archives[archive], files, () if base is None else base.holes)
        known = Known.join([each for _, each, _ in chapters])
        found = list_settled(chapters, holes) if plan.tables else []
        for at in range(0, len(found), _ROWS):
            yield archive, False, pickle.dumps(Rows(found=tuple(found[at : at + _ROWS])))
        yield from self.take_rows(1)
        judged = settle_chapters(chapters, holes, self._passes.count_partitions())
        judged.facts = judged.facts if plan.facts else None
        for outcome in (known, judged):
            yield archive, True, pickle.dumps((number, outcome))


def _get_zxid(record: bytes) -> int:
    zxid: int = HEADER.unpack_from(record)[2]
    return zxid


def find_calm(results: Iterable[PartResult], number: int) -> int | None:
    """Return the first transaction that no news of before one of an archive's bases can excuse."""
    calm = [result.calm_zxids[number] for result in results]
    return min((zxid for zxid in calm if zxid is not None), default=None)


# Sum up -------------------------------------------------------------------------------------------


def sum_up(profile: str, plan: Plan, outcomes: Iterable[tuple[int, Outcome]]) -> AuditReport:
    """Put together what all shares came to.

    Raises `Misfits` where parts do not fit together; what ended the reading of a file, the first in
    order; and then what ended the judging.
    """
    found = [(index, *outcome) for index, outcome in outcomes]
    results = [what for _, _, what in found if isinstance(what, PartResult)]
    malformed = any(isinstance(what, Malformed) for _, _, what in found)
    misfits = find_misfits(results, malformed=malformed)
    if misfits:
        raise Misfits(misfits)
    files = collect_facts(results, plan.archives)
    for _, _, what in found:
        if isinstance(what, Exception):
            raise what
        if isinstance(what, Unread):
            raise what.error
    if not plan.requests_to_all and not are_requests_new(results, plan):
        raise Misfits(requests=True)
    tally, reports = Tally(), []
    for index, archive in enumerate(plan.archives):
        mine = sorted((each for each in found if each[0] == index), key=itemgetter(1))
        known, *others = [what for _, _, what in mine if isinstance(what, Known)]
        for other in others:
            known.add(other)
        judged = Judged()
        for _, _, what in mine:
            if isinstance(what, Judged):
                judged.add(what)
        tally.add(judged.tally)
        base = plan.bases[index]
        before = () if base is None else base.holes
        told = known, judged, plan.list_beginnings(index)
        reports.append(report_archive(archive, files[index], *told, before))
    return report_audit(profile, tally, reports)


def find_misfits(results: Iterable[PartResult], *, malformed: bool) -> frozenset[Place]:
    """Return the pieces whose parts are not all there is of them, each record once.

    With `malformed` something makes no sense in a record of one that was not read as a whole:
    nobody knows of which.
    """
    misfits = set()
    for place, parts in _by_piece(results).items():
        if parts[0].whole:
            continue
        expected, last_zxid = parts[0].begins, -1
        for part in parts:
            if not part.fits or malformed:
                misfits.add(place)
            if part.begins is not None:
                first_zxid = part.facts.first_zxid
                if part.begins != expected or -1 < first_zxid <= last_zxid:
                    misfits.add(place)
                expected, last_zxid = part.ends, max(last_zxid, part.facts.last_zxid)
            if part.error is not None:  # which is what reading in order would have come to
                break
        if expected is not None:
            misfits.add(place)
    return frozenset(misfits)


def are_requests_new(results: Iterable[PartResult], plan: Plan) -> bool:
    """Whether no request came under a number that was used before, as their addressing takes it."""
    parts = defaultdict[int, list[PartResult]](list)
    for part in sorted(results, key=itemgetter(0, 1, 2)):
        parts[part.archive].append(part)
    return all(
        is_growing(_list_asked_in_order(archived, plan.list_bases(archive), plan.rules))
        for archive, archived in parts.items()
    )


def _list_asked_in_order(
    parts: Iterable[PartResult], bases: Iterable[Base], rules: Rules[Any, Any]
) -> Iterator[dict[str, Asked]]:
    """Yield which requests were there in each base, before what comes behind it, and in parts."""
    left = sorted(bases, key=lambda base: base.zxid)
    for part in parts:
        while left and left[0].zxid < part.facts.first_zxid:
            yield list_asked(rules, (path for path, *_ in left.pop(0).nodes))
        yield part.asked


def collect_facts(
    results: Iterable[PartResult], archives: Sequence[Archive]
) -> list[list[FileFacts]]:
    """Return what the pieces are worth, by archive; raises what ended the reading of the first."""
    facts: list[list[FileFacts]] = [[] for _ in archives]
    before: FileFacts | None = None
    for (archive, piece), parts in _by_piece(results).items():
        before = None if piece == 0 else before
        whole = _join_parts(parts)
        if whole.first_zxid >= 0:
            check_joint(before, whole.path, whole.first_zxid)
        for part in parts:
            if part.error is not None:
                raise part.error
        before = join_facts(before, whole)
        facts[archive].append(whole)
    return facts


def _by_piece(results: Iterable[PartResult]) -> dict[Place, list[PartResult]]:
    pieces = defaultdict[Place, list[PartResult]](list)
    for part in sorted(results, key=itemgetter(0, 1, 2)):
        pieces[part.archive, part.piece].append(part)
    return pieces


def _join_parts(parts: Sequence[PartResult]) -> FileFacts:
    """Return what the piece is worth of which these are the parts."""
    filled = [part.facts for part in parts if part.facts.first_zxid >= 0]
    unjudged = Counter[str]()
    for part in parts:
        unjudged.update(part.facts.unjudged)
    return FileFacts(
        parts[0].facts.path,
        filled[0].first_zxid if filled else -1,
        filled[-1].last_zxid if filled else -1,
        sum(part.facts.judged for part in parts),
        next((part.facts.tail for part in parts if part.facts.tail is not None), None),
        unjudged,
        find_times(part.facts for part in parts),
        tuple(hole for facts in filled for hole in facts.holes)
        + tuple(
            Hole(one.last_zxid, other.first_zxid)
            for one, other in pairwise(filled)
            if not is_next(one.last_zxid, other.first_zxid)
        ),
    )
