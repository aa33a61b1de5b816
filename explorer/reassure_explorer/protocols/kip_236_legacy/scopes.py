"""How much of the old znode beside KIP-236 the standard scopes look at.

Brokers return, replicas join and the controller goes on as often as they can; nobody lags.
"""

from dataclasses import replace
from typing import Final

from reassure_explorer.scopes.machine import Bounded, Bounds
from reassure_model.invariants import INVARIANTS
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols.kip_236_legacy import make_legacy
from reassure_spec.znodes import LegacyEntry, ReplicaList

TOPIC: Final = "t"


def bound_routes(
    assigned: tuple[ReplicaList, ...],
    brokers: int,
    entries: tuple[tuple[ReplicaList, ...], ...],
    targets: tuple[ReplicaList, ...],
    writes: int = 1,
    requests: int = 1,
    deaths: int = 0,
    failovers: int = 0,
    *,
    promises: bool = True,
) -> Bounds:
    """Return the bounds of partitions that are assigned like this, on brokers that are all alive.

    `entries` are the contents of the old znode that clients may write, each the targets of the
    partitions from the first on; `targets` they may ask for by the new route. With `promises` what
    a reader takes for granted is an invariant; as written it is broken.
    """
    members = tuple(range(1, brokers + 1))
    keys = tuple((TOPIC, number) for number in range(len(assigned)))
    start = make_legacy(dict(zip(keys, assigned, strict=True)), frozenset(members))
    for key, each in zip(keys, assigned, strict=True):
        online = LeaderAndIsr(each[0], 0, 0, each)
        start = start.having(key, replace(start.get(key), state=online))
    contents = tuple(
        tuple(LegacyEntry(*pair, None) for pair in zip(keys, each, strict=False))
        for each in entries
    )
    wanted = tuple(dict.fromkeys(entry for content in contents for entry in content))
    old = sorted({entry.target for entry in wanted})
    longest = max(brokers, *map(len, (*old, *targets)))
    sets = {
        "brokers": members,
        "keys": keys,
        "replicas": tuple((key, member) for key in keys for member in members),
        "contents": contents,
        "entries": wanted,
        "asked": tuple(((key, target),) for key in keys for target in targets),
        "targets": (*((target, True) for target in old), *((each, False) for each in targets)),
        "places": tuple(range(longest)),
        "queue": tuple(range(writes + requests + 1)),
    }
    times = {"writes": writes, "requests": requests, "deaths": deaths, "failovers": failovers}
    always = tuple(each.clause for each in INVARIANTS)
    return Bounds(start, sets, times, without=("leave",), properties=None if promises else always)


SCOPES: Final = (
    Bounded(
        "old-znode",
        "the old znode and requests by the new route: one replica, three brokers; two writes of "
        "the znode, one request, one failover",
        bound_routes(
            ((1,),), 3, (((2,),), ((3,),)), ((1,), (2,)), 2, 1, failovers=1, promises=False
        ),
    ),
    Bounded(
        "old-znode-promises",
        "the same, and what readers take for granted of entries",
        bound_routes(((1,),), 3, (((2,),), ((3,),)), ((1,), (2,)), 2, 1, failovers=1),
    ),
    Bounded(
        "old-znode-two",
        "both routes with two partitions, one of which the znode may leave out",
        bound_routes(
            ((1,), (2,)), 3, (((2,), (3,)), ((3,),)), ((1,),), 2, 1, failovers=1, promises=False
        ),
    ),
    Bounded(
        "old-znode-medium",
        "both routes with two replicas; two writes of the znode, one request, one death, one "
        "failover",
        bound_routes(
            ((1, 2),),
            3,
            (((2, 3),), ((1, 3),)),
            ((1, 3), (1, 2)),
            2,
            1,
            deaths=1,
            failovers=1,
            promises=False,
        ),
    ),
)
