"""Which change of the assigned replicas may come next: an expansion, a drop, a completion."""

from dataclasses import replace
from itertools import combinations
from typing import Final

from reassure_model.outcome import Accepted, Check, Checks, Rejected, accept, judge
from reassure_model.partition import Partition, is_target_in_sync
from reassure_model.protocols.kip_236 import (
    CARRIED_OUT,
    DROPPED,
    PROTECT_TARGET,
    SKIP_OFFLINE,
    compute_drop,
    is_drop_held,
    is_led_in_sync,
    is_target_protected,
    must_drop_wait,
)
from reassure_spec.clauses import checks
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

Outcome = Accepted[Partition] | Rejected


# Clauses that are broken in more than one way
LEADER_IN_TARGET: Final = "complete.leader-in-target"
DROP_FIRST: Final = "drop.before-expansion"
AS_DUE: Final = "assigned.change.only-as-due"
RECORDED_FIRST: Final = "child.before-effects"


def has_duplicates(replicas: ReplicaList) -> bool:
    """Whether a replica stands twice."""
    return len(set(replicas)) != len(replicas)


@checks
def check_target_in_sync(partition: Partition, *, seen: bool = False) -> Check:
    """Check that the whole target is in sync, or was `seen` so and the completion may go on."""
    return "complete.target-in-sync", seen or is_target_in_sync(partition) or _missing(partition)


def _missing(partition: Partition) -> str:
    isr = partition.state.isr if partition.state is not None else ()
    target = partition.reassignment.target if partition.reassignment is not None else ()
    return f"target replicas not in sync: {[r for r in target if r not in isr]}"


@checks
def check_leader_kept(leader: int, *, dropped: bool) -> Check:
    """Check that no drop takes the leader away."""
    return "drop.leader-kept", not dropped or f"leader {leader} was dropped"


@checks
def check_top_kept(
    partition: Partition, dropped: frozenset[int], readings: Readings, *, all_at_once: bool
) -> Check:
    """Check that a drop takes away what ranks below top: `all_at_once`, or one by one."""
    drops = compute_drops(partition, readings)
    right = dropped in drops if all_at_once else any(dropped <= drop for drop in drops)
    return "drop.keep-top", right or _describe_drops(partition, dropped, readings)


@checks
def check_assigned_distinct(assigned: ReplicaList) -> Check:
    """Check that no replica is assigned twice."""
    return "assigned.no-duplicates", not has_duplicates(assigned) or f"assigned {list(assigned)}"


def is_drop_forbidden(partition: Partition, readings: Readings) -> bool:
    """Whether a drop that is due must not be made before there is a leader in sync."""
    return readings.offline_drop == "skip" and is_drop_held(partition)


def compute_drops(partition: Partition, readings: Readings) -> frozenset[frozenset[int]]:
    """Return every drop set that the rule allows for the change that is due.

    The documents rank in-sync before out-of-sync replicas and leave the order inside each group
    open (reading `drop.order`), so all choices of who comes first in a group are allowed. Where no
    leader takes the first place and no more than top replicas are assigned, nothing need go.
    """
    flight, state = partition.reassignment, partition.state
    if flight is None or partition.assigned is None:
        return frozenset({frozenset()})
    assigned, top = partition.assigned, flight.top
    leader, isr = (NO_LEADER, ()) if state is None else (state.leader, state.isr)
    led = is_led_in_sync(leader, isr)
    first = (leader,) if led else ()
    followers = tuple(r for r in isr if r != leader)
    others = tuple(r for r in assigned if r not in isr and r != leader)
    spare = not led and len(assigned) <= top
    drops: set[frozenset[int]] = {frozenset()} if spare else set()
    for ranked in _choices(followers, top - 1):
        for rest in _choices(others, top - 1 - len(followers)):
            in_sync = (*first, *ranked)
            drop = compute_drop(assigned, leader, in_sync, top, flight.target, readings, rest)
            drops.add(frozenset(drop))
    return frozenset(drops)


def _choices(replicas: ReplicaList, places: int) -> list[ReplicaList]:
    """Return the orders that differ in who comes among the first `places`, or one fewer.

    One fewer is what the exclusive reading of the slice leaves.
    """
    return [
        replicas,
        *(
            (*chosen, *(r for r in replicas if r not in chosen))
            for size in (places - 1, places)
            if 0 < size < len(replicas)
            for chosen in combinations(replicas, size)
        ),
    ]


def may_complete(partition: Partition, readings: Readings) -> bool:
    """Whether old replicas may be stopped; `move.recheck-before-stop` asks for another look."""
    if is_target_in_sync(partition):
        return True
    return partition.completing and readings.move_recheck_before_stop == "no"


def _describe_drops(partition: Partition, dropped: frozenset[int], readings: Readings) -> str:
    if is_drop_held(partition):
        return f"dropped {sorted(dropped)}; the drop waits until a leader is in sync"
    allowed = sorted(sorted(drop) for drop in compute_drops(partition, readings))
    if allowed == [[]]:
        return f"dropped {sorted(dropped)}; the rule drops nothing"
    return f"dropped {sorted(dropped)}; the rule drops one of {allowed}"


@checks
def check_unrecorded(partition: Partition, new: ReplicaList) -> Checks:
    """Check a change of the assignment where no reassignment is in flight."""
    added = set(new) - set(partition.assigned or ())
    if any(r in request.target for request in partition.requests for r in added):
        yield RECORDED_FIRST, "no reassignment is recorded yet"
    yield AS_DUE, "no reassignment is in flight"


@checks
def check_completion(partition: Partition, new: ReplicaList, readings: Readings) -> Checks:
    """Check the write of the target as the assigned replicas."""
    state, flight = partition.state, partition.reassignment
    assert flight is not None
    yield check_assigned_distinct(new)
    yield AS_DUE, True
    # What a drop that is due takes out may go, whether or not the target is still in sync.
    begun = (partition.completing and partition.drop_due) or may_complete(partition, readings)
    yield check_target_in_sync(partition, seen=state is not None and begun)
    assert state is not None
    yield LEADER_IN_TARGET, state.leader in flight.target or f"{state.leader} leads"
    left = [r for r in state.isr if r not in flight.target]
    yield "complete.isr-before-assigned", not left or f"still in sync: {left}"
    yield (
        "complete.target-order",
        new == flight.target or f"assigned {list(new)}, the target is {list(flight.target)}",
    )
    yield (
        "complete.announced",
        partition.completing or "the leader epoch was not raised since the target is in sync",
    )
    yield CARRIED_OUT, True


def accept_drop(
    partition: Partition, new: ReplicaList, removed: frozenset[int], readings: Readings
) -> Outcome:
    """Judge a write by which assigned replicas leave before the target is complete."""
    judged = judge(check_drop(partition, new, removed, readings))
    if isinstance(judged, Rejected):
        return judged
    kept = tuple(r for r in partition.assigned or () if r not in removed)
    dropped = replace(partition, assigned=kept, drop_due=False, announce_due=True)
    if set(new) == set(kept):
        return Accepted(replace(dropped, assigned=new), judged)
    expanded = accept_expansion(dropped, new, readings)
    if isinstance(expanded, Rejected):
        return expanded
    return Accepted(expanded.state, judged + expanded.clauses)


@checks
def check_drop(
    partition: Partition, new: ReplicaList, removed: frozenset[int], readings: Readings
) -> Checks:
    """Check who leaves the assignment by a drop."""
    state, flight = partition.state, partition.reassignment
    assert flight is not None
    yield check_assigned_distinct(new)
    if state is None:
        yield check_leader_kept(NO_LEADER, dropped=False)
    else:
        yield check_leader_kept(state.leader, dropped=state.leader in removed)
    if not (partition.drop_due or is_target_in_sync(partition) or removed & set(flight.target)):
        yield check_target_in_sync(partition)
    yield AS_DUE, partition.drop_due or f"{sorted(removed)} left; no drop is due"
    if is_drop_forbidden(partition, readings):
        yield SKIP_OFFLINE, f"{sorted(removed)} left without a leader in sync"
    if is_target_protected(readings):
        lost = removed & set(flight.target)
        yield PROTECT_TARGET, not lost or f"dropped {sorted(lost)}"
    yield check_top_kept(partition, removed, readings, all_at_once=True)
    left = frozenset() if state is None else removed & set(state.isr)
    yield "drop.isr-first", not left or f"still in sync: {sorted(left)}"
    if readings.drop_slice == "inclusive":
        yield "drop.slice.inclusive", True
    yield "drop.rank.leader-isr-rest", True
    yield DROP_FIRST, True
    yield DROPPED, True


def accept_expansion(partition: Partition, new: ReplicaList, readings: Readings) -> Outcome:
    """Judge a write by which the target joins the assigned replicas."""
    late = partition.drop_due and readings.drop_evaluated == "after-expansion"
    after = replace(partition, assigned=new, announce_due=True, drop_due=late)
    return accept(check_expansion(partition, new, readings), after)


@checks
def check_expansion(partition: Partition, new: ReplicaList, readings: Readings) -> Checks:
    """Check who joins the assignment, and that what is to be dropped has left it."""
    flight = partition.reassignment
    assert flight is not None and partition.assigned is not None
    yield check_assigned_distinct(new)
    added = frozenset(new) - frozenset(partition.assigned)
    yield AS_DUE, len(added) > 0 or "only the order of the replicas changed"
    strangers = added - set(flight.target)
    yield "expand.target-only", not strangers or f"{sorted(strangers)} are not in the target"
    missing = set(flight.target) - set(new)
    yield "expand.whole-target", not missing or f"target replicas left out: {sorted(missing)}"
    if must_drop_wait(partition, readings):
        yield DROP_FIRST, "the drop waits for a leader in sync"
    late = readings.drop_evaluated == "after-expansion"
    if partition.drop_due and not late and frozenset() not in compute_drops(partition, readings):
        yield DROP_FIRST, _describe_drops(partition, frozenset(), readings)
    yield "expand.carried-out", True
    yield RECORDED_FIRST, True
