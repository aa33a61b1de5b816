"""How much of KIP-236 a scope looks at.

What heals (the controller's writes, catching up, a broker's return) happens as often as it can.
"""

from collections.abc import Mapping

from reassure_explorer.scopes.machine import Bounds
from reassure_model.partition import LeaderAndIsr, Partition
from reassure_model.protocols.kip_236.system import System
from reassure_spec.znodes import ReplicaList


def bound(
    brokers: int,
    assigned: tuple[ReplicaList, ...],
    targets: tuple[ReplicaList, ...],
    times: Mapping[str, int],
    *,
    legacy: tuple[int, ...] = (),
    queue: int = 2,
    min_insync_replicas: int = 1,
    online: bool = True,
    promises: bool = False,
    calm: bool = False,
    term: int = 0,
) -> Bounds:
    """Return the bounds of partitions that are assigned like this, on brokers that are all alive.

    Brokers are numbered from 1. Clients may ask for any of the targets, by the legacy route for
    those with the numbers `legacy`, for one partition at a time while no more than `queue` requests
    are pending. `times` says how often clients ask and each fault happens, without end where it is
    left out. Unless they are `online` partitions have no leader at the start.
    """
    members = tuple(range(1, brokers + 1))
    start, *others = (
        System(
            Partition(each, LeaderAndIsr(each[0], 0, 0, each) if online else None),
            frozenset(members),
            frozenset(members),
            min_insync_replicas,
        )
        for each in assigned
    )
    longest = max(brokers, *map(len, targets))
    sets = {
        "brokers": members,
        "targets": tuple((target, at in legacy) for at, target in enumerate(targets)),
        "places": tuple(range(longest)),
        "queue": tuple(range(queue)),
    }
    return Bounds(
        start,
        sets,
        times,
        within={"submit": lambda _, after: len(after.partition.requests) <= queue},
        others=tuple(others),
        watched=promises,
        calm=calm,
        term=term,
    )
