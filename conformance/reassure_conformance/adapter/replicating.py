"""Brokers with logs under test: a stepped cluster of them, and a controller, on one ZooKeeper.

Clients of ZooKeeper are kept over the examples, since starting them would cost more than the
examples do. An example has a chroot and a directory of its own, with a subdirectory for each
broker: its logs, and what it has observed.
"""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from reassure_controller.client import Client
from reassure_controller.controller import Controller
from reassure_controller.replication.clock import VirtualClock
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.stepping import FIRST_MS, Machine, StepCluster
from reassure_controller.session import connect, stop
from reassure_controller.storage.directory import LogDirectory
from reassure_spec.readings import Readings

log = logging.getLogger(__name__)

CONTROLLER_ID: Final = 1001
SETTLE_S: Final = 10.0
OBSERVED: Final = "observations"
"""Below the directory of a broker: where its observations are."""


def _skip_sync(_descriptor: int) -> None:
    """Make nothing safe: a directory of an example does not outlive the run."""


class ReplicatingCluster:
    """Makes one stepped cluster after another, on clients that stay. A context manager."""

    def __init__(self, hosts: str, brokers: tuple[int, ...]) -> None:
        self._clients = {broker: connect(hosts) for broker in (*brokers, CONTROLLER_ID)}
        self._controller: Controller | None = None
        self._stepped: StepCluster | None = None
        self.brokers = brokers

    def __enter__(self) -> "ReplicatingCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for client in self._clients.values():
            stop(client)

    def begin(self, chroot: str, directory: Path, rules: ReplicationRules) -> StepCluster:
        """Start the brokers in a chroot that is there, and elect a controller."""
        for client in self._clients.values():
            client.chroot = chroot
        machines = (self._make_machine(one, chroot, directory) for one in self.brokers)
        self._stepped = stepped = StepCluster(machines, rules, chroot)
        for broker in self.brokers:
            stepped.start(broker)
        client = self._clients[CONTROLLER_ID]
        faults = rules.faults
        self._controller = Controller(client, CONTROLLER_ID, stepped.transport, Readings(), faults)
        self._controller.contend()
        return stepped

    def _make_machine(self, broker: int, chroot: str, directory: Path) -> Machine:
        own = directory / name_directory(broker)
        open_disk: Callable[[], LogDirectory] = lambda: LogDirectory(  # noqa: E731
            own / "logs", broker, chroot, sync=_skip_sync
        )
        client: Client = self._clients[broker]
        return Machine(broker, client, open_disk, own / OBSERVED, VirtualClock(FIRST_MS))

    def work(self) -> None:
        """Let the controller deal with all that has been written. Raises NotQuiet."""
        assert self._controller is not None
        self._controller.drain(SETTLE_S)

    def end(self) -> None:
        """End the brokers and the controller of this example."""
        if self._stepped is not None:
            self._stepped.close()
            self._stepped = None
        if self._controller is not None:
            with contextlib.suppress(Exception):
                self._controller.resign()
            self._clients[CONTROLLER_ID].state_listeners.clear()
            self._controller = None


def name_directory(broker: int) -> str:
    """Return the name of a broker's directory."""
    return f"broker-{broker}"
