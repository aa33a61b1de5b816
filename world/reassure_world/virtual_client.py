"""kazoo's client on a connection to a virtual server, in its caller's thread alone.

All that kazoo does of itself above its socket is done by kazoo: states, listeners, watchers, the
encoding of requests and answers. What its threads do is done where somebody waits. An answer is
read by who waits for it, and the events before it are handed out then; a connection that was broken
comes back while somebody waits, for an answer or by `sleep`.
"""

# ruff: noqa: SLF001 - kazoo's connection works on its client's own fields, and so does this one

from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import SessionExpiredError
from kazoo.protocol.connection import CLOSE_RESPONSE, ConnectionHandler
from kazoo.protocol.serialization import CloseInstance
from kazoo.protocol.states import KeeperState

from reassure_world.world_clock import Clock
from reassure_world.zookeeper import Connection, VirtualZooKeeper
from reassure_zookeeper.unthreaded import ReadingHandler

HOSTS: Final = "virtual:1"
"""What a virtual server is called where a real one has an address."""
RECONNECT_S: Final = 0.01
"""How long after a connection is broken a client connects anew."""
_LENGTH: Final = 4


class VirtualSocket:
    """The client's end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self._rest = b""

    def setblocking(self, _flag: object) -> None:
        """Do nothing: nothing ever blocks here."""

    def has_answers(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._rest or self.connection.answers)

    def read(self, length: int) -> bytes:
        """Return the next bytes of what the server sent."""
        while len(self._rest) < length:
            answer = self.connection.answers.popleft()
            self._rest += len(answer).to_bytes(_LENGTH, "big") + answer
        found, self._rest = self._rest[:length], self._rest[length:]
        return found

    def write(self, message: bytes) -> None:
        """Hand a packet, its length before it, to the server."""
        self.connection.receive(message[_LENGTH:])

    def close(self) -> None:
        """Break the connection."""
        self.connection.close()


class _Condition:
    """What kazoo's results want to be told by, where nobody is in another thread."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def notify_all(self) -> None:
        """Do nothing: who waits looks for himself."""


class _Handler(ReadingHandler):
    """The handler of a client that nothing is read for but by who waits."""

    connection: "_ClientConnection"

    def __init__(self, server: VirtualZooKeeper) -> None:
        super().__init__()
        self._server = server

    def make_condition(self) -> _Condition:
        return _Condition()

    def create_connection(self, *_arguments: object, **_options: object) -> VirtualSocket:
        connection = self._server.connect()
        connection.on_hang_up = self.connection.drop
        return VirtualSocket(connection)


class _ClientConnection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection, without its loop."""

    def __init__(self, clock: Clock, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._clock = clock

    def start(self) -> None:
        """Connect now."""
        self._begin()

    def stop(self, _timeout: float | None = None) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: nothing is held once it is stopped."""

    def _begin(self) -> None:
        client = self.client
        if client._stopped.is_set() or client.connected:
            return  # it was stopped, or stopped and started again, since it was to come back
        client._session_callback(KeeperState.CONNECTING)
        self._xid = 0
        try:
            self._connect("virtual", "virtual", 0)
        except SessionExpiredError:
            client._session_callback(KeeperState.EXPIRED_SESSION)
            self._begin_later()
            return
        while client._queue and client._state == KeeperState.CONNECTED:
            self.send(*client._queue.popleft())

    def _begin_later(self) -> None:
        self._clock.call_later(RECONNECT_S, self._begin)

    def drop(self) -> None:
        """Take note that the connection is broken, and connect anew in a moment."""
        self.client._session_callback(KeeperState.CONNECTING)
        self._begin_later()

    def hang_up(self) -> None:
        """Break the connection."""
        self._socket.close()

    def send(self, request: Any, result: Any) -> None:
        """Send a request."""
        self._xid = self._xid % 2147483647 + 1
        self.client._pending.append((request, result, self._xid))
        self._submit(request, None, self._xid)

    def read_until(self, result: Any, timeout: float | None) -> None:
        """Read until a result is there, and let time pass where nothing is to be read.

        Where nothing would ever happen any more the time is up at once.
        """
        clock = self._clock
        until = None if timeout is None else clock.monotonic() + timeout
        while not result.ready():
            if self.client.connected and self._socket.has_answers():
                self._read_socket(None)
            elif (until is not None and clock.monotonic() >= until) or not clock.step():
                return

    def end(self) -> None:
        """Close the session, and deal with what is answered before that."""
        if self.client.connected:
            self.send(CloseInstance, None)
            while self.client.connected and self._read_socket(None) != CLOSE_RESPONSE:
                pass
        self.client._session_callback(KeeperState.CLOSED)

    def _read(self, length: int, _timeout: float | None) -> bytes:
        found: bytes = self._socket.read(length)
        return found

    def _write(self, message: bytes, _timeout: float | None) -> None:
        self._socket.write(bytes(message))


class VirtualClient(KazooClient):  # type: ignore[misc]
    """A kazoo client of a virtual server. `sleep` and `monotonic` are the world's."""

    def __init__(self, server: VirtualZooKeeper, clock: Clock, **options: Any) -> None:
        options |= {"handler": _Handler(server), "connection_retry": None, "hosts": HOSTS}
        super().__init__(**options)
        self._connection = _ClientConnection(clock, self, self._conn_retry, logger=self.logger)
        self.handler.connection = self._connection
        self.sleep, self.monotonic = clock.sleep, clock.monotonic

    def cut(self) -> bool:
        """Break the connection, as its client notices at once; return whether there was one."""
        if not self.connected:
            return False
        self._connection.hang_up()
        return True

    def stop(self) -> None:
        """End the session, unless there is no connection to do it on."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._connection.end()

    def _call(self, request: Any, async_object: Any) -> Any:
        if self._state == KeeperState.CONNECTED:
            return self._connection.send(request, async_object)
        if self._state == KeeperState.CONNECTING and not self._stopped.is_set():
            self._queue.append((request, async_object))
            return None
        return super()._call(request, async_object)
