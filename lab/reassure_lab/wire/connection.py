"""The asking end of a connection: a controller's, a follower's, or a tool's."""

import socket
from typing import Any, Final

from reassure_lab.wire.apis import API_VERSIONS
from reassure_lab.wire.entities import fill
from reassure_lab.wire.errors import BadFrame, NoAnswer
from reassure_lab.wire.frames import decode_response, encode_request, load_request
from reassure_lab.wire.messages import Answer, Asks, KioMessage, ProduceRequest
from reassure_lab.wire.sockets import receive_frame

ANSWER_BYTES: Final = 2**31 - 1
"""The largest answer that is read: one batch may be as large as a broker's request."""


class Connection:
    """A connection to one broker, made when it is first used, and anew after it has failed.

    One thread at a time. What was asked when a connection failed may have been carried out or
    not, so it is for the one who asks to ask again.
    """

    def __init__(self, host: str, port: int, client_id: str, *, timeout_s: float = 2.0) -> None:
        self._address = (host, port)
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._asked = 0
        self._versions: dict[int, range] | None = None
        """What the other end understands, by api key; None before it was asked."""

    @property
    def is_open(self) -> bool:
        """Whether it was made, and has not failed since."""
        return self._socket is not None

    def ask(self, request: Asks[Answer], timeout_s: float | None = None) -> Answer:
        """Return the answer; wait for it no longer than the connection's timeout, or this one.

        Raises NoAnswer.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            connection = self._send(request, timeout_s)
            return decode_response(receive_frame(connection, ANSWER_BYTES), request, self._asked)
        except (OSError, BadFrame) as error:
            raise self._fail(error) from error

    def tell(self, request: ProduceRequest) -> None:
        """Send a request that is not answered: records with acks=0. Raises NoAnswer."""
        try:
            self._send(request, self._timeout_s)
        except OSError as error:
            raise self._fail(error) from error

    def find_version(self, key: int, known: range) -> int | None:
        """Return the newest version of a request that both ends understand, None without one.

        Who is at the other end is asked once for each connection. Raises NoAnswer.
        """
        if self._versions is None or self._socket is None:
            answer = self.ask(KioMessage(fill(load_request(API_VERSIONS.key, 0), {}))).entity
            self._versions = {
                one.api_key: range(one.min_version, one.max_version + 1) for one in answer.api_keys
            }
        theirs = self._versions.get(key, range(0))
        return max(set(known).intersection(theirs), default=None)

    def close(self) -> None:
        """End the connection."""
        self._versions = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, request: Asks[Any], timeout_s: float) -> socket.socket:
        if self._socket is None:
            self._socket = _open(self._address, timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(timeout_s)
        self._asked += 1
        self._socket.sendall(encode_request(request, self._asked, self._client_id))
        return self._socket

    def _fail(self, error: Exception) -> NoAnswer:
        self.close()
        host, port = self._address
        return NoAnswer(f"{host}:{port}: {error}; see whether the broker is alive, then ask again")


def _open(address: tuple[str, int], timeout_s: float) -> socket.socket:
    """Return a connection. Raises OSError, also of a host or a port that cannot be one."""
    try:
        return socket.create_connection(address, timeout_s)
    except (ValueError, OverflowError) as error:
        raise OSError(f"not an address: {error}") from error
