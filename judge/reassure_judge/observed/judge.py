"""The judge of observations: feed it lines, each writer's in order, and ask for what it found.

The lines of different writers may come in any order. Memory is needed for partitions, terms and
changes of the in-sync set, not for lines.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from reassure_judge.observed.ledger import Ledger, Line
from reassure_judge.verdicts import Tally
from reassure_spec.observations import Observation, Writer

Key = tuple[str, str, int]
"""Chroot, topic and partition."""


@dataclass(slots=True)
class _WriterState:
    """What is known of one writer."""

    run: int = -1
    following: int = 0
    """Number of the line that comes next."""
    tells: frozenset[str] = frozenset()
    gaps: int = 0
    """How often lines were missing so far."""
    seen: dict[tuple[Key, int], int] = field(default_factory=dict)
    """By replica that it spoke of: the gaps before its last line."""


class PartitionLike(Protocol):
    """All that is said of one partition, as a protocol judges it."""

    def feed(self, line: Line, tells: frozenset[str], *, is_torn: bool) -> None:
        """Judge one line; `is_torn` where lines of its writer are missing before it."""

    def tear(self, broker: int) -> None:
        """Note that lines of the writer that speaks for this replica are missing at its end."""

    def judge(self, *, is_over: bool) -> None:
        """Judge what only several writers together show.

        Unless the history `is_over`, more may follow on each replica's last line.
        """


class ObservationJudge:
    """Holds observations against a protocol, which judges each partition."""

    def __init__(self, make_partition: Callable[[Ledger], PartitionLike]) -> None:
        self.tally = Tally()
        self.lines = 0
        self.partitions: dict[Key, PartitionLike] = {}
        self._make_partition = make_partition
        self._ledger = Ledger(self.tally)
        self._writers: dict[str, _WriterState] = {}

    def feed(self, said: Observation, file: str, number: int) -> None:
        """Judge one line; those of one writer must come in order."""
        self.lines += 1
        writer = self._writers.get(said.writer)
        if writer is None:
            writer = self._writers[said.writer] = _WriterState()
        self._follow(writer, said)
        if isinstance(said.what, Writer):
            writer.tells = frozenset(said.what.tells)
            return
        key = said.chroot, said.topic, said.partition
        partition = self.partitions.get(key)
        if partition is None:
            partition = self.partitions[key] = self._make_partition(self._ledger)
        replica = key, said.broker
        is_torn = writer.seen.get(replica, 0) != writer.gaps
        writer.seen[replica] = writer.gaps
        partition.feed(Line(file, number, said), writer.tells, is_torn=is_torn)

    def _follow(self, writer: _WriterState, said: Observation) -> None:
        """Notice where a run begins, and where lines are missing."""
        if said.run != writer.run:
            writer.run, writer.following, writer.tells = said.run, 0, frozenset()
        if said.sequence != writer.following:
            writer.gaps += 1
        writer.following = said.sequence + 1

    def join(self, said: Observation, file: str, zxid: int) -> None:
        """Take in what ZooKeeper's log says of a partition that some line was about."""
        partition = self.partitions[said.chroot, said.topic, said.partition]
        partition.feed(Line(file, zxid, said), frozenset(), is_torn=False)

    def tear(self, name: str) -> None:
        """Note that a writer's next line is missing: it was not finished, or is lost."""
        self._writers.setdefault(name, _WriterState()).gaps += 1

    def count_gaps(self) -> dict[str, int]:
        """Return how often lines are missing, by writer; those that lack none are left out."""
        return {name: w.gaps for name, w in sorted(self._writers.items()) if w.gaps}

    def finish(self, *, is_over: bool = False) -> Tally:
        """Judge what only all lines together show, and return what was found. Ask once.

        Copied from a cluster at work, the files of its writers end at different times: what one of
        them says in its last term may then lack what another has noted of it already. With
        `is_over` nothing followed on the last line of any.
        """
        for writer in self._writers.values():
            for (key, broker), gaps in writer.seen.items():
                if gaps != writer.gaps:
                    self.partitions[key].tear(broker)
        for key in sorted(self.partitions):
            self.partitions[key].judge(is_over=is_over)
        self.tally.violations.sort(key=lambda v: (v.chroot, v.topic, v.partition, v.file, v.line))
        return self.tally
