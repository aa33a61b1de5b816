"""What the gate and the bundled controllers live in: the machine's own world, or a virtual one.

In the virtual world ZooKeeper, its clients and their clock are objects in the caller's thread: the
same calls leave the same transaction log, byte for byte, however busy the machine is.
"""

import socket
import time
from pathlib import Path
from typing import Any, Final, Protocol

from reassure_conformance.adapter.direct_client import DirectClient
from reassure_controller.client import Client
from reassure_world.virtual_client import HOSTS, VirtualClient
from reassure_world.world_clock import Clock
from reassure_world.zookeeper import VirtualZooKeeper
from reassure_zookeeper.errors import FaultError
from reassure_zookeeper.interruptions import cut_connection, expire_session
from reassure_zookeeper.txnlog_writer import GrowingLog

REAL_WORLD, VIRTUAL_WORLD = "real", "virtual"


class World(Protocol):
    """Clients, what befalls them, and the time."""

    def make_client(self, **options: Any) -> Client:
        """Return a client that is not started; the options are those of kazoo's."""

    def cut_connection(self, client: Client) -> None:
        """Break a client's connection. Raises FaultError where it has none."""

    def expire_session(self, hosts: str, client_id: tuple[int, bytes]) -> None:
        """End a session as if it had expired. Raises FaultError."""

    def list_watched(self, hosts: str) -> list[str] | None:
        """Return the znodes that somebody watches, but for who watches children.

        None where the server does not answer the four-letter word `wchp`.
        """

    def now_ms(self) -> int:
        """Return the time of day in milliseconds since 1970."""

    def monotonic(self) -> float:
        """Return the seconds since whenever."""


class RealWorld:
    """The machine's own network and clock."""

    def make_client(self, **options: Any) -> Client:
        """Return a client that is not started."""
        return DirectClient(**options)

    def cut_connection(self, client: Client) -> None:
        """Break a client's connection."""
        cut_connection(client)

    def expire_session(self, hosts: str, client_id: tuple[int, bytes]) -> None:
        """End a session by taking it over."""
        expire_session(hosts, client_id)

    def list_watched(self, hosts: str) -> list[str] | None:
        """Ask the server."""
        host, _, port = hosts.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), 10) as line:
                line.sendall(b"wchp")
                said = b"".join(iter(lambda: line.recv(65536), b"")).decode()
        except (OSError, ValueError):
            return None
        return None if "whitelist" in said else said.splitlines()

    def now_ms(self) -> int:
        """Return the time of day."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return the seconds since whenever."""
        return time.monotonic()


class SteppedClient(Client, VirtualClient):
    """The controller's client in a virtual world."""


class VirtualWorld:
    """One virtual ZooKeeper, which writes its log into a directory that is made."""

    hosts: Final = HOSTS

    def __init__(self, log_dir: Path) -> None:
        log_dir.mkdir(parents=True, exist_ok=True)
        self.log_dir: Final = log_dir
        self._clock = Clock()
        self._server = VirtualZooKeeper(self._clock, GrowingLog(log_dir, block=0).append)

    def make_client(self, **options: Any) -> Client:
        """Return a client that is not started."""
        return SteppedClient(server=self._server, clock=self._clock, **options)

    def cut_connection(self, client: Client) -> None:
        """Break a client's connection, which it notices at once."""
        if not client.cut():
            raise FaultError("there is no connection to cut; let the client connect first")

    def expire_session(self, hosts: str, client_id: tuple[int, bytes]) -> None:
        """End a session, as its client notices at once."""
        self._server.expire(client_id[0])

    def list_watched(self, hosts: str) -> list[str]:
        """Return what the server knows."""
        return self._server.list_watched()

    def now_ms(self) -> int:
        """Return the time of day of the world."""
        return self._clock.now_ms()

    def monotonic(self) -> float:
        """Return the seconds since the world began."""
        return self._clock.monotonic()


REAL: Final = RealWorld()


def make_world(name: str, data_dir: Path) -> World:
    """Return the world of a name; the files of a virtual one are in a directory."""
    return VirtualWorld(data_dir / "version-2") if name == VIRTUAL_WORLD else REAL
