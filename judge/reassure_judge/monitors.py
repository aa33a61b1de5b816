"""Monitors: what judges the part of a protocol that ZooKeeper's log does not show.

A file `monitor.py` in the folder of a protocol (`reassure_judge.protocols`) exports `MONITOR`, a
subclass of `Monitor`. One is made for each cluster that is driven under a profile of the protocol.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from reassure_judge.live_events import Event
from reassure_judge.messages import Heard, StoredStates
from reassure_judge.moments import Witness
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList


class Verdict(NamedTuple):
    """What an event puts to the test, or how it breaks that, for a partition or the cluster."""

    key: PartitionKey
    outcome: str | Rejected


def decide(key: PartitionKey, clause_id: str, kept: bool | str) -> Verdict:
    """Return the verdict on a clause that is kept, or is not for a reason."""
    return Verdict(key, Rejected(clause_id, kept) if isinstance(kept, str) else clause_id)


@dataclass(frozen=True, slots=True)
class Driven:
    """A cluster that somebody drives, and what is known of it by all who judge it."""

    chroot: str
    readings: Readings
    heard: Heard
    """What brokers received, and believe."""
    stored: StoredStates
    """What ZooKeeper has held."""
    hears: bool = False
    """Whether what brokers receive is handed over."""
    has_clock: bool = False
    """Whether the implementation's time is what is handed over."""
    failure_interval_ms: int = 0
    """How long a broker has to be away before it is replaced; 0: the implementation says not."""
    partitions_per_task: int = 0
    """The most partitions of a task; 0: the implementation says not."""
    witness: Witness | None = None
    """Who wants to know in which states something was asked for, if anybody does."""


class Monitor(ABC):
    """Follows one driven cluster for one protocol."""

    def __init__(self, driven: Driven) -> None:
        self.driven = driven

    def is_able(self) -> bool:
        """Whether enough is handed over of the cluster to judge it."""
        return True

    @abstractmethod
    def take(self, event: Event) -> Iterator[Verdict]:
        """Yield what an event puts to the test, or how it breaks that."""

    def is_deleting(self, topic: str, zxid: int) -> bool:
        """Whether somebody asked for the deletion of a topic after this transaction."""
        return False

    @property
    def admitted(self) -> Mapping[PartitionKey, ReplicaList]:
        """Replicas that leaders know of and no znode says to be assigned, as far as that shows."""
        return {}

    @property
    def deleting(self) -> frozenset[str]:
        """Topics that somebody asks to be deleted."""
        return frozenset()
