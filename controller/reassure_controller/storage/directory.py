"""What one broker owns on disk: a lock, who it is, its logs, and checkpoints of offsets.

The names and the contents of the files are Kafka's: `meta.properties`, `.lock`, a directory
`TOPIC-PARTITION` for each log, `replication-offset-checkpoint` for high watermarks and
`recovery-point-offset-checkpoint` for what is safe.
"""

import fcntl
import logging
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from reassure_controller.storage.checkpoints import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    read_offsets,
    write_offsets,
)
from reassure_controller.storage.errors import WriteRefused, WrongDirectory
from reassure_controller.storage.files import Sync, make_directory, write_atomically
from reassure_controller.storage.log import DELETED, SEGMENT_BYTES, Log
from reassure_spec.znodes import PartitionKey

log = logging.getLogger(__name__)

META: Final = "meta.properties"
LOCK: Final = ".lock"

_LOG: Final = re.compile(r"(.+)-(\d+)")


class LogDirectory:
    """The directory of a broker, locked against every other one until it is closed."""

    def __init__(
        self,
        path: Path,
        broker_id: int,
        cluster_id: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        sync: Sync = os.fsync,
    ) -> None:
        """Take the directory, make it where there is none, and open every log in it.

        Raises WrongDirectory when it is in use, or is another broker's or another cluster's;
        CorruptCheckpoint; CorruptLog.
        """
        self.path = path
        self._segment_bytes = segment_bytes
        self._sync = sync
        self._logs: dict[PartitionKey, Log] = {}
        with ExitStack() as on_error:
            make_directory(path, sync)
            self._lock = _lock(path / LOCK)
            on_error.callback(self.abandon)
            self._claim({"cluster.id": cluster_id, "broker.id": str(broker_id)})
            self._high_watermarks = read_offsets(path / HIGH_WATERMARKS)
            self._recovery_points = read_offsets(path / RECOVERY_POINTS)
            for found in sorted(path.iterdir()):
                self._take(found)
            on_error.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def logs(self) -> Mapping[PartitionKey, Log]:
        """The logs that are there, by partition."""
        return MappingProxyType(self._logs)

    @property
    def high_watermarks(self) -> Mapping[PartitionKey, int]:
        """The high watermarks as they were saved last."""
        return MappingProxyType(self._high_watermarks)

    def log(self, topic: str, partition: int) -> Log:
        """Return the partition's log; an empty one where there was none.

        Raises CorruptLog when there was one with records that were safe.
        """
        key = (topic, partition)
        if key not in self._logs:
            self._logs[key] = Log(
                self.path / f"{topic}-{partition}",
                recovery_point=self._recovery_points.get(key, 0),
                segment_bytes=self._segment_bytes,
                sync=self._sync,
                on_lowered=self._save_recovery_points,
            )
            self._recovery_points.pop(key, None)
        return self._logs[key]

    def delete(self, topic: str, partition: int) -> None:
        """Delete the partition's log, where there is one, and what is known of it.

        Its offsets go first, so that a log that is made anew is not taken for a damaged one.
        """
        deleted = self._logs.pop((topic, partition), None)
        if deleted is None:
            return
        if deleted.recovery_point:
            self._save_recovery_points()
        kept = {key: mark for key, mark in self._high_watermarks.items() if key in self._logs}
        if kept != self._high_watermarks:
            self.save_high_watermarks(kept)
        deleted.delete()

    def save_high_watermarks(self, marks: Mapping[PartitionKey, int]) -> None:
        """Save the high watermarks of all partitions. Raises WriteRefused."""
        self._save(HIGH_WATERMARKS, marks)
        self._high_watermarks = dict(marks)

    def flush(self) -> None:
        """Make every record safe on disk, and save how far that is.

        Raises LogOffline, WriteRefused.
        """
        for each in self._logs.values():
            each.flush()
        self._save_recovery_points()

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
        os.close(self._lock)

    def _save_recovery_points(self) -> None:
        opened = {key: each.recovery_point for key, each in self._logs.items()}
        self._save(RECOVERY_POINTS, self._recovery_points | opened)

    def _save(self, name: str, offsets: Mapping[PartitionKey, int]) -> None:
        file = self.path / name
        try:
            write_offsets(file, offsets, self._sync)
        except OSError as error:
            raise WriteRefused(file, error) from error

    def _take(self, found: Path) -> None:
        """Open a log that is there, and end what a crash left of a deletion."""
        if found.name.endswith(DELETED):
            log.info("%s: was being deleted, now it is", found)
            shutil.rmtree(found)
        elif found.is_dir() and (match := _LOG.fullmatch(found.name)):
            self.log(match[1], int(match[2]))

    def _claim(self, owner: Mapping[str, str]) -> None:
        """Write down whose the directory is, or refuse it where it is somebody else's."""
        file = self.path / META
        expected = {"version": "0", **owner}
        if not file.exists():
            lines = "".join(f"{name}={value}\n" for name, value in expected.items())
            write_atomically(file, f"#\n{lines}", self._sync)
            return
        lines = file.read_text(encoding="utf-8", errors="replace")
        pairs = (line.partition("=") for line in lines.splitlines() if not line.startswith("#"))
        found = {name.strip(): value.strip() for name, _, value in pairs}
        for name, value in expected.items():
            if found.get(name) != value:
                raise WrongDirectory(
                    f"{file}: expected {name}={value}, found {found.get(name)}; give the broker "
                    "the directory that is its own, or an empty one"
                )


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
