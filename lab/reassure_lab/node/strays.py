"""Logs of partitions that have moved away while their broker could not be told.

A controller tells a broker to delete a replica until it has, but the next controller knows of no
such order. Who was dead, or cut off, until then would keep the log for ever. So a broker looks by
itself where it may have missed that: at replicas that nobody has told anything since the broker
registered, at followers that their leader refuses, and at leaders of which something else is
stored. Where the topic is not there any more only an empty log is deleted: a ZooKeeper that has
lost its data looks the same, and somebody may miss the records.
"""

import logging
import threading
import time
from collections.abc import Collection
from itertools import starmap
from typing import Final

from kazoo.client import KazooClient

from reassure_controller.broker import Broker
from reassure_controller.messages import NO_EPOCH
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.replica import Role
from reassure_controller.session import Indefinite, gather
from reassure_spec.znodes import (
    BadZnode,
    PartitionKey,
    decode_state,
    decode_topic,
    state_path,
    topic_path,
)

log = logging.getLogger(__name__)

LOOK_S: Final = 3.0
"""How often a broker looks."""
SHARE: Final = 0.05
"""The part of its time that this takes at most: the longer a look, the later the next one."""


class Strays:
    """Finds and deletes them, while `lock` keeps orders away."""

    def __init__(self, client: KazooClient, broker: Broker, lock: threading.RLock) -> None:
        self._client = client
        self._broker = broker
        self._lock = lock
        self._due_s = time.monotonic() + LOOK_S
        self._kept: set[PartitionKey] = set()
        """Whose topic is not there, and which have records."""
        self._before: dict[PartitionKey, Role | None] = {}
        """The replicas that it would have asked about at the last look."""

    def tick(self) -> None:
        """Look, if it is time to and ZooKeeper answers."""
        if time.monotonic() < self._due_s or not self._client.connected:
            return
        began_s = time.monotonic()
        try:
            self.sweep()
        except (Indefinite, BadZnode) as unknown:
            log.info("it is not known which logs are stray: %s", unknown)
        now_s = time.monotonic()
        self._due_s = now_s + max(LOOK_S, (now_s - began_s) / SHARE)

    def sweep(self) -> None:
        """Delete what has moved away. Raises Indefinite, BadZnode.

        ZooKeeper is asked without the lock, and about those that were like this at the last look:
        in a move of thousands all are, for a moment. Whoever has got another role meanwhile is left
        alone.
        """
        with self._lock:
            replicas = self._broker.replicas
            found = {} if replicas is None else _list_unsettled(replicas)
            before, self._before = self._before, found
            unsettled = {k: role for k, role in found.items() if k in before and before[k] is role}
            logs = {each.key: each.log for each in replicas or () if each.key in unsettled}
            empty = {key for key, each in logs.items() if each.end_offset == each.start_offset}
        stray = self._find_moved_away(unsettled, empty)
        with self._lock:
            if replicas is None or replicas is not self._broker.replicas:
                return
            now = _list_unsettled(replicas)
            for key, leader_epoch in stray.items():
                if key in now and now[key] is unsettled[key]:
                    log.info("%s-%d: it has moved away; its log is deleted", *key)
                    self._broker.give_up(key, leader_epoch)

    def _find_moved_away(
        self, keys: Collection[PartitionKey], empty: Collection[PartitionKey]
    ) -> dict[PartitionKey, int]:
        """Return the partitions that are neither assigned to the broker nor in sync on it, by now.

        Each is with the leader epoch in which that is so. The server that is asked may lag behind,
        so it has to catch up first. Of a topic that is not there only what is `empty` is returned.
        """
        if not keys:
            return {}
        topics = sorted({topic for topic, _ in keys})
        paths = [topic_path(topic) for topic in topics]
        caught_up = self._client.sync_async("/")
        reads = [self._client.get_async(path) for path in (*paths, *starmap(state_path, keys))]
        _, *found = gather([caught_up, *reads])
        assigned = {
            (path, number): replicas
            for path, content in zip(paths, found, strict=False)
            if content is not None
            for number, replicas in decode_topic(path, content[0]).items()
        }
        me = self._broker.broker_id
        missing = {topic for topic, content in zip(topics, found, strict=False) if content is None}
        gone = {key for key in keys if key[0] in missing}
        for key in gone.difference(empty, self._kept):
            log.warning("%s-%d: there is no such topic; delete the log if nobody misses it", *key)
        self._kept = gone.difference(empty)
        return dict.fromkeys(gone.intersection(empty), NO_EPOCH) | {
            key: state.leader_epoch
            for key, content in zip(keys, found[len(paths) :], strict=True)
            if content is not None
            and me not in assigned.get((topic_path(key[0]), key[1]), (me,))
            and me not in (state := decode_state(state_path(*key), content[0])).isr
        }


def _list_unsettled(replicas: Replicas) -> dict[PartitionKey, Role | None]:
    """Return the replicas, with their roles, that have none or are refused what they ask for."""
    roles = {replica.key: replica.role for replica in replicas}
    return {key: role for key, role in roles.items() if role is None or role.is_refused}
