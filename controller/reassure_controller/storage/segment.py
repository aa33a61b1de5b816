"""One file of a log: batches one behind the other, and where each of them begins."""

import errno
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from reassure_controller.storage.files import Sync, sync_directory
from reassure_controller.storage.records import RecordBatch


def segment_name(base_offset: int) -> str:
    """Return the name of the file whose first record has this offset.

    >>> segment_name(42)
    '00000000000000000042.log'
    """
    return f"{base_offset:020d}.log"


class Segment:
    """A file with an index of its batches: base offsets and positions. Opened when first used."""

    def __init__(self, directory: Path, base_offset: int, sync: Sync) -> None:
        self.path = directory / segment_name(base_offset)
        self._sync = sync
        self._descriptor: int | None = None
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size = 0
        """The bytes of whole batches; the file may be longer while the log is being opened."""
        self.max_timestamp_ms: int | None = None
        """The largest time of a record, None while nobody has looked."""
        self.is_indexed = True
        """Whether it is known where its batches begin; what is taken on trust is not read."""
        self._offsets = array("q")
        self._positions = array("q")

    def trust(self, end_offset: int) -> None:
        """Take the whole file for sound, up to this offset; it is read when it is first used."""
        self.end_offset, self.size = end_offset, self.path.stat().st_size
        self.is_indexed = False

    def read_file(self) -> bytes:
        """Return the file's content as it is."""
        return self.path.read_bytes() if self.path.exists() else b""

    @property
    def written_ms(self) -> int:
        """When the file was last written to."""
        return self.path.stat().st_mtime_ns // 1_000_000

    @property
    def newest_ms(self) -> int:
        """The largest time of a record, or of the file while nobody has looked."""
        return self.written_ms if self.max_timestamp_ms is None else self.max_timestamp_ms

    def _open(self) -> int:
        if self._descriptor is None:
            created = not self.path.exists()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o644)
            if created:
                sync_directory(self.path.parent, self._sync)
        return self._descriptor

    def add(self, batches: Iterable[RecordBatch], position: int = 0) -> None:
        """Take batches that stand in the file from this position on into the index."""
        for batch in batches:
            self._offsets.append(batch.base_offset)
            self._positions.append(position + batch.position)
            self.max_timestamp_ms = max(self.max_timestamp_ms or 0, batch.max_timestamp_ms)
            self.end_offset = batch.last_offset + 1
            self.size = position + batch.end

    def write(self, raw: bytes, batches: Iterable[RecordBatch]) -> None:
        """Append batches. Raises OSError; `cut` then removes what was written of them."""
        view, position = memoryview(raw), self.size
        while view:
            written = os.pwrite(self._open(), view, position)
            view, position = view[written:], position + written
        self.add(batches, self.size)

    def read(self, offset: int, max_bytes: int, below: int) -> bytes:
        """Return whole batches from the one with this offset on, as `PartitionLog.read` says."""
        first = bisect_right(self._offsets, offset) - 1
        stop = len(self._offsets)
        if below < self.end_offset:
            # The last batch to end at `below` stands before the one with it.
            stop = bisect_right(self._offsets, below) - 1
        start = self._positions[first]
        most = bisect_right(self._positions, start + max_bytes) - 1
        if self.size > start + max_bytes:
            stop = min(stop, max(most, first + 1))
        if stop <= first:
            return b""
        end = self.size if stop == len(self._positions) else self._positions[stop]
        return self._read_bytes(start, end)

    def _read_bytes(self, start: int, end: int) -> bytes:
        parts = []
        while start < end:
            part = os.pread(self._open(), end - start, start)
            if not part:
                raise OSError(errno.EIO, f"it ends at byte {start}, its index at {end}")
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def truncate(self, offset: int) -> None:
        """Cut off the batch with this offset and all behind it."""
        index = max(bisect_right(self._offsets, offset) - 1, 0)
        if index < len(self._offsets):
            self.end_offset = self._offsets[index]
            self.size = self._positions[index]
            del self._offsets[index:]
            del self._positions[index:]
        self.cut()

    def base_of(self, offset: int) -> int:
        """Return the base offset of the batch that holds this offset."""
        return self._offsets[bisect_right(self._offsets, offset) - 1]

    def cut(self) -> None:
        """Cut the file off behind the last whole batch; one that could not be made has nothing."""
        if self._descriptor is not None or self.path.exists():
            os.ftruncate(self._open(), self.size)

    def flush(self) -> None:
        """Make the file safe on disk, whoever wrote it."""
        if self.size:
            self._sync(self._open())

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
