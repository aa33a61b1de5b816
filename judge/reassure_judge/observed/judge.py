"""The judge of observations: feed it lines, each writer's in order, and ask for what it found.

The lines of different writers may come in any order. Memory is needed for partitions, terms and
changes of the in-sync set, not for lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from reassure_judge.observed.ledger import Ledger, Line
from reassure_judge.observed.partition import PartitionHistory
from reassure_judge.verdicts import Tally
from reassure_spec.observations import Observation, Writer
from reassure_spec.readings import Readings

PROFILE: Final = "kafka-4485"

Key = tuple[str, str, int]
"""Chroot, topic and partition."""

_LEADER_AND_MARK: Final = "lead and evaluate"
_TIMED: Final = "lead with time_ms and lag_ms_max, fetch and evaluate with time_ms"

NEEDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "isr.pseudo.by-lag": _TIMED,
        "hw.minimum-of-pseudo-isr": "lead, fetch and evaluate",
        "hw.never-decreases": _LEADER_AND_MARK,
        "hw.at-most-leader-end": _LEADER_AND_MARK,
        "isr.member.at-or-above-hw": "lead, fetch and isr_write (or evaluate with isr)",
        "election.clean": "lead with isr_version, and isr_write or stored",
        "isr.change.leader-kept": "lead or isr_write",
        "lag.leader-none": "lead and evaluate",
        "lag.credit.caught-up": f"{_TIMED}, fetch with caught_up_ms",
        "lag.credit.last-fetch": f"{_TIMED}, fetch with caught_up_ms",
        "lag.noted-after-serving": f"{_TIMED}, fetch with caught_up_ms",
        "lag.estimate-never-short": f"{_TIMED}, fetch with caught_up_ms",
        "lag.clock-before-end": f"{_TIMED}, replica with time_ms",
        "lag.evaluated-in-time": _TIMED,
        "isr.pseudo.close-follower": f"{_TIMED}, replica with time_ms; a limit passed",
        "isr.entry.at-high-watermark": "lead, fetch, evaluate and isr_write",
        "isr.lagging-leaves": "lead, fetch, evaluate and isr_write",
        "isr.write.conditional": "lead with isr_version, and isr_write",
        "isr.entry.end-at-election": "lead, fetch and isr_write",
        "isr.stored.holds-committed": "serve, lead, and follow or isr_write",
        "hw.over-stored-isr": "lead, fetch, evaluate and isr_write",
        "hw.stall-bounded": f"{_TIMED}; a limit passed",
        "hw.acks-all.answered": f"{_LEADER_AND_MARK}, produce and answer",
        "hw.follower.from-leader": "replica of followers, and the leader's lead",
        "hw.served-from-end-at-election": "lead and serve",
        "hw.served-below": f"{_LEADER_AND_MARK}, serve",
        "hw.consumer.monotone": "serve",
        "fetch.epoch-fenced": "fetch with follower_epoch, or the follower's replica and follow",
        "follower.truncates-first": "follow and replica of followers",
        "follower.truncation.common-prefix": "restored, follow and replica of followers, lead",
        "log.committed-kept": "serve, and a lead of a later term",
        "epoch.replica.never-back": "any that a replica writes",
        "epoch.one-leader": "lead",
    }
)
"""By clause: the kinds of lines that put it to the test."""

LOGGED: Final = frozenset({"election.clean", "isr.change.leader-kept"})
"""Those of them that ZooKeeper's log puts to the test as well."""

UNJUDGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lag.definition": "it says what a word means: isr.pseudo.by-lag, isr.pseudo.close-follower "
        "and hw.stall-bounded are judged by it",
    }
)
"""By clause: why no line can show it kept or broken."""

ASKED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "hw.over-stored-isr": ("hw.over-stored-isr", "yes"),
        "hw.served-from-end-at-election": ("hw.served-from", "end-at-election"),
        "isr.entry.end-at-election": ("isr.entry", "end-at-election"),
        "follower.truncation.common-prefix": ("follower.truncation", "common-prefix"),
        "hw.consumer.monotone": ("hw.scope", "across-clean-elections"),
        "lag.clock-before-end": ("lag.clock-read", "before-end"),
        "isr.write.conditional": ("isr.members", "stored"),
        "election.clean": ("isr.members", "stored"),
    }
)
"""By clause: the reading, and its value, under which alone it is asked for."""


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


class ObservationJudge:
    """Holds observations against the model of KAFKA-4485."""

    def __init__(self, readings: Readings) -> None:
        self.tally = Tally()
        self.lines = 0
        self.partitions: dict[Key, PartitionHistory] = {}
        self._readings = readings
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
            partition = self.partitions[key] = PartitionHistory(self._readings, self._ledger)
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
