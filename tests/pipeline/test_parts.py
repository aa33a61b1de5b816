"""Parts of a log file: together they are the file, and who cannot tell says so."""

from pathlib import Path

import pytest
from pipeline_steps import flip

from reassure_lab.archives.sample import write_sample
from reassure_pipeline.spark.log_parts import PartOfLog
from reassure_zookeeper.codec import encode
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.transactions import CREATE, Create, Transaction
from reassure_zookeeper.txnlog import FRAME, LogFile
from reassure_zookeeper.txnlog_writer import write_log


def _cut(path: Path, size: int) -> list[PartOfLog]:
    starts = range(0, path.stat().st_size, size)
    last = starts[-1]
    return [
        PartOfLog(path, at, None if at == last else at + size, is_first=not at, is_last=at == last)
        for at in starts
    ]


def _read(part: PartOfLog) -> list[bytes]:
    return [record for batch in part.batches() for record in batch]


@pytest.mark.parametrize("size", [50, 999, 10_000, 1 << 20])
@pytest.mark.parametrize("ending", [b"", bytes(3_000), b"\0\0\0\0torn"])
def test_parts_together_are_the_file(tmp_path: Path, size: int, ending: bytes) -> None:
    """Each record is read once and each part ends where the next begins, at whatever bytes."""
    log = write_log(tmp_path, write_sample(topics=1, partitions=4))
    log.write_bytes(log.read_bytes() + ending)
    records: list[bytes] = []
    whole = LogFile(log, records=records)
    last = list(whole)[-1].zxid
    parts = _cut(log, size)
    assert [record for part in parts for record in _read(part)] == records
    found = [part for part in parts if part.begins is not None]
    assert [part.ends for part in found[:-1]] == [part.begins for part in found[1:]]
    assert (found[-1].ends, found[-1].tail, found[-1].last_zxid) == (None, whole.tail, last)
    assert all(part.fits for part in parts)
    assert (whole.tail is not None) == (b"torn" in ending)


def test_what_looks_like_a_record_does_not_fit(tmp_path: Path) -> None:
    """A part that begins inside a znode's data, which holds records, is not where it has to be."""
    history = write_sample(topics=1, partitions=2)
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer").mkdir()
    framed = write_log(tmp_path / "inner", history).read_bytes()[16:]
    holder = Create("/backup", framed)
    rest = [each for each in history if each.zxid > 1]
    first = Transaction(1, 1, 1, 1, CREATE, (holder,))
    log = write_log(tmp_path / "outer", [first, *rest])
    start = 16 + FRAME.size + 60
    assert start < len(encode(first))
    before = PartOfLog(log, 0, start, is_last=False)
    behind = PartOfLog(log, start, None, is_first=False)
    assert len(_read(before)) == 1
    with pytest.raises(DamagedLog):  # where that data ends
        _read(behind)
    assert None is not before.ends != behind.begins is not None


def test_damage_amid_a_part_is_judged_as_when_all_is_read(tmp_path: Path) -> None:
    """A part that meets what is not intact, with intact records behind it, raises what all does."""
    log = write_log(tmp_path, write_sample(topics=1, partitions=4))
    flip(log, log.stat().st_size // 3)
    told = []
    for read in (lambda: list(LogFile(log)), lambda: _read(_cut(log, log.stat().st_size // 2)[0])):
        with pytest.raises(Exception, match="yet intact records follow") as caught:
            read()
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]
