"""What controllers say to brokers, and what brokers answer.

Messages are values; whoever carries them to another process encodes them.
"""

from dataclasses import dataclass
from typing import Final

from reassure_spec.znodes import ReplicaList

UNKNOWN_BROKER_EPOCH: Final = -1
"""Kafka's own number for a broker epoch that the sender does not know."""
NO_EPOCH: Final = -1
"""Kafka's own number for a leader epoch that the sender does not tell (KIP-570)."""
EPOCH_DURING_DELETE: Final = -2
"""Kafka's own leader epoch in a StopReplica that comes of the deletion of a topic (KIP-570): later
than all, and if the topic is made anew its epochs begin again."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Become leader or follower of a partition."""

    controller: int
    controller_epoch: int
    """Epoch of the controller that sends."""
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr: ReplicaList
    state_controller_epoch: int
    """Epoch of the controller that wrote the state."""
    state_version: int
    """Version of the state znode that the leader's first ISR write is conditional on."""
    replicas: ReplicaList
    """The assigned replicas."""
    is_new: bool
    """Whether the broker never had this replica."""
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    """Which life of the broker is told."""


@dataclass(frozen=True, slots=True)
class StopReplica:
    """Stop the replica of a partition, and delete it when asked to."""

    controller: int
    controller_epoch: int
    topic: str
    partition: int
    delete: bool
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    """Which life of the broker is told."""
    leader_epoch: int = NO_EPOCH
    """In which leader epoch the replica is no longer wanted: the order is not for a later one."""


@dataclass(frozen=True, slots=True)
class StatesMoved:
    """Where a controller has taken a partition and its replicas; it is sent to nobody."""

    controller_epoch: int
    topic: str
    partition: int
    moves: tuple[tuple[int | None, str, str], ...]
    """In order: the replica, None for the partition itself, and its state before and after."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A broker's answer: `ok`, `ignored` (not newer), or the name of an error."""

    result: str


Message = LeaderAndIsr | StopReplica | Reply
