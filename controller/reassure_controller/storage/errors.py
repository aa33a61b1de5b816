"""What can be wrong with a broker's disk, or with what it is asked to keep or to give."""

from pathlib import Path
from typing import Any

from reassure_controller.replication.errors import CORRUPT_MESSAGE
from reassure_spec.errors import BadData, BadUsage, Unavailable


class CorruptBatch(BadData):
    """Bytes that are not record batches, or none that are taken; `error`: Kafka's name for why."""

    def __init__(self, position: int, reason: str, error: str = CORRUPT_MESSAGE) -> None:
        super().__init__(f"batch at byte {position}: {reason}")
        self.position = position
        self.reason = reason
        self.error = error


class CorruptLog(BadData):
    """A log's file is damaged where records were safe, so that it cannot be cut there."""

    def __init__(self, file: Path, position: int, reason: str) -> None:
        super().__init__(
            f"{file}: byte {position}: {reason}; records before the recovery point were safe on "
            "disk, so nothing is cut: restore the file, or delete the partition's directory and "
            "recovery-point-offset-checkpoint, so that the leader is asked for all of it again"
        )
        self.file = file
        self.position = position


class CorruptCheckpoint(BadData):
    """A checkpoint file cannot be read."""

    def __init__(self, file: Path, line: int, reason: str, remedy: str) -> None:
        super().__init__(f"{file}: line {line}: {reason}; {remedy}")
        self.file = file
        self.line = line


class WrongDirectory(BadUsage):
    """The directory is another broker's, or another cluster's, or in use."""


class OutOfOrder(BadUsage):
    """Batches that do not continue the log: a gap, an overlap, or an epoch that goes back."""


class SequenceRefused(BadUsage):
    """A batch of an idempotent producer that is not the next one; `error`: Kafka's name for why."""

    def __init__(self, error: str, producer_id: int, reason: str) -> None:
        super().__init__(f"producer {producer_id}: {reason}")
        self.error = error


class OffsetOutOfRange(BadUsage):
    """An offset that the log does not hold."""

    def __init__(self, what: str, offset: int, first: int, end: int) -> None:
        super().__init__(f"{what}: offset {offset} is not between {first} and {end}")
        self.offset = offset


class DiskFailed(Unavailable):
    """The disk did not take, or did not give, what was asked of it: one of those below."""


class WriteRefused(DiskFailed):
    """The disk takes nothing more: nothing of what was to be written remains, reading goes on."""

    def __init__(self, file: Path, error: OSError) -> None:
        super().__init__(f"{file}: nothing was written: {error}; free space, then try again")
        self.file = file


class ReadFailed(DiskFailed):
    """The disk does not give what is in a file; what else is in it may still be had."""

    def __init__(self, file: Path, error: OSError) -> None:
        super().__init__(f"{file}: not read: {error}; see to the disk, then try again")
        self.file = file


class LogOffline(DiskFailed):
    """The log is closed, or the disk failed so that nobody knows what is in the files."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file}: {reason}; mend what is wrong, then open the log again")
        self.file = file


def describe(expected: Any, found: Any) -> str:
    """Say what was expected and what was found."""
    return f"expected {expected}, found {found}"
