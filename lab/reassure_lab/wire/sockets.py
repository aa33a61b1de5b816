"""Listening, and frames from a socket."""

import socket
from typing import Final

from reassure_lab.wire.errors import BadFrame, PortTaken
from reassure_lab.wire.frames import SIZE

_CHUNK: Final = 2**16


def listen(port: int) -> socket.socket:
    """Listen on a port of 127.0.0.1; 0 is one that the system chooses. Raises PortTaken."""
    host = "127.0.0.1"
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as problem:
        raise PortTaken(host, port, problem) from None


def receive_frame(connection: socket.socket, max_bytes: int, start: bytes = b"") -> bytes:
    """Return the next frame without its size, of which `start` has been read already.

    Memory is taken as bytes come, not as the size says. Raises BadFrame when the size is not one,
    OSError when the connection ends or times out before the frame's end.
    """
    (size,) = SIZE.unpack(start + _receive(connection, SIZE.size - len(start)))
    if not 0 < size <= max_bytes:
        raise BadFrame(f"expected a size of 1 to {max_bytes} bytes, found {size}")
    return _receive(connection, size)


def _receive(connection: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = connection.recv(min(size - len(content), _CHUNK))
        if not part:
            raise OSError(f"ended after {len(content)} of {size} bytes")
        content += part
    return bytes(content)
