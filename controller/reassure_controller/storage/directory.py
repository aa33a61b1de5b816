"""What one broker owns on disk: a lock, who it is, its logs, and checkpoints of offsets.

The names and the contents of the files are Kafka's: `meta.properties`, `.lock`, a directory
`TOPIC-PARTITION` for each log, `replication-offset-checkpoint` for high watermarks and
`recovery-point-offset-checkpoint` for what is safe, `log-start-offset-checkpoint` for where logs
begin whose oldest segments were deleted.
"""

import fcntl
import logging
import os
import re
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from reassure_controller.storage.checkpoints import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    read_offsets,
    write_offsets,
)
from reassure_controller.storage.errors import WrongDirectory
from reassure_controller.storage.files import (
    Sync,
    make_directory,
    reading,
    sync_directory,
    write_atomically,
    writing,
)
from reassure_controller.storage.log import DELETED, SEGMENT_BYTES, PartitionLog
from reassure_spec.znodes import PartitionKey

log = logging.getLogger(__name__)

META: Final = "meta.properties"
LOCK: Final = ".lock"

_LOG: Final = re.compile(r"(.+)-(\d+)")
_DELETED_LOG: Final = re.compile(rf"(.+)-(\d+)\.[0-9a-f]+{DELETED}")


class LogDirectory:
    """The directory of a broker, locked against every other one until it is closed.

    Many threads may use it; two that use the same log have to keep out of each other's way.
    """

    def __init__(
        self,
        path: Path,
        broker_id: int,
        cluster_id: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        flush_records: int | None = None,
        sync: Sync = os.fsync,
    ) -> None:
        """Take the directory, make it where there is none, and open every log in it.

        Raises WrongDirectory when it is in use, or is another broker's or another cluster's;
        CorruptCheckpoint; CorruptLog; DiskFailed.
        """
        self.path = path
        self._segment_bytes = segment_bytes
        self._flush_records = flush_records
        self._sync = sync
        self._logs: dict[PartitionKey, PartitionLog] = {}
        self._guard = threading.RLock()
        """Held by who changes which logs there are, or saves offsets of all of them."""
        self._deleted: dict[PartitionKey, Path] = {}
        """Directories of logs that were deleted and are not gone yet."""
        with ExitStack() as on_error:
            with writing(path):
                make_directory(path, sync)
                self._lock: int | None = _lock(path / LOCK)
            on_error.callback(self.abandon)
            self._claim({"cluster.id": cluster_id, "broker.id": str(broker_id)})
            with reading(path):
                self._high_watermarks = read_offsets(path / HIGH_WATERMARKS)
                self._recovery_points = read_offsets(path / RECOVERY_POINTS)
                self._starts = read_offsets(path / LOG_STARTS)
            self._open_logs()
            on_error.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def logs(self) -> Mapping[PartitionKey, PartitionLog]:
        """The logs that are there, by partition."""
        return MappingProxyType(self._logs)

    @property
    def high_watermarks(self) -> Mapping[PartitionKey, int]:
        """The high watermarks as they were saved last."""
        return MappingProxyType(self._high_watermarks)

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return the partition's log; an empty one where there was none.

        Raises CorruptLog when there was one with records that were safe; DiskFailed.
        """
        key = (topic, partition)
        with self._guard:
            if key not in self._logs:
                if key in self._deleted:
                    self.end_deletions()
                self._logs[key] = PartitionLog(
                    self.path / f"{topic}-{partition}",
                    recovery_point=self._recovery_points.get(key, 0),
                    start_offset=self._starts.get(key, 0),
                    segment_bytes=self._segment_bytes,
                    flush_records=self._flush_records,
                    sync=self._sync,
                    on_lowered=self.save_recovery_points,
                )
                self._recovery_points.pop(key, None)
                self._starts.pop(key, None)
            return self._logs[key]

    def delete(self, topic: str, partition: int) -> None:
        """Delete the partition's log, where there is one; `end_deletions` does what is left.

        Raises DiskFailed; what is left is deleted later, or when the directory is opened.
        """
        key = (topic, partition)
        with self._guard:
            if key in self._logs:
                gone = self._deleted[key] = self._logs[key].retire()
                del self._logs[key]
                with writing(gone):
                    sync_directory(self.path, self._sync)
                    _remove_files(gone)

    def end_deletions(self) -> None:
        """Forget what is known of logs that were deleted, and remove what is left of them.

        For all at once, as what is known of all partitions is written anew. Their files go first,
        which takes no room. Their directories go last: as long as they are there, offsets that may
        still be known of a partition are those of the deleted log, and are not to make one that is
        made anew look damaged. Raises DiskFailed.
        """
        with self._guard:
            if not self._deleted:
                return
            with writing(self.path):
                sync_directory(self.path, self._sync)
            for key, gone in self._deleted.items():
                with writing(gone):
                    _remove_files(gone)
                self._recovery_points.pop(key, None)
                self._starts.pop(key, None)
            self.save_recovery_points()
            known = self._high_watermarks.items()
            marks = {key: mark for key, mark in known if key not in self._deleted}
            if marks != self._high_watermarks:
                self.save_high_watermarks(marks)
            for key, gone in tuple(self._deleted.items()):
                with writing(gone):
                    gone.rmdir()
                del self._deleted[key]
            with writing(self.path):
                sync_directory(self.path, self._sync)

    def save_high_watermarks(self, marks: Mapping[PartitionKey, int]) -> None:
        """Save the high watermarks of all partitions. Raises WriteRefused."""
        with self._guard:
            self._save(HIGH_WATERMARKS, marks)
            self._high_watermarks = dict(marks)

    def flush(self) -> None:
        """Make every record safe on disk, and save how far that is.

        Raises LogOffline, WriteRefused.
        """
        try:
            self.flush_logs()
        finally:
            self.save_recovery_points()

    def flush_logs(self) -> None:
        """Make every record safe on disk, in every log that can be flushed. Raises LogOffline."""
        with ExitStack() as flushing:
            for each in self._logs.values():
                flushing.callback(each.flush)

    def close(self) -> None:
        """Flush, close every log and give the directory free. Raises as `flush` does."""
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files as they are, as the end of a process does."""
        for each in self._logs.values():
            each.abandon()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def save_recovery_points(self) -> None:
        """Save up to where logs are safe, and where they begin. Raises WriteRefused."""
        with self._guard:
            opened = {key: each.recovery_point for key, each in self._logs.items()}
            starts = self._starts | {key: each.start_offset for key, each in self._logs.items()}
            starts = {key: start for key, start in starts.items() if start}
            self._save(RECOVERY_POINTS, self._recovery_points | opened)
            if starts or (self.path / LOG_STARTS).exists():
                self._save(LOG_STARTS, starts)

    def _save(self, name: str, offsets: Mapping[PartitionKey, int]) -> None:
        file = self.path / name
        with writing(file):
            write_offsets(file, offsets, self._sync)

    def _open_logs(self) -> None:
        """Open every log that is there, and end the deletions that a crash cut short."""
        found = [path for path in sorted(self.path.iterdir()) if path.is_dir()]
        for path in found:
            if match := _DELETED_LOG.fullmatch(path.name):
                log.info("%s: was being deleted, now it is", path)
                if (key := (match[1], int(match[2]))) in self._deleted:
                    self.end_deletions()
                self._deleted[key] = path
        self.end_deletions()
        for path in found:
            if match := _LOG.fullmatch(path.name):
                self.log(match[1], int(match[2]))

    def _claim(self, owner: Mapping[str, str]) -> None:
        """Write down whose the directory is, or refuse it where it is somebody else's."""
        file = self.path / META
        expected = {"version": "0", **owner}
        if not file.exists():
            lines = "".join(f"{name}={value}\n" for name, value in expected.items())
            with writing(file):
                write_atomically(file, f"#\n{lines}", self._sync)
            return
        with reading(file):
            lines = file.read_text(encoding="utf-8", errors="replace")
        pairs = (line.partition("=") for line in lines.splitlines() if not line.startswith("#"))
        found = {name.strip(): value.strip() for name, _, value in pairs}
        for name, value in expected.items():
            if found.get(name) != value:
                raise WrongDirectory(
                    f"{file}: expected {name}={value}, found {found.get(name)}; give the broker "
                    "the directory that is its own, or an empty one"
                )


def _remove_files(directory: Path) -> None:
    for file in directory.iterdir():
        file.unlink()


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as busy:
        os.close(descriptor)
        raise WrongDirectory(
            f"{path}: another broker has this directory; end it, or give each broker its own"
        ) from busy
    return descriptor
