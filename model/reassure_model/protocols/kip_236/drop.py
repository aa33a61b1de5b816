"""The drop rule of KIP-236: which replicas leave when a reassignment in flight changes.

A partition that is sent to one target and then to another holds replicas that neither the original
assignment nor the new target names. The rule ranks the assigned replicas (leader, in-sync, others),
keeps the best `top` of them and drops the rest, `top` being the length of the assignment when the
first reassignment of the chain was created.

`compute_drop` is the rule, of plain lists. All that asks it of a partition is here as well: what a
controller drops (`find_drop`), all that it may drop (`compute_drops`), and when it has to wait
(`must_drop_wait`).

Every disputed word is a reading (`drop.slice`, `drop.protects`, `offline.drop`); see
`reassure_spec.readings`. Whether the rule is evaluated before or after the target is added is the
caller's choice of `assigned`.
"""

from itertools import combinations
from typing import Final

from reassure_model.partition import Partition
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

SKIP_OFFLINE: Final = "drop.offline.skip"
PROTECT_TARGET: Final = "drop.protect-target"
DROPPED: Final = "drop.carried-out"

# The rule -----------------------------------------------------------------------------------------


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


# The rule asked of a partition --------------------------------------------------------------------


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


def is_drop_forbidden(partition: Partition, readings: Readings) -> bool:
    """Whether a drop that is due must not be made before there is a leader in sync."""
    return readings.offline_drop == "skip" and is_drop_held(partition)


def find_drop(partition: Partition, readings: Readings) -> ReplicaList:
    """Return what is to be dropped now, ranking each group in the order in which it is stored."""
    assigned, state, flight = partition.assigned, partition.state, partition.reassignment
    if not partition.drop_due or flight is None or assigned is None or state is None:
        return ()
    if readings.offline_drop != "as-written" and not is_led_in_sync(state.leader, state.isr):
        return ()
    return compute_drop(assigned, state.leader, state.isr, flight.top, flight.target, readings)


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
