"""The copies of one partition: assigned, leading, in sync, alive, running, holding all records.

What the models of whole controllers have in common. Data is kept as small as it can be: `holding`
are the replicas whose log has every committed record, `running` those that were started and not
stopped. What can happen here is nobody's decision: a replica catches up, a
record is committed, a broker dies.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from reassure_model.environment import Die, Failover, Join, Return
from reassure_spec.clauses import clause
from reassure_spec.znodes import NO_LEADER, ReplicaList


@dataclass(frozen=True, slots=True)
class Copies:
    """One partition, its brokers, and where its records are."""

    assigned: ReplicaList
    """Empty where the partition does not exist."""
    leader: int
    isr: ReplicaList
    live: frozenset[int]
    running: frozenset[int]
    """Replicas that were started and not stopped, on live brokers or dead ones."""
    holding: frozenset[int]
    """Replicas whose log has every committed record."""
    leader_epoch: int = 0


C = TypeVar("C", bound=Copies)


@dataclass(frozen=True, slots=True)
class Append:
    """A record is appended and committed by every in-sync replica."""


def is_led(copies: Copies) -> bool:
    """Whether there is a leader and its broker is alive."""
    return copies.leader != NO_LEADER and copies.leader in copies.live


def is_in_sync(copies: Copies, target: ReplicaList) -> bool:
    """Whether every replica of the target is in the in-sync set."""
    return all(replica in copies.isr for replica in target)


def can_join(copies: Copies, replica: int) -> bool:
    """Whether the replica can catch up and be taken into the in-sync set, assigned or not."""
    served = is_led(copies) and copies.leader in copies.running and copies.leader in copies.isr
    return served and replica in (copies.running & copies.live) and replica not in copies.isr


def can_append(copies: Copies) -> bool:
    """Whether a record can be committed: a leader serves and every in-sync replica follows."""
    following = all(r in copies.live and r in copies.running for r in copies.isr)
    return is_led(copies) and copies.leader in copies.isr and following


def make_copies(kind: type[C], assigned: ReplicaList, brokers: frozenset[int]) -> C:
    """Return a healthy partition led by its first replica, on these brokers."""
    members = frozenset(assigned)
    leader = assigned[0] if assigned else NO_LEADER
    return kind(assigned, leader, assigned, brokers, members, members)


def list_happenings(
    copies: Copies, joining: Iterable[int], known: frozenset[int]
) -> list[Join | Append | Die | Return]:
    """Return what can happen that nobody decides; `joining` can join, `known` may be down."""
    actions: list[Join | Append | Die | Return] = [Join(replica) for replica in joining]
    actions += [Append()] if can_append(copies) else []
    actions += [Die(broker) for broker in sorted(copies.live)]
    return actions + [Return(broker) for broker in sorted(known - copies.live)]


def happen(copies: C, action: object) -> C:
    """Return the copies after something that nobody decides, themselves where it cannot be.

    Who joins is as good as the leader; a record is in the logs of those in sync only. A broker that
    is back runs what is assigned to it, and so do all when a controller takes office.
    """
    match action:
        case Join(replica) if can_join(copies, replica):
            held = copies.holding - {replica}
            if copies.leader in copies.holding:
                held = held | {replica}
            return replace(copies, isr=(*copies.isr, replica), holding=held)
        case Append() if can_append(copies):
            return replace(copies, holding=copies.holding & frozenset(copies.isr))
        case Die(broker) if broker in copies.live:
            return replace(copies, live=copies.live - {broker})
        case Return(broker) if broker not in copies.live:
            started = frozenset({broker}) & frozenset(copies.assigned)
            return replace(copies, live=copies.live | {broker}, running=copies.running | started)
        case Failover():
            started = frozenset(copies.assigned) & copies.live
            return replace(copies, running=copies.running | started)
    return copies


def delete_log(copies: C, replica: int) -> C:
    """Return the copies after a replica was told to stop and to delete its log.

    The log on a dead broker's disk stays; nobody is there to delete it.
    """
    gone = frozenset({replica}) & copies.live
    return replace(copies, running=copies.running - {replica}, holding=copies.holding - gone)


@clause("move.isr.without-deleted", "shipped.isr.without-deleted")
def find_deleted_in_sync(copies: Copies) -> str | None:
    """Say so when an in-sync replica lacks committed records (findings move-1, move-4, zk-1)."""
    lacking = [replica for replica in copies.isr if replica not in copies.holding]
    return f"in sync without the committed records: {lacking}" if lacking else None


@clause("move.leader.holds-committed", "shipped.leader.holds-committed")
def find_empty_leader(copies: Copies) -> str | None:
    """Say so when a live leader lacks committed records (findings move-2, move-4, zk-10)."""
    if not is_led(copies) or copies.leader in copies.holding:
        return None
    return f"leader {copies.leader} lacks committed records"


@clause("move.isr.within-assigned", "shipped.isr.within-assigned")
def find_outside(copies: Copies) -> str | None:
    """Say so when a replica is in sync and not assigned (findings move-5, move-6, zk-2)."""
    outside = [replica for replica in copies.isr if replica not in copies.assigned]
    return f"in sync and not assigned: {outside}" if outside else None


@clause("move.assigned.holds-committed", "shipped.assigned.holds-committed")
def find_nothing_held(copies: Copies) -> str | None:
    """Say so when no assigned replica has the records (findings move-6, move-8, zk-1, zk-5)."""
    if any(replica in copies.holding for replica in copies.assigned):
        return None
    return f"no replica of {list(copies.assigned)} has the committed records"


@clause("move.cancel.no-strays", "shipped.cancel.no-strays")
def find_running_unassigned(copies: Copies) -> str | None:
    """Say so when a replica runs that is not assigned (findings move-7, zk-3)."""
    strays = sorted(copies.running - frozenset(copies.assigned))
    return f"running and not assigned: {strays}" if strays else None
