"""What a controller still owes: the next write, for a partition as it stands.

The reference controller is this one function. Applied again and again until it answers None it
gives the whole plan for a partition (`compute_plan`); a crash point is a prefix of that plan, and
failover is the same function asked again. A controller that rests while something is owed has
broken the clause that the owed write carries.
"""

from dataclasses import dataclass
from typing import Final

from reassure_model.outcome import Rejected
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    is_leader_live,
    is_target_in_sync,
)
from reassure_model.protocols.kip_236.assignment_rules import CARRIED_OUT
from reassure_model.protocols.kip_236.drop import DROPPED, find_drop, must_drop_wait
from reassure_model.protocols.kip_236.requests import (
    Change,
    New,
    Refusal,
    decide_request,
    has_begun,
    make_record,
    take_up,
)
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.selectors import select_new, select_offline, select_reassigned
from reassure_model.writes import (
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec.clauses import checks
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

CONSUMED: Final = "request.consumed"


@dataclass(frozen=True, slots=True)
class Obligation:
    """A write that is due, and the clause that asks for it."""

    write: Write
    clause: str


def next_write(partition: Partition, around: Environment, readings: Readings) -> Obligation | None:
    """Return the next write that the controller owes this partition, None when it may rest.

    The order is Kafka's on failover: leaders and in-sync sets first, then reassignments in flight,
    then requests. Nothing is owed to a topic that is to be deleted.
    """
    if around.deleting:
        return None
    return (
        next_for_new_partition(partition, around)
        or next_for_dead_brokers(partition, around)
        or next_for_reassignment(partition, around, readings)
        or next_for_request(partition, around, readings)
    )


def _raised(state: LeaderAndIsr, around: Environment, leader: int, isr: ReplicaList) -> WriteState:
    return WriteState(LeaderAndIsr(leader, state.leader_epoch + 1, around.controller_epoch, isr))


@checks
def next_for_new_partition(partition: Partition, around: Environment) -> Obligation | None:
    """Bring a partition online for the first time once a replica of it is alive."""
    if partition.assigned is None or partition.state is not None:
        return None
    elected = select_new(partition.assigned, around.live)
    if elected is None:
        return None
    state = LeaderAndIsr(elected.leader, 0, around.controller_epoch, elected.isr)
    return Obligation(CreateState(state), "partition.new.brought-online")


@checks
def next_for_dead_brokers(partition: Partition, around: Environment) -> Obligation | None:
    """Elect a leader where there is none alive, then take the dead out of the in-sync set."""
    state = partition.state
    if state is None or partition.assigned is None:
        return None
    if not is_leader_live(state, around):
        elected = select_offline(partition.assigned, state.isr, around.live)
        if elected is None and state.leader == NO_LEADER:
            return None
        leader, isr = (NO_LEADER, state.isr) if elected is None else (elected.leader, elected.isr)
        return Obligation(_raised(state, around, leader, isr), "election.held")
    if any(replica not in around.live for replica in state.isr):
        isr = tuple(replica for replica in state.isr if replica in around.live)
        return Obligation(_raised(state, around, state.leader, isr), "isr.remove.dead")
    return None


@checks
def next_for_change(
    partition: Partition, around: Environment, readings: Readings
) -> Obligation | None:
    """Drop what the change leaves over, add the target, then tell the leader by a new epoch."""
    assigned, state, flight = partition.assigned, partition.state, partition.reassignment
    assert assigned is not None and flight is not None
    if must_drop_wait(partition, readings):
        return None
    added = tuple(replica for replica in flight.target if replica not in assigned)
    late = bool(added) and readings.drop_evaluated == "after-expansion"
    drop = () if late else find_drop(partition, readings)
    if drop:
        if state is not None and any(replica in drop for replica in state.isr):
            isr = tuple(replica for replica in state.isr if replica not in drop)
            return Obligation(_raised(state, around, state.leader, isr), DROPPED)
        kept = tuple(replica for replica in assigned if replica not in drop)
        return Obligation(WriteAssigned(kept), DROPPED)
    if added:
        return Obligation(WriteAssigned(assigned + added), "expand.carried-out")
    if partition.announce_due and state is not None:
        return Obligation(_raised(state, around, state.leader, state.isr), "expand.announced")
    return None


@checks
def next_for_reassignment(
    partition: Partition, around: Environment, readings: Readings
) -> Obligation | None:
    """Carry a reassignment in flight on: change, wait for the target, move, stop, complete."""
    assigned, state, flight = partition.assigned, partition.state, partition.reassignment
    if flight is None or assigned is None or has_begun(partition, readings):
        return None
    change = next_for_change(partition, around, readings)
    if change is not None:
        return change
    if state is None or not is_target_in_sync(partition):
        return None
    if state.leader not in flight.target or not is_leader_live(state, around):
        moved = select_reassigned(flight.target, state.isr, around.live)
        if moved is None:
            return None
        return Obligation(_raised(state, around, moved.leader, moved.isr), CARRIED_OUT)
    old = [replica for replica in state.isr if replica not in flight.target]
    if old:
        isr = tuple(replica for replica in state.isr if replica != old[0])
        return Obligation(_raised(state, around, state.leader, isr), CARRIED_OUT)
    if assigned != flight.target and not partition.completing:
        return Obligation(_raised(state, around, state.leader, state.isr), "complete.announced")
    if assigned != flight.target:
        return Obligation(WriteAssigned(flight.target), CARRIED_OUT)
    return Obligation(DeleteReassignment(), CARRIED_OUT)


@checks
def next_for_request(
    partition: Partition, around: Environment, readings: Readings
) -> Obligation | None:
    """Deal with the lowest pending request: record what it asks for, then remove it."""
    if not partition.requests:
        return None
    head = partition.requests[0]
    decision = decide_request(head, partition, around, readings)
    if isinstance(decision, New | Change):
        record = make_record(partition, readings)
        if readings.request_persist == "effects-first":
            effect = next_for_change(take_up(partition, record, readings), around, readings)
            if effect is not None:
                return effect
        write = CreateReassignment if isinstance(decision, New) else UpdateReassignment
        return Obligation(write(record), CONSUMED)
    due = decision.clause if isinstance(decision, Refusal) else CONSUMED
    return Obligation(DeleteRequest(head.sequence), due)


def compute_plan(
    partition: Partition, around: Environment, readings: Readings, limit: int = 100
) -> tuple[tuple[Obligation, ...], Partition]:
    """Return every write that the controller owes in order, and the partition after the last.

    Each write is put to the rules. Raises RuntimeError when the rules reject one or more than
    `limit` are owed: then the model contradicts itself.
    """
    plan: tuple[Obligation, ...] = ()
    while (owed := next_write(partition, around, readings)) is not None:
        outcome = accept_write(partition, owed.write, around, readings)
        if isinstance(outcome, Rejected) or len(plan) == limit:
            raise RuntimeError(f"the model contradicts itself: {owed} of {partition}: {outcome}")
        partition = outcome.state
        plan = (*plan, owed)
    return plan, partition
