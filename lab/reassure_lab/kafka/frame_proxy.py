"""A proxy between one broker and ZooKeeper that reads frames: it holds, cuts and expires.

Both speak in frames: a length, then in a request the number and the kind of what is asked for. The
answer to the first request tells the session and its password, by which anybody may end it.

A *controller's write* is a transaction that checks the controller epoch, as Kafka's are from 2.1
on, and is neither an election nor the answer to a sentinel (`kafka_adapter`).
"""

import re
import socket
import struct
import threading
from contextlib import suppress
from typing import Final

from reassure_lab.wire.errors import BadFrame
from reassure_lab.wire.frames import SIZE
from reassure_lab.wire.sockets import receive_frame

_LARGEST: Final = 2**31 - 1
_REQUEST: Final = struct.Struct(">ii")
_PING: Final = -2
_MULTI: Final = 14
_SESSION_AT: Final = 8
_PASSWORD_AT: Final = 20
"""Where the session and its password stand in the first answer, behind its length."""
_ELECTS: Final = re.compile(rb"/controller(?!_epoch)")
_CHECKS: Final = b"/controller_epoch"
_SENTINEL: Final = b"/admin/preferred_replica_election"


def is_controllers_write(frame: bytes) -> bool:
    """Whether a frame, without its length, is a write that a controller makes.

    >>> is_controllers_write(_REQUEST.pack(7, 14) + b"..../controller_epoch..../brokers/topics/t")
    True
    """
    _, kind = _REQUEST.unpack_from(frame)
    checks = kind == _MULTI and _CHECKS in frame and _SENTINEL not in frame
    return checks and not _ELECTS.search(frame)


class FrameProxy:
    """Listens on a port that the system chooses; ends with `close`."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server: Final = server
        self._lock: Final = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._left: int | None = None
        self._kept: list[tuple[socket.socket, bytes]] = []
        self._loses: bool | None = None
        self.session: tuple[int, bytes] | None = None
        """The id and password of the broker's session."""
        self.is_standing: Final = threading.Event()
        """Whether a write has been held, or lost."""
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: Final = int(self._door.getsockname()[1])
        threading.Thread(target=self._accept, name="frames", daemon=True).start()

    # What is done to a broker

    def hold(self, writes: int) -> None:
        """Hold the next controller's write but so many, and all that comes behind it but pings.

        One that is held already goes on for so many.
        """
        with self._lock:
            self._left, self._loses = writes, None
            self.is_standing.clear()
            kept, self._kept = self._kept, []
            for where, frame in kept:
                self._hand_on(where, frame)

    def lose(self, writes: int, *, done: bool) -> None:
        """Break the connection under the next controller's write but so many.

        `done` says whether ZooKeeper still gets it.
        """
        with self._lock:
            self._left, self._loses = writes, done
            self.is_standing.clear()

    def resume(self) -> None:
        """Let everything go on."""
        with self._lock:
            self._left = self._loses = None
            self.is_standing.clear()
            kept, self._kept = self._kept, []
            for where, frame in kept:
                _send(where, frame)

    def cut(self) -> None:
        """Break the connection; the session lives on."""
        with self._lock:
            pairs, self._pairs, self._kept = self._pairs, [], []
        for pair in pairs:
            _close(*pair)

    def close(self) -> None:
        """End for good."""
        _close(self._door)
        self.cut()

    # In threads of their own

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                _close(client)
                continue
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.append((client, server))
            for act in (self._ask, self._answer):
                threading.Thread(target=act, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        """Hand on what a broker asks."""
        with suppress(OSError, BadFrame):
            _send(server, _read_frame(client))
            while True:
                frame = _read_frame(client)
                with self._lock:
                    self._hand_on(server, frame)
                    lost = self._loses is not None and self.is_standing.is_set()
                    if lost:
                        self._left = self._loses = None
                        self.is_standing.clear()
                if lost:
                    break
        _close(client, server)

    def _hand_on(self, server: socket.socket, frame: bytes) -> None:
        """Hand on a frame, or keep it; the lock is held."""
        is_write = self._left is not None and is_controllers_write(frame)
        if is_write and self._left == 0:
            self.is_standing.set()
        elif is_write and self._left is not None:
            self._left -= 1
        stands = self.is_standing.is_set() and _REQUEST.unpack_from(frame)[0] != _PING
        if stands and self._loses is None:
            self._kept.append((server, frame))
        elif not stands or self._loses:
            _send(server, frame)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        """Hand on what ZooKeeper answers."""
        with suppress(OSError, BadFrame):
            first = _read_frame(server)
            number = struct.unpack_from(">q", first, _SESSION_AT)[0]
            self.session = (number, first[_PASSWORD_AT : _PASSWORD_AT + 16])
            _send(client, first)
            while True:
                _send(client, _read_frame(server))
        _close(client, server)


def _read_frame(source: socket.socket) -> bytes:
    return receive_frame(source, _LARGEST)


def _send(where: socket.socket, frame: bytes) -> None:
    with suppress(OSError):
        where.sendall(SIZE.pack(len(frame)) + frame)


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
