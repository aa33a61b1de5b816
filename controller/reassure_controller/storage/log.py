"""The log of one partition: record batches in segment files, in one directory.

A process may be killed between any two system calls, so files are only ever extended, cut at a
batch, or replaced as a whole; what was being written then is cut off when the log is opened.
Everything before the *recovery point* was made safe (`flush`), and its loss is refused by name.
"""

import logging
import os
import re
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Final

from reassure_controller.storage.checkpoints import LEADER_EPOCHS, read_epochs, write_epochs
from reassure_controller.storage.epochs import LeaderEpochs, check_recovered
from reassure_controller.storage.errors import (
    CorruptBatch,
    CorruptCheckpoint,
    CorruptLog,
    LogOffline,
    OffsetOutOfRange,
    OutOfOrder,
    WriteRefused,
    describe,
)
from reassure_controller.storage.files import (
    Sync,
    make_directory,
    reading,
    sync_directory,
    writing,
)
from reassure_controller.storage.producers import EXPIRY_MS, ProducerStates
from reassure_controller.storage.records import (
    Checked,
    Record,
    RecordBatch,
    assign,
    encode,
    read_batch,
    scan,
)
from reassure_controller.storage.segment import Segment

log = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 16 * 2**20
"""A segment that would grow beyond this size is followed by a new one."""

DELETED: Final = "-delete"
"""How the name of a directory ends that is being deleted, as Kafka has it."""

_SEGMENT: Final = re.compile(r"(\d{20})\.log")


class PartitionLog:
    """A log that is open.

    Offsets are consecutive from `start_offset` to before `end_offset`. A batch is the least that is
    kept, read or cut. `recovery_point` is up to where it is known to be safe on disk; it moves when
    a segment is full, and with `flush`. `on_lowered` is called before it, or `start_offset`, is
    other than what is on disk would be refused for.
    """

    def __init__(
        self,
        directory: Path,
        *,
        recovery_point: int = 0,
        start_offset: int = 0,
        segment_bytes: int = SEGMENT_BYTES,
        flush_records: int | None = None,
        sync: Sync = os.fsync,
        on_lowered: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the log, or make an empty one, and cut what a crash left unfinished.

        Segments that end below the recovery point are not read before they are used. Records are
        flushed when `flush_records` of them are not. Raises CorruptLog when records below the
        recovery point are damaged or missing, ReadFailed, WriteRefused.
        """
        self.directory = directory
        self.recovery_point = recovery_point
        self.start_offset = start_offset
        """The offset of the first record."""
        self.bytes_checked = 0
        """How much was read to find out whether it is sound."""
        self._segment_bytes = segment_bytes
        self._flush_records = flush_records
        self._sync = sync
        self._on_lowered = on_lowered
        self._offline = ""
        self._segments: list[Segment] = []
        self._producers: ProducerStates | None = None  # until one asks: the batches are read then
        self.epochs = LeaderEpochs()
        """As `leader-epoch-checkpoint` has them."""
        with reading(directory):
            self._recover()
        with writing(directory):
            make_directory(directory, sync)

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._segments[-1].end_offset

    # Writing

    def append(self, records: Sequence[Record], leader_epoch: int, now_ms: int) -> range:
        """Append records as the leader of this epoch, in one batch, and return their offsets.

        A record without a timestamp gets `now_ms`. Raises OutOfOrder when the epoch is older than
        the log's, WriteRefused or LogOffline when the disk fails; then nothing was appended.
        """
        return self._append(encode(records, self.end_offset, leader_epoch, now_ms))

    def append_produced(self, checked: Checked, leader_epoch: int, now_ms: int) -> range:
        """Append batches as a client built them, as the leader of this epoch.

        What an idempotent producer has sent before is found, and not appended again. Raises
        SequenceRefused, CorruptLog, ReadFailed, and as `append` does.
        """
        numbered = checked.numbered
        if numbered is not None:
            producers, is_cut = self._know_producers(now_ms), self.start_offset > 0
            if known := producers.find_duplicate(numbered, may_have_forgotten=is_cut):
                return known
        new = self._append(assign(checked.raw, self.end_offset, leader_epoch))
        if numbered is not None:
            producers.note(numbered, new, now_ms)
        return new

    def _know_producers(self, now_ms: int) -> ProducerStates:
        """Return what the log says of its producers, as far as they are not forgotten."""
        if self._producers is None:
            found, before_ms = ProducerStates(), now_ms - EXPIRY_MS
            old = takewhile(lambda one: one.written_ms < before_ms, self._segments[:-1])
            offset = max([self.start_offset, *(segment.end_offset for segment in old)])
            while raw := self.read(offset, SEGMENT_BYTES):
                for batch in scan(raw):
                    found.note(batch, batch.offsets, now_ms)
                    offset = batch.last_offset + 1
            self._producers = found
        return self._producers

    def append_batches(self, raw: bytes) -> None:
        """Append batches as fetched from a leader, with the offsets and epochs that they have.

        An epoch that began here without a record gives way. Raises CorruptBatch, OutOfOrder when
        the batches do not continue this log, or as `append` does.
        """
        if raw and read_batch(raw).leader_epoch < self.epochs.latest:
            self._keep_epochs(self.epochs.truncate_to(self.end_offset))
        self._append(raw)
        self._producers = None

    def _append(self, raw: bytes) -> range:
        self._refuse_offline()
        first, batches = self.end_offset, list(scan(raw))
        self._check_order(batches)
        size = self._segments[-1].size
        if size and size + len(raw) > self._segment_bytes:
            self._roll()
        for batch in batches:
            self._keep_epochs(self.epochs.assign(batch.leader_epoch, batch.base_offset))
        self._write(raw, batches)
        unsafe = self.end_offset - self.recovery_point
        if self._flush_records is not None and unsafe >= self._flush_records:
            self.flush()
        return range(first, self.end_offset)

    def _check_order(self, batches: Sequence[RecordBatch]) -> None:
        offset, epoch = self.end_offset, self.epochs.latest
        for batch in batches:
            if batch.base_offset != offset:
                what = "gap" if batch.base_offset > offset else "overlap"
                reason = describe(f"base offset {offset}", batch.base_offset)
                raise OutOfOrder(f"{self.directory}: {what}: {reason}; fetch from {offset} on")
            if batch.leader_epoch < epoch:
                reason = describe(f"an epoch of at least {epoch}", batch.leader_epoch)
                raise OutOfOrder(
                    f"{self.directory}: offset {offset}: {reason}; truncate to where the leader's "
                    "epoch ends, then fetch again"
                )
            offset, epoch = batch.last_offset + 1, batch.leader_epoch

    def _write(self, raw: bytes, batches: Sequence[RecordBatch]) -> None:
        segment = self._segments[-1]
        try:
            segment.write(raw, batches)
        except OSError as error:
            with self._going_offline("cutting off what was written of a batch"):
                segment.cut()
            self._keep_epochs(self.epochs.truncate_to(self.end_offset + 1))
            raise WriteRefused(segment.path, error) from error

    def _roll(self) -> None:
        self.flush()
        self._segments.append(Segment(self.directory, self.end_offset, self._sync))

    def flush(self) -> None:
        """Make every record safe on disk, and move the recovery point there. Raises LogOffline."""
        self._refuse_offline()
        if self.recovery_point < self.end_offset:
            with self._going_offline("flushing"):
                for segment in self._segments:
                    if segment.end_offset > self.recovery_point:
                        segment.flush()
            self.recovery_point = self.end_offset

    def begin_epoch(self, epoch: int) -> None:
        """Let a newer epoch begin at the end; one that is not newer changes nothing.

        A leader says so when it becomes one. Raises WriteRefused, LogOffline.
        """
        self._keep_epochs(self.epochs.assign(epoch, self.end_offset))

    def _keep_epochs(self, changed: LeaderEpochs) -> None:
        """Take over these epochs, on disk first. Raises WriteRefused, LogOffline."""
        if changed != self.epochs:
            self._refuse_offline()
            file = self.directory / LEADER_EPOCHS
            with writing(file):
                write_epochs(file, changed.spans, self._sync)
            self.epochs = changed

    # Reading

    def read(self, offset: int, max_bytes: int, below: int | None = None) -> bytes:
        """Return whole batches from the one that holds this offset on, as they are on disk.

        At least one where there is one, else as many as `max_bytes` allow; none with a record at
        or behind `below`; none at all at the log's end. They may end before all three, so read on
        from where they end. Raises OutOfRange, LogOffline, ReadFailed, and CorruptLog where a
        segment is damaged that nobody had read since the log was opened.
        """
        self._refuse_offline()
        self._check_range(offset)
        end = self.end_offset if below is None else min(below, self.end_offset)
        if offset >= end:
            return b""
        segment = self._segment_of(offset)
        with reading(segment.path):
            return segment.read(offset, max_bytes, end)

    def _segment_of(self, offset: int) -> Segment:
        """Return the segment that holds an offset, and look first whether it is sound."""
        index = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset)
        segment = self._segments[index - 1]
        if not segment.is_indexed:
            self._segments[index - 1] = segment = self._check(segment)
        return segment

    def _check(self, trusted: Segment) -> Segment:
        """Return a segment that was taken on trust with its index. Raises CorruptLog."""
        segment = Segment(self.directory, trusted.base_offset, self._sync)
        with reading(segment.path):
            bad, _ = self._index(segment, LeaderEpochs(), self.epochs)
        if bad is None and segment.end_offset != trusted.end_offset:
            reason = describe(f"records before offset {trusted.end_offset}", segment.end_offset)
            bad = CorruptBatch(segment.size, reason)
        if bad is not None:
            raise CorruptLog(segment.path, bad.position, bad.reason)
        trusted.close()
        return segment

    def _check_range(self, offset: int) -> None:
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(str(self.directory), offset, self.start_offset, self.end_offset)

    # Cutting

    def truncate_to(self, offset: int) -> None:
        """Cut off the record with this offset and all behind it, and the epochs that begin there.

        A batch that holds the offset goes as a whole, so the log may end before it. At or behind
        the end only epochs go. Raises OutOfRange below the start, WriteRefused, LogOffline.
        """
        self._refuse_offline()
        if offset < self.end_offset:
            self._check_range(offset)
            offset = self._segment_of(offset).base_of(offset)
            self._producers = None
            self._lower_recovery_point(offset)
            with self._going_offline("truncating"):
                self._cut(offset)
        self._keep_epochs(self.epochs.truncate_to(offset))

    def _lower_recovery_point(self, offset: int) -> None:
        """Say first what will be missing, so that it is not taken for lost after a crash."""
        before, self.recovery_point = self.recovery_point, min(offset, self.recovery_point)
        try:
            if self.recovery_point < before:
                self._on_lowered()
        except WriteRefused:
            self.recovery_point = before
            raise

    def _cut(self, offset: int) -> None:
        while self._segments[-1].base_offset > offset:  # the newest first: no gap after a crash
            self._remove(self._segments.pop())
        self._segments[-1].truncate(offset)
        self._segments[-1].flush()

    def _remove(self, segment: Segment) -> None:
        segment.close()
        segment.path.unlink(missing_ok=True)
        sync_directory(self.directory, self._sync)

    def start_over(self, offset: int) -> None:
        """Let go of all records, and go on from this offset: where a leader's log begins.

        Raises WriteRefused, LogOffline.
        """
        self._refuse_offline()
        before, self.recovery_point = self.recovery_point, min(offset, self.recovery_point)
        self._producers = None
        self._move_start(offset, before)
        with self._going_offline("letting go of all records"):
            for segment in self._segments:  # the oldest first: what is left ends where it did
                self._remove(segment)
        self._segments = [Segment(self.directory, offset, self._sync)]
        self.recovery_point = offset
        self._keep_epochs(LeaderEpochs())

    def delete_before(self, offset: int) -> int:
        """Delete the segments that end at or before this offset; return how many.

        The newest one stays. Raises WriteRefused, LogOffline.
        """
        self._refuse_offline()
        old = [segment for segment in self._segments[:-1] if segment.end_offset <= offset]
        if old:
            self._move_start(old[-1].end_offset, self.recovery_point)
            self._segments = self._segments[len(old) :]
            with self._going_offline("deleting old segments"):
                for segment in old:
                    self._remove(segment)
            self.recovery_point = max(self.recovery_point, self.start_offset)
            self._keep_epochs(self.epochs.begin_at(self.start_offset))
        return len(old)

    def _move_start(self, offset: int, recovery_point: int) -> None:
        """Say first where the log is to begin, so that what is gone is not taken for lost."""
        before, self.start_offset = self.start_offset, offset
        try:
            self._on_lowered()
        except WriteRefused:
            self.start_offset, self.recovery_point = before, recovery_point
            raise

    def find_expired(self, below: int, before_ms: int | None, most_bytes: int | None) -> int:
        """Return up to where segments are too old, or too much, of those that end at `below`.

        A segment is as old as its newest record; one that nobody has read since the log was opened
        is as old as its file.
        """
        spare = None if most_bytes is None else sum(s.size for s in self._segments) - most_bytes
        found = self.start_offset
        for segment in self._segments[:-1]:
            with reading(segment.path):
                is_old = before_ms is not None and segment.newest_ms < before_ms
            is_spare = spare is not None and spare >= segment.size
            if segment.end_offset > below or not (is_old or is_spare):
                break
            found = segment.end_offset
            spare = None if spare is None else spare - segment.size
        return found

    # Ending

    def close(self) -> None:
        """Flush, and close the files; a log that is closed stays so. Raises LogOffline."""
        try:
            if not self._offline:
                self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files as they are."""
        self._offline = self._offline or "the log is closed"
        for segment in self._segments:
            segment.close()

    def retire(self) -> Path:
        """Close the log, and return its directory under a name that says it is to be deleted.

        Raises WriteRefused.
        """
        gone = self.directory.with_name(f"{self.directory.name}.{uuid.uuid4().hex}{DELETED}")
        with writing(self.directory):
            self.directory.rename(gone)
        self.abandon()
        return gone

    @contextmanager
    def _going_offline(self, doing: str) -> Iterator[None]:
        """Use the log no more after an error of the disk, which may have left anything behind."""
        try:
            yield
        except OSError as error:
            self._offline = f"{doing} failed: {error}"
            raise LogOffline(self.directory, self._offline) from error

    def _refuse_offline(self) -> None:
        if self._offline:
            raise LogOffline(self.directory, self._offline)

    # Opening

    def _recover(self) -> None:
        """Index the segments, and cut the log where what follows is not whole and in order.

        Those that end below the recovery point are taken on trust, as long as the file of epochs
        can tell what they hold.
        """
        file_epochs = self._read_epochs()
        names = (_SEGMENT.fullmatch(path.name) for path in self.directory.glob("*.log"))
        bases = sorted(int(match[1]) for match in names if match)
        # What is there is kept: a crash may have left more than there was to be.
        self.start_offset = min([self.start_offset, *bases])
        self.recovery_point = max(self.recovery_point, self.start_offset)
        sealed = {base: end for base, end in pairwise(bases) if end <= self.recovery_point}
        if file_epochs is None:
            sealed = {}
        unsealed = [base for base in bases if base not in sealed]
        self.epochs = file_epochs or LeaderEpochs()
        found = self.epochs.truncate_to(unsealed[0] if unsealed else self.start_offset)
        end = self.start_offset
        for base in bases or [self.start_offset]:
            segment = Segment(self.directory, base, self._sync)
            if base != end:
                reason = describe(f"a segment that begins at {end}", base)
                self._damaged(segment.path, 0, reason, end)
                self._remove(segment)
                continue
            self._segments.append(segment)
            if base in sealed:
                segment.trust(sealed[base])
            else:
                bad, found = self._index(segment, found, file_epochs)
                if bad is not None:
                    self._damaged(segment.path, bad.position, bad.reason, segment.end_offset)
                    segment.cut()
                    segment.flush()
            end = segment.end_offset
        if not self._segments:
            self._segments.append(Segment(self.directory, self.start_offset, self._sync))
        if self.end_offset < self.recovery_point:
            segment = self._segments[-1]
            reason = describe(f"records before offset {self.recovery_point}", self.end_offset)
            self._damaged(segment.path, segment.size, reason, self.end_offset)
        self._keep_epochs(found.begin_at(self.start_offset))

    def _read_epochs(self) -> LeaderEpochs | None:
        """Return the epochs in the file, or None where the batches alone must tell."""
        file = self.directory / LEADER_EPOCHS
        try:
            return LeaderEpochs(read_epochs(file)) if file.exists() else None
        except CorruptCheckpoint as bad:
            log.warning("%s", bad)
            return None

    def _index(
        self, segment: Segment, found: LeaderEpochs, file_epochs: LeaderEpochs | None
    ) -> tuple[CorruptBatch | None, LeaderEpochs]:
        """Take the batches of a segment into its index, up to the first that is not as it should.

        Return what is wrong with that one, and the epochs found so far.
        """
        raw = segment.read_file()
        self.bytes_checked += len(raw)
        try:
            for batch in scan(raw):
                check_recovered(batch, segment.end_offset, found.latest, file_epochs)
                found = found.assign(batch.leader_epoch, batch.base_offset)
                segment.add([batch])
        except CorruptBatch as bad:
            return bad, found
        return None, found

    def _damaged(self, file: Path, position: int, reason: str, offset: int) -> None:
        """Refuse to go on when records before the recovery point are damaged; else say so."""
        if offset < self.recovery_point:
            self.abandon()
            raise CorruptLog(file, position, reason)
        log.warning(
            "%s: byte %d: %s; cut off there, offset %d: nothing behind it was known to be safe",
            file,
            position,
            reason,
            offset,
        )
