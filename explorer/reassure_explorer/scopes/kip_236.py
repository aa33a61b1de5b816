"""How much of KIP-236 the standard scopes look at.

What heals (the controller's writes, catching up, a broker's return) happens as often as it can.
"""

from typing import NamedTuple

from reassure_explorer.scopes.machine import Bounds
from reassure_model.kip_236.state import LeaderAndIsr, Partition
from reassure_model.kip_236.system import System
from reassure_spec.znodes import ReplicaList

Target = tuple[ReplicaList, bool]
"""What a request asks for, and whether it comes by the legacy route."""


class Limits(NamedTuple):
    """How often each may happen, in all; None is without limit."""

    requests: int | None
    deaths: int | None = 0
    lags: int | None = 0
    failovers: int | None = 0


def bound_requests(
    brokers: int,
    assigned: tuple[ReplicaList, ...],
    targets: tuple[Target, ...],
    limits: Limits,
    *,
    queue: int = 2,
    min_insync_replicas: int = 1,
    online: bool = True,
    promises: bool = False,
    calm: bool = False,
    term: int = 0,
) -> Bounds:
    """Return the bounds of partitions that are assigned like this, on brokers that are all alive.

    Brokers are numbered from 1. Clients may ask for any of the targets, for one partition at a time
    while no more than `queue` requests are pending. Unless they are `online` partitions have no
    leader at the start.
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
    longest = max(brokers, *(len(target) for target, _ in targets))
    sets = {
        "brokers": members,
        "targets": targets,
        "places": tuple(range(longest)),
        "queue": tuple(range(queue)),
    }
    times = {name: many for name, many in limits._asdict().items() if many is not None}
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
