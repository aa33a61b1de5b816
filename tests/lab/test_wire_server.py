"""What a server makes of peers that are slow, silent, mad or many."""

import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from reassure_lab.wire.apis import APIS, REFUSED_APIS
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.frames import decode_response, encode_request
from reassure_lab.wire.listener import WireServer
from reassure_lab.wire.messages import (
    ApiVersionsRequest,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    Request,
    Response,
)

OBEY = ControlledShutdownRequest(1, 2)
OBEYED = ControlledShutdownResponse(ErrorCode.none)


class Obedient:
    """Answers one kind of request, and another only once it may."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()

    def handle(self, request: Request, client_id: str | None, version: int) -> Response | None:
        """Answer, wait, fail, or say nothing."""
        match request:
            case ControlledShutdownRequest():
                return OBEYED
            case FetchRequest():
                self.may_answer.wait(30)
                return FetchResponse(())
            case ProduceRequest(acks=1):
                return OBEYED
            case _:
                return None


@contextmanager
def serving(**options: float) -> Iterator[tuple[WireServer, Obedient]]:
    """A server and its handler."""
    handler = Obedient()
    with WireServer(handler, **options) as server:  # type: ignore[arg-type]
        yield server, handler
        handler.may_answer.set()


@contextmanager
def connected(server: WireServer) -> Iterator[Connection]:
    """A connection of ours."""
    connection = Connection(*server.address, "test", timeout_s=20)
    yield connection
    connection.close()


def send(server: WireServer, content: bytes) -> bytes:
    """Send these bytes and return what comes until the server ends the connection."""
    with socket.create_connection(server.address, 20) as peer:
        peer.sendall(content)
        found = b""
        while part := receive(peer):
            found += part
        return found


def receive(peer: socket.socket) -> bytes:
    """Return what comes next; nothing once the server has ended the connection."""
    try:
        return peer.recv(65536)
    except ConnectionResetError:
        return b""


def frame(content: bytes) -> bytes:
    """Put the size before it."""
    return struct.pack(">i", len(content)) + content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (struct.pack(">i", -1), "expected a size of 1 to 1000 bytes, found -1"),
        (struct.pack(">i", 0), "expected a size of 1 to 1000 bytes, found 0"),
        (b"GET / HTTP/1.1\r\n\r\n", "expected a size of 1 to 1000 bytes, found 1195725856"),
        (struct.pack(">i", 1001), "expected a size of 1 to 1000 bytes, found 1001"),
        (frame(b"x"), "expected a header of at least 8 bytes, found 1"),
        (frame(struct.pack(">hhi", 75, 0, 1)), "found api 75 v0"),
        (
            frame(struct.pack(">hhih", 7, 2, 1, -1) + b"abc"),
            "expected ControlledShutdownRequest v2",
        ),
        (encode_request(ProduceRequest(1, 1, ()), 1, None), "could not be carried out"),
        (encode_request(ProduceRequest(-1, 1, ()), 1, None), "could not be carried out"),
    ],
)
def test_connection_of_a_mad_peer_is_closed(
    content: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says whose it was and what was expected, and others are served as before."""
    with serving(max_bytes=1000) as (server, _), connected(server) as other:
        assert other.ask(OBEY) == OBEYED
        with caplog.at_level(logging.INFO):
            assert send(server, content) == b""
        (record,) = caplog.records
        assert record.getMessage().startswith("127.0.0.1:")
        assert words in record.getMessage()
        assert other.ask(OBEY) == OBEYED


def test_versions_are_told_to_one_who_asks_in_a_newer_version() -> None:
    """A client of a later release learns what is understood and goes on over the connection."""
    with serving() as (server, _), socket.create_connection(server.address, 20) as peer:
        peer.sendall(frame(struct.pack(">hhih", 18, 99, 7, -1)))
        answer = peer.recv(4096)
        assert struct.unpack_from(">ih", answer, 4) == (7, ErrorCode.unsupported_version)
        peer.sendall(encode_request(ApiVersionsRequest(), 8, "late"))
        versions = decode_response(peer.recv(4096)[4:], ApiVersionsRequest(), 8)
    assert {one.api_key for one in versions.api_keys} == {api.key for api in (*APIS, *REFUSED_APIS)}


def test_peer_that_stops_within_a_request_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """A request must come in one go; a connection may be silent between requests."""
    with serving(frame_timeout_s=0.2) as (server, _), connected(server) as other:
        assert other.ask(OBEY) == OBEYED
        with caplog.at_level(logging.INFO):
            assert send(server, struct.pack(">i", 500) + b"half") == b""
        assert "timed out" in caplog.text
        time.sleep(0.3)
        assert other.ask(OBEY) == OBEYED


def test_peers_do_not_wait_for_each_other() -> None:
    """While one request takes its time, another connection's is answered."""
    with serving() as (server, handler), connected(server) as slow, connected(server) as quick:
        answers: list[object] = []
        asking = threading.Thread(
            target=lambda: answers.append(slow.ask(FetchRequest(1, 10**4, 1, ())))
        )
        asking.start()
        assert quick.ask(OBEY) == OBEYED
        assert answers == []
        handler.may_answer.set()
        asking.join()
        assert answers == [FetchResponse(())]


def test_too_many_connections_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Beyond the most there may be, a connection is closed at once; one that ends makes room."""
    with serving(max_connections=2) as (server, _):
        first, second, third = (Connection(*server.address, "test") for _ in range(3))
        assert first.ask(OBEY) == second.ask(OBEY) == OBEYED
        with pytest.raises(NoAnswer, match="see whether the broker is alive, then ask again"):
            third.ask(OBEY)
        assert "2 connections are open, which is the most" in caplog.text
        first.close()
        assert until(lambda: third.ask(OBEY)) == OBEYED
        second.close()
        third.close()


def until(ask: Callable[[], Response]) -> Response:
    """Ask until there is an answer."""
    end = time.monotonic() + 20
    while True:
        try:
            return ask()
        except NoAnswer:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def count_files() -> int:
    """Return how many descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_closed_server_leaves_nothing() -> None:
    """Closing ends connections, idle ones too, and leaves no thread, descriptor or port."""
    # Threads and files of a test before this one may still be on their way out.
    threads, files = set(threading.enumerate()), count_files()
    with serving() as (server, _):
        with connected(server) as connection:
            assert connection.ask(OBEY) == OBEYED
            server.close()
            with pytest.raises(NoAnswer):
                connection.ask(OBEY)
        port = server.address
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(port, 5)
    assert set(threading.enumerate()) <= threads
    assert count_files() <= files


@pytest.fixture(scope="module")
def endless() -> Iterator[WireServer]:
    """One server for all that a fuzzer thinks of."""
    with serving(max_bytes=2000, frame_timeout_s=0.5) as (server, _):
        yield server


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=300) | st.binary(max_size=300).map(frame))
def test_no_bytes_end_the_server(endless: WireServer, content: bytes) -> None:
    """Whatever a peer sends before it goes, the next one is answered."""
    with socket.create_connection(endless.address, 20) as peer:
        with suppress(OSError):  # it may have been closed before the last byte
            peer.sendall(content)
            peer.shutdown(socket.SHUT_WR)
        while receive(peer):
            pass
    with connected(endless) as other:
        assert other.ask(OBEY) == OBEYED
