"""Brokers with logs under test: a stepped cluster of them, and controllers, on one ZooKeeper.

Clients of ZooKeeper are kept over the examples, since starting them would cost more than the
examples do. An example has a chroot and a directory of its own, with a subdirectory for each
broker: its logs, and what it has observed.
"""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from reassure_conformance.adapter.losing import keep_writes, lose_write
from reassure_conformance.adapter.stepping import FIRST_MS, BrokerMachine, StepCluster, VirtualClock
from reassure_conformance.adapter.world import REAL, World
from reassure_controller.controller import Controller
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import commit, connect, stop
from reassure_controller.storage.directory import LogDirectory
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import Readings
from reassure_spec.znodes import CONTROLLER

log = logging.getLogger(__name__)

CONTROLLERS: Final = (1001, 1002)
SETTLE_S: Final = 10.0
OBSERVED: Final = "observations"
"""Below the directory of a broker: where its observations are."""


def _skip_sync(_descriptor: int) -> None:
    """Make nothing safe: a directory of an example does not outlive the run."""


class ReplicatingCluster:
    """Makes one stepped cluster after another, on clients that stay. A context manager."""

    def __init__(self, hosts: str, brokers: tuple[int, ...], world: World = REAL) -> None:
        self._world = world
        self._clients = {
            one: connect(hosts, kind=world.make_client) for one in (*brokers, *CONTROLLERS)
        }
        self._controllers: list[Controller] = []
        """The acting one last; before it the one that was superseded and does not know."""
        self._stepped: StepCluster | None = None

    def __enter__(self) -> "ReplicatingCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what is there, and the clients."""
        self.end()
        for client in self._clients.values():
            stop(client)

    def begin(
        self,
        chroot: str,
        directory: Path,
        rules: ReplicationRules,
        brokers: tuple[int, ...],
    ) -> StepCluster:
        """Start these brokers in a chroot that is there, and elect a controller."""
        for client in self._clients.values():
            client.chroot = chroot
        machines = (self._make_machine(one, chroot, directory) for one in brokers)
        self._stepped = stepped = StepCluster(machines, rules, chroot)
        for broker in brokers:
            stepped.start(broker)
        self._elect(CONTROLLERS[0])
        return stepped

    def _elect(self, number: int) -> None:
        assert self._stepped is not None
        client, transport = self._clients[number], self._stepped.transport
        controller = Controller(
            client, number, transport, Readings(), self._world.now_ms, profile=DEFAULT_PROFILE
        )
        self._controllers.append(controller)
        controller.contend()

    def _make_machine(self, broker: int, chroot: str, directory: Path) -> BrokerMachine:
        own = directory / name_directory(broker)
        open_disk: Callable[[], LogDirectory] = lambda: LogDirectory(  # noqa: E731
            own / "logs", broker, chroot, sync=_skip_sync
        )
        client, clock = self._clients[broker], VirtualClock(FIRST_MS)
        return BrokerMachine(broker, client, open_disk, own / OBSERVED, clock)

    def lose_write(self, broker: int, *, done: bool) -> None:
        """Leave the next write of a broker without an answer; `done` says whether it is made."""
        lose_write(self._clients[broker], done=done)

    def keep_writes(self, broker: int) -> None:
        """Lose no write of a broker that was not lost yet."""
        keep_writes(self._clients[broker])

    def work(self, max_effects: int | None = None) -> int:
        """Let the controller deal with all that has been written, or do so many effects of it.

        Return how many it did. Raises NotQuiet.
        """
        return self._controllers[-1].drain(SETTLE_S, max_effects).effects_done

    def supersede(self) -> None:
        """Elect another controller; the one before is not told, its plan stays in its memory."""
        for old in self._controllers[:-1]:
            self._retire(old)
        (acting,) = self._controllers
        commit(self._clients[acting.broker_id], [("delete", (CONTROLLER, -1))])
        self._elect(next(one for one in CONTROLLERS if one != acting.broker_id))

    def wake(self) -> bool:
        """Let the controller before go on until it knows; answer whether there is one."""
        sleeping = self._controllers[:-1]
        for old in sleeping:
            old.drain(SETTLE_S)
            self._retire(old)
        return bool(sleeping)

    def _retire(self, controller: Controller) -> None:
        controller.resign()
        self._clients[controller.broker_id].state_listeners.clear()
        self._controllers.remove(controller)

    def end(self) -> None:
        """End the brokers and the controllers of this example."""
        if self._stepped is not None:
            self._stepped.close()
            self._stepped = None
        for controller in tuple(self._controllers):
            with contextlib.suppress(Exception):
                self._retire(controller)
        self._controllers.clear()


def name_directory(broker: int) -> str:
    """Return the name of a broker's directory."""
    return f"broker-{broker}"
