"""Finds the first record of a log that is not older than a time."""

from typing import Final

from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import decode, scan

_READ_BYTES: Final = 2**20


def find_offset(log: PartitionLog, time_ms: int, below: int) -> tuple[int, int] | None:
    """Return offset and time of the first record of at least this time; None before `below`.

    Raises as `PartitionLog.read` does, and CorruptBatch where records cannot be unpacked.
    """
    offset = log.start_offset
    while offset < below and (raw := log.read(offset, _READ_BYTES, below)):
        for batch in scan(raw):
            offset = batch.last_offset + 1
            if batch.max_timestamp_ms < time_ms:
                continue
            for found, record in decode(raw[batch.position : batch.end]):
                if record.timestamp_ms >= time_ms:
                    return found, record.timestamp_ms
    return None
