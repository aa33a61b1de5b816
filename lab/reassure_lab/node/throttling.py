"""Has a broker go by the throttles in ZooKeeper, and by their changes as they are made.

Whoever changes a configuration leaves a note under `/config/changes`. One watch is on these notes;
what they name is read again. At the start, and when the watch was lost with the connection, all is
read. What was set before a move counts before the first byte of it is fetched. Notes are removed
when they are a quarter of an hour old, as Kafka's brokers do.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.protocol.states import EventType

from reassure_controller.replication.quota import Quotas
from reassure_controller.session import Indefinite, barrier, ensure_roots, gather
from reassure_lab.throttles import (
    CONFIG_CHANGES,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    decode_change,
    find_topic,
    parse_change_name,
    parse_rate,
    parse_replicas,
)
from reassure_spec.znodes import (
    TOPIC_CONFIGS,
    BadZnode,
    broker_config_path,
    decode_config,
    topic_config_path,
)

log = logging.getLogger(__name__)

KEPT_MS: Final = 15 * 60 * 1000
"""How much older than the newest one a note may be."""
PATIENCE_S: Final = 2.0
"""How long an order may have to wait for what was set before it."""


class Throttling:
    """Keeps the quotas of one broker as ZooKeeper has them."""

    def __init__(self, client: KazooClient, broker_id: int, quotas: Quotas) -> None:
        self.quotas = quotas
        quotas.catch_up = self.catch_up
        self._client = client
        self._broker = broker_id
        self._own = broker_config_path(broker_id)
        self._is_stale = True
        """Whether there may be something that was not read."""
        self._was_cut_off = True
        """Whether it may be anything, and not only what new notes name."""
        self._latest = -1
        """Number of the last note that was dealt with."""

    def refresh(self) -> None:
        """Read what has changed; to be called again and again. What fails is tried again."""
        if not self._is_stale or not self._client.connected:
            return
        self._is_stale, everything, self._was_cut_off = False, self._was_cut_off, False
        try:
            self._read(everything=everything)
        except Indefinite as indefinite:
            self._is_stale, self._was_cut_off = True, everything or self._was_cut_off
            log.info("broker %d: throttles are not read yet: %s", self._broker, indefinite)

    def catch_up(self) -> None:
        """Take over what was committed before the call, unless ZooKeeper lets wait for it."""
        if self._client.connected:
            try:
                barrier(self._client, PATIENCE_S)
            except Indefinite as indefinite:
                log.info("broker %d: its throttles may be old: %s", self._broker, indefinite)
            self.refresh()

    def _on_watch(self, event: Any) -> None:
        if event.type == EventType.NONE:  # the connection was lost, and the watch with it
            self._was_cut_off = True
        self._is_stale = True

    def _read(self, *, everything: bool) -> None:
        notes = self._read_notes()
        if everything:
            topics = gather([self._client.get_children_async(TOPIC_CONFIGS)])[0] or ()
            configs = {self._own, *map(topic_config_path, topics)}
        else:
            configs = set(self._list_named(notes))
        paths = sorted(config for config in configs if config == self._own or find_topic(config))
        found = gather([self._client.get_async(path) for path in paths])
        for path, content in zip(paths, found, strict=True):
            self._take(path, None if content is None else content[0])
        self._latest = max(notes, default=self._latest)
        self._remove_old(notes)

    def _read_notes(self) -> dict[int, tuple[str, bytes, int]]:
        """Return path, content and time of each note, by number, and arm the watch."""
        listing = (CONFIG_CHANGES, self._on_watch)
        names = gather([self._client.get_children_async(*listing)])[0]
        if names is None:
            ensure_roots(self._client, (CONFIG_CHANGES,))
            names = gather([self._client.get_children_async(*listing)])[0] or ()
        numbers = {name: parse_change_name(name) for name in names}
        found = gather([self._client.get_async(f"{CONFIG_CHANGES}/{name}") for name in names])
        return {
            number: (f"{CONFIG_CHANGES}/{name}", content[0], content[1].ctime)
            for (name, number), content in zip(numbers.items(), found, strict=True)
            if number is not None and content is not None
        }

    def _list_named(self, notes: Mapping[int, tuple[str, bytes, int]]) -> Iterable[str]:
        for number, (path, data, _) in notes.items():
            if number > self._latest:
                try:
                    yield decode_change(path, data)
                except BadZnode as bad:
                    log.warning("%s; whatever it names is not read again", bad)

    def _take(self, path: str, data: bytes | None) -> None:
        """Take over a configuration; of one that cannot be read nothing is taken over."""
        topic, quotas = find_topic(path), self.quotas
        for quota, rate, replicas in (
            (quotas.as_leader, LEADER_RATE, LEADER_REPLICAS),
            (quotas.as_follower, FOLLOWER_RATE, FOLLOWER_REPLICAS),
        ):
            try:
                config = {} if data is None else decode_config(path, data)
                if topic is None:
                    quota.limit(parse_rate(path, config, rate))
                else:
                    quota.throttled[topic] = parse_replicas(path, config, replicas, self._broker)
            except BadZnode as bad:
                log.warning("%s; broker %d goes on with what it had", bad, self._broker)

    def _remove_old(self, notes: Mapping[int, tuple[str, bytes, int]]) -> None:
        newest = max((ctime for _, _, ctime in notes.values()), default=0)
        old = [path for path, _, ctime in notes.values() if newest - ctime > KEPT_MS]
        gather([self._client.delete_async(path) for path in old])
