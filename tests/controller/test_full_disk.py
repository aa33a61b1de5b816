"""A broker's disk that is full: a real one, of memory, which the kernel keeps small."""

import itertools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reassure_conformance.adapter.stepping import VirtualClock
from reassure_controller.replication import messages
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.leading import Leadership
from reassure_controller.replication.messages import Produced, Response
from reassure_controller.replication.observing import Observer
from reassure_controller.replication.replica import Replica
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading
from reassure_controller.storage.checkpoints import read_offsets
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.errors import DiskFailed, WriteRefused
from reassure_controller.storage.records import Record, check_produced, decode, encode
from reassure_spec.observations import Produce, decode_lines
from reassure_spec.znodes import PartitionKey

from .conftest import Told

KEY, OTHER = ("t", 0), ("t", 1)
CHECKPOINT = "replication-offset-checkpoint"


class SmallDisk:
    """A file system of 400 kB and 60 files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Leave no page."""
        with self._ballast.open("ab", buffering=0) as stream:
            for size in (4096, 1):
                try:
                    while stream.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    def use_up_files(self) -> None:
        """Leave no room for a new file."""
        for number in itertools.count():
            try:
                (self.path / f"file-{number}").touch()
            except OSError:
                return

    def free(self) -> None:
        """Undo it."""
        for path in (self._ballast, *self.path.glob("file-*")):
            path.unlink(missing_ok=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    """Mount one; where that is not allowed the tests with injected errors stand for these."""
    size = "size=400k,nr_inodes=60"
    mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a file system can be mounted by root only")
    try:
        yield SmallDisk(tmp_path)
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


class Alone:
    """A broker that leads t-0 with nobody else in sync; its clock; what it answered."""

    def __init__(self, path: Path, segment_bytes: int) -> None:
        self.clock = VirtualClock(10**6)
        self.disk = LogDirectory(path / "logs", 1, "c", segment_bytes=segment_bytes)
        observer = Observer(path / "said", 1, 1)
        self.replicas = Replicas(
            1, 9, Told(1, (1,)), self.disk, self.clock, observer, ReplicationRules()
        )
        self.kept: list[bytes] = []
        self._numbers = itertools.count()

    @property
    def replica(self) -> Replica:
        """The replica of t-0."""
        replica = self.replicas.find(KEY)
        assert replica is not None
        return replica

    def produce(self, size: int = 1000) -> str:
        """Send a record that is a number, and return the error of the answer."""
        number = next(self._numbers)
        value, answers = b"%d:" % number + b"x" * size, list[Response]()
        raw = encode([Record(None, value)], 0, 0, 0)
        self.replicas.serve(
            messages.Produce(KEY, (0, number), 1, check_produced(raw)), answers.append
        )
        [answer] = answers
        assert isinstance(answer, Produced)
        self.kept += [value] if not answer.error else []
        return answer.error

    def pass_time(self) -> None:
        """Let timers be due."""
        self.clock.advance(10_000)
        self.replicas.tick()

    def read(self) -> list[bytes | None]:
        """Return everything in the log."""
        return read_all(self.disk, KEY)


def read_all(disk: LogDirectory, key: PartitionKey) -> list[bytes | None]:
    """Return the values of all records."""
    log, found = disk.log(*key), list[bytes | None]()
    while raw := log.read(len(found), 1 << 20):
        found += [record.value for _, record in decode(raw)]
    return found


@pytest.fixture
def start(small: SmallDisk) -> Iterator[Callable[..., Alone]]:
    """Start the broker on the small disk."""
    made: list[Alone] = []

    def make(segment_bytes: int = 1 << 20) -> Alone:
        made.append(Alone(small.path, segment_bytes))
        made[-1].replicas.become(KEY)
        return made[-1]

    yield make
    small.free()
    for one in made:
        one.replicas.abandon()


def until_refused(broker: Alone) -> None:
    """Produce until the disk takes no more."""
    while not broker.produce():
        assert len(broker.kept) < 1000
    assert broker.produce() == "KAFKA_STORAGE_ERROR"


@pytest.mark.parametrize("segment_bytes", [1 << 20, 3000], ids=["append", "roll"])
def test_producer_is_refused_and_nothing_is_lost(
    segment_bytes: int,
    small: SmallDisk,
    start: Callable[..., Alone],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What was answered stays, what was refused is not there, and room is all that is needed."""
    broker = start(segment_bytes)
    assert not broker.produce()
    small.fill()
    until_refused(broker)
    assert broker.read() == broker.kept
    assert "No space left on device; free space" in caplog.text
    small.free()
    assert not broker.produce()
    assert broker.read() == broker.kept


def test_segment_that_cannot_be_made_is_made_later(
    small: SmallDisk, start: Callable[..., Alone]
) -> None:
    """Where there is no room for another file, a new segment waits, and the log is usable."""
    broker = start(3000)
    assert not broker.produce()
    small.use_up_files()
    until_refused(broker)
    assert broker.read() == broker.kept
    small.free()
    assert not broker.produce()
    assert broker.read() == broker.kept


def test_checkpoint_that_cannot_be_written_is_written_later(
    small: SmallDisk, start: Callable[..., Alone], caplog: pytest.LogCaptureFixture
) -> None:
    """The old checkpoint stays whole, a line names it, and the next one is tried when due."""
    broker = start()
    broker.produce()
    broker.pass_time()
    file = small.path / "logs" / CHECKPOINT
    before = read_offsets(file)
    broker.produce()
    small.fill()
    broker.pass_time()
    assert read_offsets(file) == before
    assert f"{file}: nothing was written: [Errno 28]" in caplog.text
    small.free()
    broker.replica.high_watermark = 2
    broker.pass_time()
    assert read_offsets(file) == {KEY: 2}


def test_order_is_obeyed_once_there_is_room(
    small: SmallDisk, start: Callable[..., Alone], caplog: pytest.LogCaptureFixture
) -> None:
    """A replica that could not begin to lead for want of room does so later, untold."""
    broker = start()
    small.fill()
    broker.replicas.become(OTHER)
    assert "t-1 neither leads nor follows: " in caplog.text
    small.free()
    broker.pass_time()
    other = broker.replicas.find(OTHER)
    assert other is not None
    assert isinstance(other.role, Leading)
    assert isinstance(other.role.view, Leadership)


def test_deletion_makes_room(small: SmallDisk, start: Callable[..., Alone]) -> None:
    """A log can be deleted while the disk is full; a log made anew is not taken for damaged."""
    broker = start()
    until_refused(broker)
    broker.disk.log(*KEY).flush()
    assert broker.disk.log(*KEY).recovery_point > 0
    small.fill()
    broker.replicas.stop(KEY, 1, 0, delete=True)
    assert not list((small.path / "logs").glob("t-0*/*"))
    broker.replicas.become(KEY)
    assert [path.name for path in (small.path / "logs").glob("t-0*")] == ["t-0"]
    broker.kept.clear()
    assert not broker.produce()
    assert broker.read() == broker.kept


def test_history_goes_on_after_a_gap(
    small: SmallDisk, start: Callable[..., Alone], caplog: pytest.LogCaptureFixture
) -> None:
    """Lines that found no room are missing as whole lines, and the count shows the gap."""
    broker = start()
    small.fill()
    for _ in range(20):
        broker.replicas.become(KEY)
    assert "the history has a gap from here on: [Errno 28]" in caplog.text
    small.free()
    broker.replicas.become(KEY)
    assert "the history goes on" in caplog.text
    file = small.path / "said" / "observations.ndjson"
    lines = list(decode_lines(file.read_bytes().splitlines(), str(file)))
    numbers = [line.sequence for line in lines]
    assert numbers == sorted(set(numbers))
    assert [b - a for a, b in itertools.pairwise(numbers) if b - a > 1] != []


def test_life_that_begins_on_a_full_disk_goes_on(
    small: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that has waited to be registered until its disk was full ends by that no more."""
    (small.path / "said").mkdir()
    small.fill()
    observer = Observer(small.path / "said", 1, 1)
    observer.say(KEY, 1, 0, Produce(0))
    assert caplog.text.count("the history has a gap from here on: [Errno 28]") == 1
    small.free()
    observer.say(KEY, 1, 0, Produce(1))
    observer.close()
    file = small.path / "said" / "observations.ndjson"
    head, line = decode_lines(file.read_bytes().splitlines(), str(file))
    assert (head.sequence, line.sequence, line.what) == (1, 2, Produce(1))


def test_end_on_a_full_disk_is_an_end(small: SmallDisk, start: Callable[..., Alone]) -> None:
    """A broker that cannot save its marks says so, and gives the directory free."""
    broker = start()
    broker.produce()
    small.fill()
    with pytest.raises(DiskFailed, match=r"nothing was written: .*free space"):
        broker.replicas.close()
    small.free()
    with LogDirectory(small.path / "logs", 1, "c") as disk:
        assert read_all(disk, KEY) == broker.kept


def test_start_on_a_full_disk_is_refused(small: SmallDisk) -> None:
    """Where nothing can be written the directory is not taken, and the file is named."""
    small.fill()
    with pytest.raises(WriteRefused, match=r"meta\.properties: nothing was written"):
        LogDirectory(small.path / "logs", 1, "c")
