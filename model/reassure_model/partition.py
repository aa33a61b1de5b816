"""What one partition and its environment look like at one instant.

A `Partition` is what ZooKeeper holds about one partition, plus three facts that follow from the
order of earlier writes and that a controller keeps in memory. `Environment` is what the rules need
to know of the rest of the cluster. All records are frozen; a step makes new ones.
"""

from dataclasses import dataclass

from reassure_spec.znodes import NO_LEADER, PartitionKey, ReplicaList, StateZnode


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Leader and in-sync replicas, as in the partition's `/state`."""

    leader: int
    """Broker id, or `NO_LEADER`."""
    leader_epoch: int
    controller_epoch: int
    isr: ReplicaList


def spell_key(key: PartitionKey) -> str:
    """Return the name of a partition."""
    return f"{key[0]}-{key[1]}"


def to_znode(state: LeaderAndIsr) -> StateZnode:
    """Return what the znode of a state says."""
    return StateZnode(state.leader, state.leader_epoch, state.controller_epoch, state.isr)


def from_znode(said: StateZnode) -> LeaderAndIsr:
    """Return the state that a znode says."""
    return LeaderAndIsr(said.leader, said.leader_epoch, said.controller_epoch, said.isr)


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in flight, as in the child of `/admin/reassignments`."""

    target: ReplicaList
    top: int
    """Length of the assignment when the first reassignment of the chain was created."""
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What one pending request asks of this partition."""

    sequence: int
    target: ReplicaList
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition."""

    assigned: ReplicaList | None = None
    """Assigned replicas in order; None where the partition does not exist."""
    state: LeaderAndIsr | None = None
    """None until the controller has brought the partition online for the first time."""
    reassignment: Reassignment | None = None
    requests: tuple[Request, ...] = ()
    """Pending requests that name this partition, lowest sequence first."""
    drop_due: bool = False
    """The target has changed and the drop of that change has not been carried out."""
    announce_due: bool = False
    """The assignment has changed and the leader epoch has not been raised since."""
    completing: bool = False
    """The acting controller saw the whole target in sync and began to complete."""
    taken: Reassignment | None = None
    """The reassignment that the acting controller makes of the lowest request, recorded or not yet;
    kept only under the readings that need it (`is_remembered`)."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What the rules for one partition read of the cluster."""

    live: frozenset[int]
    """Registered brokers."""
    known: frozenset[int]
    """Brokers that are registered or have a configuration."""
    min_insync_replicas: int = 1
    controller_epoch: int = 1
    stopping: frozenset[int] = frozenset()
    """Registered brokers that have told the controller that they are about to stop."""
    preferred_asked: bool = False
    """A client asks for the preferred leader of this partition."""
    unclean_allowed: bool = False
    """The topic, or the default of all brokers, allows a leader that was not in sync."""
    deleting: bool = False
    """A client asks for the topic to be deleted."""


def is_leader_live(state: LeaderAndIsr, around: Environment) -> bool:
    """Whether there is a leader and it is registered."""
    return state.leader != NO_LEADER and state.leader in around.live


def is_target_in_sync(partition: Partition) -> bool:
    """Whether every replica of the target in flight is in the in-sync set."""
    if partition.reassignment is None or partition.state is None:
        return False
    isr = partition.state.isr
    return all(replica in isr for replica in partition.reassignment.target)


def is_done(partition: Partition) -> bool:
    """Whether all that is left of the reassignment in flight is its record.

    A target that only adds replicas is assigned long before it is in sync.
    """
    flight, state = partition.reassignment, partition.state
    if flight is None or state is None or partition.assigned != flight.target:
        return False
    if not (partition.completing or is_target_in_sync(partition)):
        return False
    return all(replica in flight.target for replica in state.isr)
