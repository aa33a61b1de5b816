"""What is true of a partition at every moment, what is true at rest, and what must be reachable.

An invariant answers the reason why it is broken, or None. Beside the invariants stand goals: states
that must be reachable, or the invariants would hold of nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from reassure_model.partition import LeaderAndIsr, Partition, is_target_in_sync
from reassure_spec.clauses import clause
from reassure_spec.znodes import NO_LEADER

S = TypeVar("S")


class Stated(Protocol):
    """A partition of any protocol that has leader and in-sync set in one state."""

    @property
    def state(self) -> LeaderAndIsr | None:
        """None until there is one."""


@dataclass(frozen=True, slots=True)
class Invariant(Generic[S]):
    """A predicate with the clause it stands for."""

    clause: str
    find: Callable[[S], str | None]
    """Answers why it is broken, None where it holds."""
    at_rest: bool = False
    """Whether it need hold only when the controller owes nothing."""


@clause("leader.in-isr")
def find_leader_out_of_sync(partition: Stated) -> str | None:
    """Say so when there is a leader and it is not in sync."""
    state = partition.state
    if state is None or state.leader == NO_LEADER or state.leader in state.isr:
        return None
    return f"leader {state.leader}, in sync {list(state.isr)}"


@clause("isr.never-empty")
def find_empty_isr(partition: Stated) -> str | None:
    """Say so when no replica is in sync."""
    state = partition.state
    return "no replica is in sync" if state is not None and len(state.isr) == 0 else None


@clause("leader.assigned")
def find_leader_unassigned(partition: Partition) -> str | None:
    """Say so when the leader is not an assigned replica."""
    state = partition.state
    if state is None or partition.assigned is None or state.leader == NO_LEADER:
        return None
    return None if state.leader in partition.assigned else f"leader {state.leader}"


@clause("isr.within-assigned")
def find_isr_outside_assigned(partition: Partition) -> str | None:
    """Say so when a replica is in sync and not assigned."""
    state = partition.state
    if state is None or partition.assigned is None:
        return None
    outside = [r for r in state.isr if r not in partition.assigned]
    return f"in sync and not assigned: {outside}" if outside else None


@clause("top.bounds-assigned")
def find_too_many_assigned(partition: Partition) -> str | None:
    """Say so when more replicas are assigned than top and the target allow.

    While no leader is in sync a drop that is due waits.
    """
    state, flight = partition.state, partition.reassignment
    if flight is None or partition.assigned is None:
        return None
    if state is None or state.leader not in state.isr:
        return None
    most = flight.top + len(flight.target)
    if len(partition.assigned) <= most:
        return None
    return f"{len(partition.assigned)} assigned, at most {most} allowed"


INVARIANTS: Final[tuple[Invariant[Partition], ...]] = (
    Invariant("leader.in-isr", find_leader_out_of_sync),
    Invariant("isr.never-empty", find_empty_isr),
    Invariant("leader.assigned", find_leader_unassigned),
    Invariant("isr.within-assigned", find_isr_outside_assigned, at_rest=True),
    Invariant("top.bounds-assigned", find_too_many_assigned, at_rest=True),
)

GOALS: Final[Mapping[str, Callable[[Partition], bool]]] = {
    "a reassignment waits for its target": lambda p: p.reassignment is not None,
    "the whole target is in sync": is_target_in_sync,
    "a change is due to drop something": lambda p: p.drop_due,
    "a replica of the target leads while old ones are in sync": lambda p: (
        p.reassignment is not None
        and p.state is not None
        and p.state.leader in p.reassignment.target
        and any(r not in p.reassignment.target for r in p.state.isr)
    ),
    "no replica leads": lambda p: p.state is not None and p.state.leader == NO_LEADER,
}
"""By name."""
