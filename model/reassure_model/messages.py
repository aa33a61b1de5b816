"""What a controller tells brokers once a write is stored, as the effects of the step that it is.

A write that brings in replicas starts them, one of leader and in-sync set is told to whoever runs a
replica, and who is taken away stops, and deletes its replica once that is not assigned any more
(KAFKA-42, section 2; Kafka's replica and partition state machines). A broker that is down is told
when it returns, and a controller that takes office tells everybody anew.
"""

from dataclasses import dataclass

from reassure_model.partition import LeaderAndIsr, Partition
from reassure_model.writes import CreateState, Write, WriteAssigned, WriteState
from reassure_spec.clauses import clause
from reassure_spec.znodes import ReplicaList


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
