"""What a controller makes of a reassignment request, partition by partition.

Requests are taken in sequence order. For each partition that one names, the controller refuses it,
finds nothing to do, or accepts it: as the first of a chain where none is in flight, as a change
otherwise.
"""

from dataclasses import dataclass, replace

from reassure_model.partition import Environment, Partition, Reassignment, Request
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings


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


def is_remembered(readings: Readings) -> bool:
    """Whether a controller remembers what it makes of the lowest request until that is removed.

    It has to where its effects come before the record, so as to know top and how far it is, and
    where asking again is a restart, so as to restart once. The next controller knows nothing of it.
    """
    return readings.request_persist == "effects-first" or readings.request_same_target == "restart"


def has_begun(partition: Partition, readings: Readings) -> bool:
    """Whether the acting controller is at the effects of a request that it has not recorded."""
    return is_remembered(readings) and partition.taken not in (None, partition.reassignment)


@clause("top.original-length", "top.once-per-chain")
def compute_top(partition: Partition, readings: Readings) -> int:
    """Return the top to record for the lowest request; a change keeps the one of its chain."""
    chain = partition.reassignment if readings.top_recorded == "once-per-chain" else None
    if has_begun(partition, readings):
        chain = partition.taken
    return len(partition.assigned or ()) if chain is None else chain.top


def make_record(partition: Partition, readings: Readings) -> Reassignment:
    """Return the record that the lowest request asks for."""
    head = partition.requests[0]
    return Reassignment(head.target, compute_top(partition, readings), head.legacy)


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


def forget(partition: Partition, readings: Readings) -> Partition:
    """Return the partition once nobody remembers what was made of the lowest request."""
    return replace(partition, taken=None) if is_remembered(readings) else partition


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
