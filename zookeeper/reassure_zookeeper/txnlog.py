"""Read ZooKeeper's transaction logs: all that was written, in one total order, checked.

A log is one or more files `log.ZXID`, named by the first zxid in them, or packed each by itself as
`log.ZXID.gz` or `log.ZXID.zip`.  A file is a header and
records; a record is an Adler-32 checksum, a length, that many bytes, and one `B`.  The server
writes into preallocated zeros, so eight zeros and a length of zero are the end.

**Torn tail or damage.**  A server that is killed may leave its last record half written.  Where a
record is not intact, the rest of the file decides: if an intact record follows, something that was
once complete is damaged, and that is `DamagedLog`; if none does, it is a `TornTail`, which is
normal and reported.  In a file that is not the last, a torn tail is normal only when the next file
goes on with the very next zxid: then the torn record never counted, and nothing is missing.  A
record that is intact but does not make sense, and a zxid that does not grow, are always damage.

**Gaps.**  Zxids of one epoch are consecutive, so where one is left out transactions are missing.  A
batch (`LogFile.batches`) ends before a gap: whoever asks whether each batch goes on from the one
before it (`is_next`) meets them all.
"""

from __future__ import annotations

import gzip
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import IO, Final, cast
from zlib import adler32

from reassure_zookeeper.codec import decode
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.jute import Malformed
from reassure_zookeeper.transactions import Transaction

FILE_HEADER: Final = struct.Struct(">4siq")
MAGIC: Final = b"ZKLG"
VERSION: Final = 2
FRAME: Final = struct.Struct(">qi")
END_OF_RECORD: Final = 0x42
EPOCH_BITS: Final = 32
"""A zxid is the epoch of a leader and, in so many bits, a counter that begins anew with each."""

_CHUNK: Final = 256 * 1024
_ADDED: Final = 8 * 1024
"""How much is read at first of what a server has added; mostly there is less."""
_LONGEST: Final = 1 << 30
_unpack_frame = FRAME.unpack_from
_FRAME_SIZE: Final = FRAME.size
# What every frame looks like: an unsigned 32-bit checksum in 64 bits, then a length below 2^30 that
# is not zero, for logs have megabytes of zeros.
_FRAME_LIKE: Final = re.compile(rb"(?=\0{4}.{4}(?!\0{4})[\x00-\x3f])", re.DOTALL)
_LOG_NAME: Final = re.compile(r"log\.[0-9a-f]+(?:\.(?:gz|zip))?")
_ZXID_IN_NAME: Final = re.compile(r"(?:log|snapshot)\.([0-9a-f]+)")
DOES_NOT_UNPACK: Final = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)
_LIKE_A_LOG: Final = re.compile(r"(?i)log[._-]|.*\.(?:tar|tgz|zip|7z|tar\.\w+)$")
_PACKED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd"}

AnyPath = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class TornTail:
    """The unfinished last record of a file: which file, at which byte it begins, what is wrong."""

    file: Path
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why decoding stopped at a record: `certain` where only damage can be the reason."""

    reason: str
    certain: bool = False


_CLEAN_END: Final = _Stop("zeros amid the records")
_CUT_SHORT: Final = _Stop("a record is cut short")
_GAP: Final = _Stop("a zxid is left out")
"""Only the batch ends here, not the reading."""


def is_next(before: int, zxid: int) -> bool:
    """Whether one zxid follows another without a gap: the next one, or a new leader's first.

    >>> is_next(7, 8), is_next(0x100000007, 0x200000001), is_next(7, 9)
    (True, True, False)
    """
    if zxid == before + 1:
        return True
    counter = zxid & ((1 << EPOCH_BITS) - 1)
    return zxid >> EPOCH_BITS > before >> EPOCH_BITS and counter <= 1


class LogFile:
    """One log file, read from `offset` on by iterating over it.

    After that `offset` is where the next record will begin, and `tail` is the torn tail, if any.
    `after_zxid` is the zxid that the first record must exceed.  `records` is where to put the bytes
    of each transaction beside it.  `stop` is the byte to read up to, where a record ends; None for
    all of the file.  Raises `DamagedLog`.
    """

    def __init__(
        self,
        path: AnyPath,
        after_zxid: int = -1,
        records: list[bytes] | None = None,
        *,
        offset: int = 0,
        stop: int | None = None,
    ) -> None:
        self.path = Path(path)
        self.records = records
        self.offset = offset
        self.stop = stop
        self.tail: TornTail | None = None
        self.last_zxid = after_zxid
        self.decode: Callable[[bytes], Transaction] = decode
        """Makes a transaction of a record."""

    def __iter__(self) -> Iterator[Transaction]:
        for batch in self.batches():
            yield from batch

    def batches(self, *, growing: bool = False) -> Iterator[list[Transaction]]:
        """Yield the transactions from `offset` on, some hundreds or thousands at a time.

        No batch has a gap within it. With `growing` a clean end is believed without reading the
        preallocated rest of the file.
        """
        self.tail = None
        try:
            yield from self._read_batches(growing=growing)
        except DOES_NOT_UNPACK as problem:
            raise DamagedLog(self.path, self.offset, f"does not unpack ({problem})") from None

    def _read_batches(self, *, growing: bool) -> Iterator[list[Transaction]]:
        with open_log(self.path) as file:
            if self.offset == 0 and not self._read_header(file):
                return
            file.seek(self.offset)
            block, size = b"", _ADDED if growing else _CHUNK
            stop: _Stop | None = None
            while stop is None:
                if self.stop is not None:
                    size = min(size, self.stop - self.offset - len(block))
                    if self.offset >= self.stop:
                        return
                more = file.read(size)
                block, size = block + more, _CHUNK
                at, stop = 0, _GAP
                while stop is _GAP:
                    batch: list[Transaction] = []
                    used, stop = self._decode_block(block, at, batch)
                    self.offset += used - at
                    at = used
                    if batch:
                        yield batch
                block = block[at:]
                if not more:
                    stop = stop or _CUT_SHORT
            if not (growing and stop is _CLEAN_END):
                self._judge_end(file, stop)

    def _read_header(self, file: IO[bytes]) -> bool:
        head = file.read(FILE_HEADER.size)
        written = head.rstrip(b"\0")
        if len(head) < FILE_HEADER.size or len(written) <= len(MAGIC):
            if not FILE_HEADER.pack(MAGIC, VERSION, 0).startswith(written):
                raise DamagedLog(self.path, 0, describe_head(head))
            incomplete = _Stop("the file header is incomplete")
            self._judge_end(file, incomplete)
            self.tail = self.tail or TornTail(self.path, 0, incomplete.reason)
            return False
        magic, version, _ = FILE_HEADER.unpack(head)
        if magic != MAGIC:
            raise DamagedLog(self.path, 0, describe_head(head))
        if version != VERSION:
            raise DamagedLog(self.path, 4, f"has format version {version} instead of {VERSION}")
        self.offset = FILE_HEADER.size
        return True

    def _decode_block(
        self, block: bytes, at: int, batch: list[Transaction]
    ) -> tuple[int, _Stop | None]:
        """Decode whole records from a byte of the block on into `batch`, up to a gap.

        Return where they end, and why the next one is not taken, or None if the block just ends
        too early.
        """
        size = len(block)
        last_zxid = self.last_zxid
        append, records, decode = batch.append, self.records, self.decode
        while at + _FRAME_SIZE <= size:
            checksum, length = _unpack_frame(block, at)
            stop = at + _FRAME_SIZE + length
            if not 0 < length < _LONGEST:
                if checksum == length == 0:
                    return at, _CLEAN_END
                return at, _Stop(f"a record of {length} bytes")
            if stop >= size:
                break
            record = block[at + _FRAME_SIZE : stop]
            if adler32(record) != checksum:
                return at, _Stop("a record does not match its checksum")
            if block[stop] != END_OF_RECORD:
                return at, _Stop(f"a record ends with 0x{block[stop]:02x} instead of 0x42")
            try:
                transaction = decode(record)
            except Malformed as problem:
                return at, _Stop(f"a record does not make sense: {problem}", certain=True)
            zxid = transaction.zxid
            if zxid <= last_zxid:
                return at, _Stop(f"zxid 0x{zxid:x} comes after 0x{last_zxid:x}", certain=True)
            if zxid != last_zxid + 1 and batch and not is_next(last_zxid, zxid):
                return at, _GAP
            self.last_zxid = last_zxid = zxid
            append(transaction)
            if records is not None:
                records.append(record)
            at = stop + 1
        return at, None

    def _judge_end(self, file: IO[bytes], stop: _Stop) -> None:
        """Tell a clean end, a torn tail and damage apart, at the record at `offset`."""
        if stop.certain:
            raise DamagedLog(self.path, self.offset, stop.reason)
        file.seek(self.offset)
        rest = file.read().rstrip(b"\0")
        if not rest:
            return
        if find_intact_record(rest, 1) is not None:
            raise DamagedLog(self.path, self.offset, f"{stop.reason}, yet intact records follow")
        self.tail = TornTail(self.path, self.offset, stop.reason)


@contextmanager
def open_log(path: Path) -> Iterator[IO[bytes]]:
    """Open a log file as the server wrote it; `zip` holds it alone."""
    if path.suffix == ".gz":
        with gzip.open(path) as file:
            yield cast("IO[bytes]", file)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            if len(archive.namelist()) != 1:
                raise zipfile.BadZipFile(f"{len(archive.namelist())} files in it instead of one")
            with archive.open(archive.namelist()[0]) as member:
                yield member
    else:
        with path.open("rb") as plain:
            yield plain


def describe_head(head: bytes) -> str:
    """Say what a file begins with that is no log of a version that can be read."""
    for mark, name in _PACKED.items():
        if head.startswith(mark):
            return f"is packed with {name}; unpack it first"
    return f"begins with {head[:4]!r} instead of {MAGIC!r}; is it a transaction log?"


def find_intact_record(content: bytes, at: int) -> int | None:
    """Return where the first intact record at or behind a byte begins, None where none does.

    Searched byte by byte, for lengths lie.
    """
    for match in _FRAME_LIKE.finditer(content, at):
        if is_intact(content, match.start()):
            return match.start()
    return None


def is_intact(content: bytes, at: int) -> bool:
    """Whether a whole record with the right checksum begins at a byte."""
    if at + _FRAME_SIZE >= len(content):
        return False
    checksum, length = _unpack_frame(content, at)
    stop = at + _FRAME_SIZE + length
    if not 0 < length < _LONGEST or stop >= len(content) or content[stop] != END_OF_RECORD:
        return False
    return adler32(memoryview(content)[at + _FRAME_SIZE : stop]) == int(checksum)


class Logs:
    """The transactions of one or more log files, in the order of their zxids, by iterating."""

    def __init__(self, files: Iterable[Path], after_zxid: int = 0) -> None:
        self.files = tuple(files)
        self.after_zxid = after_zxid

    def __iter__(self) -> Iterator[Transaction]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[Transaction]]:
        """Yield the transactions some hundreds or thousands at a time; raises `DamagedLog`."""
        torn: TornTail | None = None
        last_zxid = -1
        for path in self.files:
            file = LogFile(path, last_zxid)
            for batch in file.batches():
                if torn is not None:
                    _check_nothing_missing(torn, last_zxid, batch[0].zxid)
                    torn = None
                last_zxid = batch[-1].zxid
                if batch[0].zxid > self.after_zxid:
                    yield batch
                elif last_zxid > self.after_zxid:
                    yield [each for each in batch if each.zxid > self.after_zxid]
            torn = torn or file.tail


def _check_nothing_missing(torn: TornTail, last_zxid: int, next_zxid: int) -> None:
    """Raise unless what follows a torn tail goes on as if the torn record had never been.

    `last_zxid` is that of the last intact record before the tail, -1 if there is none.
    """
    expected = last_zxid + 1 if last_zxid >= 0 else get_zxid_in_name(torn.file)
    if next_zxid != expected:
        raise DamagedLog(
            torn.file,
            torn.offset,
            f"{torn.reason} where zxid 0x{expected:x} should be, and the next file goes on with "
            f"0x{next_zxid:x}",
        )


def read_log(path: AnyPath) -> LogFile:
    """Read one log file; iterate over the result, then look at its `tail`."""
    return LogFile(path)


def read_logs(source: AnyPath | Iterable[AnyPath], after_zxid: int = 0) -> Logs:
    """Read the logs of a directory, or some log files, from the first zxid above `after_zxid`.

    `source` is a server's data directory, its `version-2` directory, a single file, or several
    files.  Raises `LogsMissing` here when there is no log, and `DamagedLog` while iterating.
    """
    if isinstance(source, str | PathLike):
        files = log_files(source)
        if not files:
            raise LogsMissing(
                f"{source} has no transaction log; name a ZooKeeper data directory, its version-2 "
                "directory, or a file log.ZXID"
            )
    else:
        files = sorted((Path(path) for path in source), key=get_zxid_in_name)
    return Logs(_from_zxid(files, after_zxid), after_zxid)


def log_files(source: AnyPath) -> list[Path]:
    """List the log files of a data directory, of its `version-2`, or the single file `source`.

    In the order of their zxids; empty if there are none.  One that lies there packed and unpacked
    counts once.  Raises `LogsMissing` when there is no such path.
    """
    path = Path(source)
    if path.is_file():
        return [path]
    found = sorted(file for file in find_log_folder(path).iterdir() if _is_log(file))
    once = {file.with_suffix("") if _is_packed(file) else file: file for file in found[::-1]}
    return sorted(once.values(), key=get_zxid_in_name)


def _is_packed(file: Path) -> bool:
    return file.suffix in (".gz", ".zip")


def unread_files(source: AnyPath) -> list[Path]:
    """List what lies beside the logs, is called like a log, and is not read.

    Renamed logs, those packed otherwise, and what is no file or leads nowhere. Raises what
    `log_files` does.
    """
    path = Path(source)
    folder = path.parent if path.is_file() else find_log_folder(path)
    return sorted(
        file
        for file in folder.iterdir()
        if _LIKE_A_LOG.match(file.name) and not _is_log(file) and file != path
    )


def find_log_folder(path: Path) -> Path:
    """Return the directory that holds the files of a data directory.

    Raises `LogsMissing` where there is no such directory.
    """
    if not path.is_dir():
        what = "is neither a file nor a directory" if path.exists() else "does not exist"
        raise LogsMissing(f"{path} {what}; name a ZooKeeper data directory or log file")
    return path / "version-2" if (path / "version-2").is_dir() else path


def _is_log(file: Path) -> bool:
    return _LOG_NAME.fullmatch(file.name) is not None and file.is_file()


def get_zxid_in_name(path: Path) -> int:
    """Return the zxid that a log file or a snapshot is named by, 0 for any other name."""
    named = _ZXID_IN_NAME.match(path.name)
    return int(named[1], 16) if named else 0


def _from_zxid(files: list[Path], after_zxid: int) -> list[Path]:
    """Leave out the files that have nothing after `after_zxid`.

    Those are the ones followed by a file that begins no later than the zxid wanted first.
    """
    needed = [
        file for file, following in pairwise(files) if get_zxid_in_name(following) > after_zxid + 1
    ]
    return needed + files[-1:]
