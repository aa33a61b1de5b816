"""Which replicas a changed reassignment drops.

A reassignment that is changed again and again must not let the assignment grow for ever. The rule
ranks the assigned replicas (leader, then the in-sync ones, then the others), keeps as many as the
partition had when the chain of reassignments began (`top`), and drops the rest.
"""

from collections.abc import Sequence

from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList


def choose_drop(
    assigned: Sequence[int],
    leader: int,
    isr: Sequence[int],
    top: int,
    target: Sequence[int],
    readings: Readings,
) -> ReplicaList:
    """Return the assigned replicas to drop, in assigned order.

    `assigned` is the list that the reading `drop.evaluated` asks for; the caller chooses it.
    Source: KIP-236, drop rule, step 2.

    >>> choose_drop((1, 2, 3, 4), 1, (1, 4), 2, (5,), Readings())
    (2, 3)
    """
    if readings.offline_drop == "skip" and (leader == NO_LEADER or leader not in isr):
        return ()
    # A dict keeps the first occurrence of each id and the order. A leader of -1 takes a place, as
    # the text has it; reading offline.drop=skip is the amendment that avoids it.
    ranked = list(dict.fromkeys((leader, *isr, *assigned)))
    keep = top if readings.drop_slice == "inclusive" else max(top - 1, 0)
    kept = set(ranked[:keep])
    if readings.drop_protects == "target":
        kept.update(target)
    return tuple(replica for replica in assigned if replica not in kept)
