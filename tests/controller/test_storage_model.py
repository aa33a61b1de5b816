"""A log does what a list of batches does, through crashes that tear its files anywhere."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reassure_controller.storage.errors import OutOfOrder
from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import Record, decode, encode

SEGMENT_BYTES = 250
EVERYTHING = 10**6

contents = st.lists(
    st.builds(
        Record,
        st.none() | st.binary(max_size=3),
        st.none() | st.binary(max_size=80),
        st.integers(0, 2**42),
    ),
    min_size=1,
    max_size=3,
)


@dataclass
class Model:
    """What the log should hold: each batch with its epoch, and where epochs begin."""

    batches: list[tuple[int, list[Record], int]] = field(default_factory=list)
    """Epoch, records, bytes."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    safe: int = 0
    """The number of records that were flushed."""

    @property
    def ends(self) -> list[int]:
        """Where each batch ends."""
        found, end = [], 0
        for _, records, _ in self.batches:
            end += len(records)
            found.append(end)
        return found

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self.ends[-1] if self.batches else 0

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record."""
        return self.batches[-1][0] if self.batches else 0

    def begin(self, epoch: int) -> None:
        """Let an epoch begin at the end."""
        if not self.spans or epoch > self.spans[-1][0]:
            self.spans = [span for span in self.spans if span[1] < self.end] + [(epoch, self.end)]

    def add(self, epoch: int, records: list[Record], size: int) -> None:
        """Append a batch."""
        self.begin(epoch)
        self.batches.append((epoch, records, size))

    def keep(self, count: int, offset: int) -> None:
        """Keep so many batches, and the epochs that begin before this offset."""
        del self.batches[count:]
        self.spans = [span for span in self.spans if span[1] < min(offset, self.end)]
        self.safe = min(self.safe, self.end)


class LogMachine(RuleBasedStateMachine):
    """Every use of a log, and the end of its process at any time."""

    @initialize()
    def begin(self) -> None:
        """Make an empty log."""
        self.folder = Path(tempfile.mkdtemp())
        self.number = 0
        self.model = Model()
        self.log = self.open()
        self.safe_bytes = 0

    def teardown(self) -> None:
        """Remove the files."""
        if hasattr(self, "log"):
            self.log.abandon()
            shutil.rmtree(self.folder)

    def open(self) -> PartitionLog:
        """Open the log with what was flushed as its recovery point."""
        return PartitionLog(
            self.folder / f"t-{self.number}",
            recovery_point=self.model.safe,
            segment_bytes=SEGMENT_BYTES,
            sync=lambda _: None,
        )

    @rule(records=contents, newer=st.integers(0, 2))
    def append(self, records: list[Record], newer: int) -> None:
        """Write as a leader, in the newest epoch or a newer one."""
        epoch, first = max(self.log.epochs.latest, 0) + newer, self.model.end
        size = len(encode(records, first, epoch, 0))
        assert self.log.append(records, epoch, 0) == range(first, first + len(records))
        self.model.add(epoch, records, size)

    @rule(batches=st.lists(st.tuples(contents, st.integers(0, 2)), min_size=1, max_size=3))
    def fetch(self, batches: list[tuple[list[Record], int]]) -> None:
        """Write as a follower, some batches that continue the last record."""
        raw, epoch = b"", self.model.last_epoch
        for records, newer in batches:
            epoch += newer
            if epoch < self.log.epochs.latest:  # which began without a record, and gives way
                self.model.keep(len(self.model.batches), self.model.end)
            more = encode(records, self.model.end, epoch, 0)
            self.model.add(epoch, records, len(more))
            raw += more
        self.log.append_batches(raw)

    @rule(records=contents, away=st.integers(-3, 3).filter(bool))
    def fetch_elsewhere(self, records: list[Record], away: int) -> None:
        """Be given batches that do not continue the log."""
        raw = encode(records, max(self.model.end + away, 0), self.log.epochs.latest + 1, 0)
        if self.model.end + away >= 0:
            with pytest.raises(OutOfOrder, match="gap" if away > 0 else "overlap"):
                self.log.append_batches(raw)

    @rule(newer=st.integers(1, 2))
    def lead(self, newer: int) -> None:
        """Begin an epoch without a record."""
        epoch = self.log.epochs.latest + newer
        self.log.begin_epoch(epoch)
        self.model.begin(epoch)

    @rule(data=st.data(), max_bytes=st.integers(0, 400))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        """Read from anywhere, up to anywhere."""
        ends = self.model.ends
        offset = data.draw(st.integers(0, self.model.end), label="offset")
        below = data.draw(st.integers(0, self.model.end + 1), label="below")
        first = sum(end <= offset for end in ends)
        allowed = [
            index for index in range(first, len(ends)) if ends[index] <= below and offset < below
        ]
        sizes = [self.model.batches[index][2] for index in allowed]
        fitting = [i for n, i in enumerate(allowed) if not n or sum(sizes[: n + 1]) <= max_bytes]
        raw = self.log.read(offset, max_bytes, below)
        found = [record for _, record in decode(raw)]
        expected = [record for index in fitting for record in self.model.batches[index][1]]
        assert found == expected[: len(found)]
        assert bool(found) == bool(expected)
        assert len(raw) <= max(max_bytes, sizes[0] if sizes else 0)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Cut anywhere."""
        offset = data.draw(st.integers(0, self.model.end + 1), label="offset")
        kept = sum(end <= offset for end in self.model.ends)
        self.log.truncate_to(offset)
        if kept < len(self.model.batches):
            self.model.keep(kept, self.model.end)
        else:
            self.model.spans = [span for span in self.model.spans if span[1] < offset]
        self.safe_bytes = min(self.safe_bytes, self.count_bytes())

    @rule()
    def flush(self) -> None:
        """Make everything safe."""
        self.log.flush()
        self.model.safe = self.model.end
        self.safe_bytes = self.count_bytes()

    @rule()
    def reopen(self) -> None:
        """Close the log and open it."""
        self.log.close()
        self.model.safe = self.model.end
        self.safe_bytes = self.count_bytes()
        self.come_back()

    @rule(data=st.data(), rubbish=st.sampled_from([b"", b"\xff", b"\xff" * 100]))
    def crash(self, data: st.DataObject, rubbish: bytes) -> None:
        """Go on with a copy that ends at any byte behind what was flushed."""
        self.number += 1
        copy = self.folder / f"t-{self.number}"
        shutil.copytree(self.log.directory, copy)
        self.log.abandon()
        left = data.draw(st.integers(self.safe_bytes, self.count_bytes()), label="left")
        keeps_epochs = data.draw(st.booleans(), label="keeps the file of epochs")
        kept = sum(sum(b[2] for b in self.model.batches[: n + 1]) <= left
                   for n in range(len(self.model.batches)))  # fmt: skip
        for file in sorted(copy.glob("*.log")):
            content = file.read_bytes()
            if left >= len(content):
                left -= len(content)
                continue
            file.write_bytes(content[:left] + rubbish)
            left, rubbish = 0, b""
        if not keeps_epochs:
            (copy / "leader-epoch-checkpoint").unlink(missing_ok=True)
        self.model.keep(kept, self.model.end)
        self.come_back()

    def come_back(self) -> None:
        """Open the log; epochs that began without a record are not known any more."""
        self.model.keep(len(self.model.batches), self.model.end)
        self.log = self.open()

    def count_bytes(self) -> int:
        """Return the bytes of all batches."""
        return sum(size for *_, size in self.model.batches)

    @invariant()
    def agrees(self) -> None:
        """The log holds what the model holds, in bytes as long, in epochs that begin there."""
        if not hasattr(self, "log"):
            return
        assert (self.log.start_offset, self.log.end_offset) == (0, self.model.end)
        assert list(self.log.epochs.spans) == self.model.spans
        found, size = [], 0
        while raw := self.log.read(len(found), EVERYTHING):
            found += [record for _, record in decode(raw)]
            size += len(raw)
        assert found == [record for _, records, _ in self.model.batches for record in records]
        assert size == self.count_bytes()


TestLogAgainstModel = LogMachine.TestCase
TestLogAgainstModel.__doc__ = "Whatever is done to a log, it holds what a list would."
TestLogAgainstModel.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
