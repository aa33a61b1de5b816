"""Looks after a broker's disk by the clock: what is saved, made safe and deleted, and when.

The intervals are Kafka's own settings, and most of them have Kafka's values. What the disk refuses
is named in the log, and tried again when it is due once more.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.errors import DiskFailed, LogOffline
from reassure_controller.storage.log import PartitionLog
from reassure_spec.znodes import PartitionKey

log = logging.getLogger(__name__)

CHECKPOINT_MS: Final = 5_000
RECOVERY_CHECKPOINT_MS: Final = 60_000
RETENTION_CHECK_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """The intervals in milliseconds, and what is kept; None: for ever."""

    checkpoint_ms: int = CHECKPOINT_MS
    """Of high watermarks: replica.high.watermark.checkpoint.interval.ms."""
    recovery_checkpoint_ms: int = RECOVERY_CHECKPOINT_MS
    """Of recovery points: log.flush.offset.checkpoint.interval.ms."""
    flush_ms: int | None = None
    """How long a record may not be safe: log.flush.interval.ms."""
    retention_ms: int | None = None
    """log.retention.ms."""
    retention_bytes: int | None = None
    """log.retention.bytes, of each partition."""
    retention_check_ms: int = RETENTION_CHECK_MS
    """log.retention.check.interval.ms."""

    @property
    def deletes(self) -> bool:
        """Whether anything is ever deleted."""
        return self.retention_ms is not None or self.retention_bytes is not None


class Marks(Protocol):
    """The replicas, as upkeep needs them."""

    def checkpoint(self) -> None:
        """Write the high watermarks to disk."""

    def retry(self) -> None:
        """Have the replicas lead or follow that could not before."""

    def guard(self, key: PartitionKey) -> AbstractContextManager[object]:
        """Return what whoever deals with a replica has to hold."""

    def find_mark(self, key: PartitionKey) -> int:
        """Return a replica's high watermark, 0 where there is no replica."""


@dataclass(slots=True)
class _Act:
    """Something that is done again and again; never where there is no interval."""

    interval_ms: int | None
    done_ms: int
    what: str
    do: Callable[[], None]


class Upkeep:
    """What is due when, on one disk."""

    def __init__(
        self, marks: Marks, disk: LogDirectory, settings: UpkeepSettings, now_ms: int
    ) -> None:
        self._marks = marks
        self._disk = disk
        self._settings = settings
        self._now_ms = now_ms
        self._acts: list[_Act] = [
            _Act(settings.checkpoint_ms, now_ms, "what replicas could not begin", marks.retry),
            _Act(settings.checkpoint_ms, now_ms, "saving high watermarks", marks.checkpoint),
            _Act(settings.checkpoint_ms, now_ms, "ending deletions", disk.end_deletions),
            _Act(settings.flush_ms, now_ms, "flushing logs", self._flush),
            _Act(
                settings.recovery_checkpoint_ms,
                now_ms,
                "saving recovery points",
                disk.save_recovery_points,
            ),
            _Act(
                settings.retention_check_ms if settings.deletes else None,
                now_ms,
                "deleting old segments",
                self._delete_old,
            ),
        ]

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        self._now_ms = now_ms
        for act in self._acts:
            if act.interval_ms is not None and now_ms - act.done_ms >= act.interval_ms:
                act.done_ms = now_ms
                try:
                    act.do()
                except DiskFailed as failed:
                    log.warning("put off: %s: %s", act.what, failed)

    def _list_guarded(self) -> Iterator[tuple[PartitionKey, PartitionLog]]:
        """Yield the logs, each while nobody else deals with it."""
        for key, each in tuple(self._disk.logs.items()):
            with self._marks.guard(key):
                if self._disk.logs.get(key) is each:
                    yield key, each

    def _flush(self) -> None:
        for _, each in self._list_guarded():
            try:
                each.flush()
            except LogOffline as offline:
                log.warning("put off: flushing logs: %s", offline)

    def _delete_old(self) -> None:
        """Delete the segments that are too old or too much, and were shown as a whole."""
        settings = self._settings
        kept_ms, most = settings.retention_ms, settings.retention_bytes
        before_ms = None if kept_ms is None else self._now_ms - kept_ms
        for key, each in self._list_guarded():
            offset = each.find_expired(self._marks.find_mark(key), before_ms, most)
            if count := each.delete_before(offset):
                log.info("%s-%d: %d segments before offset %d deleted", *key, count, offset)
