"""What one task of an audit on Spark does: read a part, or judge a share."""

import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from reassure_judge.rules import Rules
from reassure_pipeline.archives.archive import (
    Archive,
    Beginning,
    FileFacts,
    check_joint,
    find_times,
    open_piece,
)
from reassure_pipeline.archives.beginnings import Base, Restart, plan_restarts
from reassure_pipeline.audit.archive_report import find_gaps_amid, join_facts
from reassure_pipeline.audit.jobs import rare_collections
from reassure_pipeline.audit.passes import (
    Judged,
    KnownHistory,
    Options,
    Passes,
    Share,
    list_settled,
    settle_chapters,
)
from reassure_pipeline.fleet.totals import MoveRecord
from reassure_pipeline.spark.addressing import Addressing, Asked
from reassure_pipeline.spark.log_parts import PartOfLog, WholeLog
from reassure_pipeline.spark.tables import Rows
from reassure_zookeeper.codec import HEADER, decode
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.jute import Malformed
from reassure_zookeeper.txnlog import TornTail, is_next

_LAST: Final = 1 << 62
"""Stands where the number of a piece does, for what comes after all records of an archive."""
_ROWS: Final = 1000
"""How many findings, or reassignments, travel together to the tables."""

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

    task: PartTask
    facts: FileFacts
    calm_zxids: tuple[int | None, ...]
    """The first transactions after what `PartTask.calm` says."""
    error: Exception | None
    """Why it was not read to its end."""
    fits: bool
    """Whether it could be read by itself."""
    begins: int | None
    """Where its first record begins; None where there is none."""
    ends: int | None
    """Where the first record behind it begins; None where none does."""
    asked: dict[str, Asked]
    """By chroot: the numbers of the requests that were written in it."""


class SparkPlan(NamedTuple):
    """What every task has to know."""

    rules: Rules[Any, Any]
    archives: Sequence[Archive]
    bases: Sequence[Base | None]
    shares: int
    options: Options
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

    def knowing(self, holes: Iterable[tuple[Hole, ...]]) -> "SparkPlan":
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


class UnreadPart(NamedTuple):
    """That a share was not given all of a part: the first one tells of all parts what they are."""

    error: Exception


Outcome = tuple[int, PartResult | UnreadPart | KnownHistory | Judged | Exception]
"""A share, and what it has to tell of an archive. An error amid judging may come of a damaged file,
which is told first."""
Told = tuple[int, bool, bytes]
"""An archive, whether the driver takes it in, and pickled an `Outcome`, or else `Rows`."""


def _identify(path: Path) -> list[Any]:
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def read_part(task: PartTask, plan: SparkPlan) -> Iterator[Block]:
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

    def __init__(self, task: PartTask, plan: SparkPlan) -> None:
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
        to_all = plan.options.at_rest or plan.requests_to_all
        self._addressing = Addressing(plan.rules, plan.shares, requests_to_all=to_all)
        self._done = plan.done
        self._blocks: list[list[bytes]] = [[] for _ in range(plan.shares)]
        self._sizes = [0] * plan.shares
        self._number = self._judged = 0
        self._times_ms: tuple[int, int] | None = None
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
            first_ms, _ = self._times_ms or (HEADER.unpack_from(batch[0])[3], 0)
            self._judged += len(batch)
            self._times_ms = first_ms, log.last_ms
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
            self._times_ms,
            tuple(log.holes),
        )
        # Reading it as a whole says where what makes no sense stands.
        fits = log.fits and not isinstance(error, Malformed)
        return PartResult(
            task,
            facts,
            tuple(self._calm),
            error,
            fits,
            log.begins,
            log.ends,
            self._addressing.asked,
        )


# Judge --------------------------------------------------------------------------------------------


def judge_share(blocks: Iterable[Block], plan: SparkPlan) -> Iterator[Told]:
    """Judge what came to one share, archive after archive; yield what each came to."""
    judged: _SparkShare | None = None
    with rare_collections():
        for (share, archive, piece, *_), block in blocks:
            if judged is None or judged.archive != archive:
                if judged is not None:
                    yield from judged.finish()
                judged = _SparkShare(archive, Share(share, plan.shares), plan)
            if piece == _LAST:
                judged.end_part(block)
            else:
                judged.feed(block)
                yield from judged.take_rows(_ROWS)
        if judged is not None:
            yield from judged.finish()


class _SparkShare:
    """One archive on its way through both passes, as far as one share goes."""

    def __init__(self, archive: int, share: Share, plan: SparkPlan) -> None:
        self.archive = archive
        self._share = share
        self._plan = plan
        self._moves: list[MoveRecord] = []
        tell = self._moves.append if plan.tables else None
        given = plan.archives[archive], plan.bases[archive], plan.rules, plan.options, share
        self._passes = Passes(*given, tell)
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
        facts = result.facts
        if facts.times_ms is not None:
            self._passes.reach(facts.last_zxid)
            self._passes.routing.skip(facts.last_zxid, facts.times_ms[1])

    def take_rows(self, least: int) -> Iterator[Told]:
        """Yield the reassignments that have ended, where there are so many by now."""
        if len(self._moves) >= max(1, least):
            yield self.archive, False, pickle.dumps(Rows(moves=tuple(self._moves)))
            self._moves.clear()

    def finish(self) -> Iterator[Told]:
        """Judge what must be true at the end, and yield what there is to tell."""
        number = self._share.number
        outcomes: list[PartResult] | list[UnreadPart] = self._parts
        if number > 0:
            # A part may be read twice, for shares that are judged at another time.
            errors = (part.error for part in self._parts if part.error is not None)
            outcomes = [UnreadPart(error) for error in errors]
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
        files = collect_facts(self._parts, plan.archives)[archive]
        self._passes.finish(find_times(files))
        chapters = self._passes.list_chapters()
        base = plan.bases[archive]
        count = len(plan.list_bases(archive))
        for number, (_, known, _) in enumerate(chapters[len(chapters) - count :]):
            known.calm_zxid = find_calm(self._parts, number)
        holes = find_gaps_amid(plan.archives[archive], files, () if base is None else base.holes)
        known = KnownHistory.join([each for _, each, _ in chapters])
        found = list_settled(chapters, holes) if plan.tables else []
        for at in range(0, len(found), _ROWS):
            yield archive, False, pickle.dumps(Rows(found=tuple(found[at : at + _ROWS])))
        yield from self.take_rows(1)
        judged = settle_chapters(chapters, holes, self._passes.count_partitions())
        judged.facts = judged.facts if plan.options.facts else None
        for outcome in (known, judged):
            yield archive, True, pickle.dumps((number, outcome))


def _get_zxid(record: bytes) -> int:
    zxid: int = HEADER.unpack_from(record)[2]
    return zxid


def find_calm(results: Iterable[PartResult], number: int) -> int | None:
    """Return the first transaction that no news of before one of an archive's bases can excuse."""
    calm = [result.calm_zxids[number] for result in results]
    return min((zxid for zxid in calm if zxid is not None), default=None)


def collect_facts(
    results: Iterable[PartResult], archives: Sequence[Archive]
) -> list[list[FileFacts]]:
    """Return what the pieces are worth, by archive; raises what ended the reading of the first."""
    facts: list[list[FileFacts]] = [[] for _ in archives]
    before: FileFacts | None = None
    for (archive, piece), parts in by_piece(results).items():
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


def by_piece(results: Iterable[PartResult]) -> dict[Place, list[PartResult]]:
    """Return the results of each file, in the order of its parts."""
    pieces = defaultdict[Place, list[PartResult]](list)
    for part in sorted(results, key=itemgetter(0)):
        pieces[part.task[:2]].append(part)
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
