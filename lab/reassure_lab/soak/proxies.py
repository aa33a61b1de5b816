"""The network between members, on loopback: every connection passes a proxy that can spoil it.

A broker tells the cluster the address of a proxy in place of its own. Who connects to it is told by
the client id in the first request of a connection (`broker-2-epoch-77`, `controller-100`), so one
proxy for each broker serves all pairs. A member has proxies of its own to each ZooKeeper server.

What may be wrong between two members:

* `cut`: connections are reset, and new ones are refused as soon as it is known whose they are;
* `half-open`: what is sent arrives, answers do not, and nobody is told;
* `slow`: every piece of an answer comes `DELAY_S` later.
"""

import asyncio
import re
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeVar

from reassure_spec.errors import Unavailable

Trouble = Literal["cut", "half-open", "slow"]
Address = tuple[str, int]
Result = TypeVar("Result")

DELAY_S: Final = 0.3
_CHUNK: Final = 1 << 16
_PROBE_S: Final = 5.0
"""How long somebody who has connected may take to say who it is."""
_TURN_S: Final = 0.01
"""How long the end waits before it looks again for connections that came meanwhile."""
_NAME_AT: Final = struct.Struct(">ihhih")
"""Size, key, version and correlation of a request, and the length of the client id behind them."""
_MEMBER: Final = re.compile(rb"((?:broker|controller)-\d+)(?:-.*)?")
CLIENT: Final = "client"
"""Whoever connects to a broker and is no member."""


class NoProxy(Unavailable):
    """A proxy could not be started."""


@dataclass(eq=False, slots=True)
class _Link:
    """One connection that passes through."""

    source: str
    target: str
    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    spoilt: bool = False
    """Whether bytes were swallowed, after which nothing else may be passed on."""

    def reset(self) -> None:
        """End both sides at once."""
        for writer in self.writers:
            _reset(writer)


@dataclass(slots=True)
class _Door:
    """One listening proxy."""

    target: str
    where: Address
    source: str | None
    """Who connects here; None where its requests say so."""
    address: Address = ("", 0)
    server: asyncio.Server | None = field(default=None)


class ProxyNetwork:
    """The proxies of a cluster; a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._troubles: dict[tuple[str, str], Trouble] = {}
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._doors: list[_Door] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def open(self, target: str, where: Address, source: str | None = None) -> Address:
        """Return the address of a proxy to a member that listens there.

        Everybody who connects is `source`, or says itself who it is. Raises NoProxy.
        """
        door = _Door(target, where, source)
        self._run(self._listen(door))
        self._doors.append(door)
        return door.address

    def spoil(self, source: str, target: str, trouble: Trouble) -> None:
        """Let something be wrong from now on with what a member has to say to another one."""
        self._call(lambda: self._set(source, target, trouble))

    def heal(self, source: str, target: str) -> None:
        """Let nothing be wrong any more."""
        self._call(lambda: self._set(source, target, None))

    def _call(self, act: Callable[[], None]) -> None:
        async def once() -> None:
            act()

        self._run(once())

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        future: Future[Result] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result()

    # In the loop's own thread

    def _set(self, source: str, target: str, trouble: Trouble | None) -> None:
        if trouble is None:
            self._troubles.pop((source, target), None)
        else:
            self._troubles[source, target] = trouble
        for link in tuple(self._links):
            of_both = (link.source, link.target) == (source, target)
            if of_both and (trouble == "cut" or (trouble is None and link.spoilt)):
                link.reset()

    async def _listen(self, door: _Door) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._serve(door, reader, writer)
            except (OSError, EOFError, asyncio.CancelledError, TimeoutError):
                _reset(writer)
            finally:
                self._tasks.discard(task)

        try:
            door.server = await asyncio.start_server(serve, "127.0.0.1", 0)
        except OSError as error:
            raise NoProxy(f"no proxy to {door.target} on 127.0.0.1: {error}") from error
        host, port = door.server.sockets[0].getsockname()
        door.address = (str(host), int(port))

    async def _serve(
        self, door: _Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first = b""
        source = door.source
        if source is None:
            first = await asyncio.wait_for(_read_head(reader), _PROBE_S)
            source = name_of(first)
        if self._troubles.get((source, door.target)) == "cut":
            _reset(writer)
            return
        there_reader, there = await asyncio.open_connection(*door.where)
        link = _Link(source, door.target, (writer, there))
        self._links.add(link)
        try:
            there.write(first)
            await asyncio.gather(
                self._pass(link, reader, there, back=False),
                self._pass(link, there_reader, writer, back=True),
            )
        finally:
            self._links.discard(link)
            link.reset()

    async def _pass(
        self,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        back: bool,
    ) -> None:
        """Hand bytes on until one side ends; `back` is for answers."""
        while chunk := await reader.read(_CHUNK):
            trouble = self._troubles.get((link.source, link.target)) if back else None
            if trouble == "slow":
                await asyncio.sleep(DELAY_S)
            if trouble == "half-open" or (back and link.spoilt):
                link.spoilt = True
                continue
            writer.write(chunk)
            await writer.drain()
        link.reset()

    async def _close(self) -> None:
        # A server that is closed while a connection is being accepted leaves that socket open, so
        # the doors are shut in a step in which nobody comes in.
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.wait(left, timeout=_TURN_S)
        for door in self._doors:
            if door.server is not None:
                door.server.close()


def name_of(head: bytes) -> str:
    """Return who sent the first request of a connection.

    >>> name_of(_NAME_AT.pack(30, 1, 11, 7, 17) + b"broker-2-epoch-77")
    'broker-2'
    >>> name_of(_NAME_AT.pack(30, 3, 7, 1, 4) + b"kcat")
    'client'
    """
    found = _MEMBER.fullmatch(head[_NAME_AT.size :])
    return found[1].decode() if found else CLIENT


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Return the beginning of the first request, up to and with the client id."""
    head = await reader.readexactly(_NAME_AT.size)
    *_, length = _NAME_AT.unpack(head)
    return head + (await reader.readexactly(length) if length > 0 else b"")


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection without a farewell, as a network that fails does."""
    found = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
