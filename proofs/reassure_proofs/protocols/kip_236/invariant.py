"""The invariant of a partition, part by part, and what else may be assumed of one."""

from typing import Any, Final

from reassure_model.partition import Partition
from reassure_proofs.engine.formula import (
    Truth,
    absent,
    alike,
    all_of,
    count,
    distinct,
    inside,
    member,
    negate,
    subset,
)
from reassure_proofs.engine.statement import Hypothesis, Values
from reassure_proofs.protocols.kip_236.partition_steps import make_partition
from reassure_spec.znodes import NO_LEADER


def _assigned(partition: Partition) -> Any:
    # Asked for its truth value, a list of any length would divide the paths.
    return () if partition.assigned is None else partition.assigned


def leader_in_isr(partition: Partition, _: Values) -> Truth:
    """Say whether the leader, if any, is in sync."""
    state = partition.state
    if state is None:
        return True
    return (state.leader == NO_LEADER) | member(state.leader, state.isr)


def isr_not_empty(partition: Partition, _: Values) -> Truth:
    """Say whether a replica is in sync."""
    return partition.state is None or len(partition.state.isr) > 0


def isr_distinct(partition: Partition, _: Values) -> Truth:
    """Say whether no replica is in sync twice."""
    return partition.state is None or distinct(partition.state.isr)


def isr_assigned(partition: Partition, _: Values) -> Truth:
    """Say whether every in-sync replica is assigned."""
    return partition.state is None or subset(partition.state.isr, _assigned(partition))


def assigned_well_formed(partition: Partition, _: Values) -> Truth:
    """Say whether there is an assignment, which names brokers, none of them twice."""
    return _is_list(_assigned(partition))


def _is_list(replicas: Any) -> Truth:
    return (len(replicas) > 0) & distinct(replicas) & all_of(r >= 0 for r in replicas)


def _target_well_formed(partition: Partition, _: Values) -> Truth:
    flight = partition.reassignment
    if flight is None:
        return negate(partition.drop_due) & negate(partition.completing)
    return _is_list(flight.target) & (flight.top >= 1)


def _few_beside_target(partition: Partition, _: Values) -> Truth:
    """Say whether at most top replicas are assigned beside the target, or a drop is due.

    This is what the bound on the number of replicas rests on: the drop leaves it so, and no
    expansion can break it.
    """
    flight = partition.reassignment
    if flight is None:
        return True
    beside = count(absent(r, flight.target) for r in _assigned(partition))
    return partition.drop_due | (beside <= flight.top)


def epochs_in_order(partition: Partition, values: Values) -> Truth:
    """Say whether no epoch is negative or of a controller that is still to come."""
    state = partition.state
    if state is None:
        return True
    return (state.leader_epoch >= 0) & (state.controller_epoch <= values["acting_epoch"])


_PARTS: Final = (
    *(leader_in_isr, isr_not_empty, isr_distinct, isr_assigned, assigned_well_formed),
    *(_target_well_formed, _few_beside_target, epochs_in_order),
)


def holds_invariant(partition: Partition, values: Values) -> Truth:
    """Return whether the whole invariant holds of a partition."""
    return all_of(part(partition, values) for part in _PARTS)


# What follows from it ---------------------------------------------------------------------------


def leader_assigned(partition: Partition, _: Values) -> Truth:
    """Say whether the leader, if any, is assigned."""
    state = partition.state
    if state is None:
        return True
    return (state.leader == NO_LEADER) | member(state.leader, _assigned(partition))


def bounds_assigned(partition: Partition, _: Values) -> Truth:
    """Say whether at most top and the target are assigned, or a drop is due."""
    flight = partition.reassignment
    if flight is None:
        return True
    return partition.drop_due | (len(_assigned(partition)) <= flight.top + len(flight.target))


INVARIANT: Final = Hypothesis(
    "invariant",
    "the partition satisfies the invariant: the leader, if any, is in sync, the in-sync set is "
    "assigned, no list names a replica twice or is empty, at most top replicas are assigned beside "
    "the target unless a drop is due, and no epoch is of the future",
    lambda v: holds_invariant(make_partition(v), v),
)
EVERYBODY_LIVE: Final = Hypothesis(
    "everybody-live",
    "every broker that is named is alive, and the partition has a leader",
    lambda v: (
        all_of(inside(r, v["live"]) for r in (*v["assigned"], *v["target"]))
        & (v["leader"] != NO_LEADER)
    ),
)
DROP_FOLLOWED: Final = Hypothesis(
    "drop-followed",
    "the expansion has followed the last drop: a drop is due, or the whole target is assigned, or "
    "no more than top replicas are",
    lambda v: v["drop_due"] | subset(v["target"], v["assigned"]) | (v["top"] >= len(v["assigned"])),
)
ASSIGNED_WELL_FORMED: Final = Hypothesis(
    "assigned-well-formed",
    "the assignment names brokers, none of them twice",
    lambda v: distinct(v["assigned"]) & all_of(replica >= 0 for replica in v["assigned"]),
)
NO_DROP_DUE: Final = Hypothesis("no-drop-due", "no drop is due", lambda v: negate(v["drop_due"]))
READY: Final = Hypothesis(
    "ready",
    "exactly the target is in sync, and the completion has begun",
    lambda v: alike(v["target"], v["isr"]) & v["completing"],
)
BEGUN: Final = Hypothesis(
    "begun",
    "the completion has begun, no drop is due and nobody else leads",
    lambda v: v["completing"] & negate(v["drop_due"]) & (v["new_leader"] == v["leader"]),
)
