"""Faults between a client and its server, each brought about at once and on purpose.

*Expiring a session.*  A second connection presents the victim's id and password, takes the session
over and closes it.  To every other client this is what an expiry looks like: the session ends in
the transaction log and its ephemeral nodes go, within milliseconds instead of a session timeout.
The victim learns of it when it reconnects.  Both requests are sent in one piece, for a victim that
reconnects meanwhile takes its session back, and the two would evict each other again and again.

*Cutting a connection.*  The victim's socket is shut down; the session lives on and the client
reconnects.  The socket is not closed, since closing it under kazoo's own thread kills that thread.

Killing and restarting the server are verbs of `reassure_zookeeper.server.Server`.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING

from reassure_zookeeper.errors import FaultError

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_CONNECT = struct.Struct(">iqiqi")  # protocol version, last zxid seen, timeout, session, length
_CONNECT_REPLY = struct.Struct(">iiq")  # protocol version, timeout, session
_HEADER = struct.Struct(">ii")  # request number, type
_LENGTH = struct.Struct(">i")
_CLOSE_SESSION = -11
_ANY_TIMEOUT_MS = 10_000


def expire_session(hosts: str, client_id: tuple[int, bytes], timeout: float = 10.0) -> bool:
    """End a session now, as if it had expired; return once it is gone.

    `hosts` is one or more "host:port", `client_id` what `KazooClient.client_id` gives, `timeout`
    in seconds.  Returns whether the session was still alive; False also if the password is wrong,
    which a server does not tell apart.  Raises `FaultError` when no server answers in time.
    """
    session, password = client_id
    addresses = [_parse_address(host) for host in hosts.partition("/")[0].split(",")]
    deadline = time.monotonic() + timeout
    was_alive = False
    problem: Exception | None = None
    while (left := deadline - time.monotonic()) > 0:
        try:
            alive, closed = _take_over_and_close(addresses[0], session, password, left)
        except OSError as error:
            problem = error
            addresses.append(addresses.pop(0))
            time.sleep(0.01)
            continue
        was_alive = was_alive or alive
        if closed or not alive:
            return was_alive
    raise FaultError(
        f"session 0x{session & (1 << 64) - 1:x} could not be ended at {hosts} within "
        f"{timeout:g} s ({problem or 'its owner kept taking it back'}); check that the server runs"
    )


def cut_connection(client: KazooClient) -> None:
    """Break a kazoo client's connection; its session is kept and it reconnects by itself.

    Raises `FaultError` when the client has no connection that could be cut.
    """
    connection = getattr(client, "_connection", None)
    victim = getattr(connection, "_socket", None)
    if victim is None or not client.connected:
        raise FaultError("there is no connection to cut; wait until the client is connected")
    try:
        victim.shutdown(socket.SHUT_RDWR)
    except OSError as problem:
        raise FaultError(
            f"the connection cannot be cut ({problem}); wait until the client is connected"
        ) from None


def _parse_address(host: str) -> tuple[str, int]:
    name, _, port = host.strip().rpartition(":")
    if not name or not port.isdigit():
        raise FaultError(f"{host!r} is not an address; write host:port, as in 127.0.0.1:2181")
    return name, int(port)


def _take_over_and_close(
    address: tuple[str, int], session: int, password: bytes, timeout: float
) -> tuple[bool, bool]:
    """Return whether the server knew the session, and whether it said that it closed it."""
    connect = _CONNECT.pack(0, 0, _ANY_TIMEOUT_MS, session, len(password)) + password + b"\0"
    with socket.create_connection(address, timeout) as connection:
        connection.sendall(_packet(connect) + _packet(_HEADER.pack(1, _CLOSE_SESSION)))
        reply = _receive(connection)
        if len(reply) < _CONNECT_REPLY.size:
            raise ConnectionError("the server hung up before it answered")
        _, granted, answered = _CONNECT_REPLY.unpack_from(reply)
        if granted <= 0 or answered != session:
            return False, False
        # Hanging up here means that the owner took the session back: the caller tries again.
        with contextlib.suppress(ConnectionError):
            return True, bool(_receive(connection))
        return True, False


def _packet(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def _receive(connection: socket.socket) -> bytes:
    """Read one packet; empty if the server hung up instead."""
    head = _receive_exactly(connection, _LENGTH.size)
    return _receive_exactly(connection, *_LENGTH.unpack(head)) if head else b""


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            return b""
        received += piece
    return received
