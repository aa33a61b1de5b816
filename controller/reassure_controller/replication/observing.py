"""What a broker says of what is not in ZooKeeper: `docs/observations.md`, the writer's side.

A line is handed to the operating system before the broker acts on what it says: so whatever others
saw of the broker stands in its file, however it ends. A broker whose disk takes no line goes on all
the same: lines are counted whether they are written or not, so that the gap can be seen.
"""

import errno
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from reassure_controller.storage.files import writing
from reassure_spec.observations import (
    NOBODY,
    Observation,
    What,
    Writer,
    encode_observation,
)
from reassure_spec.znodes import PartitionKey

log = logging.getLogger(__name__)

FILE: Final = "observations.ndjson"
FILE_BYTES: Final = 64 << 20
"""A file that has grown so long is followed by a new one."""
FILES_KEPT: Final = 16
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""A broker may be registered while its disk is full: it has waited for its former life to end."""
TELLS: Final = (
    "restored",
    "stopped",
    "replica",
    "follow",
    "lead",
    "fetch",
    "evaluate",
    "isr_write",
    "isr_read",
    "serve",
    "produce",
    "answer",
)
"""The kinds of which a broker writes a line every time."""


class Observer:
    """Writes the lines of one life of a broker, and turns the files over.

    The newest file is `observations.ndjson`; older ones have numbers, the oldest the largest, and
    beyond `files_kept` they are deleted.
    """

    def __init__(
        self,
        directory: Path,
        broker: int,
        run: int,
        *,
        chroot: str = "",
        file_bytes: int = FILE_BYTES,
        files_kept: int = FILES_KEPT,
    ) -> None:
        self._directory = directory
        self._broker = broker
        self._run = run
        self._chroot = chroot
        self._file_bytes = file_bytes
        self._files_kept = files_kept
        self._sequence = 0
        self._is_interrupted = False
        self._before: Observation | None = None
        """The line before, where that is whole and in the same file."""
        self._stream: BinaryIO | None = None
        self._lock = threading.Lock()
        with writing(directory / FILE):
            directory.mkdir(parents=True, exist_ok=True)
            try:
                self._stream = self._open()
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._leave_out(error)

    def say(self, key: PartitionKey, controller_epoch: int, leader_epoch: int, what: What) -> None:
        """Write one line about a replica of this broker, unless the disk does not take it."""
        with self._lock:
            self._say(key, controller_epoch, leader_epoch, what)

    def _say(self, key: PartitionKey, controller_epoch: int, leader_epoch: int, what: What) -> None:
        try:
            stream = self._take_stream()
            self._write(
                stream,
                Observation(
                    f"broker-{self._broker}",
                    self._run,
                    self._sequence,
                    self._chroot,
                    *key,
                    self._broker,
                    controller_epoch,
                    leader_epoch,
                    what,
                ),
            )
        except OSError as error:
            self._leave_out(error)
            self._sequence += 1
        else:
            if self._is_interrupted:
                log.warning("%s: the history goes on", self._file)
            self._is_interrupted = False

    def _leave_out(self, error: OSError) -> None:
        if not self._is_interrupted:
            log.warning("%s: the history has a gap from here on: %s; free space", self._file, error)
        self._is_interrupted, self._before = True, None

    def close(self) -> None:
        """End the file."""
        if self._stream is not None:
            self._stream.close()

    @property
    def _file(self) -> Path:
        return self._directory / FILE

    def _take_stream(self) -> BinaryIO:
        """Return the file to write to, a new one where the last has grown too long."""
        if self._stream is not None and self._stream.tell() >= self._file_bytes:
            self._stream.close()
            self._stream = None
            self._turn_over()
        if self._stream is None:
            self._stream = self._open()
        return self._stream

    def _write(self, stream: BinaryIO, line: Observation) -> None:
        """Write a line, or nothing of it. Raises OSError."""
        content, end = encode_observation(line, self._before), stream.seek(0, os.SEEK_END)
        if stream.write(content) < len(content):
            stream.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._sequence, self._before = self._sequence + 1, line

    def _open(self) -> BinaryIO:
        stream, self._before = self._file.open("ab", buffering=0), None
        try:
            if stream.tell() and not _ends_a_line(self._file):
                stream.write(b"\n")  # somebody was killed while writing
            name, head = f"broker-{self._broker}", Writer(TELLS)
            self._write(
                stream,
                Observation(name, self._run, self._sequence, "", "", -1, NOBODY, 0, 0, head),
            )
        except OSError:
            stream.close()
            raise
        return stream

    def _turn_over(self) -> None:
        for number in range(self._files_kept - 1, -1, -1):
            path = self._name(number)
            if path.exists():
                if number == self._files_kept - 1:
                    path.unlink()
                else:
                    path.replace(self._name(number + 1))

    def _name(self, number: int) -> Path:
        return self._directory / (f"{FILE}.{number}" if number else FILE)


def list_files(directory: Path) -> Iterator[Path]:
    """Yield the files of one writer, oldest first."""
    numbered = sorted(
        directory.glob(f"{FILE}.*"), key=lambda path: int(path.suffix[1:]), reverse=True
    )
    yield from numbered
    if (directory / FILE).exists():
        yield directory / FILE


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"
