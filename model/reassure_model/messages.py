"""What a controller tells brokers once a write is stored, as the effects of the step that it is.

A write that brings in replicas starts them, one of leader and in-sync set is told to whoever runs a
replica, and who is taken away stops, and deletes its replica once that is not assigned any more
(KAFKA-42, section 2; Kafka's replica and partition state machines). A broker that is down is told
when it returns, and a controller that takes office tells everybody anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from reassure_model.partition import LeaderAndIsr, Partition
from reassure_model.writes import CreateState, Write, WriteAssigned, WriteState
from reassure_spec.clauses import clause
from reassure_spec.znodes import NO_LEADER, ReplicaList

EPOCH_DURING_DELETE: Final = -2
"""The leader epoch of a StopReplica that comes of a topic's deletion: later than all (KIP-570)."""


@dataclass(frozen=True, slots=True)
class TellState:
    """LeaderAndIsr: who leads, who is in sync, and which replicas count as assigned."""

    to: ReplicaList
    state: LeaderAndIsr
    replicas: ReplicaList


@dataclass(frozen=True, slots=True)
class StopReplica:
    """StopReplica: the replica is to stop, and to be deleted where asked for."""

    to: ReplicaList
    delete: bool


Message = TellState | StopReplica


@dataclass(frozen=True, slots=True)
class Stored:
    """A conditional write that was stored, and what follows from it for brokers."""

    before: Partition
    write: Write
    after: Partition

    @property
    def messages(self) -> tuple[Message, ...]:
        """What brokers are told, in order; a controller may fail before any of them."""
        return list_messages(self.before, self.write, self.after)


def list_running(partition: Partition) -> ReplicaList:
    """Return who runs a replica: a completion that has begun has stopped those that are to go.

    What it told the leader stays so under a later controller, in the same leader epoch.
    """
    return list_kept(partition) if partition.completing else partition.assigned or ()


def list_kept(partition: Partition) -> ReplicaList:
    """Return the replicas that no reassignment in flight takes away."""
    flight = partition.reassignment
    return (partition.assigned or ()) if flight is None else flight.target


@clause("message.deleted-after-cut")
def is_needed(state: LeaderAndIsr, broker: int) -> bool:
    """Whether a replica must not be deleted yet: it leads, or could be elected."""
    return broker == state.leader or broker in state.isr


@clause("message.stored-first", "message.replica-told", "message.leader-knows-assigned")
@clause("message.stranger-stopped")
def list_messages(before: Partition, write: Write, after: Partition) -> tuple[Message, ...]:
    """Return what brokers are told when a write is stored, in order."""
    state = after.state
    if isinstance(write, WriteAssigned):
        old, new = before.assigned or (), write.assigned
        gone = tuple(replica for replica in old if replica not in new)
        added = tuple(replica for replica in new if replica not in old)
        stops: tuple[Message, ...] = (StopReplica(gone, delete=True),) if gone else ()
        started = state is not None and len(added) > 0
        return (*stops, TellState(added, state, new)) if started and state is not None else stops
    if state is None or not isinstance(write, CreateState | WriteState):
        return ()
    running = list_running(after)
    cut = () if before.state is None else before.state.isr
    told = TellState(running, state, running)
    stopped = tuple(
        replica
        for replica in cut
        if replica not in state.isr and (before.drop_due or replica not in running)
    )
    return (StopReplica(stopped, delete=False), told) if stopped else (told,)


# What each field of a request says ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToldReplica:
    """What there is to know of a replica when a controller tells its broker of it."""

    told: bool
    """Its broker was told of it before, and not to delete it since."""
    told_in_term: bool
    """By this controller, in this epoch."""
    added_in_term: bool
    """This controller assigned it in this epoch, and its broker has been registered ever since."""
    in_sync: bool


@clause("message.sender")
def is_sender(controller: int | None, epoch: int, terms: Sequence[tuple[int, int | None]]) -> bool:
    """Whether a controller was elected last in this epoch, of these epochs with whom they elected.

    None where it is not said who sends, or not known who was elected.
    """
    if controller is None or (epoch, None) in terms:
        return any(epoch == known for known, _ in terms)
    return [known for known, elected in terms if elected == controller][-1:] == [epoch]


@clause("message.broker-epoch")
def is_life(epoch: int, lives: Collection[int]) -> bool:
    """Whether a broker epoch is that of one of these registrations."""
    return epoch in lives


@clause("message.state-version")
def is_version(
    version: int, state: LeaderAndIsr, stored: Collection[tuple[LeaderAndIsr, int]]
) -> bool:
    """Whether the state was stored with this version."""
    return (state, version) in stored


@clause("message.replicas-assigned")
def are_assigned(replicas: ReplicaList, partition: Partition, leader: int = NO_LEADER) -> bool:
    """Whether these may be told for the replicas of a partition as it stands.

    Who was elected as its leader without being assigned (KAFKA-42) may be among them.
    """
    assigned, kept = set(partition.assigned or ()), set(list_kept(partition))
    least = assigned & kept
    if partition.drop_due and partition.state is not None:
        least &= set(partition.state.isr)  # what is dropped next counts no more
    most = (assigned | kept | {leader}) - {NO_LEADER}
    return len(set(replicas)) == len(replicas) and least <= set(replicas) <= most


@clause("message.is-new")
def is_rightly_new(replica: ToldReplica, *, is_new: bool) -> bool:
    """Whether a replica may be told to be new, or not to be."""
    if replica.told_in_term or (replica.told and replica.in_sync):
        return not is_new
    return is_new or replica.told or not replica.added_in_term


@clause("message.stop-epoch")
def is_stop_epoch(epoch: int, state: LeaderAndIsr | None, *, deleting: bool) -> bool:
    """Whether a replica may be stopped as of this leader epoch, where the state is as stored."""
    if state is None:
        return epoch < 0
    return epoch == state.leader_epoch or (deleting and epoch == EPOCH_DURING_DELETE)
