"""What must never be under Kafka's own controllers."""

from reassure_model.copies import (
    find_nothing_held,
    find_outside,
    find_running_unassigned,
)
from reassure_model.protocols.kafka_zk import Shipped, next_effect
from reassure_model.selectors import (
    select_offline,
)
from reassure_spec.clauses import clause
from reassure_spec.znodes import NO_LEADER, ReplicaList


def is_at_rest(shipped: Shipped) -> bool:
    """Whether the controller waits and nothing is in flight."""
    return next_effect(shipped) is None and not shipped.assignment.is_reassigning


@clause("shipped.isr.within-assigned")
def find_outside_assigned(shipped: Shipped) -> str | None:
    """Say so when the in-sync set lies outside the assignment; at rest (finding zk-2)."""
    return find_outside(shipped)


@clause("shipped.assigned.holds-committed")
def find_emptied_assignment(shipped: Shipped) -> str | None:
    """Say so when no assigned replica has the records; at rest (findings zk-1, zk-5)."""
    return find_nothing_held(shipped)


@clause("shipped.change.led")
def find_leaderless(shipped: Shipped) -> str | None:
    """Say so when nobody leads, somebody could, and the controller waits (finding zk-6)."""
    if shipped.leader != NO_LEADER or next_effect(shipped) is not None:
        return None
    elected = select_offline(shipped.assigned, shipped.isr, shipped.live)
    return None if elected is None else f"nobody leads, {elected.leader} could"


@clause("shipped.isr.electable")
def find_offline_for_good(shipped: Shipped) -> str | None:
    """Say so when nobody leads and nobody ever can, and the controller waits (finding zk-11).

    Whoever comes back is elected only where it is both assigned and in sync.
    """
    if next_effect(shipped) is not None:
        return None
    return find_unelectable(shipped.leader, shipped.isr, shipped.assigned)


def find_unelectable(leader: int, isr: ReplicaList, assigned: ReplicaList) -> str | None:
    """Say so when nobody leads a partition and, of those in sync, nobody is assigned."""
    if leader != NO_LEADER or not assigned or any(replica in assigned for replica in isr):
        return None
    return f"nobody leads, and of those in sync nobody is assigned: {list(isr)}"


@clause("shipped.cancel.no-strays")
def find_stray(shipped: Shipped) -> str | None:
    """Say so when a replica runs that is not assigned; at rest (finding zk-3)."""
    return find_running_unassigned(shipped)


@clause("shipped.entry.not-for-ever")
def find_entry_for_ever(shipped: Shipped) -> str | None:
    """Say so when an entry is left that nobody will look at; at rest (finding zk-4)."""
    if shipped.entry is None:
        return None
    return f"the old znode asks for {list(shipped.entry)} and nothing is in flight"


@clause("shipped.assignment.original-derivable")
def find_bad_lists(shipped: Shipped) -> str | None:
    """Say so when the three lists contradict each other."""
    now = shipped.assignment
    if len(set(now.replicas)) < len(now.replicas):
        return f"a replica stands twice in {list(now.replicas)}"
    if not set(now.adding) | set(now.removing) <= set(now.replicas):
        return "a replica is added or removed that is not assigned"
    both = sorted(set(now.adding) & set(now.removing))
    return f"added and removed at once: {both}" if both else None
