"""What a broker says of what is not in ZooKeeper: `docs/observations.md`, the writer's side.

A line is handed to the operating system before the broker acts on what it says: so whatever others
saw of the broker stands in its file, however it ends.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from reassure_spec.observations import (
    NOBODY,
    Observation,
    What,
    Writer,
    encode_observation,
)
from reassure_spec.znodes import PartitionKey

FILE: Final = "observations.ndjson"
FILE_BYTES: Final = 64 << 20
"""A file that has grown so long is followed by a new one."""
FILES_KEPT: Final = 16
TELLS: Final = (
    "restored",
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
        directory.mkdir(parents=True, exist_ok=True)
        self._stream = self._open()

    def say(self, key: PartitionKey, controller_epoch: int, leader_epoch: int, what: What) -> None:
        """Write one line about a replica of this broker."""
        if self._stream.tell() >= self._file_bytes:
            self._turn_over()
        self._write(
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
            )
        )

    def close(self) -> None:
        """End the file."""
        self._stream.close()

    def _write(self, line: Observation) -> None:
        self._stream.write(encode_observation(line))
        self._sequence += 1

    def _open(self) -> BinaryIO:
        stream = (self._directory / FILE).open("ab", buffering=0)
        if stream.tell() and not _ends_a_line(self._directory / FILE):
            stream.write(b"\n")  # somebody was killed while writing
        self._stream = stream
        name = f"broker-{self._broker}"
        head = Writer(TELLS)
        self._write(Observation(name, self._run, self._sequence, "", "", -1, NOBODY, 0, 0, head))
        return stream

    def _turn_over(self) -> None:
        self._stream.close()
        for number in range(self._files_kept - 1, -1, -1):
            path = self._name(number)
            if path.exists():
                if number == self._files_kept - 1:
                    path.unlink()
                else:
                    path.replace(self._name(number + 1))
        self._stream = self._open()

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
