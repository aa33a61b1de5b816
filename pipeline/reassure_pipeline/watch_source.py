"""What grows in archives as a stream of Spark: a Python data source."""

import base64
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reassure_judge.rules import Rules
from reassure_pipeline.addressing import Addressing
from reassure_pipeline.alerts import Alert, tell_damage, tell_hole
from reassure_pipeline.archive import Archive
from reassure_pipeline.bases import Base, Restart
from reassure_pipeline.growing import Follower, TakenBack
from reassure_pipeline.same_history import SameHistories, SameHistory
from reassure_pipeline.watched import (
    NOTHING,
    Extent,
    Options,
)
from reassure_zookeeper.codec import decode_head
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.txnlog import LogFile

if TYPE_CHECKING:
    from pyarrow import RecordBatch

FORMAT: Final = "reassure-watch"
_ROWS: Final = "share int, archive int, zxid bigint, record binary"


NEWS: Final = -1
"""Stands where a zxid does, for what a share is told before the transactions of a batch."""
GONE: Final = -2
"""So, for what it is told of transactions that are gone."""


_MOST: Final = 50_000
"""How many transactions one batch takes, so that what is told of many is told soon."""


def pack(value: object) -> str:
    """Return a value as text, as an option of a data source takes it."""
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
        return {"number": 0, "look": pack(begin_looking(self._plan))}

    def latestOffset(self, start: dict[str, Any], limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return how far there is something to read."""
        before = _unpack(start["look"])
        if self._end.exists():
            return start
        look = look_on(self._plan, before, self._same)
        return start if look is before else {"number": start["number"] + 1, "look": pack(look)}

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
        yield from ((share, number, NEWS, news) for share in range(plan.shares))
    yield 0, -1, NEWS, pickle.dumps(look._replace(restarts=()))


def _read_stretch(plan: Plan, stretch: Stretch) -> Iterator[Row]:
    """Yield the records in a part of a file that may matter, each to its share."""
    begun = plan.begun[stretch.archive]
    after = -1 if begun.base is None else begun.base.zxid
    path = _find_file(Path(stretch.path))
    if path is None:
        hole = Hole(stretch.first_zxid - 1, stretch.last_zxid + 1)
        gone = pickle.dumps(Gone(stretch.archive, hole, stretch.transactions))
        yield from ((share, stretch.archive, GONE, gone) for share in range(plan.shares))
        yield 0, -1, NEWS, pickle.dumps(_tell_gone(begun.archive.name, stretch))
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
        f"it is gone; whether its transactions from 0x{stretch.first_zxid:x} to "
        f"0x{stretch.last_zxid:x} were judged is uncertain, and so are violations after them"
    )
    return tell_damage(
        archive, stretch.first_zxid, DamagedLog(Path(stretch.path), stretch.start, reason)
    )
