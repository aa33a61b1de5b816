"""What a controller and a leader write to ZooKeeper for each of the model's writes."""

from dataclasses import dataclass, field

from reassure_lab.archives.sample import SampleCluster
from reassure_model.partition import LeaderAndIsr, Reassignment, to_znode
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_spec.znodes import PartitionKey, ReplicaList
from reassure_zookeeper.transactions import Op


@dataclass(frozen=True, slots=True)
class WrittenTopic:
    """What is written beside each other of the partitions of a topic."""

    assigned: dict[int, ReplicaList]
    in_flight: set[int] = field(default_factory=set)
    """The partitions of which a reassignment is recorded."""


def list_ops(
    cluster: SampleCluster, key: PartitionKey, write: Write, there: WrittenTopic
) -> tuple[Op, ...]:
    """Return the operations that a write to a partition is; `there` is its topic by then."""
    match write:
        case WriteState(state) | ChangeIsr(state, _):  # first, as nearly all are
            return (cluster.put(znodes.state_path(*key), _state(state)),)
        case WriteAssigned():
            return (cluster.put(znodes.topic_path(key[0]), znodes.encode_topic(there.assigned)),)
        case CreateState(state):
            above = f"{znodes.topic_path(key[0])}/partitions", znodes.partition_path(*key)
            made = cluster.create(znodes.state_path(*key), _state(state))
            return (*_create_missing(cluster, *above), made)
        case CreateReassignment(record):
            missing = _create_missing(cluster, _parent(key))
            return (*missing, cluster.create(znodes.reassignment_path(*key), _record(record)))
        case UpdateReassignment(record):
            return (cluster.put(znodes.reassignment_path(*key), _record(record)),)
        case DeleteReassignment():
            gone = cluster.delete(znodes.reassignment_path(*key))
            if there.in_flight - {key[1]}:
                return (gone,)
            return (gone, cluster.delete(_parent(key)))
        case DeleteRequest(sequence):
            return (cluster.delete(znodes.request_path(sequence)),)


def _parent(key: PartitionKey) -> str:
    return f"{znodes.REASSIGNMENTS}/{key[0]}"


def _create_missing(cluster: SampleCluster, *paths: str) -> tuple[Op, ...]:
    return tuple(cluster.create(path) for path in paths if not cluster.knows(path))


def _state(state: LeaderAndIsr) -> bytes:
    return znodes.encode_state(to_znode(state))


def _record(record: Reassignment) -> bytes:
    found = znodes.ReassignmentZnode(record.top, record.target, record.legacy)
    return znodes.encode_reassignment(found)
