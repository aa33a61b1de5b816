"""Any byte of any file of a broker's disk is damaged, or a file ends anywhere."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.errors import CorruptLog
from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import Record, decode
from reassure_spec.errors import BadData, BadUsage

KEYS = (("t", 0), ("t", 1), ("u", 0))
SAFE, END, DELETED = 14, 20, 4


def fill(log: PartitionLog, upto: int) -> None:
    """Append records that are their own offsets, one or two a batch, in epochs that go up."""
    while log.end_offset < upto:
        first = log.end_offset
        count = min(1 + first % 2, upto - first)
        log.append([Record(b"%d" % (first + n), b"x" * 30) for n in range(count)], first // 5, 0)


@pytest.fixture(scope="module")
def written() -> Iterator[Path]:
    """The disk of a broker that was killed: a part of each log is safe, a part of one deleted."""
    path = Path(tempfile.mkdtemp())
    disk = LogDirectory(path, 1, "c", segment_bytes=300, sync=lambda _: None)
    for key in KEYS:
        fill(disk.log(*key), SAFE)
    disk.flush()
    disk.log("u", 0).delete_before(DELETED)
    disk.save_high_watermarks(dict.fromkeys(KEYS, SAFE))
    for key in KEYS:
        fill(disk.log(*key), END)
    disk.abandon()
    yield path
    shutil.rmtree(path)


@st.composite
def damages(draw: st.DrawFn, path: Path) -> tuple[Path, bytes]:
    """Draw a file, and what is left of its content."""
    files = sorted(one for one in path.rglob("*") if one.is_file() and one.stat().st_size)
    file = draw(st.sampled_from(files))
    content = bytearray(file.read_bytes())
    position = draw(st.integers(0, len(content) - 1), label="position")
    if draw(st.booleans(), label="ends there"):
        return file.relative_to(path), bytes(content[:position])
    digits = st.sampled_from(b"0123456789")  # what a checkpoint can be taken for sound with
    content[position] = draw(digits | st.integers(0, 255), label="byte")
    return file.relative_to(path), bytes(content)


def open_disk(path: Path) -> tuple[LogDirectory | None, str]:
    """Open the disk, or return why it is refused."""
    try:
        return LogDirectory(path, 1, "c", segment_bytes=300, sync=lambda _: None), ""
    except (BadData, BadUsage) as refused:
        return None, str(refused)


def read(log: PartitionLog) -> tuple[list[int], str]:
    """Return the offsets in a log, where each record says its own; or why it is refused."""
    offsets: list[int] = []
    offset = log.start_offset
    try:
        while raw := log.read(offset, 500):
            for found, record in decode(raw):
                assert record.key == b"%d" % found
                offsets.append(found)
            offset = offsets[-1] + 1
    except CorruptLog as refused:
        return [], str(refused)
    return offsets, ""


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_damage_is_refused_by_name_or_costs_nothing_safe(
    written: Path, data: st.DataObject
) -> None:
    """Either a start, or the first read, names a file; or all that was safe is there as it was."""
    file, content = data.draw(damages(written), label="damage")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "logs"
        shutil.copytree(written, copy)
        (copy / file).write_bytes(content)
        disk, told = open_disk(copy)
        if disk is None:
            assert str(copy) in told
            assert "; " in told, "it says what to do next"
            assert (copy / file).read_bytes() == content, "nothing is changed by a refusal"
            return
        for key in KEYS:
            log = disk.log(*key)
            offsets, told = read(log)
            if told:
                assert str((copy / file).parent) in told
                continue
            assert offsets == list(range(log.start_offset, log.end_offset))
            assert log.start_offset <= (DELETED if key == ("u", 0) else 0)
            assert log.end_offset >= SAFE
        disk.abandon()
