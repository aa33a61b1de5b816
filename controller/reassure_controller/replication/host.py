"""What the replicas of a broker need of it: states of partitions, and limits of producers."""

from dataclasses import dataclass
from typing import Literal, Protocol

from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode

IsrOutcome = Literal["ok", "refused", "unknown"]
"""What came of a change of the in-sync set; `unknown`: it may or may not have been made."""


@dataclass(frozen=True, slots=True)
class HostedPartition:
    """What a broker keeps of a partition that it has a replica of."""

    replicas: ReplicaList
    """The assigned replicas, as told last."""
    state: StateZnode
    """The stored state, as told, read or written last."""
    state_version: int
    controller_epoch: int = 0
    """Epoch of the controller whose order this is."""


class StateStore(Protocol):
    """Where the states of partitions are stored, and who is alive."""

    def hosted(self, topic: str, partition: int) -> HostedPartition | None:
        """Return what the broker keeps of a partition."""

    def write_isr(self, key: PartitionKey, isr: ReplicaList) -> IsrOutcome:
        """Write the in-sync set once, on top of the version that the broker knows."""

    def refresh(self, key: PartitionKey) -> IsrOutcome:
        """Read the stored state; `refused` where it is no longer this leader's, in this epoch."""

    def find_broker_epoch(self, broker: int) -> int | None:
        """Return the broker epoch of a live broker, None of one that is not registered.

        Raises Indefinite.
        """


class ProducerLimits(Protocol):
    """What producers are held to, by topic."""

    def find_minimum(self, topic: str) -> int:
        """Return how many replicas have to be in sync for a producer that waits for all."""

    def find_batch_bytes(self, topic: str) -> int:
        """Return how large a batch of a producer may be."""
