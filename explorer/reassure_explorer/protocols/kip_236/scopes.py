"""How much of KIP-236 the standard scopes look at.

What heals (the controller's writes, catching up, a broker's return) happens as often as it can.
"""

from typing import Final, NamedTuple

from reassure_explorer.scopes.machine import Bounded, Bounds
from reassure_model.partition import LeaderAndIsr, Partition
from reassure_model.protocols.kip_236.system import System
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


def _ask(*targets: ReplicaList) -> tuple[Target, ...]:
    return tuple((target, False) for target in targets)


SCOPES: Final = (
    Bounded(
        "small",
        "three brokers, one partition on two of them; two requests, and one death, one lagging "
        "replica and one failover at any moment",
        bound_requests(3, ((1, 2),), _ask((2, 3), (1, 3), (1, 2)), Limits(2, 1, 1, 1)),
    ),
    Bounded(
        "new",
        "a partition that is not yet online, with two requests, two deaths and one failover",
        bound_requests(3, ((1, 2),), _ask((2, 3), (1, 3)), Limits(2, 2, 0, 1), online=False),
    ),
    Bounded(
        "routes",
        "requests by the new and by the legacy route, good ones and ones to refuse: an empty "
        "target, a replica twice, a broker that does not exist",
        bound_requests(
            3,
            ((1, 2),),
            (
                ((2, 3), False),
                ((1, 3), False),
                ((1, 3), True),
                ((), False),
                ((3, 3), False),
                ((2, 4), True),
            ),
            Limits(2, 2, 0, 1),
        ),
    ),
    Bounded(
        "min-two",
        "as small, where two replicas have to be in sync and one target has one replica only",
        bound_requests(
            3,
            ((1, 2),),
            _ask((2, 3), (1, 3), (3,)),
            Limits(2, 1, 1, 1),
            min_insync_replicas=2,
        ),
    ),
    Bounded(
        "two-partitions",
        "two partitions that share brokers and controller: two requests, two deaths, one failover",
        bound_requests(3, ((1, 2), (2, 3)), _ask((2, 3), (1, 2)), Limits(2, 2, 0, 1)),
    ),
    Bounded(
        "medium",
        "four brokers, a partition on two; three requests, two deaths, one lag, one failover",
        bound_requests(4, ((1, 2),), _ask((2, 3), (3, 4), (1, 2)), Limits(3, 2, 1, 1)),
    ),
    Bounded(
        "large",
        "four brokers, a partition on two; five requests, four deaths, three lags, three failovers",
        bound_requests(4, ((1, 2),), _ask((2, 3), (3, 4), (1, 2)), Limits(5, 4, 3, 3)),
    ),
    Bounded(
        "restless",
        "three brokers, one partition; two requests, and failovers without end: for liveness",
        bound_requests(3, ((1, 2),), _ask((1, 3), (2, 3)), Limits(2, 1, 1, None), term=2),
    ),
    Bounded(
        "restless-requests",
        "three brokers, one partition; the same request again and again, two deaths: for liveness "
        "where asking again is a restart; otherwise nothing changes, and a goal is out of reach",
        bound_requests(3, ((1, 2),), _ask((1, 3)), Limits(None, 2)),
    ),
    Bounded(
        "promises",
        "what readers take for granted of a change: three brokers, two requests, one death, one "
        "lag, one failover",
        bound_requests(
            3, ((1, 2),), _ask((1, 3), (3, 1), (1, 2)), Limits(2, 1, 1, 1), promises=True
        ),
    ),
    Bounded(
        "promises-four",
        "the same with four brokers and a change from one new replica to two",
        bound_requests(
            4, ((1, 2),), _ask((1, 3), (4, 3), (1, 2)), Limits(2, 1, 1, 1), promises=True
        ),
    ),
    Bounded(
        "promises-calm",
        "as promises-four, with everything else waiting while the controller has something to do: "
        "traces that any controller can follow",
        bound_requests(
            4,
            ((1, 2),),
            _ask((1, 3), (4, 3), (1, 2), (1,)),
            Limits(2, 1, 1, 1),
            min_insync_replicas=2,
            promises=True,
            calm=True,
        ),
    ),
    Bounded(
        "promises-growth",
        "the same where one replica is to become four",
        bound_requests(
            4, ((1,),), _ask((1, 2, 3, 4), (2,), (2, 3)), Limits(2, 1, 0, 1), promises=True
        ),
    ),
    Bounded(
        "promises-one",
        "the same where one replica is to become two: four brokers, two requests, one death, one "
        "lag, one failover",
        bound_requests(4, ((2,),), _ask((1, 4), (1, 3)), Limits(2, 1, 1, 1), promises=True),
    ),
    Bounded(
        "promises-min-two",
        "the same where two replicas have to be in sync and one target has one replica only",
        bound_requests(
            3,
            ((1, 2),),
            _ask((2, 3), (1, 3), (3,)),
            Limits(2, 1, 1, 1),
            min_insync_replicas=2,
            promises=True,
        ),
    ),
    Bounded(
        "promises-chain",
        "the same with five brokers, a chain of two targets and two deaths",
        bound_requests(5, ((1, 2),), _ask((1, 3), (4, 5)), Limits(2, 2), promises=True),
    ),
)
