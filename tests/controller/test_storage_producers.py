"""What a log makes of the batches of idempotent producers."""

import os
from pathlib import Path

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from reassure_controller.replication.errors import (
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from reassure_controller.storage.errors import CorruptBatch, SequenceRefused
from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.producers import BATCHES_KEPT, EXPIRY_MS
from reassure_controller.storage.records import check_produced

DAY_S = EXPIRY_MS // 1000


def build(sequence: int, count: int = 2, *, producer: int = 7, epoch: int = 0) -> bytes:
    """Return a batch as a stock client's library builds it."""
    builder = DefaultRecordBatchBuilder(2, 0, False, producer, epoch, sequence, 2**20)
    for delta in range(count):
        builder.append(delta, delta, None, b"v", [])
    return bytes(builder.build())


def send(log: PartitionLog, sequence: int, count: int = 2, *, now_ms: int = 0, **who: int) -> range:
    """Append a batch, and return its offsets."""
    return log.append_produced(check_produced(build(sequence, count, **who)), 0, now_ms)


def refuse(log: PartitionLog, sequence: int, count: int = 2, **who: int) -> str:
    """Return why a batch is refused, which changes nothing."""
    end = log.end_offset
    with pytest.raises(SequenceRefused, match="producer") as refused:
        send(log, sequence, count, **who)
    assert log.end_offset == end
    return refused.value.error


def test_duplicates_have_the_offsets_of_the_first(tmp_path: Path) -> None:
    """The last five batches of a producer are known again at their offsets, and no older ones."""
    log = PartitionLog(tmp_path / "t-0")
    for number in range(BATCHES_KEPT + 1):
        assert send(log, 2 * number) == range(2 * number, 2 * number + 2)
    for number in range(1, BATCHES_KEPT + 1):
        assert send(log, 2 * number) == range(2 * number, 2 * number + 2)
    assert refuse(log, 0) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, producer=8) == range(12, 14)


def test_gaps_and_old_epochs_are_refused(tmp_path: Path) -> None:
    """A sequence that is not the next is refused, as is an old epoch; a new epoch begins with 0."""
    log = PartitionLog(tmp_path / "t-0")
    assert refuse(log, 2) == OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0)
    assert refuse(log, 4) == refuse(log, 0, 1) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refuse(log, 2, epoch=1) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1) == range(2, 4)
    assert refuse(log, 2, epoch=0) == INVALID_PRODUCER_EPOCH
    for broken in (build(-1), build(2) + build(4)):
        with pytest.raises(CorruptBatch, match="an id without a sequence, or beside"):
            check_produced(broken)


def test_behind_the_last_sequence_comes_the_first(tmp_path: Path) -> None:
    """Sequences begin again with 0 behind the largest number of 32 bits."""
    log = PartitionLog(tmp_path / "t-0")
    log.append_batches(build(2**31 - 2))
    assert send(log, 0) == range(2, 4)


@pytest.mark.parametrize("how", ["opened again", "followed", "sealed"])
def test_producers_are_known_from_the_batches(tmp_path: Path, how: str) -> None:
    """Who opens the log, has fetched it, or trusts its segments knows the same duplicates."""
    options = {"segment_bytes": 100} if how == "sealed" else {}
    log = PartitionLog(tmp_path / "t-0", **options)  # type: ignore[arg-type]
    send(log, 0)
    send(log, 2)
    if how == "followed":
        other = PartitionLog(tmp_path / "t-1")
        other.append_batches(log.read(0, 1000))
    else:
        log.close()
        point = log.recovery_point
        other = PartitionLog(tmp_path / "t-0", recovery_point=point, **options)  # type: ignore[arg-type]
    assert (send(other, 0), send(other, 2)) == (range(2), range(2, 4))
    assert refuse(other, 6) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(other, 4) == range(4, 6)


def test_what_is_cut_off_is_not_known(tmp_path: Path) -> None:
    """A truncated batch is appended when it comes again; one that was fetched then is found."""
    log, leader = PartitionLog(tmp_path / "t-0"), PartitionLog(tmp_path / "t-1")
    for one in (log, leader):
        send(one, 0)
    send(leader, 2)
    log.append_batches(leader.read(2, 1000))
    assert send(log, 2) == range(2, 4)
    leader.truncate_to(2)
    log.truncate_to(2)
    assert send(log, 2) == range(2, 4)
    send(leader, 2, 1)
    log.truncate_to(2)
    log.append_batches(leader.read(2, 1000))
    assert send(log, 2, 1) == range(2, 3)
    log.start_over(10)
    assert refuse(log, 3) == UNKNOWN_PRODUCER_ID
    assert send(log, 0) == range(10, 12)


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    """After a day of silence a producer is unknown, by the clock and in what is read again."""
    log = PartitionLog(tmp_path / "t-0", segment_bytes=100)
    send(log, 0)
    send(log, 0, producer=8, now_ms=EXPIRY_MS)
    assert send(log, 0) == range(2)
    send(log, 2, producer=8, now_ms=EXPIRY_MS + 1)
    assert refuse(log, 2) == OUT_OF_ORDER_SEQUENCE_NUMBER
    log.close()
    oldest = tmp_path / "t-0" / "00000000000000000000.log"
    other = PartitionLog(tmp_path / "t-0", segment_bytes=100, recovery_point=log.end_offset)
    assert send(other, 0) == range(2)
    other.close()
    now_s = oldest.stat().st_mtime
    os.utime(oldest, (0, now_s - DAY_S - 60))
    last = PartitionLog(tmp_path / "t-0", segment_bytes=100, recovery_point=log.end_offset)
    assert send(last, 0, now_ms=int(now_s * 1000)) == range(6, 8)
