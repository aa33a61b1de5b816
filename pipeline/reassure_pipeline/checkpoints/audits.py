"""Audits that go on where they were: what was judged of each archive, and of each share of it.

Judging is put aside (`checkpoints.kept_files`) between two batches of transactions, from time to
time and at the end of each archive. It goes on from there where profile, readings, options and code
are the same, and where what was read is still there as it was: files that were read to their end
have not changed, or were packed, and nothing comes before them that was not there. Otherwise it
begins anew, and says why. So a log that has grown, or has got new files, is judged from where it
ended.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from reassure_pipeline.archives.archive import Archive, open_piece
from reassure_pipeline.archives.beginnings import list_behind
from reassure_pipeline.archives.remote_logs import locate
from reassure_pipeline.audit.passes import Share
from reassure_pipeline.checkpoints.kept_files import Identity, NotKept, keep, take_up
from reassure_zookeeper.ensemble import Hole, Piece
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.txnlog import open_log

_REST_S: Final = 10.0
"""How long at least to judge before what was judged is put aside again."""
_COST: Final = 20
"""How many times longer to judge than putting it aside took last."""
_LOOKED_AT: Final = 64 * 1024
_PLAN: Final = "plan.json"

Say = Callable[[str], None]


def say_nothing(what: str) -> None:
    """Tell nobody."""


class Mark(NamedTuple):
    """How far a piece was read, and what tells whether it is still the same."""

    name: str
    """Of its file, as before it was packed."""
    start: int
    offset: int
    """The byte behind what was read."""
    check: int
    """Of the last bytes before that."""
    stamp: tuple[int, int]
    """Size of the file, and when it was written last."""


def mark_piece(piece: Piece, offset: int) -> Mark:
    """Return how far a piece was read. Raises OSError."""
    status = piece.path.stat()
    stamp = status.st_size, status.st_mtime_ns
    return Mark(_name(piece.path), piece.start, offset, _check(piece.path, offset), stamp)


def _name(path: Path) -> str:
    bare = path.with_suffix("") if path.suffix in (".gz", ".zip") else path
    return locate(bare)


def _check(path: Path, offset: int) -> int:
    with open_log(path) as file:
        file.seek(max(0, offset - _LOOKED_AT))
        return crc32(file.read(min(offset, _LOOKED_AT)))


class Planned(NamedTuple):
    """From which snapshot judging begins anew behind some holes, None where there was none."""

    holes: tuple[Hole, ...]
    snapshot: Path | None


def _list_looked_at(planned: Planned, archive: Archive) -> list[str]:
    """Return the snapshots that are looked at for such a plan: up to the one that is taken."""
    listed = list_behind(archive, planned.holes)
    if planned.snapshot in listed:
        listed = listed[: listed.index(planned.snapshot) + 1]
    return [locate(each) for each in listed]


def find_change(marks: Sequence[Mark], pieces: Sequence[Piece]) -> str | None:
    """Say what is no longer as it was when these marks were made, None where all is."""
    if len(pieces) < len(marks):
        return "files are gone"
    for number, (mark, piece) in enumerate(zip(marks, pieces, strict=False)):
        if (mark.name, mark.start) != (_name(piece.path), piece.start):
            return f"{piece.path} is new, before {mark.name}"
        if piece.stop is not None and piece.stop < mark.offset:
            return f"less of {piece.path} can be read"
        status = piece.path.stat()
        if mark.stamp == (status.st_size, status.st_mtime_ns):
            continue
        if _check(piece.path, mark.offset) != mark.check:
            return f"{piece.path} has changed"
        if number + 1 < len(marks) and _has_more(piece, mark.offset):
            return f"{piece.path} has grown, and later files were read already"
    return None


def _has_more(piece: Piece, offset: int) -> bool:
    file = open_piece(piece)
    file.offset = offset
    try:
        return next(file.batches(), None) is not None
    except DamagedLog:
        return True


class KeptPlan(NamedTuple):
    """How an audit is done that is kept in a directory."""

    shares: int
    """Into how many the topics are cut."""
    damaged: bool
    """Whether the logs have to be surveyed, as they are damaged."""


def name_kept(paths: Sequence[Path], kind: str, *more: object) -> str:
    """Return the name of the file in which something is kept of what these paths lead to."""
    told = json.dumps([*map(locate, paths), *more])
    return f"{sha256(told.encode()).hexdigest()[:16]}.{kind}"


def read_plan(directory: Path, paths: Sequence[Path]) -> KeptPlan | None:
    """Return how the audit of these paths was done that is kept there, None where there is none."""
    try:
        found = json.loads((directory / name_kept(paths, _PLAN)).read_text("utf-8"))
        return KeptPlan(int(found["shares"]), bool(found["damaged"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_plan(directory: Path, paths: Sequence[Path], plan: KeptPlan) -> None:
    """Note how the audit of these paths is done that is kept in a directory."""
    text = json.dumps(plan._asdict()) + "\n"
    (directory / name_kept(paths, _PLAN)).write_text(text, "utf-8")


class Keeper:
    """Keeps what one share of an audit has come to in a directory, a file for each archive.

    The directory is the audit's own (`own_directory`).
    """

    def __init__(
        self, directory: Path, identity: Mapping[str, Any], share: Share, say: Say
    ) -> None:
        self._directory = directory
        self._identity = identity
        self._share = share
        self._say: Say = say if share.number == 0 else lambda _: None
        self._since = time.monotonic()
        self._cost = 0.0
        self._is_full = False
        """Whether nothing can be written there."""

    def _locate(self, archive: Archive) -> tuple[Path, Identity]:
        paths = [Path(name) for name in archive.members or (archive.name,)]
        told = {
            "paths": list(map(locate, paths)),
            "begins": archive.begins,
            "snapshot": None if archive.snapshot is None else locate(archive.snapshot),
            "since": archive.since,
        }
        share = [self._share.number, self._share.of, self._share.chroots]
        identity = json.loads(json.dumps({**self._identity, **told, "share": share}))
        return self._directory / name_kept(paths, "state", share), identity

    def load(self, archive: Archive) -> Any | None:
        """Return what was put aside of an archive, None where judging has to begin anew."""
        path, identity = self._locate(archive)
        try:
            found = take_up(path, identity)
            changed = None if found is None else self._find_change(found[1], archive)
            if changed is None:
                return None if found is None else found[0]
        except NotKept as other:
            changed = str(other)
        self._say(f"{archive.name} is judged again: {changed}")
        return None

    def _find_change(self, note: Any, archive: Archive) -> str | None:
        marks = [
            Mark(name, start, offset, check, tuple(stamp))
            for name, start, offset, check, stamp in note["marks"]
        ]
        for holes, snapshot, looked_at in note["plans"]:
            taken = None if snapshot is None else Path(snapshot)
            planned = Planned(tuple(Hole(*each) for each in holes), taken)
            # One that could not be taken then may be one by now.
            now = _list_looked_at(planned, archive)
            if now != looked_at or (snapshot is None and now):
                return "snapshots from which judging may restart after a gap were added or removed"
        return find_change(marks, archive.pieces)

    def is_due(self) -> bool:
        """Whether it is time to put judging aside."""
        rested = time.monotonic() - self._since > max(_REST_S, _COST * self._cost)
        return rested and not self._is_full

    def save(
        self,
        archive: Archive,
        marks: Sequence[Mark],
        plans: Sequence[Planned],
        audit: Any,
    ) -> None:
        """Put aside what an archive has come to, and how far its pieces were read.

        Where that cannot be written it is said, and judging goes on: a verdict matters more.
        """
        begun = time.monotonic()
        told = [
            (each.holes, each.snapshot and str(each.snapshot), _list_looked_at(each, archive))
            for each in plans
        ]
        try:
            keep(*self._locate(archive), audit, {"marks": marks, "plans": told})
        except OSError as problem:
            self._is_full = True
            self._say(
                f"{self._directory}: what was judged is not kept, and will be judged again: "
                f"{problem.strerror or problem}"
            )
        self._since = time.monotonic()
        self._cost = self._since - begun
