"""Which replicas a throttle holds for, and how it is set and taken away.

A move is throttled where its records come from, which may be any replica that was there before, and
where they go to. The rate is set on every broker that takes part; the replicas are named by their
topics. What is moving already is named again with what is added: a topic has one list only
(KAFKA-10779).
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from kazoo.client import KazooClient

from reassure_controller.session import Operation
from reassure_lab.admin.survey import Active, decode, read
from reassure_lab.throttles import (
    CHANGE_PREFIX,
    CONFIG_CHANGES,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    RATES,
    REPLICA_LISTS,
    encode_change,
    encode_replicas,
)
from reassure_spec.znodes import (
    PartitionKey,
    ReplicaList,
    broker_config_path,
    decode_config,
    encode_config,
    topic_config_path,
)

Settings = Mapping[str, str | None]
"""Settings by name; None takes one away."""
Ways = Mapping[PartitionKey, tuple[ReplicaList, ReplicaList]]
"""By partition: the replicas that records come from, and those that they go to."""


def find_ways(
    active: Iterable[Active],
    targets: Mapping[PartitionKey, ReplicaList],
    assigned: Mapping[PartitionKey, ReplicaList],
) -> Ways:
    """Return where the records of all that moves come from and go to.

    `targets` is what is asked for now; `assigned` has the replicas that these partitions have.
    """
    ways = {one.key: (_without(one.assigned, one.adding), one.adding) for one in active}
    for key, target in targets.items():
        sources = ways[key][0] if key in ways else assigned[key]
        ways[key] = sources, _without(target, sources)
    return ways


def plan_limit(client: KazooClient, ways: Ways, bytes_per_s: int) -> list[Operation]:
    """Return the operations that limit these moves. Raises Unsettled, BadContent."""
    topics: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
    for (topic, partition), sides in ways.items():
        for listed, side in zip(topics.setdefault(topic, ([], [])), sides, strict=True):
            listed += [(partition, replica) for replica in side]
    brokers = {replica for sides in ways.values() for side in sides for replica in side}
    rates = dict.fromkeys(RATES, str(bytes_per_s))
    changes: dict[str, Settings] = {
        topic_config_path(topic): {
            LEADER_REPLICAS: encode_replicas(sources),
            FOLLOWER_REPLICAS: encode_replicas(destinations),
        }
        for topic, (sources, destinations) in topics.items()
    }
    return _plan(client, changes | {broker_config_path(one): rates for one in sorted(brokers)})


def plan_no_limit(client: KazooClient, brokers: Set[int], topics: Set[str]) -> list[Operation]:
    """Return the operations that take every throttle from these brokers and topics."""
    nothing: Settings = dict.fromkeys(RATES)
    changes = {broker_config_path(broker): nothing for broker in sorted(brokers)}
    none: Settings = dict.fromkeys(REPLICA_LISTS)
    return _plan(client, changes | {topic_config_path(topic): none for topic in sorted(topics)})


def _plan(client: KazooClient, changes: Mapping[str, Settings]) -> list[Operation]:
    """Return the operations that change settings where they are others, each with its note.

    Each holds only while the configuration is as it was read.
    """
    *found, notes = read(
        [*(client.get_async(path) for path in changes), client.exists_async(CONFIG_CHANGES)]
    )
    operations: list[Operation] = []
    for (path, settings), content in zip(changes.items(), found, strict=True):
        before = {} if content is None else decode(decode_config, path, content[0])
        after: dict[str, Any] = {**before, **settings}
        after = {name: value for name, value in after.items() if value is not None}
        if after != before:
            data = encode_config(after)
            version = None if content is None else content[1].version
            create = version is None
            operations += [
                ("create", (path, data)) if create else ("set_data", (path, data, version)),
                _note(path),
            ]
    if operations and notes is None:
        operations.insert(0, ("create", (CONFIG_CHANGES, b"")))
    return operations


def _note(path: str) -> Operation:
    note = f"{CONFIG_CHANGES}/{CHANGE_PREFIX}"
    return ("create", (note, encode_change(path), None, False, True))


def _without(replicas: ReplicaList, others: ReplicaList) -> ReplicaList:
    return tuple(replica for replica in replicas if replica not in others)
