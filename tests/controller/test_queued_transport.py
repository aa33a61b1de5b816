"""Orders that are delivered in the background."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from reassure_controller.broker import Broker
from reassure_controller.context import LiveBroker
from reassure_controller.controller import Controller
from reassure_controller.messages import Message, Reply, StopReplica
from reassure_controller.session import connect
from reassure_controller.transport import QueuedTransport
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


class Split:
    """Delivers to one broker at once, and to any other never: it waits until the test is over."""

    def __init__(self, broker: Broker, over: threading.Event) -> None:
        self._broker, self._over = broker, over

    def send_all(self, broker: LiveBroker, messages: Sequence[Message]) -> list[Reply | None]:
        """Deliver, or wait."""
        if broker.id == self._broker.broker_id:
            return [self._broker.handle(one) for one in messages]
        self._over.wait(60)
        return [None for _ in messages]

    def close(self) -> None:
        """Nothing is open."""


def test_broker_that_never_answers_holds_up_no_other(cluster: Any) -> None:
    """A new topic gets its leader, who is told, while a broker keeps the controller waiting."""
    broker, end = Broker(connect(cluster.hosts), 11), threading.Event()
    broker.register()
    transport = QueuedTransport(lambda: Split(broker, end))
    controller = Controller(connect(cluster.hosts), 100, transport)
    cluster.admin.create(broker_path(12), encode_broker("127.0.0.1", 1, 0), ephemeral=True)
    thread = threading.Thread(target=controller.run_forever, args=(end,))
    thread.start()
    try:
        cluster.create_topic("t", {0: (12,), 1: (11, 12)})
        wait_for(lambda: broker.leads("t", 1))
        cluster.create_topic("u", {0: (11,)})
        wait_for(lambda: broker.leads("u", 0))
    finally:
        end.set()
        thread.join()
        controller.kill()
        transport.close()
        broker.stop()
