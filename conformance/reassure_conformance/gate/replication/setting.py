"""What differs from trial to trial, and what comes of one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reassure_conformance.gate.replication.alphabet import BrokerStep
from reassure_judge.verdicts import Tally, Violation
from reassure_spec.observations import Observation
from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode, encode_topic, topic_path

Assignment = tuple[PartitionKey, ReplicaList]


AMENDED: Final = "amended"
"""Every amendment: what brokers ship with."""
EARLY_CREDIT: Final = "early-credit"
"""The same, but a new leader takes every follower for caught up, as the document may be read."""
AS_WRITTEN: Final = "as-written"
"""The document without amendments, which holds for one leader only: nobody dies."""
RULES: Final = (AMENDED, EARLY_CREDIT, AS_WRITTEN)


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """What differs from trial to trial beside the steps."""

    rules: str = AMENDED
    """Which readings brokers go by."""
    min_insync_replicas: int = 1
    fetch_bytes: int = 1 << 20
    brokers: ReplicaList = (1, 2, 3)
    partitions: tuple[Assignment, ...] = ((("t", 0), (1, 2, 3)),)
    """The partitions that it begins with, and their replicas."""

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        """The partitions."""
        return tuple(key for key, _ in self.partitions)

    def encode_topics(self) -> dict[str, bytes]:
        """Return the znodes of the topics."""
        topics: dict[str, dict[int, ReplicaList]] = {}
        for (topic, number), replicas in self.partitions:
            topics.setdefault(topic, {})[number] = replicas
        return {topic_path(name): encode_topic(each) for name, each in topics.items()}


@dataclass(slots=True)
class TrialOutcome:
    """A trial that is over."""

    setting: TrialSetting
    steps: tuple[BrokerStep, ...]
    """Those that were possible, as they were carried out."""
    tally: Tally
    violations: tuple[Violation, ...]
    observed: tuple[tuple[Observation, ...], ...]
    """What each broker observed."""
    records: int
    """How many the client read in the end."""
    promised: int
    """How many of them it had been promised."""
    directory: Path
    chroot: str
    unrest: str = ""
    """Why the healed cluster did not come to rest, "" where it did."""


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """What ZooKeeper holds of a partition."""

    assigned: ReplicaList
    state: StateZnode
    moves: bool
    """Whether it is being reassigned."""
