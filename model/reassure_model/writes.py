"""The writes by which a partition changes, as records.

These are the persistent steps of the system: whatever a controller or a broker does to a partition
shows as a sequence of them, and a crash can fall between any two.
"""

from dataclasses import dataclass, replace

from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class CreateState:
    """The controller brings a new partition online."""

    state: LeaderAndIsr


@dataclass(frozen=True, slots=True)
class WriteState:
    """The controller writes leader and in-sync replicas."""

    state: LeaderAndIsr


@dataclass(frozen=True, slots=True)
class ChangeIsr:
    """The leader changes the in-sync replicas."""

    state: LeaderAndIsr
    writer: int
    """The broker whose session wrote."""


@dataclass(frozen=True, slots=True)
class WriteAssigned:
    """The controller writes the assigned replicas."""

    assigned: ReplicaList


@dataclass(frozen=True, slots=True)
class CreateReassignment:
    """The controller records the first reassignment of a chain."""

    reassignment: Reassignment


@dataclass(frozen=True, slots=True)
class UpdateReassignment:
    """The controller changes the reassignment in flight."""

    reassignment: Reassignment


@dataclass(frozen=True, slots=True)
class DeleteReassignment:
    """The controller removes the record of a reassignment that is complete."""


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """The controller removes a request that it has dealt with."""

    sequence: int


Write = (
    CreateState
    | WriteState
    | ChangeIsr
    | WriteAssigned
    | CreateReassignment
    | UpdateReassignment
    | DeleteReassignment
    | DeleteRequest
)


@dataclass(frozen=True, slots=True)
class Obligation:
    """A write that is due, and the clause that asks for it."""

    write: Write
    clause: str


def raise_epoch(
    state: LeaderAndIsr, around: Environment, leader: int, isr: ReplicaList
) -> WriteState:
    """Return the write of leader and in-sync set with the next leader epoch."""
    return WriteState(LeaderAndIsr(leader, state.leader_epoch + 1, around.controller_epoch, isr))


def adopt(partition: Partition, write: Write) -> Partition:
    """Return the partition with what was written, and nothing else changed."""
    match write:
        case CreateState(state) | WriteState(state) | ChangeIsr(state, _):
            return replace(partition, state=state)
        case WriteAssigned(assigned):
            return replace(partition, assigned=assigned)
        case CreateReassignment(record) | UpdateReassignment(record):
            return replace(partition, reassignment=record)
        case DeleteReassignment():
            return replace(partition, reassignment=None)
        case DeleteRequest(sequence):  # one way: there is no other write
            left = tuple(r for r in partition.requests if r.sequence != sequence)
            return replace(partition, requests=left)
