"""What the controller does to the world, as data.

A *plan* is a tuple of steps, carried out one at a time and in order. A step is either an *effect*
(one atomic ZooKeeper write, or one message to brokers) or a *mark*, which touches only the
controller's memory. A controller can die before any effect and after the last one; marks are no
place to die, because memory dies with the process.

Every effect names its `point`: what is true once it has been carried out. The crash points of a
plan are therefore "before the first effect" and each `point` in turn.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from reassure_spec.znodes import (
    LegacyEntry,
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
    StateZnode,
)

Order = tuple[int, PartitionKey]
"""A broker, and the partition that it is told of."""
LOGS_DELETED: Final = "deletion.replicas-deleted"
"""The point of the messages that have to be answered before a topic goes."""


class Phase(Enum):
    """How far a reassignment in flight has come."""

    DROP = "drop"
    """The target was changed; surplus replicas have to be dropped."""
    EXPAND = "expand"
    """The target has to be added to the assignment and its replicas started."""
    WAIT = "wait"
    """Nothing to do until every replica of the target is in sync."""


class RequestRead(NamedTuple):
    """A request as it was read."""

    path: str
    version: int
    """Its version then; -1 for any."""


class OpenRequest(NamedTuple):
    """A request that is being recorded."""

    read: RequestRead
    request: RequestZnode
    left: list[PartitionKey]
    """The partitions that were not looked at, in order."""


@dataclass(frozen=True, slots=True)
class _OnPartition:
    """What is about one partition."""

    key: PartitionKey

    @property
    def topic(self) -> str:
        """The partition's topic."""
        return self.key[0]

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.key[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEffect(_OnPartition):
    """An effect on one partition."""

    point: str
    """What is true once the effect has been carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateReassignment(PartitionEffect):
    """Create the child znode of a new reassignment, and its parent when that is absent."""

    reassignment: ReassignmentZnode
    with_parent: bool
    request: RequestRead | None
    """The request that asks for it, which must still be there as it was; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReassignment(PartitionEffect):
    """Set the data of the child znode of a reassignment whose target changes."""

    reassignment: ReassignmentZnode
    version: int
    """Znode version that the write is conditional on."""
    request: RequestRead | None
    """As in `CreateReassignment`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteReassignment(PartitionEffect):
    """Delete the child znode of a completed reassignment, and its parent when that gets empty."""

    version: int
    with_parent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteAssigned(PartitionEffect):
    """Write the partition's assigned replicas: its topic's znode, all partitions included."""

    assigned: ReplicaList
    version: int
    """Version of the topic znode that the write is conditional on."""
    state_version: int | None = None
    """Version that the partition's state must still have, or None when that does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteState(PartitionEffect):
    """Write the partition's leader and in-sync replicas."""

    state: StateZnode
    version: int
    """Znode version that the write is conditional on; -1 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionState(PartitionEffect):
    """Bring a new partition online: create its state and the missing znodes above it."""

    state: StateZnode
    missing: tuple[str, ...]
    """Paths above the state to create in the same transaction, topmost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLeaderAndIsr(PartitionEffect):
    """Tell brokers the partition's leader and in-sync replicas, as they are in memory then."""

    to: ReplicaList
    replicas: ReplicaList
    """What the brokers are to take for the assigned replicas."""
    new: frozenset[int] = frozenset()
    """The brokers among `to` that never had the replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendStopReplica(PartitionEffect):
    """Tell brokers to stop their replica and, when asked to, to delete it."""

    to: ReplicaList
    delete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pointed:
    """An effect on something else."""

    point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest(_Pointed):
    """Delete a reassignment request that has been carried out or refused."""

    path: str
    version: int
    """Version that the deletion is conditional on; -1 for any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteZnode(_Pointed):
    """Delete a znode that is not of the protocol, with everything below it."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateEntries(_Pointed):
    """Make one request, marked as legacy, of entries of the old znode."""

    entries: tuple[LegacyEntry, ...]
    version: int
    """Version that the old znode must still have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOldZnode(_Pointed):
    """Write the entries of the old znode; delete it where none is left."""

    entries: tuple[LegacyEntry, ...]
    version: int
    """Znode version that the write is conditional on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFailure(_Pointed):
    """Write the record of a broker that is missed."""

    broker: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecord(_Pointed):
    """Delete the record of a broker that is back, or whose tasks are persisted."""

    broker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTask(_Pointed):
    """Persist a task under the next number."""

    targets: tuple[tuple[PartitionKey, ReplicaList], ...]
    automatic: bool
    """Whether it says that the controller generated it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTask(_Pointed):
    """Make an ordinary request of what is left of a task, which must still be there."""

    number: int
    targets: tuple[tuple[PartitionKey, ReplicaList], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTask(_Pointed):
    """Delete a task that is done, pointless or refused."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEffect(_Pointed):
    """An effect on a topic that is to be deleted."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopic(TopicEffect):
    """Delete a topic's znode with everything below it, while a client asks for that."""

    version: int
    """Version of the topic's znode that the deletion is conditional on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSettings(TopicEffect):
    """Delete the settings of a topic that is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndDeletion(TopicEffect):
    """Delete what a client wrote to have a topic deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPreferred(_Pointed):
    """Delete what a client wrote to ask for preferred leaders."""

    version: int
    """Znode version that the deletion is conditional on."""


@dataclass(frozen=True, slots=True)
class EnterPhase(_OnPartition):
    """Mark: remember how far the partition's reassignment has come; None forgets it."""

    phase: Phase | None


@dataclass(frozen=True, slots=True)
class RememberMove(_OnPartition):
    """Mark: take a reassignment into memory that nothing records; None forgets it."""

    target: ReplicaList | None


@dataclass(frozen=True, slots=True)
class Warn:
    """Mark: log a warning that names a znode and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Recheck(_OnPartition):
    """Mark: plan again if the partition's state has another version, or its leader is gone."""

    version: int
    leader: int | None
    """None: whether the leader is alive does not matter."""


@dataclass(frozen=True, slots=True)
class RecheckOldZnode:
    """Mark: plan again if the old znode is not as it is remembered."""


OldZnodeWrite = TranslateEntries | WriteOldZnode
DeletionWrite = RemoveTopic | RemoveSettings | EndDeletion
HealingWrite = RecordFailure | DeleteRecord | CreateTask | StartTask | RemoveTask
Write = (
    CreateReassignment
    | UpdateReassignment
    | DeleteReassignment
    | WriteAssigned
    | WriteState
    | CreatePartitionState
    | DeleteRequest
    | DeleteZnode
    | OldZnodeWrite
    | HealingWrite
    | DeletionWrite
    | EndPreferred
)
Send = SendLeaderAndIsr | SendStopReplica
Effect = Write | Send
Mark = EnterPhase | RememberMove | Warn | Recheck | RecheckOldZnode
Step = Effect | Mark
Planned = Write | Recheck | RecheckOldZnode
"""What rests on how a znode was when it was planned."""


def describe(step: Step) -> str:
    """Return what an operator wants to know of a step that was carried out, "" where it is nothing.

    >>> describe(RememberMove(("t", 0), (1, 2)))
    't-0: the reassignment to [1, 2] begins'
    """
    match step:
        case CreateReassignment(reassignment=child) | UpdateReassignment(reassignment=child):
            does = "begins" if isinstance(step, CreateReassignment) else "replaces another"
            return f"{step.topic}-{step.partition}: the reassignment to {list(child.target)} {does}"
        case RememberMove(target=target) if target is not None:
            return f"{step.topic}-{step.partition}: the reassignment to {list(target)} begins"
        case DeleteReassignment() | RememberMove():
            return f"{step.topic}-{step.partition}: the reassignment has ended"
        case RemoveTopic(topic=topic):
            return f"{topic}: the topic is deleted"
        case _:
            return ""


def list_partitions(steps: Iterable[Step]) -> list[PartitionKey]:
    """Return the partitions that steps rest on, in order."""
    return sorted({step.key for step in steps if isinstance(step, PartitionEffect | Recheck)})


def list_keys(step: Step) -> dict[str, object]:
    """Return what a line about a step is found by: its partition and its point, if it has them.

    >>> list_keys(RememberMove(("t", 0), None))
    {'topic': 't', 'partition': 0}
    """
    names = ("topic", "partition", "point")
    return {name: getattr(step, name) for name in names if hasattr(step, name)}
