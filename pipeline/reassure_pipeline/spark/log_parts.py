"""Parts of a log file, read side by side: record after record, of each no more than where it goes.

A large file is cut at bytes, not at records. Whoever reads a part begins with the first intact
record in it, and reads up to the first record that begins behind it. Where one part ends the next
one has to begin: if each does, the parts hold what reading the file from its beginning finds, and
nothing else. What looks like a record and is none (logs can hold anything) would not fit, and then
the file is read as a whole.

A part reads records that are in order. Where one is not, `LogFile` takes over and judges, as it
does when the file is read as a whole, whether that is the end, a torn tail, or damage.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zlib import adler32

from reassure_zookeeper.codec import HEADER
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.txnlog import (
    END_OF_RECORD,
    FILE_HEADER,
    FRAME,
    MAGIC,
    VERSION,
    LogFile,
    TornTail,
    find_intact_record,
    is_intact,
    is_next,
)

_HEAD: Final = FILE_HEADER.pack(MAGIC, VERSION, 0)[:8]
"""What a file begins with, the number of its database aside."""
_BEYOND: Final = 2 << 20
"""How far behind its part a record may end; servers refuse what is half as long."""
_BATCH: Final = 2_000
_LOWEST: Final = HEADER.size
_unpack_frame = FRAME.unpack_from
_unpack_header = HEADER.unpack_from
_FRAME_SIZE: Final = FRAME.size


class PartOfLog:
    """The records of a plain log file that begin at a byte from `start` up to `stop`.

    The first part of several begins where a record does, or with the file. The last one ends where
    a record does, or with the file, and then `stop` is None. Once `batches` has ended, the
    attributes tell how it went.
    """

    def __init__(
        self,
        path: Path,
        start: int = 0,
        stop: int | None = None,
        *,
        is_first: bool = True,
        is_last: bool = True,
    ) -> None:
        self._path = path
        self._start = start
        self._stop = stop
        self._is_first = is_first
        self._is_last = is_last
        self.begins: int | None = None
        """Where its first record begins; None where there is none."""
        self.ends: int | None = None
        """Where the first record behind it begins; None where none does."""
        self.fits = True
        """Whether it could be read by itself."""
        self.first_zxid = -1
        self.last_zxid = -1
        self.last_ms = 0
        self.holes: list[Hole] = []
        """Where zxids are left out in it."""
        self.tail: TornTail | None = None

    def batches(self) -> Iterator[list[bytes]]:
        """Yield the records, some thousand at a time. Raises `DamagedLog` and OSError."""
        with self._path.open("rb") as file:
            file.seek(self._start)
            length = -1 if self._stop is None else self._stop - self._start + _BEYOND
            content = file.read(length)
        size = len(content) if self._stop is None else self._stop - self._start
        at = self._find_first(content, size)
        if at is None:
            return
        self.begins = self._start + at
        while True:
            batch: list[bytes] = []
            stop = self._take(content, at, size, batch)
            if batch:
                yield batch
            if stop == at:
                break
            at = stop
        if self._is_last and self._stop is not None:
            self.fits = at == size
        elif at >= size and is_intact(content, at):
            self.ends = self._start + at
        else:
            self._judge_end(self._start + at)

    def _find_first(self, content: bytes, size: int) -> int | None:
        if self._start == 0:
            if content.startswith(_HEAD) and len(content) >= FILE_HEADER.size:
                return FILE_HEADER.size
            self.fits = False
            return None
        if self._is_first:
            return 0
        # A record does not end with a zero, and servers fill up their files with megabytes of them.
        at = find_intact_record(content.rstrip(b"\0"), 0)
        return None if at is None or at >= size else at

    def _take(self, content: bytes, at: int, size: int, batch: list[bytes]) -> int:
        """Put intact records into `batch`, up to a number; return where the next one begins."""
        last_zxid, time_ms, end = self.last_zxid, self.last_ms, len(content)
        append = batch.append
        while at < size and len(batch) < _BATCH and at + _FRAME_SIZE <= end:
            checksum, length = _unpack_frame(content, at)
            stop = at + _FRAME_SIZE + length
            if length < _LOWEST or stop >= end or content[stop] != END_OF_RECORD:
                break
            record = content[at + _FRAME_SIZE : stop]
            if adler32(record) != checksum:
                break
            _, _, zxid, now_ms, _ = _unpack_header(record)
            if zxid <= last_zxid:
                break
            if zxid != last_zxid + 1 and last_zxid >= 0 and not is_next(last_zxid, zxid):
                self.holes.append(Hole(last_zxid, zxid))
            last_zxid, time_ms = zxid, now_ms
            append(record)
            at = stop + 1
        if batch and self.first_zxid < 0:
            self.first_zxid = _unpack_header(batch[0])[2]
        self.last_zxid, self.last_ms = last_zxid, time_ms
        return at

    def _judge_end(self, at: int) -> None:
        file = LogFile(self._path, self.last_zxid, offset=at)
        for _ in file.batches():
            self.fits = False
            return
        self.tail = file.tail


class WholeLog(PartOfLog):
    """All records of a piece of a log, packed ones too, decoded as they are read.

    `file` puts the bytes of the records into its `records`.
    """

    def __init__(self, file: LogFile) -> None:
        super().__init__(file.path)
        self._file = file

    def batches(self) -> Iterator[list[bytes]]:
        """Yield the records, some thousand at a time. Raises `DamagedLog` and OSError."""
        records = self._file.records
        assert records is not None
        for batch in self._file.batches():
            first, last = batch[0].zxid, batch[-1]
            if self.first_zxid < 0:
                self.first_zxid = first
            elif not is_next(self.last_zxid, first):
                self.holes.append(Hole(self.last_zxid, first))
            self.last_zxid, self.last_ms = last.zxid, last.time_ms
            yield records.copy()
            records.clear()
        self.tail = self._file.tail
