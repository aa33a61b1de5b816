"""The drop rule of KIP-236: which replicas leave when a reassignment in flight changes.

A partition that is sent to one target and then to another holds replicas that neither the original
assignment nor the new target names. The rule ranks the assigned replicas (leader, in-sync, others),
keeps the best `top` of them and drops the rest, `top` being the length of the assignment when the
first reassignment of the chain was created.

Every disputed word is a reading (`drop.slice`, `drop.protects`, `offline.drop`); see
`reassure_spec.readings`. Whether the rule is evaluated before or after the target is added is the
caller's choice of `assigned`.
"""

from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList


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


@clause("drop.keep-top", "drop.protect-target", "drop.offline.skip")
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
    if readings.offline_drop == "skip" and (leader == NO_LEADER or leader not in isr):
        return ()
    existing = compute_existing(assigned, leader, isr, others)
    kept = compute_kept(existing, top, readings)
    if readings.drop_protects == "target":
        kept = (*kept, *target)
    return tuple(replica for replica in assigned if replica not in kept)
