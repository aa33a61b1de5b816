"""A network in one process: nothing arrives until somebody says so.

A message that was sent waits; it can be delivered, delivered and kept so that it arrives once more,
or lost, in any order. Messages for whoever is not there are lost on delivery.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Packet(Generic[Message]):
    """One message on its way."""

    number: int
    source: str
    target: str
    message: Message


class Network(Generic[Message]):
    """The messages on their way, and who is there to receive them."""

    def __init__(self) -> None:
        self._receivers: dict[str, Callable[[str, Message], None]] = {}
        self._waiting: dict[int, Packet[Message]] = {}
        self._sent = 0
        self.on_arrival: Callable[[Packet[Message]], None] = lambda _: None
        """Is shown each message just before it arrives where somebody is there."""

    def attach(self, name: str, receive: Callable[[str, Message], None]) -> None:
        """Deliver to `receive` what is for this name; it is given who sent it, and the message."""
        self._receivers[name] = receive

    def detach(self, name: str) -> None:
        """Lose what is for this name from now on."""
        self._receivers.pop(name, None)

    def send(self, source: str, target: str, message: Message) -> None:
        """Put a message on its way."""
        self._sent += 1
        self._waiting[self._sent] = Packet(self._sent, source, target, message)

    @property
    def waiting(self) -> tuple[Packet[Message], ...]:
        """The messages on their way, in the order in which they were sent."""
        return tuple(self._waiting.values())

    def deliver(self, number: int, *, keep: bool = False) -> bool:
        """Deliver a message; with `keep` it arrives once more. Return whether somebody was there.

        Raises KeyError where it is not on its way.
        """
        packet = self._waiting[number] if keep else self._waiting.pop(number)
        receive = self._receivers.get(packet.target)
        if receive is None:
            self._waiting.pop(number, None)
            return False
        self.on_arrival(packet)
        receive(packet.source, packet.message)
        return True

    def lose(self, number: int) -> None:
        """Lose a message. Raises KeyError where it is not on its way."""
        del self._waiting[number]

    def deliver_all(self) -> int:
        """Deliver until nothing is on its way, in order; return how many messages arrived."""
        delivered = 0
        while self._waiting:
            delivered += self.deliver(next(iter(self._waiting)))
        return delivered
