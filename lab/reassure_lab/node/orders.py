"""A controller's orders in Kafka's formats: LeaderAndIsr and StopReplica.

One request carries what is due to a broker of many partitions, as long as it is of one kind and one
controller epoch. Its order is not part of the format, so no partition is there twice.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from reassure_controller.context import LiveBroker
from reassure_controller.messages import LeaderAndIsr, Message, Reply, StopReplica
from reassure_controller.replication.errors import STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.messages import (
    Asks,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopic,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopic,
)
from reassure_spec.znodes import PartitionKey

log = logging.getLogger(__name__)

Order = LeaderAndIsr | StopReplica
OrderRequest = LeaderAndIsrRequest | StopReplicaRequest
OrderResponse = LeaderAndIsrResponse | StopReplicaResponse

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


def batch_orders(orders: Sequence[Order]) -> Iterator[tuple[Order, ...]]:
    """Yield what one request can carry, in order."""
    batch: dict[PartitionKey, Order] = {}
    for order in orders:
        key = (order.topic, order.partition)
        first = next(iter(batch.values()), order)
        alike = type(order) is type(first) and order.controller_epoch == first.controller_epoch
        if key in batch or not alike:
            yield tuple(batch.values())
            batch = {}
        batch[key] = order
    if batch:
        yield tuple(batch.values())


def to_request(orders: Sequence[Order]) -> OrderRequest:
    """Return the request that carries orders of one batch to one broker."""
    first = orders[0]
    head = (first.controller, first.controller_epoch, first.broker_epoch)
    by_topic: dict[str, list[Order]] = {}
    for order in orders:
        by_topic.setdefault(order.topic, []).append(order)
    if isinstance(first, StopReplica):
        return StopReplicaRequest(
            *head,
            tuple(
                StopReplicaTopic(topic, tuple(_to_stop(one) for one in some))
                for topic, some in by_topic.items()
            ),
        )
    return LeaderAndIsrRequest(
        *head,
        tuple(
            LeaderAndIsrTopic(topic, tuple(_to_state(one) for one in some))
            for topic, some in by_topic.items()
        ),
    )


def _to_stop(order: Order) -> StopReplicaPartition:
    assert isinstance(order, StopReplica)
    return StopReplicaPartition(order.partition, order.leader_epoch, order.delete)


def _to_state(order: Order) -> LeaderAndIsrPartition:
    assert isinstance(order, LeaderAndIsr)
    return LeaderAndIsrPartition(
        order.partition,
        order.state_controller_epoch,
        order.leader,
        order.leader_epoch,
        order.isr,
        order.state_version,
        order.replicas,
        order.is_new,
    )


def list_orders(request: OrderRequest) -> Iterator[Order]:
    """Yield the orders that a request carries."""
    controller, epoch, broker_epoch = (
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
    )
    if isinstance(request, StopReplicaRequest):
        for stopped in request.topic_states:
            for one in stopped.partition_states:
                yield StopReplica(
                    controller,
                    epoch,
                    stopped.topic_name,
                    one.partition_index,
                    one.delete_partition,
                    broker_epoch,
                    one.leader_epoch,
                )
        return
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield LeaderAndIsr(
                controller,
                epoch,
                topic.topic_name,
                state.partition_index,
                state.leader,
                state.leader_epoch,
                state.isr,
                state.controller_epoch,
                state.partition_epoch,
                state.replicas,
                state.is_new,
                broker_epoch,
            )


def find_error(reply: Reply) -> tuple[ErrorCode, ErrorCode]:
    """Return what a broker's reply to one order says of the request, and of the partition."""
    whole = _WHOLE.get(reply.result, ErrorCode.none)
    return whole, ErrorCode.none if whole != ErrorCode.none else _PARTITION[reply.result]


def to_replies(response: OrderResponse, orders: Sequence[Order]) -> list[Reply]:
    """Return the reply to each order that a response carries; what it does not name is done."""
    found = {
        (one.topic_name, one.partition_index): one.error_code for one in response.partition_errors
    }
    whole = response.error_code
    errors = (
        whole if whole != ErrorCode.none else found.get((one.topic, one.partition), whole)
        for one in orders
    )
    return [Reply("ok" if each == ErrorCode.none else each.name.upper()) for each in errors]


class WireTransport:
    """Delivers to brokers over the wire; one connection per broker is kept open."""

    def __init__(self, controller: int, timeout_s: float = 2.0) -> None:
        self._client_id = f"controller-{controller}"
        self._timeout_s = timeout_s
        self._connections: dict[int, tuple[tuple[str, int], Connection]] = {}
        """By broker: where it was reached, and the connection."""

    def send_all(self, broker: LiveBroker, messages: Sequence[Message]) -> list[Reply | None]:
        """Deliver orders, and return the answer to each, or None where the broker is not reached.

        A kept connection that turns out to be dead is opened once more: an order that comes twice
        is ignored the second time. Raises TypeError for what no controller sends.
        """
        orders: list[Order] = []
        for message in messages:
            if not isinstance(message, Order):
                raise TypeError(f"a controller does not send {message}")
            orders.append(message)
        replies: list[Reply | None] = []
        for batch in batch_orders(orders):
            if None not in replies:
                replies += self._ask(broker, batch)
        return replies + [None] * (len(orders) - len(replies))

    def _ask(self, broker: LiveBroker, batch: Sequence[Order]) -> Sequence[Reply | None]:
        connection = self._connect(broker)
        request: Asks[Any] = to_request(batch)
        for _ in range(2 if connection.is_open else 1):
            try:
                return to_replies(connection.ask(request), batch)
            except NoAnswer as silent:
                log.info("broker %d is not reached: %s", broker.id, silent)
        return [None] * len(batch)

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
