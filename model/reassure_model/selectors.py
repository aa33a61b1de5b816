"""The leader selectors: who leads next.

All of them go through a list of replicas in order and take the first that qualifies; none takes the
order of the in-sync set, which means nothing. Each answers a leader and the in-sync set that goes
with it, or None when nobody qualifies.
"""

from dataclasses import dataclass

from reassure_spec.clauses import clause
from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class Elected:
    """An elected leader and the in-sync set to be written with it."""

    leader: int
    isr: ReplicaList


def _first(candidates: ReplicaList, *sets: frozenset[int]) -> int | None:
    for replica in candidates:
        if all(replica in members for members in sets):
            return replica
    return None


@clause("election.clean", "election.assignment-order", "election.live")
def select_offline(
    assigned: ReplicaList, isr: ReplicaList, live: frozenset[int], *, unclean: bool = False
) -> Elected | None:
    """Select a leader for a partition that has none: the first assigned, live, in-sync replica.

    With `unclean` any live assigned replica will do where no in-sync one is left, and is then the
    whole in-sync set.

    >>> select_offline((3, 1, 2), (1, 2, 3), frozenset({1, 2}))
    Elected(leader=1, isr=(1, 2))
    """
    leader = _first(assigned, live, frozenset(isr))
    if leader is not None:
        return Elected(leader, tuple(replica for replica in isr if replica in live))
    if unclean:
        leader = _first(assigned, live)
        if leader is not None:
            return Elected(leader, (leader,))
    return None


@clause("complete.leader-first-in-sync-target")
def select_reassigned(
    target: ReplicaList, isr: ReplicaList, live: frozenset[int]
) -> Elected | None:
    """Select a leader out of the target: its first live in-sync replica; the set is unchanged.

    >>> select_reassigned((4, 3), (1, 3, 4), frozenset({1, 3}))
    Elected(leader=3, isr=(1, 3, 4))
    """
    leader = _first(target, live, frozenset(isr))
    return None if leader is None else Elected(leader, isr)


@clause("election.preferred", "act.preferred-election-held")
def select_preferred(
    assigned: ReplicaList, isr: ReplicaList, live: frozenset[int]
) -> Elected | None:
    """Select the preferred leader, the first assigned replica, if it is live and in sync.

    >>> select_preferred((1, 2), (2,), frozenset({1, 2})) is None
    True
    """
    leader = _first(assigned[:1], live, frozenset(isr))
    return None if leader is None else Elected(leader, isr)


@clause("partition.new.leader-first-live", "partition.new.isr-all-live")
def select_new(assigned: ReplicaList, live: frozenset[int]) -> Elected | None:
    """Select the first leader of a new partition: its first live replica; all live ones in sync.

    >>> select_new((2, 1), frozenset({1, 2, 3}))
    Elected(leader=2, isr=(2, 1))
    """
    isr = tuple(replica for replica in assigned if replica in live)
    return Elected(isr[0], isr) if isr else None


@clause("election.controlled-shutdown", "act.shutdown-handed-over")
def select_controlled_shutdown(
    assigned: ReplicaList, isr: ReplicaList, live: frozenset[int], shutting_down: frozenset[int]
) -> Elected | None:
    """Select who takes over from a broker that is about to stop.

    The first assigned in-sync replica that is alive and not itself shutting down. All brokers that
    shut down leave the in-sync set. A broker that is shutting down is still registered, so `live`
    may or may not list it.

    >>> select_controlled_shutdown((1, 2), (1, 2), frozenset({1, 2}), frozenset({1}))
    Elected(leader=2, isr=(2,))
    """
    left = tuple(replica for replica in isr if replica not in shutting_down)
    leader = _first(assigned, live, frozenset(left))
    return None if leader is None else Elected(leader, left)
