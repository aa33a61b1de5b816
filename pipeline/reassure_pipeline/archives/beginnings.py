"""Where judging of an archive can begin, and what stood there."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from reassure_pipeline.archives.archive import SNAPSHOT, Archive, is_relevant, read_archive
from reassure_spec import znodes
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedFile, ReplayError
from reassure_zookeeper.snapshot import Node, Snapshot, read_snapshot
from reassure_zookeeper.tree import Tree
from reassure_zookeeper.txnlog import get_zxid_in_name


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
    zxid = get_zxid_in_name(snapshot)
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
