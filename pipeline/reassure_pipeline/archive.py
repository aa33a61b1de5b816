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

A snapshot that ends before the logs begin is of no use: who came and went between is not known, and
judging from a stale tree would blame the innocent.

**Holes.** Zxids of one leader are consecutive. Where a zxid is left out, between two files or
inside one, transactions are missing; what is found after that is not certain.

**Behind a hole.** A snapshot that lies behind shows what was there by then, whatever is missing
before: judging begins anew from it (`find_restart`), and what follows is as certain as where a
history begins from a snapshot. So a history is judged in *chapters*, each with a beginning of its
own. What lies between a hole and the next chapter is judged, and is not certain. A snapshot *lies
behind* a hole if nothing that is missing can have come after it, nor the hole be in what leads from
it to the tree that judging begins from. What a member logged and nobody took over is in none: its
snapshots from then are left out. Where two files contradict each other nobody knows of which of
them a snapshot is.

**Damage.** A log is first read as if it were whole, which costs nothing. Where it turns out not to
be, the work begins anew on what a survey says can be read (`contain`): from then on every piece is
whole, and what is missing is a hole.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from reassure_pipeline.decodings import is_decoding, restore
from reassure_spec import znodes
from reassure_zookeeper.ensemble import Divergence, Hole, Member, Piece, merge
from reassure_zookeeper.errors import DamagedFile, DamagedLog, LogsMissing, ReplayError
from reassure_zookeeper.snapshot import Node, Snapshot, read_snapshot, snapshot_files
from reassure_zookeeper.stretches import Damage, survey_log
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.tree import Tree
from reassure_zookeeper.txnlog import (
    FILE_HEADER,
    LogFile,
    TornTail,
    is_next,
    log_files,
    unread_files,
)

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

_ENOUGH: Final = 2_000
"""How many transactions two servers have to have logged alike to pass for members of one ensemble,
where they have so many."""
_LOG_NAME: Final = re.compile(r"log\.[0-9a-f]+(?:\.(?:gz|zip))?")
_ZXID_IN_NAME: Final = re.compile(r"(?:log|snapshot)\.([0-9a-f]+)")
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


@dataclass(frozen=True, slots=True)
class Base:
    """What was there when judging begins: all relevant nodes, exactly as after `zxid`."""

    zxid: int
    nodes: tuple[tuple[str, bytes, int], ...]
    """(path, data, ephemeral owner)."""
    news_ms: int
    """No broker came or went after this time, and before `zxid`."""
    holes: tuple[Hole, ...] = ()
    """Where transactions are missing that would have led to it."""
    time_ms: int = 0
    """The server's clock when one of the nodes was written last."""


class Restart(NamedTuple):
    """From where judging begins anew behind a hole."""

    snapshot: Path
    base: Base


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


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What reading one log file, or a piece of one, has shown."""

    path: Path
    first_zxid: int
    """-1 where the file has no transaction."""
    last_zxid: int
    judged: int
    """Transactions after the base of the archive, refused ones included."""
    tail: TornTail | None
    unjudged: Mapping[str, int] = field(default_factory=dict)
    """How often each tree was written of which nothing was handed on to the judge."""
    times_ms: tuple[int, int] | None = None
    """When the first and the last transaction was that is judged, by the server's clock."""
    holes: tuple[Hole, ...] = ()
    """Those inside it."""


def find_times(files: Iterable[FileFacts]) -> tuple[int, int] | None:
    """Return when the first and the last transaction of these files was that is judged."""
    times = [facts.times_ms for facts in files if facts.times_ms is not None]
    return (times[0][0], times[-1][1]) if times else None


class _Server(NamedTuple):
    """What is named of one server."""

    name: str
    place: Path
    files: tuple[Path, ...]
    unread: tuple[Path, ...]


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
    servers = _find_servers(paths)
    if members == ONE:
        families = [servers]
    elif members == APART or len(servers) == 1:
        families = [[server] for server in servers]
    else:
        families = _find_families(servers)
    archives = [
        _make_archive(family[0])
        if len(family) == 1 and not damaged
        else _survey_archive(family, decodes=damaged)
        for family in families
    ]
    return tuple(each if since is None else _begin_at(each, since) for each in archives)


def group_by_server(paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the paths by the place of the server that they are of, in their order."""
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        together = path.is_file() and _LOG_NAME.fullmatch(path.name) is not None
        groups.setdefault(path.resolve().parent if together else path.resolve(), []).append(path)
    return groups


def _find_servers(paths: Sequence[Path]) -> list[_Server]:
    servers = []
    for place, named in group_by_server(paths).items():
        if is_decoding(place):
            made = ((each, log_files(each.folder)) for each in restore(place))
            servers += [_Server(each.name, each.folder, tuple(logs), ()) for each, logs in made]
            continue
        files: dict[Path, Path] = {}
        for path in named:
            for file in log_files(path):
                files.setdefault(file.resolve(), file)
        name = named[0] if len(named) == 1 or not named[0].is_file() else named[0].parent
        ordered = sorted(files.values(), key=lambda file: _get_zxid_in_name(file.name))
        servers.append(_Server(str(name), place, tuple(ordered), tuple(unread_files(named[0]))))
    return servers


def _find_families(servers: Sequence[_Server]) -> list[list[_Server]]:
    """Group the servers that have logged the same, in their order."""
    families: list[list[_Server]] = []
    for server in servers:
        for family in families:
            if any(_share_history(server, other) for other in family):
                family.append(server)
                break
        else:
            families.append([server])
    return families


def share_history(one: Path, other: Path) -> bool:
    """Whether two paths lead to logs of one history, as far as the beginnings of files show.

    Raises `LogsMissing` and OSError.
    """
    (first,), (second,) = _find_servers([one]), _find_servers([other])
    return _share_history(first, second)


def is_same(one: Transaction, other: Transaction) -> bool:
    """Whether two transactions of two logs are one."""
    return one.zxid == other.zxid and _identify(one) == _identify(other)


def _share_history(one: _Server, other: _Server) -> bool:
    """Whether two servers have logged the same: what both have near the beginnings of files."""
    shared = 0
    for first, second in ((one, other), (other, one)):
        for batch in _list_first_batches(first.files):
            there = {each.zxid: each for each in _find_batch(second.files, batch[0].zxid)}
            for transaction in batch:
                found = there.get(transaction.zxid)
                if found is not None:
                    if _identify(found) != _identify(transaction):
                        return False
                    shared += 1
            if shared >= _ENOUGH:
                return True
    return shared > 0


def _identify(transaction: Transaction) -> tuple[object, ...]:
    """Return what is the same in every log; members may write down differently what was refused."""
    ops = () if transaction.error is not None else transaction.ops
    return transaction.session_id, transaction.cxid, transaction.time_ms, ops


def _list_first_batches(files: Sequence[Path]) -> Iterator[list[Transaction]]:
    """Yield the first transactions of each file, of those that begin with whole ones."""
    for file in files:
        try:
            batch = next(LogFile(file).batches(), None)
        except DamagedLog:
            continue
        if batch:
            yield batch


def _find_batch(files: Sequence[Path], zxid: int) -> list[Transaction]:
    """Return some transactions from a zxid on, as far as they are found before any damage."""
    for file in reversed(files):
        if _get_zxid_in_name(file.name) <= zxid:
            if file == files[-1] and _find_last_zxid(file, file.stat().st_mtime_ns) < zxid:
                return []
            try:
                for batch in LogFile(file).batches():
                    if batch[-1].zxid >= zxid:
                        return batch
            except DamagedLog:
                return []
    return []


@lru_cache(maxsize=64)
def _find_last_zxid(file: Path, written_ns: int) -> int:
    """Return the last zxid of a file that can be read before any damage, -1 where there is none.

    `written_ns` is when it was written last.
    """
    log = LogFile(file)
    with suppress(DamagedLog):
        for _ in log.batches():
            pass
    return log.last_zxid


def _make_archive(server: _Server) -> Archive:
    """Return an archive of one server, taken as whole."""
    pieces = tuple(Piece(file, first=_get_zxid_in_name(file.name)) for file in server.files)
    first = _find_first(pieces)
    if first is None:
        raise _miss_logs(server)
    snapshots = _list_snapshots([server])
    begins, snapshot = _find_beginning(first, snapshots)
    named = server.name, server.files, begins, snapshot, server.unread
    return Archive(*named, pieces=pieces, snapshots=snapshots)


def _survey_archive(servers: Sequence[_Server], *, decodes: bool) -> Archive:
    """Return an archive of what can be read of these servers' logs, all together."""
    merged = merge(
        [
            Member.of(
                server.name,
                [survey_log(file, decodes=decodes) for file in server.files],
                [_get_zxid_in_name(file.name) for file in _list_snapshots([server])],
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


def _miss_logs(server: _Server) -> LogsMissing:
    names = ", ".join(file.name for file in server.unread)
    beside = f" ({names} cannot be read)" if names else ""
    return LogsMissing(
        f"{server.name} has no transaction{beside}; name a ZooKeeper data directory, its version-2 "
        "directory, or a file log.ZXID that holds at least one"
    )


def _list_snapshots(servers: Sequence[_Server]) -> tuple[Path, ...]:
    """Return the snapshots of all these servers, oldest first."""
    folders = [server.place for server in servers if server.place.is_dir()]
    found = [file for folder in folders for file in snapshot_files(folder)]
    return tuple(sorted(found, key=lambda file: _get_zxid_in_name(file.name)))


def _leave_out_diverged(
    snapshots: Iterable[Path], divergences: Sequence[Divergence]
) -> tuple[Path, ...]:
    """Return the snapshots that do not end in what is no part of the history."""
    zxids = {each: _get_zxid_in_name(each.name) for each in snapshots}
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
    zxid = _get_zxid_in_name(snapshot.name)
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
        if _get_zxid_in_name(snapshot.name) < zxid and _is_followed(snapshot, first):
            taken = snapshot
    begins = SNAPSHOT if taken is not None or archive.begins == BEGINNING else MIDDLE
    begun = zxid - 1 if begins == MIDDLE else 0
    begun = begun if taken is None else _get_zxid_in_name(taken.name)
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
    for piece in pieces:
        for batch in open_piece(piece).batches():
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


def _get_zxid_in_name(name: str) -> int:
    """Return the zxid that a log file or a snapshot is named by; 0 where it is not."""
    match = _ZXID_IN_NAME.match(name)
    return int(match[1], 16) if match else 0


def measure_piece(piece: Piece) -> int:
    """Return how many bytes a piece has, packed ones as they are."""
    stop = piece.path.stat().st_size if piece.stop is None else piece.stop
    return max(0, stop - piece.start)


def open_piece(
    piece: Piece, *, path: Path | None = None, records: list[bytes] | None = None
) -> LogFile:
    """Return what reads a piece; `path` is where its file is, if not where the piece says."""
    file = LogFile(path or piece.path, records=records)
    file.offset, file.stop = piece.start, piece.stop
    return file


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


def load_base(archive: Archive) -> Base | None:
    """Return the tree that the archive begins from, None where it begins from none.

    Raises `DamagedSnapshot`, `DamagedLog`, and `ReplayError` where snapshot and logs do not fit.
    """
    if archive.begins != SNAPSHOT:
        return None
    until = -1 if archive.since is None else archive.since - 1
    snapshot = _read_snapshot(archive)
    if snapshot is not None:
        until = max(until, _find_newest_change(snapshot))
    holes: list[Hole] = []
    try:
        tree = _replay(archive, snapshot, until, holes)
    except ReplayError:
        if not holes and not archive.holes:
            raise
        # What does not fit may be due to what is missing: it is passed over, as in a snapshot.
        holes.clear()
        none = Snapshot(Path(archive.name), 0, {}, Tree().nodes, None)
        lenient = replace(_read_snapshot(archive) or none, last_zxid=None)
        tree = _replay(archive, lenient, until, holes)
    met = tuple(hole for hole in holes if hole.after < until and archive.since is not None)
    return _make_base(max(until, tree.zxid), tree, met)


def _make_base(zxid: int, tree: Tree, holes: tuple[Hole, ...] = ()) -> Base:
    kept = tuple(
        (path, node.data, node.ephemeral_owner)
        for path, node in tree.nodes.items()
        if is_relevant(path)
    )
    newest_ms = max(node.mtime for node in tree.nodes.values())
    return Base(zxid, kept, _find_news_ms(tree.nodes), holes, newest_ms)


def find_open(holes: Iterable[Hole], snapshot: Path | None) -> tuple[Hole, ...]:
    """Return the holes that a chapter which begins from this snapshot (None: from none) has.

    Those behind which nothing comes are no matter.
    """
    return tuple(
        hole
        for hole in holes
        if hole.before >= 0 and (snapshot is None or not lies_behind(snapshot, hole))
    )


def lies_behind(snapshot: Path, hole: Hole) -> bool:
    """Whether a snapshot shows all that is missing in a hole.

    >>> lies_behind(Path("snapshot.f"), Hole(7, 16)), lies_behind(Path("snapshot.e"), Hole(7, 16))
    (True, False)
    """
    zxid = _get_zxid_in_name(snapshot.name)
    return zxid > hole.after and zxid >= hole.before - 1


def list_behind(archive: Archive, holes: Iterable[Hole]) -> list[Path]:
    """Return the snapshots that lie behind all of these holes, oldest first."""
    listed = list(holes)
    if any(hole.before == hole.after + 1 for hole in listed):
        return []  # where files contradict each other
    return [each for each in archive.snapshots if all(lies_behind(each, hole) for hole in listed)]


def find_restart(archive: Archive, holes: Iterable[Hole], after: int) -> Restart | None:
    """Return from where judging begins anew behind these holes, at the zxid `after` or later.

    It is the oldest snapshot from which it can; None where there is none. One that is damaged, or
    that the logs do not fit or do not lead on from, is passed over.
    """
    for snapshot in list_behind(archive, holes):
        try:
            base = _load_anew(archive, snapshot, after)
        except (DamagedFile, ReplayError, FileNotFoundError):
            continue
        if base is not None:
            return Restart(snapshot, base)
    return None


def _load_anew(archive: Archive, path: Path, after: int) -> Base | None:
    """Return what a snapshot leads to, None where the logs do not go on so far without a hole."""
    snapshot = read_snapshot(path)
    start, until = snapshot.zxid, max(after, _find_newest_change(snapshot))
    tree, holes, last = Tree.from_snapshot(snapshot), list[Hole](), start
    for transaction in read_archive(archive, start, holes):
        last = transaction.zxid
        if last > until:
            break
        tree.apply(transaction)
    missing = (*holes, *find_open(archive.holes, path))
    if last < until or any(hole.after < until for hole in missing):
        return None
    return _make_base(until, tree)


def plan_restarts(
    archive: Archive, base: Base | None, holes: Iterable[Hole]
) -> tuple[Restart, ...]:
    """Return from where judging begins anew, hole after hole, where all of them are known."""
    after = (archive.since or 0) - 1 if base is None else base.zxid
    snapshot, met, found = archive.snapshot, list[Hole](), list[Restart]()
    for hole in sorted(holes):
        met.append(hole)
        missing = find_open(met, snapshot)
        if missing:
            restart = find_restart(archive, missing, max(after, hole.after))
            if restart is not None:
                found.append(restart)
                snapshot = restart.snapshot
    return tuple(found)


def _read_snapshot(archive: Archive) -> Snapshot | None:
    return None if archive.snapshot is None else read_snapshot(archive.snapshot)


def _replay(archive: Archive, snapshot: Snapshot | None, until: int, holes: list[Hole]) -> Tree:
    """Return the tree that stands at a zxid, and note the holes up to there."""
    tree = Tree() if snapshot is None else Tree.from_snapshot(snapshot)
    for transaction in read_archive(archive, -1 if snapshot is None else snapshot.zxid, holes):
        if transaction.zxid > until:
            break
        tree.apply(transaction)
    return tree


def _find_newest_change(snapshot: Snapshot) -> int:
    """Return the newest zxid whose change the snapshot may show already."""
    shown = (max(n.czxid, n.mzxid, n.pzxid) for n in snapshot.nodes.values())
    return max(snapshot.zxid, snapshot.last_zxid or 0, *shown)


def _find_news_ms(nodes: dict[str, Node]) -> int:
    """Return a time after which no broker came or went.

    The tree tells the zxid of the last change of the registrations, not its time; but any node
    written later bounds that.
    """
    newest_ms = max(node.mtime for node in nodes.values())
    news_ms = 0
    for path, node in nodes.items():
        if path.endswith(znodes.BROKER_IDS):
            later = (other.mtime for other in nodes.values() if other.mzxid >= node.pzxid)
            news_ms = max(news_ms, min(later, default=newest_ms))
    return news_ms


def is_relevant(path: str) -> bool:
    """Whether a path may concern the judge; quick, and rather too often yes."""
    return any(part in path for part in _RELEVANT)


def matters(transaction: Transaction) -> bool:
    """Whether a transaction may concern the judge: it took effect, on a relevant path."""
    if transaction.error is not None:
        return False
    for op in transaction.ops:
        path = getattr(op, "path", None)
        # The end of a session takes ephemeral nodes with it and need not name them.
        if path is None or is_relevant(path):
            return True
    return False
