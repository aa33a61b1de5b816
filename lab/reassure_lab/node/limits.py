"""What producers are held to, by topic: how many replicas are in sync, how large a batch may be.

Both stand in the configuration of the topic, or else of the broker, or else of all brokers; without
any, the broker has been told at its start. A watch is on each of these znodes that was asked about,
so that a change counts as soon as it is made.
"""

import logging
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import EventType

from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import Indefinite, gather
from reassure_spec.znodes import (
    BROKER_CONFIGS,
    DEFAULT_BROKER_CONFIG,
    MESSAGE_BYTES,
    MIN_ISR,
    TOPIC_MESSAGE_BYTES,
    BadZnode,
    broker_config_path,
    decode_config,
    parse_limit,
    topic_config_path,
)

log = logging.getLogger(__name__)


class TopicLimits:
    """The limits of each topic; `learn` reads, the others only remember."""

    def __init__(self, client: KazooClient, broker_id: int, usual: ReplicationRules) -> None:
        self._client = client
        self._usual = usual
        self._above = (broker_config_path(broker_id), DEFAULT_BROKER_CONFIG)
        self._found: dict[str, dict[str, int]] = {}
        """By path: the limits that stand there, by the name that they have on a broker."""
        self._stale: set[str] = set(self._above)

    def find_minimum(self, topic: str) -> int:
        """Return how many replicas have to be in sync for a producer that waits for all."""
        return self._find(topic, MIN_ISR, self._usual.min_insync_replicas)

    def find_batch_bytes(self, topic: str) -> int:
        """Return how large a batch of a producer may be."""
        return self._find(topic, MESSAGE_BYTES, self._usual.batch_bytes_max)

    def _find(self, topic: str, name: str, usual: int) -> int:
        paths = (topic_config_path(topic), *self._above)
        found = (self._found.get(path, {}).get(name) for path in paths)
        return next((limit for limit in found if limit is not None), usual)

    def learn(self, *topics: str) -> None:
        """Read what is not known of these topics, and what has changed; what fails stays so."""
        paths = {topic_config_path(topic) for topic in topics} - self._found.keys()
        self._stale |= paths
        stale = sorted(self._stale)
        if not stale or not self._client.connected:
            return
        self._stale.difference_update(stale)
        try:
            self._read(stale)
        except Indefinite as indefinite:
            self._stale.update(stale)
            log.info("the limits of topics are as read before: %s", indefinite)

    def _read(self, paths: list[str]) -> None:
        found = gather(
            [self._client.exists_async(path, self._on_watch) for path in paths]
            + [self._client.get_async(path) for path in paths]
        )[len(paths) :]
        for path, content in zip(paths, found, strict=True):
            try:
                self._found[path] = {} if content is None else _parse(path, content[0])
            except BadZnode as bad:
                log.warning("%s; the limits there stay as they were read before", bad)
                self._found.setdefault(path, {})

    def _on_watch(self, event: Any) -> None:
        if event.type == EventType.NONE:  # the connection was lost, and every watch with it
            self._stale.update(self._found)
        else:
            self._stale.add(event.path)


def _parse(path: str, content: bytes) -> dict[str, int]:
    """Return the limits in a configuration. Raises BadZnode."""
    config = decode_config(path, content)
    message_bytes = MESSAGE_BYTES if path.startswith(BROKER_CONFIGS) else TOPIC_MESSAGE_BYTES
    names = {MIN_ISR: MIN_ISR, MESSAGE_BYTES: message_bytes}
    found = {name: parse_limit(path, config, written) for name, written in names.items()}
    return {name: limit for name, limit in found.items() if limit is not None}
