"""A client of the brokers that says exactly what it was answered, and repeats nothing by itself.

It finds leaders by asking brokers, and never goes back to an earlier leader epoch of a partition
(KIP-320): a broker that has been deposed and does not know it yet cannot show it an older mark.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from reassure_controller.storage.records import Record, decode, encode
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.messages import (
    CONSUMER,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    MetadataRequest,
    MetadataRequestTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from reassure_spec.znodes import PartitionKey

Address = tuple[str, int]
ANSWER_S: Final = 4.0
"""How long a broker may take to answer."""
ACKS_MS: Final = 3_000
"""How long a leader may wait for the replicas in sync."""
FETCH_BYTES: Final = 1 << 20
NAME: Final = "soak"


class NoLeader(Exception):
    """Nobody that was asked knows who leads, or the one who is said to lead does not."""


@dataclass(frozen=True, slots=True)
class ProducedAt:
    """What came of records that were sent."""

    outcome: Literal["acknowledged", "refused", "unknown"]
    """`unknown`: no answer, or one that leaves open whether the records stay."""
    base_offset: int = -1
    error: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a consumer was shown."""

    high_watermark: int
    records: tuple[tuple[int, bytes], ...]
    """Offset and value of each, from the offset on that was asked for."""


@dataclass(slots=True)
class _Leader:
    epoch: int
    address: Address


@dataclass(slots=True)
class RecordClient:
    """One client; for one thread."""

    bootstrap: Sequence[Address]
    _leaders: dict[PartitionKey, _Leader] = field(default_factory=dict)
    _epochs: dict[PartitionKey, int] = field(default_factory=dict)
    """The latest leader epoch that is known of each partition."""
    _connections: dict[Address, Connection] = field(default_factory=dict)
    _asked: int = 0

    def close(self) -> None:
        """End every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def produce(self, key: PartitionKey, values: Sequence[bytes]) -> ProducedAt:
        """Send records, to be answered when all replicas in sync have them. Raises NoLeader."""
        leader = self._find_leader(key)
        raw = encode([Record(None, value) for value in values], 0, 0, time.time_ns() // 1_000_000)
        topics = (ProduceTopic(key[0], (ProducePartition(key[1], raw),)),)
        try:
            answer = self._connect(leader.address).ask(ProduceRequest(-1, ACKS_MS, topics))
        except NoAnswer as silent:
            self._forget(key)
            return ProducedAt("unknown", error=str(silent))
        found = answer.responses[0].partition_responses[0]
        error = found.error_code.name
        if error == "none":
            return ProducedAt("acknowledged", found.base_offset)
        self._forget(key)
        # Any other error may come after the records were appended, and they may stay.
        return ProducedAt("refused" if error == "not_enough_replicas" else "unknown", error=error)

    def fetch(self, key: PartitionKey, offset: int, wait_ms: int = 100) -> Seen:
        """Read from an offset on; wait a moment where there is nothing yet. Raises NoLeader."""
        leader = self._find_leader(key)
        part = FetchPartition(key[1], offset, FETCH_BYTES, leader.epoch)
        request = FetchRequest(CONSUMER, wait_ms, 1, (FetchTopic(key[0], (part,)),), FETCH_BYTES)
        try:
            found = self._connect(leader.address).ask(request).responses[0].partitions[0]
        except NoAnswer as silent:
            self._forget(key)
            raise NoLeader(str(silent)) from silent
        if found.error_code.name != "none":
            self._forget(key)
            raise NoLeader(f"{key[0]}-{key[1]}: {found.error_code.name} at offset {offset}")
        records = tuple(
            (at, record.value or b"") for at, record in decode(found.records or b"") if at >= offset
        )
        return Seen(found.high_watermark, records)

    def _find_leader(self, key: PartitionKey) -> _Leader:
        """Return who leads, in the latest epoch that is known. Raises NoLeader."""
        if key not in self._leaders:
            found = self._ask_leader(key)
            if found.epoch < self._epochs.get(key, -1):
                raise NoLeader(f"{key[0]}-{key[1]}: an earlier epoch was told, {found.epoch}")
            self._epochs[key] = found.epoch
            self._leaders[key] = found
        return self._leaders[key]

    def _ask_leader(self, key: PartitionKey) -> _Leader:
        self._asked += 1
        address = self.bootstrap[self._asked % len(self.bootstrap)]
        try:
            answer = self._connect(address).ask(MetadataRequest((MetadataRequestTopic(key[0]),)))
        except NoAnswer as silent:
            raise NoLeader(str(silent)) from silent
        where = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for topic in answer.topics:
            for part in topic.partitions:
                if part.partition_index == key[1] and part.leader_id in where:
                    return _Leader(part.leader_epoch, where[part.leader_id])
        raise NoLeader(f"{key[0]}-{key[1]}: it has no leader")

    def _connect(self, address: Address) -> Connection:
        if address not in self._connections:
            self._connections[address] = Connection(*address, NAME, timeout_s=ANSWER_S)
        return self._connections[address]

    def _forget(self, key: PartitionKey) -> None:
        self._leaders.pop(key, None)
