"""How messages reach brokers.

`LocalTransport` calls brokers of the same process at once, in the caller's thread, so that a test
sees every consequence of a message when the call returns. `QueuedTransport` delivers in the
background, by what it is given, so that a broker which answers late, or never, holds nobody else
up. A broker that cannot be reached is no error: the message is dropped, as it would be on a
network, and the broker is told again when it returns.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import groupby
from operator import itemgetter
from queue import SimpleQueue
from typing import Any, Final, Protocol, runtime_checkable

from reassure_controller.context import Context, LiveBroker
from reassure_controller.messages import Message, Reply, StatesMoved

SILENT_S: Final = 0.2
"""How long a broker is left alone that was not reached."""
MOST_AT_ONCE: Final = 50
"""How many messages are handed over to a broker together, at most: few enough that one which is
busy answers in time, or all of them would have to be given again."""

Handler = Callable[[Message], Reply]
"""What a broker does with a message."""
Answered = Reply | None
"""A broker's answer, None where it was not reached."""


class Transport(Protocol):
    """Carries messages to brokers."""

    def send(self, broker: LiveBroker, message: Message) -> "Answered | Future[Answered]":
        """Deliver the message and return the answer, or what will have it."""


@runtime_checkable
class HearsStates(Protocol):
    """A transport that hears of states as well."""

    def hear(self, moved: StatesMoved) -> None:
        """Take note of where a controller has taken a partition and its replicas."""


@runtime_checkable
class HearsCluster(Protocol):
    """A transport that tells brokers how the cluster stands, for their clients."""

    def tell_cluster(self, context: Context) -> bool:
        """Tell what is new in the context; return whether there is anybody who understands."""


class BulkTransport(Protocol):
    """Carries several messages at once to a broker, and waits for the answers."""

    def send_all(self, broker: LiveBroker, messages: Sequence[Any]) -> Sequence[Answered]:
        """Deliver messages in order and return an answer to each."""

    def close(self) -> None:
        """Close every connection."""


class LocalTransport:
    """Delivers to brokers of this process, synchronously."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}

    def register(self, broker: int, handler: Handler) -> None:
        """Deliver messages for this broker to `handler` from now on."""
        self._handlers[broker] = handler

    def unregister(self, broker: int) -> None:
        """Drop messages for this broker from now on."""
        self._handlers.pop(broker, None)

    def send(self, broker: LiveBroker, message: Message) -> Reply | None:
        """Deliver the message, or drop it when the broker is not registered here."""
        handler = self._handlers.get(broker.id)
        return None if handler is None else handler(message)


Posted = tuple[LiveBroker, Any, "Future[Answered]"]
"""A message on its way: to whom, what, and what will have the answer."""


class _Line(threading.Thread):
    """Delivers what is due to one broker, in order."""

    def __init__(self, broker: int, transport: BulkTransport) -> None:
        super().__init__(name=f"orders-{broker}", daemon=True)
        self._transport = transport
        self._silent_until_s = 0.0
        self.queue: SimpleQueue[Posted | None] = SimpleQueue()
        """None ends it."""

    def run(self) -> None:
        is_ended = False
        while not is_ended:
            waiting = [self.queue.get()]
            while len(waiting) < MOST_AT_ONCE and not self.queue.empty():
                waiting.append(self.queue.get())
            is_ended = None in waiting
            posted = [each for each in waiting if each is not None]
            for broker, group in groupby(posted, key=itemgetter(0)):
                self._deliver(broker, list(group))
        self._transport.close()

    def _deliver(self, broker: LiveBroker, posted: Sequence[Posted]) -> None:
        """Deliver messages; where the broker was not reached a moment ago they are dropped.

        So nothing piles up: who was not reached is told again of all that it has.
        """
        answers: Sequence[Answered] = [None] * len(posted)
        if time.monotonic() >= self._silent_until_s:
            try:
                answers = self._transport.send_all(broker, [message for _, message, _ in posted])
            except Exception as error:  # whoever takes the answer raises it
                for _, _, answer in posted:
                    answer.set_exception(error)
                return
            if None in answers:
                self._silent_until_s = time.monotonic() + SILENT_S
        for (_, _, answer), found in zip(posted, answers, strict=True):
            answer.set_result(found)


class QueuedTransport:
    """Delivers in the background: to each broker in order, several messages at once if they wait.

    `make` gives what delivers, one for each broker.
    """

    def __init__(self, make: Callable[[], BulkTransport]) -> None:
        self._make = make
        self._lines: dict[int, _Line] = {}

    def send(self, broker: LiveBroker, message: Any) -> "Future[Answered]":
        """Queue what `make` delivers, and return what will have the answer."""
        line = self._lines.get(broker.id)
        if line is None:
            line = self._lines[broker.id] = _Line(broker.id, self._make())
            line.start()
        answer: Future[Answered] = Future()
        line.queue.put((broker, message, answer))
        return answer

    def close(self) -> None:
        """Have each thread deliver what waits, close its connections and end; wait for none."""
        for line in self._lines.values():
            line.queue.put(None)
        self._lines.clear()
