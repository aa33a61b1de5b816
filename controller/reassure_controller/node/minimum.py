"""How many replicas have to be in sync for a producer that waits for all, by topic.

`min.insync.replicas` stands in the configuration of the topic, or else of the broker, or else of
all brokers; without any, the broker has been told at its start. A watch is on each of these znodes
that was asked about, so that a change counts as soon as it is made.
"""

import logging
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import EventType

from reassure_controller.session import Indefinite, gather
from reassure_spec.znodes import (
    DEFAULT_BROKER_CONFIG,
    MIN_ISR,
    BadZnode,
    broker_config_path,
    decode_config,
    parse_min_isr,
    topic_config_path,
)

log = logging.getLogger(__name__)


class Minimums:
    """The minimum of each topic; `learn` reads, `find` only remembers."""

    def __init__(self, client: KazooClient, broker_id: int, usual: int) -> None:
        self._client = client
        self._usual = usual
        self._above = (broker_config_path(broker_id), DEFAULT_BROKER_CONFIG)
        self._found: dict[str, int | None] = {}
        """By path: what stands there, None where nothing does."""
        self._stale: set[str] = set(self._above)

    def find(self, topic: str) -> int:
        """Return the minimum of a topic, as read last."""
        for path in (topic_config_path(topic), *self._above):
            minimum = self._found.get(path)
            if minimum is not None:
                return minimum
        return self._usual

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
            log.info("%s is as read before: %s", MIN_ISR, indefinite)

    def _read(self, paths: list[str]) -> None:
        found = gather(
            [self._client.exists_async(path, self._on_watch) for path in paths]
            + [self._client.get_async(path) for path in paths]
        )[len(paths) :]
        for path, content in zip(paths, found, strict=True):
            try:
                config = {} if content is None else decode_config(path, content[0])
                minimum = parse_min_isr(path, config) if MIN_ISR in config else None
            except BadZnode as bad:
                log.warning("%s; %s stays as it was read before", bad, MIN_ISR)
                self._found.setdefault(path, None)
            else:
                self._found[path] = minimum

    def _on_watch(self, event: Any) -> None:
        if event.type == EventType.NONE:  # the connection was lost, and every watch with it
            self._stale.update(self._found)
        else:
            self._stale.add(event.path)
