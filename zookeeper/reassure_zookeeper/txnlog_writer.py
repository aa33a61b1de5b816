"""Write small transaction logs that ZooKeeper itself accepts.

For tests that need a history nobody produced: what is read with `txnlog` and written here gives the
same bytes, and a change planted in between is a log with exactly that change.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self
from zlib import adler32

from reassure_zookeeper.codec import encode
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import END_OF_RECORD, FILE_HEADER, FRAME, MAGIC, VERSION, AnyPath

_END = bytes((END_OF_RECORD,))


class LogWriter:
    """Writes one log file, record by record; a context manager.

    `path` should be named `log.` and the first zxid in hexadecimal.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = Path(path)
        self._file = self.path.open("xb")
        self._file.write(FILE_HEADER.pack(MAGIC, VERSION, 0))

    def append(self, *transactions: Transaction) -> None:
        """Write transactions; raises `ValueError` when the type and the ops of one contradict."""
        self._file.write(b"".join(map(frame, transactions)))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class GrowingLog:
    """Writes log files as a running server does: into zeros written in advance, file after file.

    `block` is how many bytes of zeros are put at the end of a file whenever those there run out, 0
    for none.  What is appended can be read by others at once.
    """

    def __init__(self, directory: AnyPath, *, block: int = 1 << 20) -> None:
        self.directory = Path(directory)
        self._block = block
        self._path: Path | None = None
        self._at = self._size = 0

    def append(self, *transactions: Transaction) -> None:
        """Write transactions, in one go; the first of a file gives it its name."""
        records = b"".join(map(frame, transactions))
        if self._path is None:
            self._path = self.directory / f"log.{transactions[0].zxid:x}"
            self._path.touch(exist_ok=False)
            self._at = self._size = 0
            records = FILE_HEADER.pack(MAGIC, VERSION, 0) + records
        self.write(records)

    def write(self, content: bytes) -> None:
        """Write bytes where the next record goes: a part of one, say."""
        assert self._path is not None
        with self._path.open("r+b", buffering=0) as file:
            if self._block and self._at + len(content) > self._size:
                self._size = self._at + len(content) + self._block
                file.truncate(self._size)
            file.seek(self._at)
            self._at += file.write(content)

    def rotate(self) -> None:
        """Leave the file behind; what comes next goes into another one."""
        self._path = None


def frame(transaction: Transaction) -> bytes:
    """Return a transaction as it stands in a log, with its checksum and its end."""
    record = encode(transaction)
    return FRAME.pack(adler32(record), len(record)) + record + _END


def write_log(directory: AnyPath, transactions: Iterable[Transaction]) -> Path:
    """Write transactions into one new log file in a directory, named as ZooKeeper would.

    Returns its path.  Raises `ValueError` when there are none, `FileExistsError` when it exists.
    """
    listed = list(transactions)
    if not listed:
        raise ValueError("a log without transactions has no name; give at least one")
    path = Path(directory) / f"log.{listed[0].zxid:x}"
    with LogWriter(path) as writer:
        for transaction in listed:
            writer.append(transaction)
    return path
