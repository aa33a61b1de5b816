"""Brokers with logs in one process, stepped: virtual time, and a network that a test plays.

The brokers are `Broker`s on a real ZooKeeper, where they register and write their in-sync sets;
their logs are files. What is not real is time, and the way from one to the other: each message is
on its way in `network` until the test delivers it, orders of the controller among them
(`StepTransport`). `fetch` lets a broker send what its followers would send now; `tick` does what
its timers would do.

A broker that crashes loses its memory; what its disk loses besides is for the test to say.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from reassure_conformance.adapter.stepped_network import Network
from reassure_controller.broker import Broker
from reassure_controller.context import LiveBroker
from reassure_controller.messages import LeaderAndIsr, Message, Reply, StopReplica
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.messages import (
    Consume,
    Consumed,
    EpochEndTold,
    Fetched,
    Produce,
    Produced,
    Request,
    Response,
)
from reassure_controller.replication.observing import Observer
from reassure_controller.replication.quota import Quotas
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import Refused, commit
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import Record, check_produced, encode
from reassure_spec.znodes import PartitionKey, broker_path

Anything = Message | Request | Response

FIRST_MS: Final = 1_000_000
"""When a virtual clock begins: later than any limit, so that no time is before all times."""
CONTROLLER: Final = "controller"
CLIENT: Final = "client"


def name_broker(broker: int) -> str:
    """Return what a broker is called on the network."""
    return f"broker-{broker}"


class StepTransport:
    """Carries a controller's orders to brokers over the stepped network.

    The controller hears "ok" at once: whether the order arrives is for the network.
    """

    def __init__(self, network: Network[Anything]) -> None:
        self._network = network

    def send(self, broker: LiveBroker, message: Message) -> Reply | None:
        """Put an order on its way."""
        self._network.send(CONTROLLER, name_broker(broker.id), message)
        return Reply("ok")


@dataclass(slots=True)
class VirtualClock:
    """Time that passes when somebody says so; it can be set back, as a machine's can."""

    time_ms: int

    def now_ms(self) -> int:
        """Return the time."""
        return self.time_ms

    def advance(self, by_ms: int) -> None:
        """Let time pass, or go back."""
        self.time_ms += by_ms


@dataclass(slots=True)
class BrokerMachine:
    """What of a broker outlives a crash: its disk, its settings, its connection to ZooKeeper."""

    broker: int
    client: KazooClient
    disk: Callable[[], LogDirectory]
    """Opens its disk."""
    observations: Path
    clock: VirtualClock
    quotas: Quotas = field(default_factory=Quotas)
    running: Broker | None = None
    """The broker, while it is up."""


class StepCluster:
    """Brokers, one client of theirs, and the network between them."""

    def __init__(
        self,
        machines: Iterable[BrokerMachine],
        rules: ReplicationRules,
        chroot: str,
    ) -> None:
        self.network: Network[Anything] = Network()
        self.transport = StepTransport(self.network)
        self.machines = {machine.broker: machine for machine in machines}
        self.answers: deque[Produced | Consumed] = deque()
        """What the client was answered, oldest first."""
        self._rules = rules
        self._chroot = chroot
        self._requests = 0
        self.network.attach(CLIENT, self._answer_client)

    # Life and death

    def start(self, broker: int) -> None:
        """Start a broker that is down."""
        machine = self.machines[broker]
        assert machine.running is None, f"broker {broker} is up"

        def replicate(started: Broker, epoch: int) -> Replicas:
            observer = Observer(machine.observations, broker, epoch, chroot=self._chroot)
            return Replicas(
                broker,
                epoch,
                started,
                machine.disk(),
                machine.clock,
                observer,
                self._rules,
                machine.quotas,
            )

        machine.running = Broker(
            machine.client,
            broker,
            owns_client=False,
            clock_ms=machine.clock.now_ms,
            replication=replicate,
        )
        machine.running.register()
        self.network.attach(
            name_broker(broker), lambda source, message: self._receive(broker, source, message)
        )

    def stop(self, broker: int) -> None:
        """Let a broker end in order."""
        self._take_down(broker).stop()

    def crash(self, broker: int, *, lost: Callable[[LogDirectory], None] = lambda _: None) -> None:
        """Kill a broker; `lost` says what its disk has lost by that."""
        self._take_down(broker).kill()
        with self.machines[broker].disk() as disk:
            lost(disk)

    def _take_down(self, broker: int) -> Broker:
        machine = self.machines[broker]
        running, machine.running = machine.running, None
        assert running is not None, f"broker {broker} is down"
        self.network.detach(name_broker(broker))
        return running

    def expire(self, broker: int) -> bool:
        """End the registration of a broker that is up, as the end of its session does.

        Answer whether it was registered. The broker does not know; it registers again by
        `register`, with another broker epoch.
        """
        try:
            commit(self.machines[broker].client, [("delete", (broker_path(broker), -1))])
        except Refused:
            return False
        return True

    def register(self, broker: int) -> None:
        """Let a broker that is up, and whose session has ended, register again."""
        running = self.machines[broker].running
        assert running is not None, f"broker {broker} is down"
        running.register()

    def close(self) -> None:
        """End every broker that is up."""
        for broker, machine in self.machines.items():
            if machine.running is not None:
                self.stop(broker)

    @property
    def live(self) -> tuple[int, ...]:
        """The brokers that are up."""
        return tuple(b for b, machine in self.machines.items() if machine.running is not None)

    def replicas(self, broker: int) -> Replicas:
        """Return the replicas of a broker that is up."""
        running = self.machines[broker].running
        assert running is not None and running.replicas is not None, f"broker {broker} is down"
        return running.replicas

    # Messages

    def _receive(self, broker: int, source: str, message: Anything) -> None:
        running, replicas = self.machines[broker].running, self.replicas(broker)
        assert running is not None
        match message:
            case LeaderAndIsr() | StopReplica():
                running.handle(message)
            case Fetched() | EpochEndTold():
                replicas.take(message)
            case Produced() | Consumed() | Reply():
                raise TypeError(f"a broker is sent no {type(message).__name__}")
            case _:
                self._serve(replicas, source, message)

    def _serve(self, replicas: Replicas, source: str, request: Anything) -> None:
        me = name_broker(replicas.broker_id)
        assert isinstance(request, Request)
        replicas.serve(request, lambda answer: self.network.send(me, source, answer))

    def _answer_client(self, _source: str, answer: Anything) -> None:
        assert isinstance(answer, Produced | Consumed)
        self.answers.append(answer)

    def fetch(self, broker: int) -> int:
        """Have a broker send what its followers would send now; return how many requests."""
        requests = tuple(self.replicas(broker).next_requests())
        for leader, request in requests:
            self.network.send(name_broker(broker), name_broker(leader), request)
        return len(requests)

    def tick(self, by_ms: int) -> None:
        """Let time pass for everybody, and the timers of brokers do what is due.

        Quotas that were changed before the call hold after it: virtual time does not pass while
        the news of them is under way.
        """
        for machine in self.machines.values():
            machine.clock.advance(by_ms)
        for broker in self.live:
            self.machines[broker].quotas.catch_up()
            self.replicas(broker).tick()

    # Clients

    def produce(
        self, broker: int, key: PartitionKey, values: Iterable[bytes], acks: int = -1
    ) -> int:
        """Send records to a broker, and return the number that its answer repeats."""
        self._requests += 1
        raw = encode([Record(None, value) for value in values], 0, 0, 0)
        request = Produce(key, (0, self._requests), acks, check_produced(raw))
        self.network.send(CLIENT, name_broker(broker), request)
        return self._requests

    def consume(self, broker: int, key: PartitionKey, offset: int, max_bytes: int = 1 << 20) -> int:
        """Ask a broker for records, and return the number that its answer repeats."""
        self._requests += 1
        request = Consume(key, (0, self._requests), offset, max_bytes)
        self.network.send(CLIENT, name_broker(broker), request)
        return self._requests
