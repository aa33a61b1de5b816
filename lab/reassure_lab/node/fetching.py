"""Asks leaders for what the replicas that follow them lack: a thread for each leader."""

import logging
import threading
import time
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from kio.schema.errors import ErrorCode

from reassure_controller.broker import Broker
from reassure_controller.replication.following import Following
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.messages import (
    AskEpochEnd,
    EpochEndTold,
    Fetch,
    Fetched,
    Request,
)
from reassure_controller.session import Indefinite
from reassure_lab.node.metadata import ClusterMetadata
from reassure_lab.node.request_handler import name_follower
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.messages import (
    EpochPartition,
    EpochTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetForLeaderEpochRequest,
)
from reassure_spec.znodes import BadZnode, PartitionKey

log = logging.getLogger(__name__)

WAIT_MS: Final = 500
"""How long a leader may hold a fetch back until there is more: replica.fetch.wait.max.ms."""
PAUSE_S: Final = 0.02
"""How long a fetcher rests when it may not ask, or was refused."""
BACKOFF_S: Final = 0.2
"""How long a fetcher rests when its leader was not reached, and at first who was refused."""
BACKOFF_MAX_S: Final = 1.0
"""How long who is refused again and again rests at most: Kafka's own replica.fetch.backoff.ms."""

RESPONSE_BYTES: Final = 10 * 2**20
"""Kafka's own replica.fetch.response.max.bytes."""
Rests = dict[PartitionKey, tuple[float, float]]
_NO_REST: Final = 0.0, BACKOFF_S / 2


def list_leaders(replicas: Replicas) -> set[int]:
    """Return the brokers that replicas of this one follow."""
    roles = (replica.role for replica in replicas)
    return {role.leader for role in roles if isinstance(role, Following)}


class Fetchers:
    """The fetchers of a broker."""

    def __init__(self, broker: Broker, cluster: ClusterMetadata) -> None:
        self._broker = broker
        self._cluster = cluster
        self._lock = threading.Lock()
        """Held by who starts a fetcher, or ends one."""
        self._threads: dict[int, threading.Thread] = {}
        self._ended = threading.Event()

    def start_missing(self) -> None:
        """Start a fetcher for each leader that has none; one with nobody to fetch for ends."""
        with self._lock:
            replicas = self._broker.replicas
            leaders = set() if replicas is None else list_leaders(replicas)
            for leader in leaders - self._threads.keys():
                thread = threading.Thread(
                    target=self._run, args=(leader,), name=f"fetch-{leader}", daemon=True
                )
                self._threads[leader] = thread
                thread.start()

    def close(self) -> None:
        """End every fetcher, and wait for it."""
        self._ended.set()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

    def _run(self, leader: int) -> None:
        connection: Connection | None = None
        named = ""
        served: dict[PartitionKey, int] = {}
        rests: Rests = {}
        while not self._ended.is_set():
            with self._lock:
                replicas = self._broker.replicas
                if replicas is None or leader not in list_leaders(replicas):
                    del self._threads[leader]
                    break
            requests = [request for _, request in replicas.next_requests(leader)]
            name = name_follower(replicas.broker_id, replicas.broker_epoch)
            try:
                if connection is None or not connection.is_open or named != name:
                    if connection is not None:
                        connection.close()
                    address, named = self._cluster.find_address(leader), name
                    connection = None if address is None else Connection(*address, name)
                busy = connection is not None and self._exchange(
                    connection, requests, served, rests
                )
                self._ended.wait(0 if busy else PAUSE_S if connection else BACKOFF_S)
            except (NoAnswer, Indefinite) as error:
                log.info("nothing was fetched from broker %d: %s", leader, error)
                self._ended.wait(BACKOFF_S)
            except BadZnode as bad:
                log.warning("%s; nothing is fetched from broker %d until it is mended", bad, leader)
                self._ended.wait(BACKOFF_S)
            except Exception:  # a fetcher that ended would leave its replicas behind for good
                log.exception("nothing was fetched from broker %d", leader)
                self._ended.wait(BACKOFF_S)
        if connection is not None:
            connection.close()

    def _exchange(
        self,
        connection: Connection,
        requests: Iterable[Request],
        served: dict[PartitionKey, int],
        rests: Rests,
    ) -> bool:
        """Ask, and have the replicas take the answers; return whether to go on at once.

        Who has got records before all others comes first (`served`: with which request it was), as
        an answer that is full has nothing for the last ones. Who is refused rests for a while
        (`rests`: until when, and how long): a leader that knows of nothing yet learns of it no
        sooner, and answers at once whoever asks for thousands of partitions and one of those.
        """
        now_s = time.monotonic()
        requests = [one for one in requests if rests.get(one.key, _NO_REST)[0] <= now_s]
        found = (one for one in requests if isinstance(one, Fetch))
        fetches = {one.key: one for one in sorted(found, key=lambda one: served.get(one.key, 0))}
        questions = {one.key: one for one in requests if isinstance(one, AskEpochEnd)}
        answers: list[Fetched | EpochEndTold] = []
        if questions:
            answers += _ask_epochs(connection, questions)
        if fetches:
            answers += _fetch(connection, fetches)
        for answer in answers:
            if isinstance(answer, Fetched) and answer.records:
                served[answer.key] = answer.correlation[1]
            if answer.error:
                rest_s = min(2 * rests.get(answer.key, _NO_REST)[1], BACKOFF_MAX_S)
                rests[answer.key] = time.monotonic() + rest_s, rest_s
            else:
                rests.pop(answer.key, None)
            if self._broker.replicas is not None:
                self._broker.replicas.take(answer)
        return not all(one.error for one in answers)


def _fetch(connection: Connection, asked: dict[PartitionKey, Fetch]) -> list[Fetched]:
    topics = tuple(
        FetchTopic(
            topic,
            tuple(
                FetchPartition(key[1], one.offset, one.max_bytes, one.leader_epoch)
                for key, one in found
            ),
        )
        for topic, found in groupby(asked.items(), _get_topic)
    )
    replica = next(iter(asked.values())).replica
    response = connection.ask(FetchRequest(replica, WAIT_MS, 1, topics, RESPONSE_BYTES))
    return [
        Fetched(
            key,
            asked[key].correlation,
            _name(found.error_code),
            found.high_watermark,
            found.records or b"",
            max(0, found.log_start_offset),
        )
        for topic in response.responses
        for found in topic.partitions
        if (key := (topic.topic, found.partition_index)) in asked
    ]


def _ask_epochs(
    connection: Connection, asked: dict[PartitionKey, AskEpochEnd]
) -> list[EpochEndTold]:
    topics = tuple(
        EpochTopic(
            topic, tuple(EpochPartition(key[1], one.epoch, one.leader_epoch) for key, one in found)
        )
        for topic, found in groupby(asked.items(), _get_topic)
    )
    replica = next(iter(asked.values())).replica
    response = connection.ask(OffsetForLeaderEpochRequest(topics, replica))
    return [
        EpochEndTold(
            key,
            asked[key].correlation,
            _name(found.error_code),
            found.leader_epoch,
            found.end_offset,
        )
        for topic in response.topics
        for found in topic.partitions
        if (key := (topic.topic, found.partition)) in asked
    ]


def _get_topic(asked: tuple[PartitionKey, object]) -> str:
    return asked[0][0]


def _name(error: ErrorCode) -> str:
    return "" if error == ErrorCode.none else error.name.upper()
