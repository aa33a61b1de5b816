"""Which files make one history, where it begins, and whether it has holes.

An *archive* is the transaction log of one server: a data directory, its `version-2`, or log files
named one by one. Files `log.ZXID` that lie in one directory are one archive, so that a pattern of
the shell does the same as the directory itself; everything else named is an archive of its own.

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

**Holes.** Zxids of one leader are consecutive. Where a file does not go on where the one before it
ended, transactions are missing; what is found after that is not certain. Inside one file there are
no holes that a lost file could explain, so a log that somebody wrote with a choice of transactions
is taken as it is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reassure_spec import znodes
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.snapshot import Node, Snapshot, read_snapshot, snapshot_files
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.tree import Tree
from reassure_zookeeper.txnlog import (
    FILE_HEADER,
    LogFile,
    TornTail,
    log_files,
    read_logs,
    unread_files,
)

BEGINNING: Final = "beginning"
SNAPSHOT: Final = "snapshot"
MIDDLE: Final = "middle"

_FIRST_ZXIDS: Final = (1, (1 << 32) + 1)
"""What a server on its own writes first, and what an ensemble does."""
_EPOCH_BITS: Final = 32
_LOG_NAME: Final = re.compile(r"log\.[0-9a-f]+(?:\.(?:gz|zip))?")
_ZXID_IN_NAME: Final = re.compile(r"(?:log|snapshot)\.([0-9a-f]+)")
_RELEVANT: Final = ("/brokers", "/controller", "/config/", "/admin/", "_notification")


@dataclass(frozen=True, slots=True)
class Archive:
    """The transaction log of one server."""

    name: str
    """The path as it was given."""
    files: tuple[Path, ...]
    """Log files in the order of their zxids."""
    begins: str
    """`beginning`, `snapshot` or `middle`."""
    snapshot: Path | None = None
    """What to begin from, where it begins from a snapshot."""
    unread: tuple[Path, ...] = ()
    """What lies beside the log files and is called like one, and cannot be read as one."""


@dataclass(frozen=True, slots=True)
class Base:
    """What was there when judging begins: all relevant nodes, exactly as after `zxid`."""

    zxid: int
    nodes: tuple[tuple[str, bytes, int], ...]
    """(path, data, ephemeral owner)."""
    news_ms: int
    """No broker came or went after this time, and before `zxid`."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What reading one log file has shown."""

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


def find_times(files: Iterable[FileFacts]) -> tuple[int, int] | None:
    """Return when the first and the last transaction of these files was that is judged."""
    times = [facts.times_ms for facts in files if facts.times_ms is not None]
    return (times[0][0], times[-1][1]) if times else None


@dataclass(frozen=True, slots=True)
class Hole:
    """Transactions that are missing between two files."""

    after: int
    """The last zxid before the hole."""
    before: int
    """The first zxid after it."""


def find_archives(paths: Sequence[Path]) -> tuple[Archive, ...]:
    """Return the archives that these paths name, in their order, each once.

    Raises `LogsMissing` where a path leads to no transaction, and `DamagedLog` where the first one
    cannot be read.
    """
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        together = path.is_file() and _LOG_NAME.fullmatch(path.name) is not None
        groups.setdefault(path.resolve().parent if together else path.resolve(), []).append(path)
    archives = []
    for place, members in groups.items():
        files: dict[Path, Path] = {}
        for member in members:
            for file in log_files(member):
                files.setdefault(file.resolve(), file)
        name = members[0] if len(members) == 1 or not members[0].is_file() else members[0].parent
        unread = tuple(unread_files(members[0]))
        archive = _make_archive(str(name), list(files.values()), place, unread)
        archives.append(replace(archive, unread=unread))
    return tuple(archives)


def _make_archive(
    name: str, unsorted: list[Path], place: Path, unread: tuple[Path, ...]
) -> Archive:
    files = tuple(sorted(unsorted, key=lambda file: _get_zxid_in_name(file.name)))
    first = _find_first_zxid(files)
    if first is None:
        beside = f" ({', '.join(file.name for file in unread)} cannot be read)" if unread else ""
        raise LogsMissing(
            f"{name} has no transaction{beside}; name a ZooKeeper data directory, its version-2 "
            "directory, or a file log.ZXID that holds at least one"
        )
    if first in _FIRST_ZXIDS:
        return Archive(name, files, BEGINNING)
    for snapshot in snapshot_files(place) if place.is_dir() else ():
        zxid = _get_zxid_in_name(snapshot.name)
        if first <= zxid or is_next(zxid, first):
            return Archive(name, files, SNAPSHOT, snapshot)
    return Archive(name, files, MIDDLE)


def _get_zxid_in_name(name: str) -> int:
    match = _ZXID_IN_NAME.match(name)
    return int(match[1], 16) if match else 0


def _find_first_zxid(files: Sequence[Path]) -> int | None:
    for file in files:
        for batch in LogFile(file).batches():
            return batch[0].zxid
    return None


def is_next(before: int, zxid: int) -> bool:
    """Whether one zxid follows another without a hole: the next one, or a new leader's first.

    >>> is_next(7, 8), is_next(0x100000007, 0x200000001), is_next(7, 9)
    (True, True, False)
    """
    if zxid == before + 1:
        return True
    counter = zxid & ((1 << _EPOCH_BITS) - 1)
    return zxid >> _EPOCH_BITS > before >> _EPOCH_BITS and counter <= 1


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
    if archive.snapshot is None:
        return None
    snapshot = read_snapshot(archive.snapshot)
    newest = _find_newest_change(snapshot)
    tree = Tree.from_snapshot(snapshot)
    for transaction in read_logs(archive.files, after_zxid=snapshot.zxid):
        if transaction.zxid > newest:
            break
        tree.apply(transaction)
    kept = tuple(
        (path, node.data, node.ephemeral_owner)
        for path, node in tree.nodes.items()
        if is_relevant(path)
    )
    return Base(max(newest, tree.zxid), kept, _find_news_ms(tree.nodes))


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
