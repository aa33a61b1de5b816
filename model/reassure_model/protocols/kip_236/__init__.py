"""KIP-236: requests by sequential znodes, a record of what is in flight, the drop rule.

In the order of the document: what a controller makes of a request, what it does when the target has
caught up, what the next controller finds, and what leaves when a reassignment in flight changes.
`next_write` is the whole controller, for a partition as it stands: the one write that is due.
Applied again and again it gives the plan for a partition; a crash is a prefix of that plan, and
failover the same function asked again. Where a sentence is disputed the reading is asked.

Elsewhere: the old znode and its original replicas, which come first in the document
(`kip_236_legacy`); the states of a dropped replica (`state_machines.DROP_PATH`); leaders of
partitions whose brokers died (`live_leaders`); which writes are allowed, whoever makes them
(`rules`, `assignment_rules`, `record_rules`).
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from reassure_model.partition import (
    Environment,
    Partition,
    Reassignment,
    Request,
    is_leader_live,
    is_target_in_sync,
)
from reassure_model.protocols.kip_236.live_leaders import (
    next_for_dead_brokers,
    next_for_new_partition,
)
from reassure_model.selectors import select_reassigned
from reassure_model.writes import (
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    Obligation,
    UpdateReassignment,
    WriteAssigned,
    raise_epoch,
)
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

CARRIED_OUT: Final = "complete.carried-out"
CONSUMED: Final = "request.consumed"
SKIP_OFFLINE: Final = "drop.offline.skip"
PROTECT_TARGET: Final = "drop.protect-target"
DROPPED: Final = "drop.carried-out"


# The idea: the record of a reassignment tells which one it is -------------------------------------


# The record is made once and changed in place, so that the transaction that created it (czxid)
# names the reassignment and the one that changed it last (mzxid) its target. A client that keeps
# both in mind can tell whether what it asked for goes on, and whether somebody has changed it.


@dataclass(frozen=True, slots=True)
class Identity:
    """The zxids of a record, as ZooKeeper tells them to whoever reads it."""

    czxid: int
    mzxid: int


class Fate(Enum):
    """What has become of a reassignment that a client remembers."""

    UNCHANGED = "goes on unchanged"
    CHANGED = "goes on, and was changed"
    ENDED = "has ended"
    FOLLOWED = "has ended, and another has begun"


@clause("client.identity.by-zxid")
def compare_identity(remembered: Identity, now: Identity | None) -> Fate:
    """Say what has become of the reassignment that had this identity.

    >>> compare_identity(Identity(5, 5), Identity(5, 9))
    <Fate.CHANGED: 'goes on, and was changed'>
    """
    if now is None:
        return Fate.ENDED
    if now.czxid != remembered.czxid:
        return Fate.FOLLOWED
    return Fate.UNCHANGED if now.mzxid == remembered.mzxid else Fate.CHANGED


@clause("child.update-in-place", "client.identity.by-zxid")
def follow_record(
    identity: Identity | None, before: Partition, after: Partition, zxid: int
) -> Identity | None:
    """Return the zxids of the partition's record after a transaction, None where there is none."""
    if after.reassignment is None:
        return None
    if identity is None or before.reassignment is None:
        return Identity(zxid, zxid)
    changed = after.reassignment != before.reassignment
    return replace(identity, mzxid=zxid) if changed else identity


# The new znode protocol: a request, partition by partition ----------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused for this partition."""

    clause: str
    reason: str


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The request asks for what is there or in flight already."""

    clause: str


@dataclass(frozen=True, slots=True)
class New:
    """The request starts a chain of reassignments."""


@dataclass(frozen=True, slots=True)
class Change:
    """The request changes the reassignment in flight."""


Decision = Refusal | NothingToDo | New | Change


@checks
def find_refusal(
    request: Request, partition: Partition, around: Environment, readings: Readings
) -> Refusal | None:
    """Return the first reason to refuse the request for this partition, None where none is."""
    target, least = request.target, around.min_insync_replicas
    if partition.assigned is None:
        return Refusal("request.refuse.unknown-partition", "the partition does not exist")
    if around.deleting:
        return Refusal("shipped.delete.blocks-reassignment", "the topic is to be deleted")
    if len(target) == 0:
        return Refusal("request.refuse.empty-target", "the target is empty")
    twice = [r for i, r in enumerate(target) if r in target[:i]]
    if twice:
        return Refusal("request.refuse.duplicate-replica", f"the target names {twice[0]} twice")
    negative = [r for r in target if r < 0]
    if negative:
        reason = f"the target names {negative[0]}, which is no broker id"
        return Refusal("request.refuse.negative-replica", reason)
    must_be_known = readings.target_unknown_broker == "refuse"
    unknown = [r for r in target if must_be_known and r not in around.known]
    if unknown:
        return Refusal("request.refuse.unknown-broker", f"broker {unknown[0]} does not exist")
    must_live = readings.target_dead_replica == "refuse"
    dead = [r for r in target if must_live and r not in around.live]
    if dead:
        return Refusal("request.refuse.dead-replica", f"broker {dead[0]} is not alive")
    flight = partition.reassignment
    if flight is not None and flight.legacy != request.legacy:
        reason = "a reassignment made by the other route is in flight"
        return Refusal("request.conflict.legacy-flag", reason)
    if readings.target_size != "unchecked" and len(target) < least:
        reason = f"{len(target)} replicas, min.insync.replicas is {least}"
        return Refusal("target.at-least-min-isr", reason)
    return None


@checks
def decide_request(
    request: Request, partition: Partition, around: Environment, readings: Readings
) -> Decision:
    """Decide what the lowest request means for this partition as it stands."""
    if has_begun(partition, readings):
        return New() if partition.reassignment is None else Change()
    refusal = find_refusal(request, partition, around, readings)
    if refusal is not None:
        return refusal
    flight = partition.reassignment
    if flight is not None:
        restarts = readings.request_same_target == "restart" and partition.taken is None
        if flight.target == request.target and not restarts:
            return NothingToDo("request.same-target.no-change")
        return Change()
    assert partition.assigned is not None  # the first check has refused it otherwise
    if partition.assigned == request.target:
        return NothingToDo("request.no-op.nothing-started")
    if len(partition.assigned) < around.min_insync_replicas:
        return Refusal(
            "top.at-least-min-isr",
            f"{len(partition.assigned)} replicas are assigned, "
            f"min.insync.replicas is {around.min_insync_replicas}",
        )
    return New()


def settle_conflicts(decisions: tuple[Decision, ...], readings: Readings) -> tuple[Decision, ...]:
    """Return what becomes of the partitions of one request, given what each comes to by itself.

    Partitions are independent (reading request.conflict); under the other value one refusal refuses
    the whole request.
    """
    refused = next((each for each in decisions if isinstance(each, Refusal)), None)
    if refused is None or readings.request_conflict == "per-partition":
        return decisions
    whole = Refusal(refused.clause, f"the whole request is refused: {refused.reason}")
    return tuple(each if isinstance(each, Refusal) else whole for each in decisions)


def is_remembered(readings: Readings) -> bool:
    """Whether a controller remembers what it makes of the lowest request until that is removed.

    It has to where its effects come before the record, so as to know top and how far it is, and
    where asking again is a restart, so as to restart once. The next controller knows nothing of it.
    """
    return readings.request_persist == "effects-first" or readings.request_same_target == "restart"


def has_begun(partition: Partition, readings: Readings) -> bool:
    """Whether the acting controller is at the effects of a request that it has not recorded."""
    return is_remembered(readings) and partition.taken not in (None, partition.reassignment)


def make_record(partition: Partition, readings: Readings) -> Reassignment:
    """Return the record that the lowest request asks for."""
    head = partition.requests[0]
    return Reassignment(head.target, compute_top(partition, readings), head.legacy)


def forget(partition: Partition, readings: Readings) -> Partition:
    """Return the partition once nobody remembers what was made of the lowest request."""
    return replace(partition, taken=None) if is_remembered(readings) else partition


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


# When a partition catches up ----------------------------------------------------------------------


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
        return Obligation(raise_epoch(state, around, moved.leader, moved.isr), CARRIED_OUT)
    old = [replica for replica in state.isr if replica not in flight.target]
    if old:
        isr = tuple(replica for replica in state.isr if replica != old[0])
        return Obligation(raise_epoch(state, around, state.leader, isr), CARRIED_OUT)
    if assigned != flight.target and not partition.completing:
        return Obligation(raise_epoch(state, around, state.leader, state.isr), "complete.announced")
    if assigned != flight.target:
        return Obligation(WriteAssigned(flight.target), CARRIED_OUT)
    return Obligation(DeleteReassignment(), CARRIED_OUT)


# On controller failover ---------------------------------------------------------------------------


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


def apply_failover(partition: Partition, readings: Readings) -> Partition:
    """Return the partition as the next controller finds it: what was only in memory is gone."""
    again = readings.drop_reevaluated_on_failover == "yes" and partition.reassignment is not None
    due = again or is_change_unfinished(partition)
    return forget(replace(partition, drop_due=due, completing=False), readings)


@clause(DROPPED, "top.bounds-assigned")
def is_change_unfinished(partition: Partition) -> bool:
    """Whether a change of the target was recorded and its drop, as far as can be seen, was not.

    The drop comes before the expansion, so it is still due where more than top replicas are
    assigned and the target is not among them yet. It is due as well where more replicas are
    assigned than top and the target allow: no carried out drop leaves so many.
    """
    assigned, flight = partition.assigned, partition.reassignment
    if flight is None or assigned is None or len(assigned) <= flight.top:
        return False
    missing = any(replica not in assigned for replica in flight.target)
    return missing or len(assigned) > flight.top + len(flight.target)


# The change of a reassignment in flight -----------------------------------------------------------


@clause("drop.carried-out")
def take_up(partition: Partition, record: Reassignment, readings: Readings) -> Partition:
    """Return the partition once the record is written: a drop is due where it is a change.

    The text evaluates the drop at the first request as well. Before the expansion that drops
    nothing; after it, it can.
    """
    due = partition.reassignment is not None or readings.drop_evaluated == "after-expansion"
    if has_begun(partition, readings):
        due = partition.drop_due
    after = replace(partition, reassignment=record, drop_due=due, completing=False)
    return replace(after, taken=record) if is_remembered(readings) else after


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
            return Obligation(raise_epoch(state, around, state.leader, isr), DROPPED)
        kept = tuple(replica for replica in assigned if replica not in drop)
        return Obligation(WriteAssigned(kept), DROPPED)
    if added:
        return Obligation(WriteAssigned(assigned + added), "expand.carried-out")
    if partition.announce_due and state is not None:
        return Obligation(raise_epoch(state, around, state.leader, state.isr), "expand.announced")
    return None


# The drop rule, 1: top ----------------------------------------------------------------------------


@clause("top.original-length", "top.once-per-chain")
def compute_top(partition: Partition, readings: Readings) -> int:
    """Return the top to record for the lowest request; a change keeps the one of its chain."""
    chain = partition.reassignment if readings.top_recorded == "once-per-chain" else None
    if has_begun(partition, readings):
        chain = partition.taken
    return len(partition.assigned or ()) if chain is None else chain.top


# The drop rule, 2: what is dropped ----------------------------------------------------------------


@clause("drop.rank.leader-isr-rest")
def compute_existing(
    assigned: ReplicaList, leader: int, isr: ReplicaList, others: ReplicaList | None = None
) -> ReplicaList:
    """Rank the current replicas: the leader, the in-sync replicas, then the assigned others.

    `others` is the order of the replicas out of sync; without it they stand as in `assigned`. A
    replica that occurs twice keeps its first place. Nothing is checked: where the leader is
    `NO_LEADER` or an in-sync replica is not assigned, it takes a place all the same, as the text
    has it.

    >>> compute_existing((1, 2, 3), leader=3, isr=(1, 3))
    (3, 1, 2)
    """
    if others is None:
        others = tuple(replica for replica in assigned if replica not in isr)
    existing: ReplicaList = ()
    for replica in (leader, *isr, *others):
        if replica not in existing:
            existing = (*existing, replica)
    return existing


@clause("drop.keep-top", "drop.slice.inclusive")
def compute_kept(existing: ReplicaList, top: int, readings: Readings) -> ReplicaList:
    """Return the ranked replicas that stay whatever else is said of them.

    >>> compute_kept((3, 1, 2), 2, Readings())
    (3, 1)
    """
    if readings.drop_slice == "exclusive":
        # The sentence taken to the letter; it breaks the document's own notes (finding drop-1).
        return existing[: top - 1]
    return existing[:top]


@clause("drop.keep-top", PROTECT_TARGET, SKIP_OFFLINE)
def compute_drop(
    assigned: ReplicaList,
    leader: int,
    isr: ReplicaList,
    top: int,
    target: ReplicaList,
    readings: Readings,
    others: ReplicaList | None = None,
) -> ReplicaList:
    """Return the replicas to drop, in assigned order.

    `target` is the target that the change asks for. `others` orders the replicas that are assigned
    and out of sync: by lag in the first draft, any order at all in the second.

    >>> compute_drop((1, 2, 3), 1, (1, 2), 2, (2, 4), Readings())
    (3,)
    """
    if readings.offline_drop == "skip" and not is_led_in_sync(leader, isr):
        return ()
    existing = compute_existing(assigned, leader, isr, others)
    kept = compute_kept(existing, top, readings)
    if is_target_protected(readings):
        kept = (*kept, *target)
    return tuple(replica for replica in assigned if replica not in kept)


def is_led_in_sync(leader: int, isr: ReplicaList) -> bool:
    """Whether there is a leader in sync, who takes the first place.

    The rule keeps enough in-sync replicas only because that is so. Without such a leader it can
    name the last in-sync copy (finding drop-11).
    """
    return leader != NO_LEADER and leader in isr


def is_target_protected(readings: Readings) -> bool:
    """Whether the rule never names a replica of the target."""
    return readings.drop_protects == "target"


# To drop: when, and what now ----------------------------------------------------------------------


@clause(SKIP_OFFLINE)
def is_drop_held(partition: Partition) -> bool:
    """Whether a drop that is due has to wait until there is a leader in sync.

    The expansion, which comes after, waits with it.
    """
    assigned, state, flight = partition.assigned, partition.state, partition.reassignment
    if not partition.drop_due or assigned is None or flight is None:
        return False
    led = state is not None and is_led_in_sync(state.leader, state.isr)
    return len(assigned) > flight.top and not led


def must_drop_wait(partition: Partition, readings: Readings) -> bool:
    """Whether a drop that is due waits for a leader in sync, and the expansion with it.

    The text has no such precondition: as written the drop is carried out at once.
    """
    return readings.offline_drop != "as-written" and is_drop_held(partition)


def find_drop(partition: Partition, readings: Readings) -> ReplicaList:
    """Return what is to be dropped now, ranking each group in the order in which it is stored."""
    assigned, state, flight = partition.assigned, partition.state, partition.reassignment
    if not partition.drop_due or flight is None or assigned is None or state is None:
        return ()
    if readings.offline_drop != "as-written" and not is_led_in_sync(state.leader, state.isr):
        return ()
    return compute_drop(assigned, state.leader, state.isr, flight.top, flight.target, readings)
