"""Which write of a request, or of the record of a reassignment, may come next."""

from typing import Final

from reassure_model.outcome import Check, Checks
from reassure_model.partition import Environment, Partition, Reassignment, Request, is_done
from reassure_model.protocols.kip_236 import (
    CARRIED_OUT,
    SKIP_OFFLINE,
    Change,
    NothingToDo,
    Refusal,
    compute_top,
    decide_request,
    take_up,
)
from reassure_model.protocols.kip_236.assignment_rules import is_drop_forbidden
from reassure_model.writes import DeleteRequest
from reassure_spec.clauses import checks
from reassure_spec.readings import Readings

IN_PLACE: Final = "child.update-in-place"


@checks
def check_lowest_first(head: Request, *, first: bool) -> Check:
    """Check that the lowest pending request is dealt with first."""
    return "request.order.sequence", first or f"request {head.sequence} is pending and comes first"


@checks
def check_request(
    partition: Partition, wanted: Reassignment, around: Environment, readings: Readings
) -> Checks:
    """Check that the lowest pending request asks for this reassignment and is acceptable."""
    requests = partition.requests
    asked = any(request.target == wanted.target for request in requests)
    yield "child.from-request", asked or f"no request asks for {list(wanted.target)}"
    head = requests[0]
    first = head.target == wanted.target
    yield (
        "child.route-from-request",
        not first
        or head.legacy == wanted.legacy
        or f"legacy {wanted.legacy}, request {head.sequence} says {head.legacy}",
    )
    if not first or len({request.target for request in requests}) > 1:
        yield check_lowest_first(head, first=first)
    decision = decide_request(head, partition, around, readings)
    if isinstance(decision, Refusal):
        yield decision.clause, decision.reason
    elif isinstance(decision, NothingToDo):
        yield decision.clause, "the request asks for nothing new"
    if readings.target_size != "unchecked":
        yield "target.at-least-min-isr", True


@checks
def check_create_reassignment(
    partition: Partition, wanted: Reassignment, around: Environment, readings: Readings
) -> Checks:
    """Check the record of the first reassignment of a chain."""
    yield from check_request(partition, wanted, around, readings)
    assert partition.assigned is not None  # the request would have been refused
    yield (
        "top.original-length",
        wanted.top == compute_top(partition, readings)
        or f"top {wanted.top}, the assignment has {len(partition.assigned)} replicas",
    )
    yield "top.at-least-min-isr", True


@checks
def check_update_reassignment(
    partition: Partition, wanted: Reassignment, around: Environment, readings: Readings
) -> Checks:
    """Check a change of the reassignment in flight."""
    flight, top = partition.reassignment, compute_top(partition, readings)
    assert flight is not None
    yield "top.once-per-chain", wanted.top == top or f"top {wanted.top}, expected {top}"
    same = (wanted.target, wanted.legacy) == (flight.target, flight.legacy)
    if same and readings.request_same_target == "no-change":
        yield "request.same-target.no-change", "the target is the one in flight"
    yield from check_request(partition, wanted, around, readings)
    yield IN_PLACE, True
    if is_drop_forbidden(take_up(partition, wanted, readings), readings):
        yield SKIP_OFFLINE, True


@checks
def check_delete_reassignment(
    partition: Partition, around: Environment, readings: Readings
) -> Checks:
    """Check the removal of the record of a reassignment."""
    done, waiting = is_done(partition), partition.requests[:1]
    if not done and waiting:
        decision = decide_request(waiting[0], partition, around, readings)
        changes = isinstance(decision, Change)
        yield IN_PLACE, not changes or "the record was removed to be made anew"
    yield "complete.child-last", done or "the reassignment is not complete"
    yield CARRIED_OUT, True


@checks
def check_delete_request(
    partition: Partition, write: DeleteRequest, around: Environment, readings: Readings
) -> Checks:
    """Check the removal of a request, as far as it concerns this partition."""
    head, flight = partition.requests[0], partition.reassignment
    if head.sequence != write.sequence:
        yield check_lowest_first(head, first=False)
    recorded = flight is not None and (flight.target, flight.legacy) == (head.target, head.legacy)
    if readings.request_same_target != "no-change":
        recorded = recorded and partition.taken == flight
    decision = None if recorded else decide_request(head, partition, around, readings)
    if isinstance(decision, Refusal | NothingToDo):
        yield decision.clause, True
    else:
        yield (
            "request.delete.child-first",
            recorded or f"the target {list(head.target)} is not recorded",
        )
    yield "request.consumed", True
