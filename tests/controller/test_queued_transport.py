"""Orders that are delivered in the background."""

import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from reassure_controller.broker import Broker
from reassure_controller.context import LiveBroker
from reassure_controller.controller import Controller
from reassure_controller.messages import Message, Reply, StopReplica
from reassure_controller.session import connect
from reassure_controller.transport import QueuedTransport, TcpTransport, TransportServer
from reassure_spec.znodes import broker_path, encode_broker

from .conftest import wait_for

ONE, TWO = (LiveBroker(number, 0, "127.0.0.1", 1) for number in (1, 2))

BROKEN = 77
"""A partition whose orders cannot be delivered for a reason of our own."""


def order(partition: int) -> StopReplica:
    """Return an order for a partition."""
    return StopReplica(100, 1, "t", partition, False, -1, 0)


class Slow:
    """Delivers to one broker at a time, each time when it is let to; keeps what was delivered."""

    def __init__(self, free: threading.Event, *, reached: bool = True) -> None:
        self.free = free
        self.reached = reached
        self.delivered: list[list[int]] = []
        self.closed = threading.Event()

    def send_all(self, _broker: LiveBroker, messages: Sequence[Message]) -> list[Reply | None]:
        """Deliver messages once that is free to be done."""
        numbers = [one.partition for one in messages if isinstance(one, StopReplica)]
        if BROKEN in numbers:
            raise ZeroDivisionError
        self.delivered.append(numbers)
        self.free.wait(10)
        return [Reply("ok") if self.reached else None for _ in messages]

    def close(self) -> None:
        """Note that it is closed."""
        self.closed.set()


def test_what_waits_for_a_broker_goes_together_and_holds_up_nobody() -> None:
    """Behind an order that is not answered the others wait, and another broker is served."""
    busy, free = threading.Event(), threading.Event()
    free.set()
    made = [Slow(busy), Slow(free)]
    left = iter(made)
    transport = QueuedTransport(lambda: next(left))
    answers = [transport.send(ONE, order(0))]
    wait_for(lambda: made[0].delivered == [[0]])
    answers += [transport.send(ONE, order(number)) for number in range(1, 5)]
    assert transport.send(TWO, order(0)).result(10) == Reply("ok")
    assert not any(answer.done() for answer in answers)
    busy.set()
    assert [answer.result(10) for answer in answers] == [Reply("ok")] * 5
    assert made[0].delivered == [[0], [1, 2, 3, 4]]
    transport.close()
    assert all(each.closed.wait(10) for each in made)


def test_what_waits_for_a_broker_that_is_not_reached_is_dropped() -> None:
    """Nothing piles up behind a broker that does not answer."""
    busy = threading.Event()
    slow = Slow(busy, reached=False)
    transport = QueuedTransport(lambda: slow)
    answers = [transport.send(ONE, order(0))]
    wait_for(lambda: slow.delivered == [[0]])
    answers += [transport.send(ONE, order(number)) for number in range(1, 5)]
    busy.set()
    assert [answer.result(10) for answer in answers] == [None] * 5
    assert slow.delivered == [[0]]
    transport.close()


def test_defect_reaches_whoever_asked() -> None:
    """What goes wrong in the background is raised where the answer is taken, and work goes on."""
    free = threading.Event()
    free.set()
    slow = Slow(free)
    transport = QueuedTransport(lambda: slow)
    with pytest.raises(ZeroDivisionError):
        transport.send(ONE, order(BROKEN)).result(10)
    assert transport.send(ONE, order(0)).result(10) == Reply("ok")
    transport.close()


def test_broker_that_never_answers_holds_up_no_other(cluster: Any) -> None:
    """A new topic gets its leader, who is told, while a broker keeps the controller waiting."""
    holder: list[Broker] = []
    server = TransportServer(lambda message: holder[0].handle(message))
    client = connect(cluster.hosts)
    holder.append(Broker(client, 11, address=server.address))
    holder[0].register()
    transport = QueuedTransport(lambda: TcpTransport(timeout_s=60))
    controller = Controller(connect(cluster.hosts), 100, transport)
    end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        registration = encode_broker(*silent.getsockname()[:2], 0)
        cluster.admin.create(broker_path(12), registration, ephemeral=True)
        thread = threading.Thread(target=controller.run_forever, args=(end,))
        thread.start()
        try:
            cluster.create_topic("t", {0: (12,), 1: (11, 12)})
            wait_for(lambda: holder[0].leads("t", 1))
            cluster.create_topic("u", {0: (11,)})
            wait_for(lambda: holder[0].leads("u", 0))
        finally:
            end.set()
            thread.join()
            controller.kill()
            transport.close()
            server.close()
            holder[0].stop()
