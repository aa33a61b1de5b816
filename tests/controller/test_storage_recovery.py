"""What a log makes of files that a crash or a failing disk left."""

import errno
import logging
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reassure_controller.storage.errors import (
    CorruptBatch,
    CorruptLog,
    LogOffline,
    OutOfOrder,
    WriteRefused,
)
from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import Record, decode, scan

EPOCHS = (0, 0, 3)
FIRST = "00000000000000000000.log"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A log of three flushed batches with two records each, in one segment."""
    log = PartitionLog(tmp_path / "t-0")
    for number, epoch in enumerate(EPOCHS):
        log.append([Record(b"k", b"%d" % number), Record(None, b"x")], epoch, now_ms=number)
    log.close()
    return log.directory


def batch_ends(directory: Path) -> list[int]:
    """Return the positions in the first segment at which batches end."""
    return [batch.end for batch in scan((directory / FIRST).read_bytes())]


def end_after(directory: Path, recovery_point: int = 0) -> int:
    """Open the log, read all of it, close it, and return where it ended."""
    log = PartitionLog(directory, recovery_point=recovery_point)
    offsets = [offset for offset, _ in decode(log.read(0, 10_000))]
    assert offsets == list(range(log.end_offset))
    log.close()
    return log.end_offset


def test_every_flipped_bit_is_noticed_when_a_log_is_opened(written: Path) -> None:
    """No bit of a safe batch can change unnoticed, those that no checksum covers included."""
    file, epochs = written / FIRST, written / "leader-epoch-checkpoint"
    sound, ends, known = file.read_bytes(), batch_ends(written), epochs.read_bytes()
    for position in range(len(sound)):
        epochs.write_bytes(known)
        damaged = bytearray(sound)
        damaged[position] ^= 1 << position % 8
        file.write_bytes(damaged)
        whole = sum(end <= position for end in ends)
        start = [0, *ends][whole]
        with pytest.raises(CorruptLog, match=f"{FIRST}: byte {start}: .*delete the partition's"):
            PartitionLog(written, recovery_point=6)
        assert file.read_bytes() == damaged
        assert end_after(written, recovery_point=2 * whole) == 2 * whole
        assert file.stat().st_size == start


def test_every_flipped_bit_is_noticed_by_a_follower(written: Path, tmp_path: Path) -> None:
    """A follower refuses a damaged batch; only a higher epoch, which nothing covers, gets in."""
    sound, ends = (written / FIRST).read_bytes(), batch_ends(written)
    for position in range(ends[0]):
        damaged = bytearray(sound[: ends[0]])
        damaged[position] ^= 1 << position % 8
        follower = PartitionLog(tmp_path / f"follower-{position}")
        if 12 <= position < 16:
            follower.append_batches(bytes(damaged))
            assert follower.end_offset == 2
        else:
            with pytest.raises((CorruptBatch, OutOfOrder), match=r"expected|records up to"):
                follower.append_batches(bytes(damaged))
            assert (follower.end_offset, follower.epochs.spans) == (0, ())


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 300, bytes(range(1, 256))])
def test_torn_tail_is_cut_at_any_byte(
    written: Path, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a file that ends anywhere, with rubbish behind or not, whole batches remain, no others."""
    file, epochs = written / FIRST, written / "leader-epoch-checkpoint"
    sound, ends, known = file.read_bytes(), batch_ends(written), epochs.read_bytes()
    for length in range(len(sound)):
        epochs.write_bytes(known)
        whole = sum(end <= length for end in ends)
        file.write_bytes(sound[:length] + garbage)
        caplog.clear()
        assert end_after(written, recovery_point=2 * whole) == 2 * whole
        assert file.stat().st_size == [0, *ends][whole]
        if file.stat().st_size < length + len(garbage):
            assert f"{FIRST}: byte {[0, *ends][whole]}" in caplog.text
        file.write_bytes(sound[:length])
        with pytest.raises(CorruptLog, match="expected"):
            PartitionLog(written, recovery_point=2 * whole + 1)


def test_what_stands_behind_a_cut_goes_too(tmp_path: Path) -> None:
    """Segments behind one that is missing are refused, or go where nothing was safe."""
    log = PartitionLog(tmp_path / "t-0", segment_bytes=100)
    for epoch in (0, 1, 2, 3):
        log.append([Record(b"k", b"v")], epoch, now_ms=0)
    log.close()
    names = [f"{offset:020d}.log" for offset in range(4)]
    assert sorted(path.name for path in log.directory.glob("*.log")) == names
    (log.directory / names[1]).unlink()
    with pytest.raises(CorruptLog, match=f"{names[0]}: byte .*: expected records before offset 2"):
        PartitionLog(log.directory, recovery_point=4).read(0, 1)
    assert end_after(log.directory, recovery_point=1) == 1
    assert sorted(path.name for path in log.directory.glob("*.log")) == names[:1]
    shutil.rmtree(log.directory)
    with pytest.raises(CorruptLog, match="expected records before offset 4, found 0"):
        PartitionLog(log.directory, recovery_point=4)


@pytest.mark.parametrize(
    ("content", "warned"),
    [
        (None, False),
        ("0\n2\n0 0\n3 4\n", False),
        ("0\n3\n0 0\n3 4\n7 6\n", False),
        ("", True),
        ("1\n0\n", True),
        ("0\n2\n0 0\n", True),
        ("0\n2\n3 4\n0 0\n", True),
        ("0\n1\n0 zero\n", True),
    ],
)
def test_file_of_epochs_is_made_anew_from_batches(
    written: Path, content: str | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A file of epochs that is missing, behind or unreadable is written from what batches say."""
    file = written / "leader-epoch-checkpoint"
    file.unlink()
    if content is not None:
        file.write_text(content)
    with caplog.at_level(logging.WARNING):
        log = PartitionLog(written, recovery_point=6)
    assert log.epochs.spans == ((0, 0), (3, 4))
    assert file.read_text() == "0\n2\n0 0\n3 4\n"
    assert (f"{file}: line" in caplog.text) == warned


# Disks that fail


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond this size: the kernel writes up to it, then fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("more", [1, 60, 100, 150, 299])
def test_full_disk_leaves_nothing_half_written(written: Path, more: int) -> None:
    """Where only a part fits, the append is refused, nothing of it is visible, and room helps."""
    log = PartitionLog(written, recovery_point=6)
    before = (written / FIRST).read_bytes()
    donor = PartitionLog(written.with_name("donor-0"))
    donor.append_batches(before)
    for epoch in (3, 5, 6):
        donor.append([Record(b"k", b"v" * 40)], epoch, now_ms=0)
    batches = donor.read(6, 10_000)
    assert len(batches) > 300
    with limited_files(len(before) + more):
        with pytest.raises(WriteRefused, match=f"{FIRST}: nothing was written: .*too large"):
            log.append_batches(batches)
        assert (log.end_offset, log.epochs.spans) == (6, ((0, 0), (3, 4)))
        assert log.read(0, 10_000) == (written / FIRST).read_bytes() == before
    assert PartitionLog(written, recovery_point=6).end_offset == 6
    log.append_batches(batches)
    assert log.read(0, 10_000) == before + batches
    assert log.epochs.spans == donor.epochs.spans


def test_full_disk_for_epochs_leaves_the_old_ones(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file of epochs cannot be replaced, a record of a new epoch is refused."""
    log = PartitionLog(written, recovery_point=6)

    def full(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(WriteRefused, match=r"leader-epoch-checkpoint: .*No space left"):
            log.append([Record(None, b"v")], 4, 0)
    assert (log.end_offset, log.epochs.spans) == (6, ((0, 0), (3, 4)))
    assert sorted(path.name for path in written.iterdir()) == [FIRST, "leader-epoch-checkpoint"]
    assert log.append([Record(None, b"v")], 4, 0) == range(6, 7)


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.flush(),
        lambda log: log.truncate_to(2),
        lambda log: log.close(),
    ],
)
def test_log_is_used_no_more_after_the_disk_failed(
    written: Path, use: Callable[[PartitionLog], None]
) -> None:
    """Once nobody knows what a sync has written, nothing is read or written until it is opened."""
    failing = False

    def sync(_: int) -> None:
        if failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    log = PartitionLog(written, recovery_point=6, sync=sync)
    log.append([Record(None, b"v")], 3, 0)
    failing = True
    with pytest.raises(LogOffline, match="Input/output error; mend what is wrong"):
        use(log)
    for again in (
        lambda: log.read(0, 1),
        lambda: log.append([Record(None, b"v")], 3, 0),
        log.flush,
    ):
        with pytest.raises(LogOffline, match=r"Input/output error|closed"):
            again()
