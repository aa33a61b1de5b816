"""What a controller makes of a reassignment request, partition by partition.

Requests are taken in sequence order. For each partition that one names, the controller refuses it,
finds nothing to do, or accepts it: as the first of a chain where none is in flight, as a change
otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from reassure_model.state import Partition, Reassignment, Request, Surroundings
from reassure_spec.clauses import clause
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
Check = Callable[[Request, Partition, Surroundings, Readings], str | None]


@clause("request.refuse.unknown-partition")
def find_unknown_partition(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the partition does not exist."""
    return "the partition does not exist" if partition.assigned is None else None


@clause("request.refuse.empty-target")
def find_empty_target(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the target has no replica."""
    return "the target is empty" if len(request.target) == 0 else None


@clause("request.refuse.duplicate-replica")
def find_duplicate_replica(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the target names a replica twice."""
    twice = [r for i, r in enumerate(request.target) if r in request.target[:i]]
    return f"the target names {twice[0]} twice" if twice else None


@clause("request.refuse.negative-replica")
def find_negative_replica(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the target names a negative broker id."""
    negative = [r for r in request.target if r < 0]
    return f"the target names {negative[0]}, which is no broker id" if negative else None


@clause("request.refuse.unknown-broker")
def find_unknown_broker(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the target names a broker that was never registered."""
    if readings.target_unknown_broker == "wait":
        return None
    unknown = [r for r in request.target if r not in around.known]
    return f"broker {unknown[0]} does not exist" if unknown else None


@clause("request.refuse.dead-replica")
def find_dead_replica(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the target names a dead broker and the reading refuses those."""
    if readings.target_dead_replica == "wait":
        return None
    dead = [r for r in request.target if r not in around.live]
    return f"broker {dead[0]} is not alive" if dead else None


@clause("request.conflict.legacy-flag")
def find_flag_conflict(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the reassignment in flight came by the other route."""
    flight = partition.reassignment
    if flight is None or flight.legacy == request.legacy:
        return None
    return "a reassignment made by the other route is in flight"


@clause("target.at-least-min-isr")
def find_small_target(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> str | None:
    """Say so when the target has fewer replicas than must be in sync, and the reading minds."""
    if readings.target_size == "unchecked" or len(request.target) >= around.min_insync_replicas:
        return None
    return f"{len(request.target)} replicas, min.insync.replicas is {around.min_insync_replicas}"


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("request.refuse.unknown-partition", find_unknown_partition),
    ("request.refuse.empty-target", find_empty_target),
    ("request.refuse.duplicate-replica", find_duplicate_replica),
    ("request.refuse.negative-replica", find_negative_replica),
    ("request.refuse.unknown-broker", find_unknown_broker),
    ("request.refuse.dead-replica", find_dead_replica),
    ("request.conflict.legacy-flag", find_flag_conflict),
    ("target.at-least-min-isr", find_small_target),
)
"""The refusals in the order in which they are looked for, by clause."""


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


@clause("drop.carried-out")
def take_up(partition: Partition, record: Reassignment, readings: Readings) -> Partition:
    """Return the partition once the record is written: a drop is due where it is a change."""
    due = partition.reassignment is not None
    if has_begun(partition, readings):
        due = partition.drop_due
    after = replace(partition, reassignment=record, drop_due=due, completing=False)
    return replace(after, taken=record) if is_remembered(readings) else after


def forget(partition: Partition, readings: Readings) -> Partition:
    """Return the partition once nobody remembers what was made of the lowest request."""
    return replace(partition, taken=None) if is_remembered(readings) else partition


@clause("request.same-target.no-change", "request.no-op.nothing-started", "top.at-least-min-isr")
def decide_request(
    request: Request, partition: Partition, around: Surroundings, readings: Readings
) -> Decision:
    """Decide what the lowest request means for this partition as it stands."""
    flight = partition.reassignment
    if has_begun(partition, readings):
        return New() if flight is None else Change()
    for clause_id, find in CHECKS:
        reason = find(request, partition, around, readings)
        if reason is not None:
            return Refusal(clause_id, reason)
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
