"""The log of one partition: what is appended, read, fetched by a follower and cut."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reassure_controller.storage.errors import OffsetOutOfRange, OutOfOrder
from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import Record, decode

MakeLog = Callable[..., PartitionLog]


@pytest.fixture
def make_log(tmp_path: Path) -> MakeLog:
    """Open a log of this name, with segments of 200 bytes: two small batches each."""

    def make(name: str = "t-0", **options: object) -> PartitionLog:
        return PartitionLog(tmp_path / name, **{"segment_bytes": 200, **options})  # type: ignore[arg-type]

    return make


def fill(log: PartitionLog, epochs: tuple[int, ...]) -> None:
    """Append one record under each epoch."""
    for number, epoch in enumerate(epochs):
        log.append([Record(b"k", b"%d" % number)], epoch, now_ms=1000 + number)


def values(raw: bytes) -> list[tuple[int, bytes | None]]:
    """Return offsets and values of the records in these batches."""
    return [(offset, record.value) for offset, record in decode(raw)]


def copy(leader: PartitionLog, follower: PartitionLog) -> None:
    """Fetch what the leader has and the follower lacks."""
    while raw := leader.read(follower.end_offset, 10_000):
        follower.append_batches(raw)


def test_leader_gives_consecutive_offsets(make_log: MakeLog) -> None:
    """Records get the offsets from the log's end on, and a record without a time that of now."""
    log = make_log()
    assert log.append([Record(None, b"a"), Record(b"k", None, 7)], 3, now_ms=50) == range(2)
    assert log.append([Record(b"k", b"b")], 3, now_ms=40) == range(2, 3)
    assert decode(log.read(0, 10_000)) == [
        (0, Record(None, b"a", 50)),
        (1, Record(b"k", None, 7)),
        (2, Record(b"k", b"b", 40)),
    ]
    assert (log.start_offset, log.end_offset, log.epochs.spans) == (0, 3, ((3, 0),))


def test_read_gives_whole_batches_below_the_limit(make_log: MakeLog) -> None:
    """A read starts at the batch of its offset and keeps to its bounds, but gives one at least."""
    log = make_log(segment_bytes=10_000)
    log.append([Record(None, b"a"), Record(None, b"b")], 0, 0)
    fill(log, (0, 0))
    size = len(log.read(2, 1))
    assert values(log.read(1, 1)) == [(0, b"a"), (1, b"b")]
    assert values(log.read(2, 2 * size - 1)) == [(2, b"0")]
    assert values(log.read(2, 2 * size)) == [(2, b"0"), (3, b"1")]
    assert values(log.read(0, 10_000, below=3)) == [(0, b"a"), (1, b"b"), (2, b"0")]
    assert log.read(0, 10_000, below=1) == log.read(2, 10_000, below=2) == log.read(4, 1) == b""
    for offset in (-1, 5):
        with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is not between 0 and 4"):
            log.read(offset, 1)


def test_follower_takes_over_offsets_and_epochs(make_log: MakeLog) -> None:
    """A follower that fetches has the leader's bytes and epochs, and refuses gap and overlap."""
    leader, follower = make_log("a-0"), make_log("b-0")
    fill(leader, (1, 1, 4, 4, 6))
    copy(leader, follower)
    assert follower.epochs.spans == leader.epochs.spans == ((1, 0), (4, 2), (6, 4))
    files = [sorted((one.name, one.read_bytes()) for one in log.directory.iterdir())
             for log in (leader, follower)]  # fmt: skip
    assert files[0] == files[1]
    with pytest.raises(OutOfOrder, match="overlap: expected base offset 5, found 4"):
        follower.append_batches(leader.read(4, 1))
    follower.truncate_to(3)
    with pytest.raises(OutOfOrder, match="gap: expected base offset 3, found 4"):
        follower.append_batches(leader.read(4, 1))
    assert (follower.end_offset, follower.epochs.spans) == (3, ((1, 0), (4, 2)))


def test_epoch_does_not_go_back(make_log: MakeLog) -> None:
    """Neither a leader nor a follower writes records of an epoch before that of its last record."""
    leader, follower = make_log("a-0"), make_log("b-0")
    fill(leader, (1, 1))
    fill(follower, (3,))
    with pytest.raises(OutOfOrder, match="expected an epoch of at least 3, found 1"):
        follower.append_batches(leader.read(1, 1))
    with pytest.raises(OutOfOrder, match="expected an epoch of at least 3, found 2"):
        follower.append([Record(None, b"")], 2, 0)
    assert follower.end_offset == 1


def test_epoch_without_records_gives_way_to_a_leader(make_log: MakeLog) -> None:
    """One who led without writing anything follows a leader with records of older epochs."""
    leader, follower = make_log("a-0"), make_log("b-0")
    fill(leader, (1, 2))
    follower.append_batches(leader.read(0, 1, below=1))
    follower.begin_epoch(5)
    copy(leader, follower)
    assert follower.epochs.spans == ((1, 0), (2, 1))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (0, (0, 1)),
        (1, (1, 2)),
        (2, (2, 4)),
        (3, (2, 4)),
        (4, (4, 6)),
        (5, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_end_of_an_epoch_is_what_kafka_answers(
    make_log: MakeLog, asked: int, answer: tuple[int, int]
) -> None:
    """Below the oldest: where that begins; between: the one before; the newest: the log's end."""
    log = make_log()
    fill(log, (1, 1, 2, 2, 4, 4))
    log.truncate_to(0)
    assert log.epochs.spans == ()
    fill(log, (0, 1, 2, 2, 4, 4))
    assert log.epochs.end_offset_for(asked, log.end_offset) == answer


def test_epoch_below_the_oldest_ends_where_that_begins(make_log: MakeLog) -> None:
    """Asked for an epoch before all it has, a log answers that epoch and its first offset."""
    log = make_log()
    fill(log, (7, 7))
    assert log.epochs.end_offset_for(3, log.end_offset) == (3, 0)


def test_truncation_cuts_records_and_epochs(make_log: MakeLog) -> None:
    """A cut goes across segments, takes a batch as a whole, and epochs that begin there with it."""
    log = make_log()
    fill(log, (1, 1, 2, 3, 4))
    log.begin_epoch(9)
    log.truncate_to(8)
    assert log.epochs.latest == 9
    log.truncate_to(5)
    assert (log.end_offset, log.epochs.latest) == (5, 4)
    log.truncate_to(2)
    assert (log.end_offset, log.epochs.spans) == (2, ((1, 0),))
    log.append([Record(None, b"x"), Record(None, b"y")], 5, 0)
    log.truncate_to(3)
    assert (log.end_offset, log.epochs.spans) == (2, ((1, 0),))
    log.close()
    log = make_log(recovery_point=2)
    assert (log.end_offset, log.epochs.spans) == (2, ((1, 0),))
    with pytest.raises(OffsetOutOfRange, match="offset -1"):
        log.truncate_to(-1)
