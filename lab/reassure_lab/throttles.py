"""Replication throttles as they stand in Kafka's configuration znodes (KIP-73).

A rate stands in the configuration of a broker, and the replicas that it holds for in that of their
topic: `partition:broker`, many of them with commas between, or `*` for every replica. Whoever
writes a configuration leaves a note under `/config/changes` that names it, and brokers read again
what is named.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from reassure_spec.znodes import (
    TOPIC_CONFIGS,
    BadZnode,
)

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
"""Settings of a broker, in bytes per second."""
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
REPLICA_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""Settings of a topic."""
EVERY_REPLICA: Final = "*"

CONFIG_CHANGES: Final = "/config/changes"
CHANGE_PREFIX: Final = "config_change_"
_CHANGE_NAME: Final = re.compile(r"config_change_([0-9]{10})")
_REPLICA: Final = re.compile(r"\s*([0-9]+):([0-9]+)\s*")
_RATE: Final = re.compile(r"\s*[0-9]{1,19}\s*")

Partitions = frozenset[int] | None
"""Partitions of a topic; None stands for all of them."""


def parse_change_name(name: str) -> int | None:
    """Return the sequence number in the name of a note, or None when it is not one.

    >>> parse_change_name("config_change_0000000012"), parse_change_name("config_change_12")
    (12, None)
    """
    match = _CHANGE_NAME.fullmatch(name)
    return int(match[1]) if match else None


def encode_change(config: str) -> bytes:
    """Encode the note that the configuration at this path has changed.

    >>> encode_change("/config/topics/orders")
    b'{"version":2,"entity_path":"topics/orders"}'
    """
    entity = config.removeprefix("/config/")
    return json.dumps({"version": 2, "entity_path": entity}, separators=(",", ":")).encode()


def decode_change(path: str, data: bytes) -> str:
    """Decode a note (versions 1 and 2) to the path of the configuration that it names.

    Raises BadZnode when the content is not of the format.

    >>> decode_change("/n", b'{"version":1,"entity_type":"brokers","entity_name":"7"}')
    '/config/brokers/7'
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadZnode(path, f"not JSON: {error}") from error
    entity: object = None
    if isinstance(value, dict) and value.get("version") == 2:
        entity = value.get("entity_path")
    elif isinstance(value, dict) and value.get("version") == 1:
        entity = f"{value.get('entity_type')}/{value.get('entity_name')}"
    if not isinstance(entity, str):
        raise BadZnode(path, "expected version 1 or 2, and which configuration has changed")
    return f"/config/{entity}"


def find_topic(config: str) -> str | None:
    """Return the topic whose configuration stands at this path, None where it is no topic's.

    >>> find_topic("/config/topics/orders"), find_topic("/config/brokers/1")
    ('orders', None)
    """
    prefix = f"{TOPIC_CONFIGS}/"
    return config.removeprefix(prefix) if config.startswith(prefix) else None


def parse_rate(path: str, config: Mapping[str, str], name: str) -> int | None:
    """Return a rate of a broker's settings in bytes per second, None where they do not say.

    Raises BadZnode where it is no number.
    """
    text = config.get(name)
    if text is None:
        return None
    if not _RATE.fullmatch(text):
        raise BadZnode(path, f"{name}: expected bytes per second, found {text[:40]!r}")
    return int(text)


def encode_replicas(replicas: Iterable[tuple[int, int]]) -> str:
    """Encode throttled replicas, given as (partition, broker), in the order that Kafka has.

    >>> encode_replicas([(2, 1), (10, 1), (2, 1)])
    '10:1,2:1'
    """
    return ",".join(sorted({f"{partition}:{broker}" for partition, broker in replicas}))


def parse_replicas(path: str, config: Mapping[str, str], name: str, broker: int) -> Partitions:
    """Return the partitions of a topic of which this broker's replica is throttled.

    Raises BadZnode where a setting is not of the format.

    >>> parse_replicas("/t", {LEADER_REPLICAS: "0:1,1:2,3:1"}, LEADER_REPLICAS, 1)
    frozenset({0, 3})
    """
    text = config.get(name, "").strip()
    if text == EVERY_REPLICA:
        return None
    found = set()
    for part in text.split(",") if text else ():
        match = _REPLICA.fullmatch(part)
        if match is None:
            expected = "expected '*' or PARTITION:BROKER,PARTITION:BROKER,..."
            raise BadZnode(path, f"{name}: {expected}, found {part[:40]!r}")
        if int(match[2]) == broker:
            found.add(int(match[1]))
    return frozenset(found)
