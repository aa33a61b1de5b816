"""Look over a transaction log without replaying it: which records are whole, and where it is not.

Reading a log (`reassure_zookeeper.txnlog`) ends where it is damaged. A survey goes on behind the
damage, where a record surely begins again, and answers in what *byte ranges* the file is whole, so
that the rest of it can be read all the same. It also tells, by checksums alone, whether two logs
hold the same.

**Where records begin again.** The damaged record's own length is believed where an intact record
stands behind it, or where its checksum is right and only its content makes no sense. Otherwise the
file is searched for the next record with a right checksum and a right last byte.

A byte range lies within one *block* of zxids, `BLOCK` of them, so that what a survey answers is
small, and ranges of different logs can be held against each other.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple
from zlib import adler32

from reassure_zookeeper.codec import HEADER, decode
from reassure_zookeeper.jute import Malformed
from reassure_zookeeper.txnlog import (
    DOES_NOT_UNPACK,
    END_OF_RECORD,
    FILE_HEADER,
    FRAME,
    MAGIC,
    VERSION,
    TornTail,
    describe_head,
    find_intact_record,
    is_intact,
    open_log,
)

_BLOCK_BITS: Final = 12
BLOCK: Final = 1 << _BLOCK_BITS
_CHUNK: Final = 1 << 20
_MASK: Final = (1 << 64) - 1
_WRITTEN: Final = re.compile(rb"[^\0]")
_ZXID: Final = struct.Struct(">q")
_HEAD: Final = FILE_HEADER.pack(MAGIC, VERSION, 0)
_ZXID_AT: Final = FRAME.size + 12
"""Where in a record its zxid stands: behind session and number of the request."""


class ByteRange(NamedTuple):
    """Records of one file that follow one another, whole, within one block of zxids."""

    path: Path
    start: int
    """First byte."""
    stop: int
    """The byte behind the last one."""
    first: int
    """zxid of the first record."""
    last: int
    records: int
    digest: int
    """The same for the same records, in whatever files they are: sums of these are digests, too."""
    broken: bool
    """Whether something between it and the span before is damaged."""

    @property
    def block(self) -> int:
        """The block of zxids that it lies in."""
        return self.first >> _BLOCK_BITS

    @property
    def is_gapless(self) -> bool:
        """Whether no zxid is left out between its records."""
        return self.last - self.first + 1 == self.records


class LogRecord(NamedTuple):
    """One whole record of a file."""

    zxid: int
    checksum: int
    path: Path
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a log that cannot be read."""

    file: Path
    offset: int
    """Its first byte."""
    stop: int | None
    """Where reading goes on; None where nothing of the file can be read from there on."""
    reason: str
    """What was expected, and what is there."""
    after: int = -1
    """The last zxid before it, -1 where there is none."""
    before: int = -1
    """The first zxid behind it, in this file or a later one, -1 where there is none."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What one file holds."""

    path: Path
    ranges: tuple[ByteRange, ...]
    damages: tuple[Damage, ...]
    tail: TornTail | None


def survey_log(path: Path, *, decodes: bool = False) -> Survey:
    """Survey one log file; with `decodes` a record that makes no sense is damage, too.

    Records whose zxid does not grow are damage. Raises OSError.
    """
    return _Surveying(path, decodes=decodes).survey()


def list_records(span: ByteRange) -> Iterator[LogRecord]:
    """Yield the records of a byte range. Raises OSError."""
    with open_log(span.path) as file:
        file.seek(span.start)
        content = file.read(span.stop - span.start)
    at = 0
    while at < len(content):
        checksum, length = FRAME.unpack_from(content, at)
        stop = at + FRAME.size + length + 1
        (zxid,) = _ZXID.unpack_from(content, at + _ZXID_AT)
        yield LogRecord(zxid, checksum, span.path, span.start + at, span.start + stop)
        at = stop


def read_record(record: LogRecord) -> bytes:
    """Return the content of a record. Raises OSError."""
    with open_log(record.path) as file:
        file.seek(record.start + FRAME.size)
        return file.read(record.stop - record.start - FRAME.size - 1)


def _read_all(path: Path) -> tuple[bytes, str]:
    """Return what can be read of a file, unpacked, and why it is not all."""
    parts: list[bytes] = []
    try:
        with open_log(path) as file:
            read = getattr(file, "read1", file.read)  # which gives what there is before it fails
            while part := read(_CHUNK):
                parts.append(part)
    except DOES_NOT_UNPACK as problem:
        return b"".join(parts), f"does not unpack ({problem})"
    return b"".join(parts), ""


class _Problem(NamedTuple):
    """Why the record at a byte is not taken."""

    reason: str
    resume: int | None = None
    """Where the next one begins, where that is sure whatever is wrong with this one."""


class _Surveying:
    """One pass over a file's bytes."""

    def __init__(self, path: Path, *, decodes: bool) -> None:
        self._path = path
        self._decodes = decodes
        self._content, self._cut = _read_all(path)
        self._end = len(self._content.rstrip(b"\0"))
        self._ranges: list[ByteRange] = []
        self._damages: list[Damage] = []
        self._broken = False
        self._last = -1

    def survey(self) -> Survey:
        tail: TornTail | None = None
        at, problem = self._read_header()
        while at < self._end or problem is not None:
            if problem is None:
                at, problem = self._take_whole(at)
                if problem is None:
                    break
            resume = problem.resume or self._find_next(at)
            if resume is None:
                if self._cut or (at == 0 and not _HEAD.startswith(self._content[: self._end])):
                    self._note_damage(at, None, self._cut or problem.reason)
                else:
                    tail = TornTail(self._path, at, problem.reason)
                break
            self._note_damage(at, resume, problem.reason)
            at, problem = resume, None
        else:
            if self._cut:
                self._note_damage(at, None, self._cut)
        return Survey(self._path, tuple(self._ranges), tuple(self._damages), tail)

    def _read_header(self) -> tuple[int, _Problem | None]:
        head = self._content[: FILE_HEADER.size]
        if len(head) == FILE_HEADER.size and head.startswith(_HEAD[: -_ZXID.size]):
            return FILE_HEADER.size, None
        if not head.rstrip(b"\0"):
            return self._end, None
        return 0, _Problem(describe_head(head))

    def _find_next(self, at: int) -> int | None:
        """Return where the next intact record begins behind the one at a byte, if any does."""
        content = self._content
        if at + FRAME.size <= len(content):
            _, length = FRAME.unpack_from(content, at)
            own: int = at + FRAME.size + length + 1
            if length > 0 and is_intact(content, own):
                return own
        written = _WRITTEN.search(content, at)
        if written is None:
            return None
        # A frame begins with zeros, which are looked through one by one.
        return find_intact_record(content, max(at + 1, written.start() - FRAME.size))

    def _note_damage(self, at: int, resume: int | None, reason: str) -> None:
        self._broken = True
        before = self._damages[-1] if self._damages else None
        if before is not None and before.stop == at:
            self._damages[-1] = replace(before, stop=resume)
        else:
            self._damages.append(Damage(self._path, at, resume, reason, self._last))

    def _take_whole(self, at: int) -> tuple[int, _Problem | None]:
        """Take the whole records from a byte on; return where that ends, and why, if not well."""
        content, end = self._content, self._end
        start, first, count, digest = at, -1, 0, 0
        last, block, problem = self._last, -1, None
        while at < end:
            problem = self._find_problem(at, last)
            if problem is not None:
                break
            checksum, length = FRAME.unpack_from(content, at)
            (zxid,) = _ZXID.unpack_from(content, at + _ZXID_AT)
            if zxid >> _BLOCK_BITS != block:
                if count:
                    self._add(start, at, first, last, count, digest)
                start, first, count, digest = at, zxid, 0, 0
                block = zxid >> _BLOCK_BITS
            last = zxid
            count += 1
            digest += hash((zxid, checksum))
            at += FRAME.size + length + 1
        self._last = last
        if count:
            self._add(start, at, first, last, count, digest)
        return at, problem

    def _add(self, start: int, stop: int, first: int, last: int, count: int, digest: int) -> None:
        where = self._path, start, stop
        self._ranges.append(ByteRange(*where, first, last, count, digest & _MASK, self._broken))
        self._broken = False

    def _find_problem(self, at: int, last: int) -> _Problem | None:
        content = self._content
        if at + FRAME.size >= len(content):
            return _Problem("a record is cut short")
        checksum, length = FRAME.unpack_from(content, at)
        stop = at + FRAME.size + length
        if length <= 0:
            zeros = checksum == length == 0
            return _Problem("zeros amid the records" if zeros else f"a record of {length} bytes")
        if stop >= len(content):
            return _Problem("a record is cut short")
        record = content[at + FRAME.size : stop]
        if adler32(record) != checksum:
            return _Problem("a record does not match its checksum")
        if content[stop] != END_OF_RECORD:
            return _Problem(f"a record ends with 0x{content[stop]:02x} instead of 0x42")
        if length < HEADER.size:
            return _Problem("a record does not make sense: it is cut short", stop + 1)
        if self._decodes:
            try:
                decode(record)
            except Malformed as error:
                return _Problem(f"a record does not make sense: {error}", stop + 1)
        (zxid,) = _ZXID.unpack_from(record, _ZXID_AT - FRAME.size)
        if zxid <= last:
            return _Problem(f"zxid 0x{zxid:x} comes after 0x{last:x}", stop + 1)
        return None
