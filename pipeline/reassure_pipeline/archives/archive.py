"""Which files make one history, where it begins, and whether it has holes.

An *archive* is one history: the transaction log of a server, or of several members of an ensemble
put together. A server is a data directory, its `version-2`, or log files named one by one. Files
`log.ZXID` that lie in one directory are one server's, so that a pattern of the shell does the same
as the directory itself; everything else named is a server of its own. Servers are members of one
ensemble where they have logged the same under the same zxids, as far as the beginnings of their
files show (`reassure_zookeeper.ensemble`).

**Where a history begins.** Judging needs to know what was there before the first transaction:

* `beginning`: the first transaction is the first that a server ever writes. Nothing was there.
* `snapshot`: there are snapshots, and the logs go on from one without a hole. The oldest of these
  is taken, which leaves most to judge. A snapshot is *fuzzy*: written while the server worked, it
  shows some changes that came after the zxid in its name. The transactions from that zxid up to the
  newest change that it can show are therefore replayed on top of it, not judged: what results is
  exactly the tree at that zxid (`Base`).
* `middle`: neither. What was there is not known, except for clusters that are born later on.

A snapshot that ends before the logs begin is of no use: who came and went between is not known.

**Holes.** Zxids of one leader are consecutive. Where a zxid is left out, between two files or
inside one, transactions are missing; what is found after that is not certain.

**Behind a hole.** A snapshot that lies behind shows what was there by then: judging begins anew
from it (`find_restart`), so that a history is judged in *chapters*, each with a beginning of its
own. What lies between a hole and the next chapter is judged, and is not certain. A snapshot *lies
behind* a hole if nothing that is missing can have come after it, nor the hole be in what leads from
it to the tree that judging begins from. What a member logged and nobody took over is in none: its
snapshots from then are left out. Where two files contradict each other none is taken.

**Damage.** A log is first read as if it were whole, which costs nothing. Where it turns out not to
be, the work begins anew on what a survey says can be read (`contain`): from then on every piece is
whole, and what is missing is a hole.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from reassure_pipeline.archives.servers import ArchivedServer, find_families, find_servers
from reassure_zookeeper.ensemble import Divergence, EnsembleMember, Hole, Piece, merge
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.log_survey import Damage, Survey, survey_log
from reassure_zookeeper.snapshot import snapshot_files
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import FILE_HEADER, LogFile, TornTail, get_zxid_in_name, is_next

T = TypeVar("T")

BEGINNING: Final = "beginning"
SNAPSHOT: Final = "snapshot"
MIDDLE: Final = "middle"

_FIRST_ZXIDS: Final = (1, (1 << 32) + 1)
"""What a server on its own writes first, and what an ensemble does."""

RECOGNISED: Final = "auto"
ONE: Final = "one"
APART: Final = "apart"
MEMBERSHIPS: Final = (RECOGNISED, ONE, APART)
"""Which servers are members of one ensemble: what their logs show, all of them, none."""

_STILL_S: Final = 2.0
"""How long ago a file must have been written for its time to tell that it is the same: the clocks
of file systems are coarse."""

_RELEVANT: Final = ("/brokers", "/controller", "/config/", "/admin/", "_notification")


@dataclass(frozen=True, slots=True)
class Archive:
    """One history."""

    name: str
    """The path as it was given, of the first member."""
    files: tuple[Path, ...]
    """Log files in the order of their zxids, member by member."""
    begins: str
    """`beginning`, `snapshot` or `middle`."""
    snapshot: Path | None = None
    """What to begin from, where it begins from a snapshot."""
    unread: tuple[Path, ...] = ()
    """What lies beside the log files and is called like one, and cannot be read as one."""
    members: tuple[str, ...] = ()
    """The paths as they were given, where there are several."""
    pieces: tuple[Piece, ...] = ()
    """What to read, in order."""
    holes: tuple[Hole, ...] = ()
    """Holes that do not show in the zxids of pieces."""
    damages: tuple[Damage, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    tail: TornTail | None = None
    """The unfinished last record, as far as a survey has met it."""
    snapshots: tuple[Path, ...] = ()
    """Those that lie beside the logs, oldest first."""
    surveyed: bool = False
    """Whether the pieces are what a survey says, rather than whole files taken as they are."""
    since: int | None = None
    """The first zxid that is judged, where that is not the first there is."""
    earlier: tuple[Piece, ...] = ()
    """What comes before `pieces`, and is read for what was there by then."""


class Beginning(NamedTuple):
    """Where a chapter of a history begins."""

    snapshot: Path | None
    """The snapshot that shows what was there, None where there is none."""
    zxid: int
    """The last transaction before it, -1 for none."""


class Since(NamedTuple):
    """From when on to judge: a zxid, or else milliseconds since 1970 by the server's clock."""

    zxid: int | None = None
    time_ms: int | None = None


@dataclass(slots=True)
class FileFacts:
    """What reading one log file, or a piece of one, has shown."""

    path: Path
    first_zxid: int = -1
    """-1 where the file has no transaction."""
    last_zxid: int = -1
    judged: int = 0
    """Transactions after the base of the archive, refused ones included."""
    tail: TornTail | None = None
    times_ms: tuple[int, int] | None = None
    """When the first and the last transaction was that is judged, by the server's clock."""
    holes: tuple[Hole, ...] = ()
    """Those inside it."""


def find_times(files: Iterable[FileFacts]) -> tuple[int, int] | None:
    """Return when the first and the last transaction of these files was that is judged."""
    times = [facts.times_ms for facts in files if facts.times_ms is not None]
    return (times[0][0], times[-1][1]) if times else None


def contain(
    paths: Sequence[Path],
    work: Callable[[tuple[Archive, ...]], T],
    members: str = RECOGNISED,
    since: Since | None = None,
    *,
    damaged: bool = False,
) -> T:
    """Do some work on the archives that these paths name, and again around what is damaged.

    With `damaged` it is known that something is.
    Raises what `find_archives` and the work raise; `DamagedLog` where nothing of one can be read.
    """
    if not damaged:
        try:
            return work(find_archives(paths, members, since))
        except DamagedLog:
            pass
    return work(find_archives(paths, members, since, damaged=True))


def find_archives(
    paths: Sequence[Path],
    members: str = RECOGNISED,
    since: Since | None = None,
    *,
    damaged: bool = False,
) -> tuple[Archive, ...]:
    """Return the archives that these paths name, in their order, each once.

    `members` is one of `MEMBERSHIPS`; `since` is from when on they are judged. With `damaged` every
    file is surveyed, so that what an archive consists of can be read to its end.
    Raises `LogsMissing` where a path leads to no transaction, and `DamagedLog` where the first one
    cannot be read, with `damaged` only where none can.
    """
    servers = find_servers(paths)
    if members == ONE:
        families = [servers]
    elif members == APART or len(servers) == 1:
        families = [[server] for server in servers]
    else:
        families, unreadable = find_families(servers)
        for _, error in unreadable:
            raise error
    archives = [
        _make_archive(family[0])
        if len(family) == 1 and not damaged
        else _survey_archive(family, decodes=damaged)
        for family in families
    ]
    return tuple(each if since is None else _begin_at(each, since) for each in archives)


def _make_archive(server: ArchivedServer) -> Archive:
    """Return an archive of one server, taken as whole."""
    pieces = tuple(Piece(file, first=get_zxid_in_name(file)) for file in server.files)
    first = _find_first(pieces)
    if first is None:
        raise _miss_logs(server)
    snapshots = _list_snapshots([server])
    begins, snapshot = _find_beginning(first, snapshots)
    named = server.name, server.files, begins, snapshot, server.unread
    return Archive(*named, pieces=pieces, snapshots=snapshots)


def _survey_archive(servers: Sequence[ArchivedServer], *, decodes: bool) -> Archive:
    """Return an archive of what can be read of these servers' logs, all together."""
    merged = merge(
        [
            EnsembleMember.of(
                server.name,
                [survey_file(file, decodes=decodes) for file in server.files],
                [get_zxid_in_name(file) for file in _list_snapshots([server])],
            )
            for server in servers
        ]
    )
    if not merged.pieces:
        for damage in merged.damages:
            raise DamagedLog(damage.file, damage.offset, damage.reason)
        raise _miss_logs(servers[0])
    snapshots = _leave_out_diverged(_list_snapshots(servers), merged.divergences)
    begins, snapshot = _find_beginning(merged.pieces[0].first, snapshots)
    several = len(servers) > 1
    return Archive(
        servers[0].name,
        tuple(file for server in servers for file in server.files),
        begins,
        snapshot,
        tuple(file for server in servers for file in server.unread),
        tuple(server.name for server in servers) if several else (),
        merged.pieces,
        merged.holes,
        merged.damages,
        merged.divergences,
        merged.tail,
        snapshots,
        surveyed=True,
    )


def survey_file(file: Path, *, decodes: bool) -> Survey:
    """Survey a log file, once as long as it is the same. Raises OSError."""
    status = file.stat()
    if time.time() - status.st_mtime < _STILL_S:
        return survey_log(file, decodes=decodes)
    return _survey_still(file, decodes, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _survey_still(file: Path, decodes: bool, *_: int) -> Survey:
    return survey_log(file, decodes=decodes)


def _miss_logs(server: ArchivedServer) -> LogsMissing:
    names = ", ".join(file.name for file in server.unread)
    beside = f" ({names} cannot be read)" if names else ""
    return LogsMissing(
        f"{server.name} has no transaction{beside}; name a ZooKeeper data directory, its version-2 "
        "directory, or a file log.ZXID that holds at least one"
    )


def _list_snapshots(servers: Sequence[ArchivedServer]) -> tuple[Path, ...]:
    """Return the snapshots of all these servers, oldest first."""
    folders = [server.place for server in servers if server.place.is_dir()]
    found = [file for folder in folders for file in snapshot_files(folder)]
    return tuple(sorted(found, key=get_zxid_in_name))


def _leave_out_diverged(
    snapshots: Iterable[Path], divergences: Sequence[Divergence]
) -> tuple[Path, ...]:
    """Return the snapshots that do not end in what is no part of the history."""
    zxids = {each: get_zxid_in_name(each) for each in snapshots}
    return tuple(
        each
        for each, zxid in zxids.items()
        if not any(lost.first <= zxid <= lost.last for lost in divergences)
    )


def _find_beginning(first: int, snapshots: Sequence[Path]) -> tuple[str, Path | None]:
    """Return where a history begins whose first zxid this is."""
    if first in _FIRST_ZXIDS:
        return BEGINNING, None
    for snapshot in snapshots:
        if _is_followed(snapshot, first):
            return SNAPSHOT, snapshot
    return MIDDLE, None


def _is_followed(snapshot: Path, first: int) -> bool:
    """Whether a history that begins with this zxid goes on from a snapshot."""
    zxid = get_zxid_in_name(snapshot)
    return first <= zxid or is_next(zxid, first)


def _begin_at(archive: Archive, since: Since) -> Archive:
    """Return an archive that is judged from then on, with what stood before taken as given."""
    zxid = _find_time(archive, since.time_ms or 0) if since.zxid is None else since.zxid
    first = _find_first(archive.pieces)
    if first is None or zxid <= first:
        return archive
    number = max(n for n, piece in enumerate(archive.pieces) if not n or piece.first <= zxid)
    earlier, pieces = archive.pieces[:number], archive.pieces[number:]
    taken = None
    for snapshot in archive.snapshots:
        if get_zxid_in_name(snapshot) < zxid and _is_followed(snapshot, first):
            taken = snapshot
    begins = SNAPSHOT if taken is not None or archive.begins == BEGINNING else MIDDLE
    begun = zxid - 1 if begins == MIDDLE else 0
    begun = begun if taken is None else get_zxid_in_name(taken)
    holes = tuple(each for each in archive.holes if each.before < 0 or each.before > begun)
    return replace(
        archive,
        begins=begins,
        snapshot=taken,
        pieces=pieces,
        holes=holes,
        since=zxid,
        earlier=earlier,
    )


def _find_first(pieces: Sequence[Piece]) -> int | None:
    # Mostly little has to be read; where nothing is found, more may stand behind zeros.
    for growing in (True, False):
        for piece in pieces:
            for batch in open_piece(piece).batches(growing=growing):
                return batch[0].zxid
    return None


def _find_time(archive: Archive, time_ms: int) -> int:
    """Return the first zxid whose time is no earlier, one behind the last where there is none.

    Files are taken to begin in the order of their times.
    """
    last, before = 0, -1
    for number, piece in enumerate(archive.pieces):
        batch = next(open_piece(piece).batches(), None)
        if batch and batch[0].time_ms < time_ms:
            before = number
    for piece in archive.pieces[max(0, before) :]:
        for batch in open_piece(piece).batches():
            for transaction in batch:
                if transaction.time_ms >= time_ms:
                    return transaction.zxid
            last = batch[-1].zxid
    return last + 1


def measure_piece(piece: Piece) -> int:
    """Return how many bytes a piece has, packed ones as they are."""
    stop = piece.path.stat().st_size if piece.stop is None else piece.stop
    return max(0, stop - piece.start)


def open_piece(piece: Piece) -> LogFile:
    """Return what reads a piece."""
    return LogFile(piece.path, offset=piece.start, stop=piece.stop)


def read_archive(
    archive: Archive, after_zxid: int = -1, holes: list[Hole] | None = None
) -> Iterator[Transaction]:
    """Yield the transactions of an archive above a zxid, in order, judged or not.

    `holes` is where to put those that are met. Raises `DamagedLog`.
    """
    pieces = (*archive.earlier, *archive.pieces)
    last = after_zxid
    for piece, following in zip(pieces, (*pieces[1:], None), strict=True):
        if following is not None and following.first <= after_zxid + 1:
            continue
        for batch in open_piece(piece).batches():
            added = [each for each in batch if each.zxid > after_zxid]
            if added and holes is not None and last >= 0 and not is_next(last, added[0].zxid):
                holes.append(Hole(last, added[0].zxid))
            last = added[-1].zxid if added else last
            yield from added


def check_joint(before: FileFacts | None, path: Path, first_zxid: int) -> Hole | None:
    """Judge how a file goes on from the one before it; answer the hole between them, if any.

    Raises `DamagedLog` where the zxids go back, and where a torn record is followed by another
    transaction than the one that should stand in its place.
    """
    if before is None or before.last_zxid < 0:
        return None
    last = before.last_zxid
    if first_zxid <= last:
        raise DamagedLog(path, FILE_HEADER.size, f"zxid 0x{first_zxid:x} comes after 0x{last:x}")
    if before.tail is not None and first_zxid != last + 1:
        raise DamagedLog(
            before.tail.file,
            before.tail.offset,
            f"{before.tail.reason}, and the next file goes on with 0x{first_zxid:x} "
            f"instead of 0x{last + 1:x}",
        )
    return None if is_next(last, first_zxid) else Hole(last, first_zxid)


def is_relevant(path: str) -> bool:
    """Whether a path may concern the judge; quick, and rather too often yes."""
    return any(part in path for part in _RELEVANT)
