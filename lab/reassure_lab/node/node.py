"""A broker with logs as a process."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from math import inf
from typing import TYPE_CHECKING, Final

from kazoo.client import KazooClient

from reassure_controller.broker import Broker
from reassure_controller.registration import FormerLife, IdTaken
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.observing import Observer
from reassure_controller.session import Indefinite
from reassure_controller.storage.directory import LogDirectory
from reassure_lab.node.admin_requests import AdminRequests
from reassure_lab.node.fetching import Fetchers
from reassure_lab.node.handover import ask_to_stop
from reassure_lab.node.limits import TopicLimits
from reassure_lab.node.machine_clock import MachineClock
from reassure_lab.node.metadata import ClusterMetadata
from reassure_lab.node.request_handler import RequestHandler
from reassure_lab.node.settings import NodeSettings
from reassure_lab.node.strays import Strays
from reassure_lab.node.throttling import Throttling
from reassure_lab.wire.listener import WireServer

if TYPE_CHECKING:  # only who asks for metrics needs what they are made of
    from prometheus_client.metrics_core import Metric

log = logging.getLogger(__name__)

TICK_S: Final = 0.05
"""How often the broker looks what is due."""
REGISTER_S: Final = 0.3
"""How long it waits before it tries again to register."""


class BrokerNode:
    """One broker: its disk, its replicas, its port. From the start until it is closed."""

    def __init__(
        self,
        client: KazooClient,
        broker_id: int,
        settings: NodeSettings,
        *,
        patience_s: float = 0.0,
    ) -> None:
        """Register, and serve. Logs are in `data`/logs, history is in `data`/observations.

        It waits `patience_s` for a session that has its id to end, and goes on without being
        registered, until it can be, where that is of a former life of its own. Raises what
        `LogDirectory`, `WireServer` and `Broker.register` raise.
        """
        self._client = client
        self._settings = settings
        self._lock = threading.RLock()
        """Held by who changes what the broker is told to be: orders, and another registration."""
        self._cluster = ClusterMetadata(client)
        self._throttling = Throttling(client, broker_id, settings.make_quotas())
        self._broker = Broker(client, broker_id, replication=self._replicate)
        self._limits = TopicLimits(client, broker_id, settings.rules)
        admin = AdminRequests(client, broker_id, self._limits)
        self._door = RequestHandler(
            self._broker, self._cluster, admin, self._lock, self._limits.learn
        )
        self._fetchers = Fetchers(self._broker, self._cluster)
        self._strays = Strays(client, self._broker, self._lock)
        self._patience_s = patience_s
        self._register_from_s = 0.0
        """When it is tried again to register."""
        self._taken_since_s = inf
        """Since when it could not."""
        with ExitStack() as on_error:
            self._disk = LogDirectory(
                settings.data / "logs",
                broker_id,
                self._cluster.id,
                segment_bytes=settings.segment_bytes,
                flush_records=settings.flush_records,
            )
            on_error.callback(self._disk.abandon)
            self._server = on_error.enter_context(
                WireServer(self._door, port=settings.port, max_bytes=settings.request_bytes_max)
            )
            self._broker.address = settings.advertised or self._server.address
            admin.address = self._broker.address
            with self._lock:
                self._throttling.refresh()
                try:
                    self._broker.register(patience_s)
                except FormerLife as waiting:  # nobody can take its place: it goes on waiting
                    log.warning("%s", waiting)
            on_error.pop_all()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self._server.address

    @property
    def controller_epoch(self) -> int:
        """The epoch of the last controller that it obeyed, 0 before the first."""
        return self._broker.controller_epoch

    def measure(self) -> "Iterator[Metric]":
        """Yield what is to be known of it."""
        from reassure_lab.metrics import measures

        yield from measures.measure_replicas(self._broker.replicas or ())
        yield from measures.measure_isr(self._broker.isr_changes)
        yield from measures.measure_requests(self._server.answers)

    def run_forever(self, until: threading.Event) -> None:
        """Do what is due until the event is set. Raises what the disk raises."""
        while not until.wait(TICK_S):
            self._fetchers.start_missing()
            self._throttling.refresh()
            self._limits.learn()
            self._strays.tick()
            with self._lock:
                if self._client.connected and not self._broker.is_registered:
                    self._register_again()
            if self._broker.replicas is not None:
                self._broker.replicas.tick()
            self._door.look_again()

    def close(self) -> None:
        """End in order: what it leads is handed over first, where a controller listens."""
        epoch = None if self._broker.replicas is None else self._broker.replicas.broker_epoch
        if epoch is not None and self._broker.is_registered:
            ask_to_stop(self._client, self._broker.broker_id, epoch)
        self._door.close()
        self._server.close()
        self._fetchers.close()
        with self._lock:
            self._broker.stop()

    def _register_again(self) -> None:
        """Register in a new session; the one before may not have ended yet for everybody.

        Raises IdTaken when it has not ended within the patience of the start.
        """
        if time.monotonic() < self._register_from_s:
            return
        try:
            self._broker.register()
        except (Indefinite, IdTaken) as unregistered:
            now_s = time.monotonic()
            self._taken_since_s = min(self._taken_since_s, now_s)
            if isinstance(unregistered, IdTaken) and now_s > self._taken_since_s + self._patience_s:
                raise
            log.info("broker %d is not registered yet: %s", self._broker.broker_id, unregistered)
            self._register_from_s = now_s + REGISTER_S
        else:
            self._taken_since_s = inf

    def _replicate(self, broker: Broker, epoch: int) -> Replicas:
        settings, number = self._settings, broker.broker_id
        observer = Observer(
            settings.data / "observations", number, epoch, chroot=self._cluster.chroot
        )
        return Replicas(
            number,
            epoch,
            broker,
            self._disk,
            MachineClock(),
            observer,
            settings.rules,
            self._throttling.quotas,
            settings.upkeep,
            self._limits,
        )
