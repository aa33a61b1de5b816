"""Spreads the replicas of topics over brokers, as Kafka's AdminUtils does.

Leaders go round the brokers from a place drawn at random; the other replicas of a partition follow
at a distance, also drawn, that grows by one with each round. Where brokers say in which rack they
are, they are first put in an order in which racks alternate, and a broker is passed over while its
rack has a replica and another has none.
"""

import random
from collections.abc import Mapping, Sequence

from reassure_spec.znodes import PartitionKey, ReplicaList

Racks = Mapping[int, str | None]
"""By broker: its rack, None where it names none."""


def propose(
    assigned: Mapping[PartitionKey, ReplicaList], racks: Racks, seed: int
) -> dict[PartitionKey, ReplicaList]:
    """Return another assignment of these partitions to these brokers, the same for a seed.

    Topic by topic, in the order of their names. Each partition keeps its number of replicas. All
    brokers are to name their racks, or none; no partition may have more replicas than there are
    brokers.
    """
    chance = random.Random(seed)
    brokers = order_brokers(racks)
    topics: dict[str, list[PartitionKey]] = {}
    for key in sorted(assigned):
        topics.setdefault(key[0], []).append(key)
    proposed: dict[PartitionKey, ReplicaList] = {}
    for keys in topics.values():
        start, shift = chance.randrange(len(brokers)), chance.randrange(len(brokers))
        for place, key in enumerate(keys):
            count = len(assigned[key])
            proposed[key] = choose_replicas(brokers, racks, start + place, shift, place, count)
    return proposed


def order_brokers(racks: Racks) -> tuple[int, ...]:
    """Return the brokers in an order in which their racks alternate.

    >>> order_brokers({0: "a", 1: "c", 2: "c", 3: "b", 4: "b", 5: "a"})
    (0, 3, 1, 5, 4, 2)
    """
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    rounds = range(max(len(brokers) for brokers in by_rack.values()))
    return tuple(
        by_rack[rack][turn]
        for turn in rounds
        for rack in sorted(by_rack)
        if turn < len(by_rack[rack])
    )


def choose_replicas(
    brokers: Sequence[int], racks: Racks, first: int, shift: int, place: int, count: int
) -> ReplicaList:
    """Return the replicas of the partition at this place of its topic.

    `first` and `shift` say where the leader and the others of the first round begin.

    >>> racks = {0: "a", 1: "c", 2: "c", 3: "b", 4: "b", 5: "a"}
    >>> order = order_brokers(racks)
    >>> [choose_replicas(order, racks, place, 0, place, 3) for place in (0, 1, 5, 6)]
    [(0, 3, 1), (3, 1, 5), (2, 0, 3), (0, 4, 2)]
    """
    number, kinds = len(brokers), len(set(racks.values()))
    step = (shift + place // number) * (kinds if None not in racks.values() else 1)
    chosen = [brokers[first % number]]
    taken = {racks[chosen[0]]}
    distance = 0
    while len(chosen) < count:
        broker = brokers[(first + 1 + (step + distance) % (number - 1)) % number]
        distance += 1
        rack = racks[broker]
        if broker not in chosen and (rack not in taken or len(taken) == kinds):
            chosen.append(broker)
            taken.add(rack)
    return tuple(chosen)
