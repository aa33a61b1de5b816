"""The broker's end of connections: a thread for each, one request of it at a time.

A connection whose bytes are not understood is closed, and a line in the log says whose it was and
what was expected; nothing that a peer sends ends the server. A handler may take its time: only the
connection that asked waits.
"""

import logging
import socket
import threading
from collections.abc import Iterable
from typing import Final, Protocol, Self

from kio.schema.errors import ErrorCode

from reassure_controller.tally import LabelCounts
from reassure_lab.wire.apis import APIS, REFUSED_APIS, Api
from reassure_lab.wire.errors import BadFrame
from reassure_lab.wire.frames import (
    MAX_BYTES,
    AskedRequest,
    UnknownVersions,
    decode_request,
    encode_response,
    list_versions,
)
from reassure_lab.wire.messages import (
    ApiVersionsRequest,
    KioMessage,
    ProduceRequest,
    Request,
    Response,
)
from reassure_lab.wire.outcomes import find_errors
from reassure_lab.wire.refusals import refuse
from reassure_lab.wire.sockets import listen, receive_frame

log = logging.getLogger(__name__)


IDLE_S: Final = 600.0
"""Kafka's own connections.max.idle.ms."""


class Unanswerable(Exception):
    """A request that cannot be answered now, through no fault of the one who asks."""


class Handler(Protocol):
    """What a broker does with requests; called from many threads at once."""

    def handle(self, request: Request, client_id: str | None, version: int) -> Response | None:
        """Return the response; None where nobody waits for one (a producer's acks=0).

        The version is the request's. Raises Unanswerable: the connection is closed then, and the
        peer asks again.
        """


class WireServer:
    """Listens on a loopback port, from the start until it is closed."""

    def __init__(
        self,
        handler: Handler,
        *,
        port: int = 0,
        apis: Iterable[Api] = (*APIS, *REFUSED_APIS),
        max_bytes: int = MAX_BYTES,
        max_connections: int = 1000,
        frame_timeout_s: float = 30.0,
        idle_timeout_s: float = IDLE_S,
    ) -> None:
        """Listen; port 0 is one that the system chooses. Raises PortTaken.

        `apis` are those that it says it understands.

        A peer may be silent between requests for `idle_timeout_s`, within one for
        `frame_timeout_s`: one that is cut off by a network says no more, and is not kept for ever.
        """
        self._handler = handler
        self._apis = tuple(apis)
        self._max_bytes = max_bytes
        self._max_connections = max_connections
        self._frame_timeout_s = frame_timeout_s
        self.answers = LabelCounts()
        """How often it answered what, by request and error."""
        self._idle_timeout_s = idle_timeout_s
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._closing = threading.Event()
        self._listener = listen(port)
        self._address = self._listener.getsockname()
        self._thread = threading.Thread(target=self._accept, name="wire-accept", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> tuple[str, int]:
        """The host and port to register."""
        host, port = self._address
        return str(host), int(port)

    def close(self) -> None:
        """Stop listening, end every connection, and wait for handlers that are at work."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        with self._lock:
            threads = list(self._connections.values())
            for connection in self._connections:
                _shut(connection)
        for thread in threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, peer = self._listener.accept()
            except OSError as error:
                if self._closing.wait(0.05):  # not at once: it may be for want of descriptors
                    return
                log.warning("a connection could not be taken: %s", error)
                continue
            name = f"{peer[0]}:{peer[1]}"
            thread = threading.Thread(
                target=self._serve, args=(connection, name), name=f"wire-{name}", daemon=True
            )
            with self._lock:
                count = len(self._connections)
                if count < self._max_connections:
                    self._connections[connection] = thread
            if count >= self._max_connections:
                log.warning("%s: closed: %d connections are open, which is the most", name, count)
                connection.close()
                continue
            try:
                thread.start()
            except RuntimeError as error:
                log.warning("%s: closed: no thread for it: %s", name, error)
                with self._lock:
                    del self._connections[connection]
                connection.close()

    def _serve(self, connection: socket.socket, peer: str) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (frame := self._receive(connection)) is not None:
                self._answer(connection, frame)
        except BadFrame as bad:
            log.warning("%s: closed: %s", peer, bad)
        except OSError as error:
            log.info("%s: closed: %s", peer, error)
        except Unanswerable as error:
            log.warning("%s: closed: %s", peer, error)
        except Exception:
            log.exception("%s: closed: a request of it could not be carried out", peer)
        finally:
            with self._lock:
                del self._connections[connection]
            connection.close()

    def _receive(self, connection: socket.socket) -> bytes | None:
        """Return the next frame without its size, or None at the connection's end."""
        connection.settimeout(self._idle_timeout_s)
        start = connection.recv(1)
        if not start:
            return None
        connection.settimeout(self._frame_timeout_s)
        return receive_frame(connection, self._max_bytes, start)

    def _answer(self, connection: socket.socket, frame: bytes) -> None:
        try:
            asked = decode_request(frame)
        except UnknownVersions as unknown:  # answered so that the peer can ask again, KIP-511
            answer = list_versions(ErrorCode.unsupported_version)
            connection.sendall(encode_response(answer, 0, unknown.correlation_id))
            return
        response = self._handle(asked)
        if response is None:
            return
        connection.sendall(encode_response(response, asked.version, asked.correlation_id))

    def _handle(self, asked: AskedRequest) -> Response | None:
        request = asked.request
        if isinstance(request, ApiVersionsRequest):
            return list_versions(apis=self._apis)
        if asked.api in REFUSED_APIS and isinstance(request, KioMessage):
            return refuse(request)
        response = self._handler.handle(request, asked.client_id, asked.version)
        if response is None:
            if not (isinstance(request, ProduceRequest) and request.acks == 0):
                raise TypeError(f"no response to {request}")
        elif type(response) is not asked.api.response:
            raise TypeError(f"{response} is no response to {request}")
        told = request.entity if isinstance(request, KioMessage) else request
        name = type(told).__name__.removesuffix("Request")
        content = response.entity if isinstance(response, KioMessage) else response
        found = set() if content is None else find_errors(content)
        for error in found or (ErrorCode.none,):
            self.answers.add(name, error.name.upper())
        return response


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as gone:
        log.debug("a connection was gone already: %s", gone)
