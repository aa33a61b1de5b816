"""A kazoo connection on which whoever waits for an answer sends and reads for himself.

kazoo hands each request to a thread of its own and each answer back, and each event to another
thread: four changes of threads for what ZooKeeper answers in less time than one of them takes. A
program that does one thing at a time gains nothing by them. Here the caller's thread writes the
request to the socket and reads until its answer has come; callbacks run where something is read.
kazoo's thread is left with what nobody waits for: it connects, reconnects, pings and closes, and
between that it sleeps until the server hangs up.

So *events are seen when somebody waits for an answer*, or at the next ping: what precedes an answer
has been dealt with when it is there. A process that waits for events needs kazoo's own way.
"""

# ruff: noqa: SLF001 - kazoo's connection works on its client's own fields, and so does this one

import contextlib
import select
import socket
import threading
import time
from typing import Any, Final

from kazoo.exceptions import ConnectionDropped
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.states import KeeperState

from reassure_controller.client import Client
from reassure_zookeeper.unthreaded import ReadingHandler, ReadResult

_CHUNK: Final = 65536
_TROUBLE: Final = (ConnectionDropped, KazooTimeoutError)


class _Result(ReadResult):
    """A result that another thread may read, too: then it is waited for."""

    def wait(self, timeout: float | None = None) -> bool:
        if not self.ready():
            left = self._handler.connection.read_until(self, timeout)
            with self._condition:
                self._condition.wait_for(self.ready, left)
        return bool(self.ready())


class _Handler(ReadingHandler):
    """The handler of a client that kazoo's thread connects and pings for."""

    results = _Result
    connection: "_Connection"

    def make_condition(self) -> threading.Condition:
        # All results share the connection's lock: callbacks run under it, and may send.
        return self.connection.changed

    def select(
        self, readers: list[Any], _writers: list[Any], _errors: list[Any], timeout: float
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Wait, for kazoo's loop, until there is something for it to do on one of its sockets."""
        return self.connection.wait_for_work(readers, timeout), [], []


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection, whose socket belongs to whoever holds the lock."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.lock: Final = threading.RLock()
        self.changed: Final = threading.Condition(self.lock)
        """Told of every result that is set."""
        self._buffer = bytearray()
        """What was received and not looked at yet."""
        self._xid = 0
        self._own_xid = self._answered_xid = 0
        """The last request that kazoo's thread has sent, and the last one that was answered."""

    # What callers do

    def send(self, request: Any, result: Any) -> bool:
        """Send a request now, if there is a connection that nothing else waits to be sent on."""
        client = self.client
        with self.lock:
            if client._state != KeeperState.CONNECTED or client._queue:
                return False
            self._xid = self._xid % 2147483647 + 1
            client._pending.append((request, result, self._xid))
            try:
                self._submit(request, client._session_timeout / 1000, self._xid)
            except _TROUBLE:
                self._give_up()
            return True

    def read_until(self, result: Any, timeout: float | None) -> float | None:
        """Read answers until this one is there; return how much of the timeout is left.

        It ends early where the connection breaks: kazoo's thread says then what becomes of it.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        left = timeout
        while not result.ready() and (left is None or left > 0):
            with self.lock:
                if result.ready() or not self._read_one(left):
                    break
            left = None if deadline is None else deadline - time.monotonic()
        return None if left is None else max(0.0, left)

    def _read_one(self, timeout: float | None) -> bool:
        """Deal with what comes next; return whether more may come."""
        client = self.client
        if client._state != KeeperState.CONNECTED or not client._pending:
            return False
        try:
            if self._is_readable(timeout):
                super()._read_socket(client._session_timeout / 1000)
                return True
        except _TROUBLE:
            self._give_up()
        return False

    def _give_up(self) -> None:
        """Break the connection, so that kazoo's thread finds it broken."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    # What kazoo's thread does

    def wait_for_work(self, readers: list[Any], timeout: float) -> list[Any]:
        """Return the sockets that have something for kazoo's thread, if one has in time.

        Of what comes on the connection only the answers to what it has sent itself are.
        """
        waits = self._answered_xid < self._own_xid or self.ping_outstanding.is_set()
        if waits and self._buffer:
            return [self._socket]
        poll = select.poll()
        for each in readers:
            mine = waits or each is not self._socket
            poll.register(each, select.POLLIN if mine else select.POLLRDHUP)
        found = {descriptor for descriptor, _ in poll.poll(timeout * 1000)}
        return [each for each in readers if each.fileno() in found]

    def _connect(self, *arguments: Any) -> Any:
        self._buffer.clear()
        self._own_xid = self._answered_xid = 0
        return super()._connect(*arguments)

    def _read_socket(self, read_timeout: float) -> Any:
        with self.lock:  # somebody else may have read it by now
            return super()._read_socket(read_timeout) if self._is_readable(0) else None

    def _send_request(self, *timeouts: float) -> None:
        with self.lock:
            super()._send_request(*timeouts)
            self._own_xid = self._xid

    def _send_ping(self, timeout: float) -> None:
        with self.lock:
            super()._send_ping(timeout)

    # What both do, under the lock

    def _read_response(self, header: Any, *answer: Any) -> Any:
        self._answered_xid = header.xid
        return super()._read_response(header, *answer)

    def _is_readable(self, timeout: float | None) -> bool:
        return bool(self._buffer) or self._is_ready(select.POLLIN, timeout)

    def _is_ready(self, what: int, timeout: float | None) -> bool:
        poll = select.poll()
        poll.register(self._socket, what)
        return bool(poll.poll(None if timeout is None else timeout * 1000))

    def _read(self, length: int, timeout: float) -> bytes:
        while len(self._buffer) < length:
            if not self._is_ready(select.POLLIN, timeout):
                raise KazooTimeoutError("socket time-out during read")
            try:
                chunk = self._socket.recv(_CHUNK)
            except BlockingIOError:
                continue
            except OSError as error:
                raise ConnectionDropped(f"socket connection error: {error}") from error
            if not chunk:
                raise ConnectionDropped("socket connection broken")
            self._buffer += chunk
        found = bytes(self._buffer[:length])
        del self._buffer[:length]
        return found

    def _write(self, message: bytes, timeout: float) -> None:
        while message:
            try:
                message = message[self._socket.send(message) :]
            except BlockingIOError:
                if not self._is_ready(select.POLLOUT, timeout):
                    raise KazooTimeoutError("socket time-out during write") from None
            except OSError as error:
                raise ConnectionDropped(f"socket connection error: {error}") from error


class DirectClient(Client):
    """A client of a program that does one thing at a time."""

    def __init__(self, **options: Any) -> None:
        handler = _Handler()
        super().__init__(handler=handler, **options)
        self._connection = handler.connection = _Connection(
            self, self._conn_retry.copy(), logger=self.logger
        )

    def _call(self, request: Any, async_object: Any) -> Any:
        """Send a request at once, or leave it to kazoo's thread where it has to connect first."""
        if not self._connection.send(request, async_object):
            return super()._call(request, async_object)
        self.count(request)
        return None

    def _session_callback(self, state: Any) -> None:
        """Take note of what became of the connection, while nobody uses it."""
        with self._connection.lock:
            super()._session_callback(state)
