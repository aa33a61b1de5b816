"""A controller's orders in Kafka's formats: LeaderAndIsr, StopReplica and UpdateMetadata.

One request carries what is due to a broker of many partitions, as long as it is of one kind and one
controller epoch. Its order is not part of the format, so no partition is there twice. It has the
newest version that the broker understands; brokers before Kafka 2.2 know no broker epochs, and are
given no orders.
"""

import base64
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from reassure_controller.context import LiveBroker
from reassure_controller.messages import NO_EPOCH, LeaderAndIsr, Reply, StopReplica
from reassure_controller.replication.errors import STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from reassure_lab.wire.apis import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.entities import fill
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.frames import load_request, load_response
from reassure_lab.wire.messages import KioMessage
from reassure_spec.znodes import PartitionKey

log = logging.getLogger(__name__)

Order = LeaderAndIsr | StopReplica
TopicIds = Mapping[str, UUID]
NO_IDS: Final[TopicIds] = MappingProxyType({})

NOT_UNDERSTOOD: Final = "UNSUPPORTED_VERSION"
"""The reply of a broker that has no version of a request which is known here."""
ANSWER_S: Final = 10.0
"""How long a broker may take for what one request orders: it makes a log for each new replica."""


@dataclass(frozen=True, slots=True)
class ClusterNews:
    """What a broker is told for its clients: who is there, and how some partitions stand."""

    controller: int
    controller_epoch: int
    broker_epoch: int
    """Which life of the broker is told."""
    brokers: tuple[Mapping[str, Any], ...]
    """All that are alive, by kio's names of what UpdateMetadata says of them."""
    topics: tuple[Mapping[str, Any], ...]
    """What is new of partitions, in the same way."""


_VERSIONS: Final = {
    LEADER_AND_ISR: range(2, 8),
    STOP_REPLICA: range(1, 5),
    UPDATE_METADATA: range(5, 9),
}
"""The versions that can be sent, from Kafka 2.2 on."""
_FENCED: Final = ErrorCode.fenced_leader_epoch.name.upper()
_STRICT: Final = 3
"""Up to this version of StopReplica, Kafka 2.6 to 3.3, brokers refuse one of the leader epoch that
they know (KAFKA-13972). It is then sent without any, as before 2.6: orders come in turn."""
_WITH_TOPIC_IDS: Final = 5
"""From this version on the answer to LeaderAndIsr names topics by their ids alone."""
_KEYS: Final[dict[type, int]] = {
    LeaderAndIsr: LEADER_AND_ISR,
    StopReplica: STOP_REPLICA,
    ClusterNews: UPDATE_METADATA,
}
_WHOLE = {
    STALE_CONTROLLER_EPOCH: ErrorCode.stale_controller_epoch,
    STALE_BROKER_EPOCH: ErrorCode.stale_broker_epoch,
}
"""Replies that are about a request as a whole."""
_PARTITION = {
    "ok": ErrorCode.none,
    "ignored": ErrorCode.stale_controller_epoch,
    "not-a-replica": ErrorCode.unknown_topic_or_partition,
}
"""Replies that are about a partition."""


def batch_orders(
    orders: Sequence[Order | ClusterNews], ids: TopicIds = NO_IDS
) -> Iterator[tuple[Any, ...]]:
    """Yield what one request can carry, in order."""
    batch: dict[PartitionKey | None, Order | ClusterNews] = {}
    for order in orders:
        key = None if isinstance(order, ClusterNews) else (order.topic, order.partition)
        first = next(iter(batch.values()), order)
        if key in batch or _tell_apart(order, ids) != _tell_apart(first, ids):
            yield tuple(batch.values())
            batch = {}
        batch[key] = order
    if batch:
        yield tuple(batch.values())


def _tell_apart(order: Order | ClusterNews, ids: TopicIds) -> tuple[object, ...]:
    """Return what all that one request carries has in common, in some version."""
    deletes = isinstance(order, StopReplica) and order.delete
    named = isinstance(order, LeaderAndIsr) and order.topic in ids
    return type(order), order.controller_epoch, deletes, named


def find_id(text: str) -> UUID | None:
    """Return a topic's id as it goes over the wire, None where it has none.

    >>> find_id("AAAAAAAAAAAAAAAAAAAAAQ")
    UUID('00000000-0000-0000-0000-000000000001')
    """
    return UUID(bytes=base64.urlsafe_b64decode(f"{text}==")) if text else None


def to_request(batch: Sequence[Any], version: int, ids: TopicIds = NO_IDS) -> KioMessage:
    """Return the request that carries one batch to one broker, in a version."""
    first = batch[0]
    head = {
        "controller_id": first.controller,
        "controller_epoch": first.controller_epoch,
        "broker_epoch": first.broker_epoch,
    }
    if isinstance(first, ClusterNews):
        content: dict[str, Any] = {"live_brokers": first.brokers, "topic_states": first.topics}
    else:
        by_topic: dict[str, list[Order]] = {}
        for order in batch:
            by_topic.setdefault(order.topic, []).append(order)
        content = _stop(by_topic) if isinstance(first, StopReplica) else _tell(by_topic, ids)
    return KioMessage(fill(load_request(_KEYS[type(first)], version), {**head, **content}))


def _stop(by_topic: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    topics = [
        {
            "topic_name": topic,
            "partition_states": [
                {
                    "partition_index": one.partition,
                    "leader_epoch": one.leader_epoch,
                    "delete_partition": one.delete,
                }
                for one in some
            ],
            "name": topic,
            "partition_indexes": tuple(one.partition for one in some),
        }
        for topic, some in by_topic.items()
    ]  # before Kafka 2.6 a topic has the last two, and all are deleted or none
    deletes = all(one.delete for some in by_topic.values() for one in some)
    return {"topic_states": topics, "topics": topics, "delete_partitions": deletes}


def _tell(by_topic: Mapping[str, Sequence[Any]], ids: TopicIds) -> dict[str, Any]:
    topics = [
        {
            "topic_name": topic,
            "topic_id": ids.get(topic),
            "partition_states": [
                {
                    "partition_index": one.partition,
                    "controller_epoch": one.state_controller_epoch,
                    "leader": one.leader,
                    "leader_epoch": one.leader_epoch,
                    "isr": one.isr,
                    "partition_epoch": one.state_version,
                    "replicas": one.replicas,
                    "is_new": one.is_new,
                }
                for one in some
            ],
        }
        for topic, some in by_topic.items()
    ]
    return {"topic_states": topics}


def list_orders(request: KioMessage) -> Iterator[Order]:
    """Yield the orders that a request carries, which has a version that brokers here know."""
    entity = request.entity
    controller, epoch = entity.controller_id, entity.controller_epoch
    for topic in entity.topic_states:
        for one in topic.partition_states:
            if entity.__api_key__ == STOP_REPLICA:
                yield StopReplica(
                    controller,
                    epoch,
                    topic.topic_name,
                    one.partition_index,
                    one.delete_partition,
                    entity.broker_epoch,
                    one.leader_epoch,
                )
                continue
            yield LeaderAndIsr(
                controller,
                epoch,
                topic.topic_name,
                one.partition_index,
                one.leader,
                one.leader_epoch,
                one.isr,
                one.controller_epoch,
                one.partition_epoch,
                one.replicas,
                one.is_new,
                entity.broker_epoch,
            )


def find_error(reply: Reply) -> tuple[ErrorCode, ErrorCode]:
    """Return what a broker's reply to one order says of the request, and of the partition."""
    whole = _WHOLE.get(reply.result, ErrorCode.none)
    return whole, ErrorCode.none if whole != ErrorCode.none else _PARTITION[reply.result]


def to_response(
    request: KioMessage, whole: ErrorCode, errors: Mapping[PartitionKey, ErrorCode]
) -> KioMessage:
    """Return the response to a request as a whole, and to each of its partitions."""
    named = [
        {"topic_name": topic, "partition_index": partition, "error_code": error}
        for (topic, partition), error in errors.items()
    ]
    kind = load_response(request.entity.__api_key__, request.version)
    return KioMessage(fill(kind, {"error_code": whole, "partition_errors": named}))


def to_replies(response: KioMessage, orders: Sequence[Any], ids: TopicIds = NO_IDS) -> list[Reply]:
    """Return the reply to each order that a response carries; what it does not name is done."""
    entity, found = response.entity, {}
    for one in getattr(entity, "partition_errors", ()):
        found[one.topic_name, one.partition_index] = one.error_code
    for topic in getattr(entity, "topics", ()):
        for one in topic.partition_errors:
            found[topic.topic_id, one.partition_index] = one.error_code
    replies = []
    for order in orders:
        error = entity.error_code
        if error == ErrorCode.none and isinstance(order, Order):
            name: object = order.topic
            if isinstance(order, LeaderAndIsr) and hasattr(entity, "topics"):
                name = ids.get(order.topic)
            error = found.get((name, order.partition), error)
        replies.append(Reply("ok" if error == ErrorCode.none else error.name.upper()))
    return replies


class WireTransport:
    """Delivers to brokers over the wire; one connection per broker is kept open."""

    def __init__(
        self, controller: int, ids: TopicIds = NO_IDS, *, timeout_s: float = ANSWER_S
    ) -> None:
        """Deliver for a controller; `ids` are those of topics, and may change."""
        self._ids = ids
        self._client_id = f"controller-{controller}"
        self._timeout_s = timeout_s
        self._connections: dict[int, tuple[tuple[str, int], Connection]] = {}
        """By broker: where it was reached, and the connection."""

    def send_all(self, broker: LiveBroker, messages: Sequence[Any]) -> list[Reply | None]:
        """Deliver orders, and return the answer to each, or None where the broker is not reached.

        A kept connection that turns out to be dead is opened once more: an order that comes twice
        is ignored the second time. Raises TypeError for what no controller sends.
        """
        for message in messages:
            if not isinstance(message, Order | ClusterNews):
                raise TypeError(f"a controller does not send {message}")
        replies: list[Reply | None] = []
        for batch in batch_orders(messages, self._ids):
            if None not in replies:
                replies += self._ask(broker, batch)
        return replies + [None] * (len(messages) - len(replies))

    def _ask(self, broker: LiveBroker, batch: Sequence[Any]) -> Sequence[Reply | None]:
        connection = self._connect(broker)
        for _ in range(2 if connection.is_open else 1):
            try:
                return self._exchange(connection, batch)
            except NoAnswer as silent:
                log.info("broker %d is not reached: %s", broker.id, silent)
        return [None] * len(batch)

    def _exchange(self, connection: Connection, batch: Sequence[Any]) -> list[Reply]:
        """Return the replies to one batch. Raises NoAnswer."""
        first = batch[0]
        key = _KEYS[type(first)]
        known = _VERSIONS[key]
        if isinstance(first, LeaderAndIsr) and first.topic not in self._ids:
            known = range(known.start, _WITH_TOPIC_IDS)
        version = connection.find_version(key, known)
        if version is None:
            return [Reply(NOT_UNDERSTOOD)] * len(batch)
        request = to_request(batch, version, self._ids)
        replies = to_replies(connection.ask(request), batch, self._ids)
        refused = [n for n, reply in enumerate(replies) if reply.result == _FENCED]
        if isinstance(first, StopReplica) and version <= _STRICT and refused:
            again = [replace(batch[n], leader_epoch=NO_EPOCH) for n in refused]
            answers = to_replies(connection.ask(to_request(again, version)), again)
            for n, reply in zip(refused, answers, strict=True):
                replies[n] = reply
        return replies

    def close(self) -> None:
        """Close every connection."""
        for _, connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connect(self, broker: LiveBroker) -> Connection:
        """Return the connection to a broker; one to where it listened before is closed."""
        address = (broker.host, broker.port)
        known, connection = self._connections.get(broker.id, (None, None))
        if connection is None or known != address:
            if connection is not None:
                connection.close()
            connection = Connection(*address, self._client_id, timeout_s=self._timeout_s)
            self._connections[broker.id] = address, connection
        return connection
