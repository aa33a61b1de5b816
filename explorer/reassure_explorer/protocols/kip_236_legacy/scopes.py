"""How much of the old znode beside KIP-236 a scope looks at.

Brokers return, replicas join and the controller goes on as often as they can; nobody lags.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reassure_explorer.scopes.machine import Bounds
from reassure_model.invariants import INVARIANTS
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols.kip_236_legacy import make_legacy
from reassure_spec.znodes import LegacyEntry, ReplicaList

TOPIC: Final = "t"


def bound(
    brokers: int,
    assigned: tuple[ReplicaList, ...],
    entries: tuple[tuple[ReplicaList, ...], ...],
    targets: tuple[ReplicaList, ...],
    times: Mapping[str, int],
    *,
    promises: bool = False,
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
        "queue": tuple(range(times["writes"] + times["requests"] + 1)),
    }
    always = tuple(each.clause for each in INVARIANTS)
    return Bounds(start, sets, times, without=("leave",), properties=None if promises else always)
