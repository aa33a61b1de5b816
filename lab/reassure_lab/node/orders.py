"""A controller's orders in Kafka's formats: LeaderAndIsr and StopReplica.

A request of Kafka's can be for many partitions. Ours are for one each, which is allowed.
"""

import logging
import time
from collections.abc import Iterator
from typing import Any, Final

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

log = logging.getLogger(__name__)

Order = LeaderAndIsr | StopReplica
OrderRequest = LeaderAndIsrRequest | StopReplicaRequest
OrderResponse = LeaderAndIsrResponse | StopReplicaResponse

SILENT_S: Final = 0.2
"""How long a broker is left alone that was not reached."""

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


def to_request(order: Order) -> OrderRequest:
    """Return the request that carries an order."""
    if isinstance(order, StopReplica):
        stopped = StopReplicaPartition(order.partition, order.leader_epoch, order.delete)
        topic = StopReplicaTopic(order.topic, (stopped,))
        return StopReplicaRequest(
            order.controller, order.controller_epoch, order.broker_epoch, (topic,)
        )
    state = LeaderAndIsrPartition(
        order.partition,
        order.state_controller_epoch,
        order.leader,
        order.leader_epoch,
        order.isr,
        order.state_version,
        order.replicas,
        order.is_new,
    )
    topics = (LeaderAndIsrTopic(order.topic, (state,)),)
    return LeaderAndIsrRequest(order.controller, order.controller_epoch, order.broker_epoch, topics)


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


def to_reply(response: OrderResponse) -> Reply:
    """Return the reply that a response to one order carries."""
    errors = (response.error_code, *(one.error_code for one in response.partition_errors))
    found = next((error for error in errors if error != ErrorCode.none), ErrorCode.none)
    return Reply("ok" if found == ErrorCode.none else found.name.upper())


class WireTransport:
    """Delivers to brokers over the wire; one connection per broker is kept open."""

    def __init__(self, controller: int, timeout_s: float = 2.0) -> None:
        self._client_id = f"controller-{controller}"
        self._timeout_s = timeout_s
        self._connections: dict[int, tuple[tuple[str, int], Connection]] = {}
        """By broker: where it was reached, and the connection."""
        self._silent_until_s: dict[int, float] = {}
        """By broker that was not reached: until when it is not tried again."""

    def send(self, broker: LiveBroker, message: Message) -> Reply | None:
        """Deliver an order and return the answer, or None when the broker is not reached.

        A kept connection that turns out to be dead is opened once more: an order that comes twice
        is ignored the second time. One broker that does not answer shall not hold up what others
        are told: it is not tried again for a moment.
        """
        if not isinstance(message, Order):
            raise TypeError(f"a controller does not send {message}")
        if time.monotonic() < self._silent_until_s.get(broker.id, 0.0):
            return None
        connection = self._connect(broker)
        request: Asks[Any] = to_request(message)
        for _ in range(2 if connection.is_open else 1):
            try:
                return to_reply(connection.ask(request))
            except NoAnswer as silent:
                log.info("broker %d is not reached: %s", broker.id, silent)
        self._silent_until_s[broker.id] = time.monotonic() + SILENT_S
        return None

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
