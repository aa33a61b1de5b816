"""One archive while a server still writes it: what was added since the last look, in order.

A server appends to its newest log file, which may be filled up with zeros in advance, and begins
another one from time to time; old ones are deleted. So a record that is not whole at the end of the
newest file is one that is being written, and is looked at again. Where a newer file is there, the
one before is whole, and what is torn in it is judged as an audit judges it.

**Gaps.** Where a zxid is left out, inside a file or between two, transactions are missing.

**Damage.** Files are read as they stand, which costs nothing beside judging. Where one cannot be
read, or they do not follow each other, a survey says what can be, as it does for an audit
(`archives.archive`): that is read, in the order of the zxids, and then what is added to the newest
file. So what a follower has read once it has caught up is what an audit of the same files reads.
What a server took back after it was read, and zxids that begin anew, end the following of the
archive: what was judged is of another history than what stands there now.

A `LogFollower` can be put aside at any time (pickled) and goes on where it was.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from reassure_pipeline.archives.archive import (
    Archive,
    Beginning,
    FileFacts,
    check_joint,
    contain,
    find_archives,
    open_piece,
    survey_file,
)
from reassure_pipeline.archives.beginnings import Base, Restart, find_open, find_restart, load_base
from reassure_zookeeper.codec import decode
from reassure_zookeeper.ensemble import Hole, Piece
from reassure_zookeeper.errors import DamagedFile, DamagedLog, LogsMissing
from reassure_zookeeper.log_survey import Damage
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import (
    END_OF_RECORD,
    FILE_HEADER,
    LogFile,
    TornTail,
    get_zxid_in_name,
    is_next,
    log_files,
)

_STILL_S: Final = 2.0
"""How long ago a file must have been written for its time to tell that nothing was added since: the
clocks of file systems are coarse."""

_WRITTEN_S: Final = 5.0
"""How long the snapshot that a history begins from may take to be written."""

_AGAIN_S: Final = 2.0
"""How long after no snapshot was found to begin anew from another one is looked for, at least."""
_COST: Final = 20
"""How many times longer than looking took the last time."""

Stamp = tuple[int, int]
"""Size of a file, and when it was written last."""


class TakenBack(DamagedFile):
    """What was read of a log, and judged, does not stand there any more."""

    what = "transaction log"


class LogFollower:
    """Follows what one path leads to: a data directory, its `version-2`, or one log file.

    `decode` makes a transaction of a record.
    """

    def __init__(self, path: Path, decode: Callable[[bytes], Transaction] = decode) -> None:
        self.path = path
        self._decode = decode
        self.archive: Archive | None = None
        """Where the history begins, and what of it is damaged; None until there is a
        transaction."""
        self.beginnings: list[Beginning] = []
        """Where each chapter of the history begins, or is to, once it is come to."""
        self.is_caught_up = False
        """Whether the last look came to the end of what there is."""
        self._last_zxid = -1
        """Of all that was read."""
        self._met: list[Hole] = []
        """The holes that showed in zxids."""
        self._pieces: list[Piece] = []
        """What a survey found and is to be read, before files are read as they stand again."""
        self._file: LogFile | None = None
        """The file that is being read."""
        self._first = -1
        """The first zxid in it."""
        self._tail: TornTail | None = None
        """How the files before it end."""
        self._names: set[int] = set()
        """The files that were begun, by the zxid in their names."""
        self._unfit: tuple[int, Stamp] | None = None
        """A file of which more cannot be read as it stands, while it is as it is."""
        self._wait_until = 0.0
        """Until when the snapshot that it begins from may be incomplete."""
        self._still: Stamp | None = None
        """That of a file of which the end was torn when it was read; None elsewhere."""
        self._looked_for: tuple[Hole, ...] = ()
        """The holes behind which a snapshot was looked for in vain."""
        self._look_at = 0.0
        """When to look for one again."""

    @property
    def holes(self) -> tuple[Hole, ...]:
        """Where transactions are missing, as far as that is known."""
        known = () if self.archive is None else self.archive.holes
        ends = (hole for hole in known if hole.before >= 0 or hole.after >= self._last_zxid)
        return tuple(sorted({*self._met, *ends}))

    def begin(self) -> Base | None:
        """Look for the first transaction, and return the tree that it begins from, if from any.

        `archive` stays None where there is none yet. Raises what `load_base` raises, and
        `DamagedLog` where nothing can be read.
        """
        try:
            archive, base = contain([self.path], _begin)
        except (LogsMissing, FileNotFoundError):
            return None
        except DamagedLog:
            raise
        except DamagedFile:
            # The server may be writing it.
            self._wait_until = self._wait_until or time.monotonic() + _WRITTEN_S
            if time.monotonic() > self._wait_until:
                raise
            return None
        self.archive = archive
        self.beginnings = [Beginning(archive.snapshot, -1 if base is None else base.zxid)]
        if archive.surveyed:
            self._take_survey(archive)
        return base

    def look_for_restart(self, after: int, first: int) -> Restart | None:
        """Return from where judging begins anew behind the holes, if there is a snapshot by now.

        `after` is the last transaction that was judged: a snapshot may be finished long after what
        it shows, and nothing is judged twice. `first` is the one that comes next: holes behind it
        are not come to.
        """
        met = [hole for hole in self.holes if 0 <= hole.before <= first]
        missing = find_open(met, self.beginnings[-1].snapshot)
        if not missing or (missing == self._looked_for and time.time() < self._look_at):
            return None
        begun = time.time()
        damaged = self.archive is not None and self.archive.surveyed
        try:
            (archive,) = find_archives([self.path], damaged=damaged)
            restart = find_restart(archive, missing, max(after, self.beginnings[-1].zxid))
        except (LogsMissing, DamagedLog, FileNotFoundError):
            restart = None
        if restart is None:
            now = time.time()
            self._looked_for, self._look_at = missing, now + max(_AGAIN_S, _COST * (now - begun))
        else:
            self.beginnings.append(Beginning(restart.snapshot, restart.base.zxid))
        return restart

    def read(self) -> Iterator[list[Transaction]]:
        """Yield what was added since the last call, some at a time, around what is damaged.

        Whoever stops between two of these has taken the first and not the second. Raises
        `TakenBack`.
        """
        self.is_caught_up = False
        while not self.is_caught_up:
            try:
                yield from self._read_pieces()
                yield from self._read_files()
                self.is_caught_up = True
            except DamagedLog as damage:
                self._survey(damage)

    def read_all(self) -> list[Transaction]:
        """Return what was added since the last call. Raises `DamagedLog` wherever there is some."""
        return [each for batch in self._read_files() for each in batch]

    def _survey(self, damage: DamagedLog) -> None:
        """Find out what can be read, as something cannot be. Raises `TakenBack`."""
        try:
            self._unfit = get_zxid_in_name(damage.file), _stamp(damage.file)
            (archive,) = find_archives([self.path], damaged=True)
        except (LogsMissing, FileNotFoundError):
            return
        except DamagedLog as all_there_is:
            assert self.archive is not None, "it has begun"
            place = all_there_is.file, all_there_is.offset, None, all_there_is.reason
            damages = *self.archive.damages, Damage(*place, self._last_zxid)
            self.archive = replace(self.archive, damages=damages)
            return
        self._take_survey(archive)

    def _take_survey(self, archive: Archive) -> None:
        last = self._last_zxid
        for piece in archive.pieces:
            if piece.first <= last and get_zxid_in_name(piece.path) not in self._names:
                wrong = f"it holds zxid 0x{piece.first:x}, but 0x{last:x} was read"
                raise TakenBack(piece.path, piece.start, wrong)
        before = self.archive or archive
        told = {(each.file, each.offset): each for each in (*before.damages, *archive.damages)}
        damages, holes = tuple(told.values()), tuple({*before.holes, *archive.holes})
        self.archive = replace(archive, begins=before.begins, snapshot=before.snapshot)
        self.archive = replace(self.archive, damages=damages, holes=holes)
        self._pieces = [piece for piece in archive.pieces if piece.last > last]
        self._names.update(map(get_zxid_in_name, archive.files))
        newest = archive.files[-1]
        ranges = survey_file(newest, decodes=True).ranges
        self._file = LogFile(newest, offset=ranges[-1].stop if ranges else 0)
        self._file.decode = self._decode
        self._first, self._tail = (ranges[0].first if ranges else -1), None

    def _read_pieces(self) -> Iterator[list[Transaction]]:
        while self._pieces:
            file = open_piece(self._pieces[0])
            file.decode = self._decode
            for batch in file.batches():
                yield from self._pass_on([t for t in batch if t.zxid > self._last_zxid])
            del self._pieces[0]

    def _pass_on(self, batch: list[Transaction]) -> Iterator[list[Transaction]]:
        """Yield a batch, if there is anything in it, and see how it goes on from the last."""
        if batch:
            last, self._last_zxid = self._last_zxid, batch[-1].zxid
            if last >= 0 and not is_next(last, batch[0].zxid):
                self._met.append(Hole(last, batch[0].zxid))
            yield batch

    def _read_files(self) -> Iterator[list[Transaction]]:
        """Yield what was added to the file that is being read, and what those after it hold."""
        files = self._list()
        for path in files:
            file = self._open(path)
            try:
                if self._unfit == (get_zxid_in_name(path), _stamp(path)):
                    continue
                if path != files[-1]:
                    yield from self._join(file, growing=False)
                elif self._has_grown(file):
                    yield from self._read_on(file)
            except FileNotFoundError:
                pass  # deleted since it was listed

    def _list(self) -> list[Path]:
        """Return the file that is being read and those after it; what is older is read."""
        try:
            files = log_files(self.path)
        except (LogsMissing, FileNotFoundError):
            return []
        if self._file is None:
            return files
        at = get_zxid_in_name(self._file.path)
        left = [file for file in files if get_zxid_in_name(file) >= at]
        if files and not left:
            wrong = f"zxids start again after 0x{self._last_zxid:x} was read"
            raise TakenBack(files[-1], 0, wrong)
        return left

    def _open(self, path: Path) -> LogFile:
        """Return the file that is being read, or the next, which begins then."""
        file = self._file
        if file is not None:
            if get_zxid_in_name(file.path) == get_zxid_in_name(path):
                file.path = path  # it may be packed by now
                file.last_zxid = max(file.last_zxid, self._last_zxid if self._first >= 0 else -1)
                return file
            self._tail = file.tail if self._first >= 0 else self._tail or file.tail
        self._file, self._first = LogFile(path), -1
        self._file.decode = self._decode
        self._names.add(get_zxid_in_name(path))
        self._still = None
        return self._file

    def _read_on(self, file: LogFile) -> Iterator[list[Transaction]]:
        # Whether there is anything behind zeros is looked at once.
        growing = file.offset > 0
        while True:
            at = file.offset
            try:
                yield from self._join(file, growing=growing)
                return
            except DamagedLog:
                # A record may have been half written when it was read, or not written, and whole,
                # with others behind it, when the rest of the file was searched.
                if file.offset == at:
                    raise

    def _join(self, file: LogFile, *, growing: bool) -> Iterator[list[Transaction]]:
        """Yield what a file holds from where it stands on. Raises `DamagedLog` as reading does."""
        for batch in file.batches(growing=growing):
            if self._first < 0:
                try:
                    self._check_joint(file.path, batch[0].zxid)
                except DamagedLog:
                    file.offset, file.last_zxid = 0, -1
                    raise
                self._first = batch[0].zxid
            yield from self._pass_on(batch)

    def _check_joint(self, path: Path, first: int) -> None:
        if self.archive is not None and any(each.before < 0 for each in self.archive.damages):
            raise DamagedLog(path, 0, "it shows how far the damage before it reaches")
        check_joint(FileFacts(path, 0, self._last_zxid, 0, self._tail), path, first)

    def _has_grown(self, file: LogFile) -> bool:
        """Whether a file may hold more than was read of it. Raises `TakenBack`.

        A torn end is searched for whole records, up to the end of a file that may be large, so it
        is not looked at again while nothing is written.
        """
        if file.path.suffix in (".gz", ".zip"):
            return True
        if file.offset > FILE_HEADER.size:
            with file.path.open("rb") as content:
                content.seek(file.offset - 1)
                last = content.read(1)
            if last != bytes((END_OF_RECORD,)):
                raise TakenBack(
                    file.path,
                    file.offset,
                    f"the records up to zxid 0x{file.last_zxid:x}, which were read, are gone",
                )
        now = _stamp(file.path)
        if file.tail is not None and self._still == now:
            return False
        is_still = time.time() - now[1] / 1e9 > _STILL_S
        self._still = now if is_still else None
        return True


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _begin(archives: tuple[Archive, ...]) -> tuple[Archive, Base | None]:
    """Return the only archive and what it begins from. Raises `DamagedLog` to have it surveyed."""
    (archive,), last = archives, -1
    for piece in () if archive.surveyed else archive.pieces:
        batch = next(open_piece(piece).batches(growing=True), None)
        if batch:
            check_joint(FileFacts(piece.path, 0, last), piece.path, batch[0].zxid)
            last = batch[0].zxid
    return archive, load_base(archive)
