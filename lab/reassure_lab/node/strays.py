"""Logs of partitions that have moved away while their broker could not be told.

The controller tells a broker to delete a replica once, when the partition has moved. A broker that
was dead then, or cut off, would keep the log for ever. So it looks by itself where it may have
missed that: at replicas that nobody has told anything since the broker registered, and at followers
that their leader refuses.
"""

import logging
import threading
import time
from typing import Final

from kazoo.client import KazooClient

from reassure_controller.broker import Broker
from reassure_controller.replication.following import Following
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

LOOK_S: Final = 5.0
"""How often a broker looks."""


class Strays:
    """Finds and deletes them, while `lock` keeps orders away."""

    def __init__(self, client: KazooClient, broker: Broker, lock: threading.RLock) -> None:
        self._client = client
        self._broker = broker
        self._lock = lock
        self._due_s = time.monotonic() + LOOK_S

    def tick(self) -> None:
        """Look, if it is time to and ZooKeeper answers."""
        if time.monotonic() < self._due_s or not self._client.connected:
            return
        self._due_s = time.monotonic() + LOOK_S
        try:
            self.sweep()
        except (Indefinite, BadZnode) as unknown:
            log.info("it is not known which logs are stray: %s", unknown)

    def sweep(self) -> None:
        """Delete what has moved away. Raises Indefinite, BadZnode.

        ZooKeeper is asked without the lock. Whoever has got another role meanwhile is left alone.
        """
        with self._lock:
            replicas = self._broker.replicas
            unsettled = {} if replicas is None else _list_unsettled(replicas)
        stray = [key for key in unsettled if self._has_moved_away(key)]
        with self._lock:
            if replicas is None or replicas is not self._broker.replicas:
                return
            now = _list_unsettled(replicas)
            for key in stray:
                if key in now and now[key] is unsettled[key]:
                    log.info("%s-%d: it has moved away; its log is deleted", *key)
                    self._broker.give_up(key)

    def _has_moved_away(self, key: PartitionKey) -> bool:
        """Whether the partition is neither assigned to the broker nor in sync on it, by now.

        The server that is asked may lag behind, so it has to catch up first. Of a topic that is
        not there nothing is known: deleting topics is the controller's.
        """
        topic, state = topic_path(key[0]), state_path(*key)
        caught_up = self._client.sync_async("/")
        reads = [self._client.get_async(path) for path in (topic, state)]
        _, *found = gather([caught_up, *reads])
        if None in found:
            return False
        assigned = decode_topic(topic, found[0][0]).get(key[1])
        isr = decode_state(state, found[1][0]).isr
        me = self._broker.broker_id
        return assigned is not None and me not in assigned and me not in isr


def _list_unsettled(replicas: Replicas) -> dict[PartitionKey, Role | None]:
    """Return the replicas, with their roles, that have none or whose leader refuses them."""
    roles = {replica.key: replica.role for replica in replicas}
    return {
        key: role
        for key, role in roles.items()
        if role is None or (isinstance(role, Following) and role.is_refused)
    }
