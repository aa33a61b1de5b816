"""What is flushed, saved and deleted while a log is in use, and what is read after a kill."""

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from reassure_controller.replication.upkeep import Upkeep, UpkeepSettings
from reassure_controller.storage.checkpoints import read_offsets
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.errors import CorruptLog, LogOffline
from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import Record, decode
from reassure_spec.znodes import PartitionKey

KEY = ("t", 0)
SEGMENT_BYTES = 1000
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
STARTS = "log-start-offset-checkpoint"


def open_directory(path: Path, flush_records: int | None = None) -> LogDirectory:
    """Open the directory of a broker, with small segments."""
    return LogDirectory(path, 1, "c", segment_bytes=SEGMENT_BYTES, flush_records=flush_records)


def fill(log: PartitionLog, count: int, epoch: int = 0, at_ms: int = 0) -> None:
    """Append records of 100 bytes, one a batch."""
    for _ in range(count):
        log.append([Record(None, b"%03d" % log.end_offset + b"x" * 97)], epoch, at_ms)


def read_values(log: PartitionLog) -> list[bytes | None]:
    """Return what is in the log."""
    found: list[bytes | None] = []
    offset = log.start_offset
    while raw := log.read(offset, 1 << 20):
        found += [record.value for _, record in decode(raw)]
        offset = log.start_offset + len(found)
    return found


class Marks:
    """High watermarks at every log's end."""

    def __init__(self, disk: LogDirectory) -> None:
        self.disk = disk
        self.checkpoints = 0

    def checkpoint(self) -> None:
        """Count."""
        self.checkpoints += 1

    def retry(self) -> None:
        """Do nothing."""

    def guard(self, key: PartitionKey) -> AbstractContextManager[None]:
        """Keep nobody out."""
        return nullcontext()

    def find_mark(self, key: PartitionKey) -> int:
        """Return the log's end."""
        return self.disk.log(*key).end_offset


# The recovery point


def test_recovery_reads_only_what_may_be_damaged(tmp_path: Path) -> None:
    """After a kill no more is read than the segment with the recovery point and what is behind."""
    disk = open_directory(tmp_path)
    fill(disk.log(*KEY), 100)
    disk.save_recovery_points()  # the recovery point has moved with every full segment
    fill(disk.log(*KEY), 5)
    expected = read_values(disk.log(*KEY))
    disk.abandon()
    files = {path.name: path.stat().st_size for path in tmp_path.glob("t-0/*.log")}
    point = read_offsets(tmp_path / RECOVERY_POINTS)[KEY]
    behind = sum(size for name, size in files.items() if int(name[:20]) >= point)
    with open_directory(tmp_path) as again:
        log = again.log(*KEY)
        assert (log.end_offset, log.epochs.spans) == (105, ((0, 0),))
        assert behind <= log.bytes_checked <= behind + SEGMENT_BYTES < sum(files.values()) / 4
        assert read_values(log) == expected
        assert log.bytes_checked == sum(files.values())


def test_damage_that_was_not_looked_for_is_never_handed_out(tmp_path: Path) -> None:
    """A safe segment is checked when it is first read: a damaged one is refused by its name."""
    with open_directory(tmp_path) as disk:
        fill(disk.log(*KEY), 30)
    file = min(tmp_path.glob("t-0/*.log"))
    content = file.read_bytes()
    for damaged in (content[:-1], content[:300] + b"!" + content[301:], content[:168], b""):
        file.write_bytes(damaged)
        with open_directory(tmp_path) as disk:
            log = disk.log(*KEY)
            with pytest.raises(CorruptLog, match=f"{file}: byte .*delete the partition's"):
                log.read(0, 100)
            assert log.end_offset == 30
            assert log.read(29, 100)


def test_flush_syncs_whatever_is_not_safe(tmp_path: Path) -> None:
    """Segments that a killed process left, and that nobody wrote to since, are synced as well."""
    disk = open_directory(tmp_path)
    fill(disk.log(*KEY), 30)
    disk.abandon()
    synced: set[str] = set()

    def sync(descriptor: int) -> None:
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    log = PartitionLog(tmp_path / "t-0", segment_bytes=SEGMENT_BYTES, sync=sync)
    synced.clear()
    log.flush()
    assert log.recovery_point == 30
    assert synced == {path.name for path in tmp_path.glob("t-0/*.log")}


def test_records_are_flushed_by_their_number(tmp_path: Path) -> None:
    """Never are more records unsafe than the setting says."""
    disk = open_directory(tmp_path, flush_records=3)
    log = disk.log(*KEY)
    for count in range(1, 6):
        fill(log, 1)
        assert log.recovery_point == count - count % 3
    disk.abandon()


def test_upkeep_does_what_is_due(tmp_path: Path) -> None:
    """Marks, flushes and recovery points have intervals of their own, and each is kept."""
    disk = open_directory(tmp_path)
    marks, log = Marks(disk), disk.log(*KEY)
    settings = UpkeepSettings(checkpoint_ms=10, flush_ms=20, recovery_checkpoint_ms=50)
    upkeep = Upkeep(marks, disk, settings, now_ms=0)
    seen = []
    for now_ms in range(0, 110, 10):
        fill(log, 1)
        upkeep.tick(now_ms)
        saved = read_offsets(tmp_path / RECOVERY_POINTS).get(KEY, 0)
        seen.append((marks.checkpoints, log.recovery_point, saved))
    assert [count for count, _, _ in seen] == list(range(11))
    assert [point for _, point, _ in seen] == [0, 0, 3, 3, 5, 5, 7, 7, 9, 9, 11]
    assert [saved for _, _, saved in seen] == [0] * 5 + [5] * 5 + [11]
    disk.abandon()


def test_deletions_are_ended_in_time(tmp_path: Path) -> None:
    """What is left of a deleted log goes with the next checkpoint."""
    disk = open_directory(tmp_path)
    fill(disk.log(*KEY), 1)
    upkeep = Upkeep(Marks(disk), disk, UpkeepSettings(checkpoint_ms=10), 0)
    disk.delete(*KEY)
    assert len(list(tmp_path.glob("*-delete"))) == 1
    upkeep.tick(10)
    assert list(tmp_path.glob("*-delete")) == []


def test_log_that_cannot_be_flushed_holds_up_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One log whose disk fails is named, the others are flushed, and the process goes on."""
    failing: set[str] = set()

    def sync(descriptor: int) -> None:
        if not failing.isdisjoint(Path(f"/proc/self/fd/{descriptor}").readlink().parts):
            raise OSError(5, os.strerror(5))

    disk = LogDirectory(tmp_path, 1, "c", sync=sync)
    for number in range(3):
        fill(disk.log("t", number), 1)
    failing.add("t-1")
    Upkeep(Marks(disk), disk, UpkeepSettings(flush_ms=1), now_ms=0).tick(1)
    assert [disk.log("t", number).recovery_point for number in range(3)] == [1, 0, 1]
    assert f"flushing logs: {tmp_path / 't-1'}: flushing failed" in caplog.text
    with pytest.raises(LogOffline):
        disk.close()
    assert read_offsets(tmp_path / RECOVERY_POINTS) == {("t", 0): 1, ("t", 1): 0, ("t", 2): 1}


# Retention


def keep(disk: LogDirectory, now_ms: int, **settings: int) -> None:
    """Let the time come at which old segments are deleted."""
    upkeep = Upkeep(Marks(disk), disk, UpkeepSettings(retention_check_ms=1, **settings), now_ms - 1)
    upkeep.tick(now_ms)


@pytest.mark.parametrize("reopened", [False, True])
def test_old_segments_are_deleted(tmp_path: Path, reopened: bool) -> None:
    """By age and by size whole segments go; where the log begins and its epochs are kept."""
    disk = open_directory(tmp_path)
    for epoch in range(4):
        fill(disk.log(*KEY), 10, epoch, at_ms=1000 * epoch)
    values = read_values(disk.log(*KEY))
    keep(disk, 3000, retention_ms=1500)
    start = disk.log(*KEY).start_offset
    assert start == 20
    if reopened:
        disk.close()
        disk = open_directory(tmp_path)
    log = disk.log(*KEY)
    assert (log.start_offset, read_values(log)) == (start, values[start:])
    assert log.epochs.spans == ((2, 20), (3, 30))
    assert read_offsets(tmp_path / STARTS) == {KEY: start}
    keep(disk, 3000, retention_bytes=2 * SEGMENT_BYTES)
    left = sum(path.stat().st_size for path in tmp_path.glob("t-0/*.log"))
    assert 2 * SEGMENT_BYTES <= left < 3 * SEGMENT_BYTES
    assert read_values(log) == values[log.start_offset :]
    assert log.epochs.spans[0] == (2, log.start_offset)
    keep(disk, 10**9, retention_ms=1, retention_bytes=1)
    assert len(list(tmp_path.glob("t-0/*.log"))) == 1
    disk.close()


def test_nothing_is_deleted_that_was_not_shown(tmp_path: Path) -> None:
    """A segment goes only when all of it is below the high watermark."""
    with open_directory(tmp_path) as disk:
        log = disk.log(*KEY)
        fill(log, 40)
        assert log.find_expired(0, 10**9, 0) == 0
        assert 0 < log.find_expired(13, 10**9, 0) <= 13


@pytest.mark.parametrize("acts", ["delete", "start over above", "start over below"])
def test_kill_at_any_moment_of_a_new_start(
    tmp_path: Path, acts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between any two acts on the disk, the log begins as before or as it is to begin."""
    change: Callable[[PartitionLog], object] = {
        "delete": lambda log: log.delete_before(20),
        "start over above": lambda log: log.start_over(100),
        "start over below": lambda log: log.start_over(3),
    }[acts]
    source = tmp_path / "source"
    disk = open_directory(source)
    fill(disk.log(*KEY), 40)
    disk.flush()
    disk.log(*KEY).delete_before(10)
    before = disk.log(*KEY).start_offset
    values = read_values(disk.log(*KEY))
    copies: list[Path] = []

    def copied(act: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **options: object) -> object:
            copies.append(tmp_path / f"copy-{len(copies)}")
            shutil.copytree(source, copies[-1])
            return act(*arguments, **options)

        return run

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", copied(Path.unlink))
        patched.setattr(Path, "replace", copied(Path.replace))
        change(disk.log(*KEY))
    after, end = disk.log(*KEY).start_offset, disk.log(*KEY).end_offset
    disk.close()
    assert len(copies) > 3
    for copy in copies:
        with open_directory(copy) as again:
            log = again.log(*KEY)
            if log.start_offset == after != end or before <= log.start_offset < after:
                assert read_values(log) == values[log.start_offset - before :]
            elif log.start_offset == before:
                assert read_values(log) == values
            else:
                assert (log.start_offset, log.end_offset, read_values(log)) == (after, end, [])


def test_missing_oldest_segment_is_not_taken_for_deleted(tmp_path: Path) -> None:
    """A log that begins later than it should is refused by name, unless nothing of it was safe."""
    with open_directory(tmp_path) as disk:
        fill(disk.log(*KEY), 40)
    first, second = sorted(tmp_path.glob("t-0/*.log"))[:2]
    first.unlink()
    with pytest.raises(CorruptLog, match=f"{second}: byte 0: expected a segment that begins at 0"):
        open_directory(tmp_path)
