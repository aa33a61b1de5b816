"""What a replica needs of the broker that it lives on."""

from dataclasses import dataclass
from typing import Literal, Protocol

from reassure_controller.replication.clock import Clock
from reassure_controller.replication.messages import Correlation
from reassure_controller.replication.quota import Quotas
from reassure_controller.replication.rules import ReplicationRules
from reassure_spec.observations import What
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


class Host(Protocol):
    """The broker, as its replicas see it."""

    broker_id: int
    broker_epoch: int
    rules: ReplicationRules
    clock: Clock
    quotas: Quotas
    limits: ProducerLimits
    states: StateStore

    def say(self, key: PartitionKey, controller_epoch: int, leader_epoch: int, what: What) -> None:
        """Write a line of history about the broker's replica of a partition."""

    def next_correlation(self) -> Correlation:
        """Return what the next request is known by."""
