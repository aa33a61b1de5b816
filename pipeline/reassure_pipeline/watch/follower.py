"""One archive while a server still writes it: what was added since the last look, in order.

A server appends to its newest log file, which may be filled up with zeros in advance, and begins
another one from time to time; old ones are deleted. So a record that is not whole at the end of the
newest file is one that is being written, and is looked at again. Where a newer file is there, the
one before is whole, and what is torn in it is judged as an audit judges it.

**Gaps.** Where a zxid is left out, inside a file or between two, transactions are missing.

**Damage.** What cannot be read ends the reading of its file, not the following: it is told, and
reading goes on with the next file, with the transactions between them missing (`Hole`). Behind them
judging begins anew from a snapshot, as in an audit, once there is one. What a
server took back after it was read, and zxids that begin anew, end the following of the archive:
what was judged is of another history than what stands there now.

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
    find_archives,
)
from reassure_pipeline.archives.beginnings import Base, Restart, find_open, find_restart, load_base
from reassure_pipeline.audit.archive_report import join_facts
from reassure_zookeeper.codec import decode
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedFile, DamagedLog, LogsMissing
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import (
    END_OF_RECORD,
    FILE_HEADER,
    LogFile,
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


class TakenBack(DamagedLog):
    """What was read of a log, and judged, does not stand there any more."""


class LogFollower:
    """Follows what one path leads to: a data directory, its `version-2`, or one log file.

    `decode` makes a transaction of a record.
    """

    def __init__(self, path: Path, decode: Callable[[bytes], Transaction] = decode) -> None:
        self.path = path
        self._decode = decode
        self.archive: Archive | None = None
        """Where the history begins; None until there is a transaction."""
        self.holes: list[Hole] = []
        self.beginnings: list[Beginning] = []
        """Where each chapter of the history begins, or is to, once it is come to."""
        self.damaged: list[DamagedLog] = []
        """What could not be read, each file once."""
        self.is_caught_up = False
        """Whether the last look came to the end of what there is."""
        self._file: LogFile | None = None
        self._first = -1
        """The first zxid in the file that is being read."""
        self._before: FileFacts | None = None
        """What the files before that come to."""
        self._given_up = False
        """Whether nothing more is read of that file, for it is damaged."""
        self._wait_until = 0.0
        """Until when the snapshot that it begins from may be incomplete."""
        self._still: tuple[int, int] | None = None
        """Size and time of a file of which the end was torn when it was read; None elsewhere."""
        self._looked_for: tuple[Hole, ...] = ()
        """The holes behind which a snapshot was looked for in vain."""
        self._look_at = 0.0
        """When to look for one again."""

    def begin(self) -> Base | None:
        """Look for the first transaction, and return the tree that it begins from, if from any.

        `archive` stays None where there is none yet. Raises what `load_base` raises.
        """
        try:
            (archive,) = find_archives([self.path])
        except (LogsMissing, FileNotFoundError):
            return None
        try:
            base = load_base(archive)
        except DamagedFile:
            # The server may be writing it.
            self._wait_until = self._wait_until or time.monotonic() + _WRITTEN_S
            if time.monotonic() > self._wait_until:
                raise
            return None
        self.archive = archive
        self.beginnings = [Beginning(archive.snapshot, -1 if base is None else base.zxid)]
        return base

    def look_for_restart(self, after: int) -> Restart | None:
        """Return from where judging begins anew behind the holes, if there is a snapshot by now.

        `after` is the last transaction that was judged: a snapshot may be finished long after what
        it shows, and nothing is judged twice.
        """
        missing = find_open(self.holes, self.beginnings[-1].snapshot)
        if not missing or (missing == self._looked_for and time.time() < self._look_at):
            return None
        begun = time.time()
        try:
            (archive,) = find_archives([self.path])
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
        """Yield what was added since the last call, some at a time.

        Whoever stops between two of these has taken the first and not the second. Raises
        `TakenBack`, and `DamagedLog` for zxids that go back.
        """
        self.is_caught_up = False
        files = self._list()
        for path in files:
            file = self._open(path)
            if not self._given_up:
                yield from self._read_file(file, is_last=path == files[-1])
        self.is_caught_up = True

    def read_all(self) -> list[Transaction]:
        """Return what was added since the last call. Raises `DamagedLog` wherever there is some."""
        found = [each for batch in self.read() for each in batch]
        for damage in self.damaged:
            raise damage
        return found

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
            raise TakenBack(
                files[-1], 0, f"zxids start again after 0x{self._file.last_zxid:x} was read"
            )
        return left

    def _open(self, path: Path) -> LogFile:
        """Return the file that is being read, or the next, which begins then."""
        file = self._file
        if file is not None:
            if get_zxid_in_name(file.path) == get_zxid_in_name(path):
                file.path = path  # it may be packed by now
                return file
            facts = FileFacts(file.path, self._first, file.last_zxid, 0, file.tail)
            self._before = join_facts(self._before, facts)
        self._file, self._first = LogFile(path), -1
        self._file.decode = self._decode
        self._given_up, self._still = False, None
        return self._file

    def _read_file(self, file: LogFile, *, is_last: bool) -> Iterator[list[Transaction]]:
        try:
            if is_last and not self._has_grown(file):
                return
            yield from self._read_on(file, growing=is_last)
        except FileNotFoundError:
            pass  # deleted since it was listed
        except TakenBack:
            raise
        except DamagedLog as damage:
            self.damaged.append(damage)
            self._given_up = True

    def _read_on(self, file: LogFile, *, growing: bool) -> Iterator[list[Transaction]]:
        try:
            yield from self._join(file, growing=growing)
        except TakenBack:
            raise
        except DamagedLog:
            # A record may have been half written when it was read, and whole, with others behind
            # it, when the rest of the file was searched.
            if not growing:
                raise
            yield from self._join(file, growing=True)

    def _join(self, file: LogFile, *, growing: bool) -> Iterator[list[Transaction]]:
        """Yield what a file holds from where it stands on, and see how it goes on from the last."""
        last = file.last_zxid
        for batch in file.batches(growing=growing):
            if self._first < 0:
                self._first = batch[0].zxid
                self._check_joint(file.path, self._first)
            elif not is_next(last, batch[0].zxid):
                self.holes.append(Hole(last, batch[0].zxid))
            yield batch
            last = batch[-1].zxid

    def _check_joint(self, path: Path, first_zxid: int) -> None:
        before = self._before
        if before is not None and 0 <= first_zxid <= before.last_zxid:
            raise TakenBack(
                path,
                FILE_HEADER.size,
                f"it begins with zxid 0x{first_zxid:x}, but 0x{before.last_zxid:x} was read",
            )
        try:
            hole = check_joint(before, path, first_zxid)
        except DamagedLog as damage:
            assert before is not None
            self.damaged.append(damage)
            hole = check_joint(replace(before, tail=None), path, first_zxid)
        if hole is not None:
            self.holes.append(hole)

    def _has_grown(self, file: LogFile) -> bool:
        """Whether a file may hold more than was read of it. Raises `TakenBack`.

        A torn end is searched for whole records, up to the end of a file that may be large, so it
        is not looked at again while nothing is written.
        """
        status = file.path.stat()
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
        now = status.st_size, status.st_mtime_ns
        if file.tail is not None and self._still == now:
            return False
        is_still = time.time() - status.st_mtime > _STILL_S
        self._still = now if is_still else None
        return True
