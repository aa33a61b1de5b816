"""A client whose caller sends and reads for himself, and what kazoo's thread still does for it."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.protocol.states import KazooState

from reassure_conformance.adapter.direct_client import DirectClient
from reassure_controller.client import Client
from reassure_controller.session import connect, stop
from reassure_zookeeper.interruptions import cut_connection, expire_session
from reassure_zookeeper.server import Server

PATIENCE_S = 15.0


@pytest.fixture
def client(zookeeper_server: Any) -> Iterator[DirectClient]:
    """A client whose sessions end after a second without a sign of life."""
    made = connect(zookeeper_server.hosts, timeout_s=1.0, kind=DirectClient)
    assert isinstance(made, DirectClient)
    yield made
    stop(made)


def wait_for_states(client: Client, *expected: str) -> threading.Event:
    """Return what is set once the connection has gone through these states."""
    left, passed = list(expected), threading.Event()

    def note(state: str) -> None:
        if left and state == left[0]:
            left.pop(0)
        if not left:
            passed.set()

    client.add_listener(note)
    return passed


def test_what_comes_is_dealt_with_by_whoever_waits(
    zookeeper_server: Any, client: DirectClient
) -> None:
    """A client has one thread, and watches are told where an answer is read."""
    before = set(threading.enumerate())
    watching = connect(zookeeper_server.hosts, timeout_s=60.0, kind=DirectClient)
    try:
        assert len(set(threading.enumerate()) - before) == 1
        told: list[threading.Thread] = []
        watch = lambda _: told.append(threading.current_thread())  # noqa: E731
        watching.exists("/direct-watched", watch=watch)
        client.create("/direct-watched", b"", ephemeral=True)
        time.sleep(0.05)
        assert told == []
        watching.sync("/")
        assert told == [threading.current_thread()]
    finally:
        stop(watching)


def test_large_requests_and_answers_arrive_whole(client: DirectClient) -> None:
    """What is longer than the buffers of the system is sent and read in pieces."""
    content = bytes(range(256)) * 4000
    results = [client.create_async(f"/direct-large-{n}", content) for n in range(3)]
    assert [result.get(timeout=PATIENCE_S) for result in results]
    for n in range(3):
        assert client.get(f"/direct-large-{n}")[0] == content
        client.delete(f"/direct-large-{n}")


def test_calls_made_of_several_requests_work(client: DirectClient) -> None:
    """Kazoo's own calls that go on when an answer has come go on in the caller's thread."""
    assert client.create("/direct-deep/er/est", b"", makepath=True) == "/direct-deep/er/est"
    client.delete("/direct-deep", recursive=True)
    with pytest.raises(NoNodeError):
        client.get("/direct-deep")


def test_threads_may_share_a_client(client: DirectClient) -> None:
    """Each of several threads has the answers to what it asked."""
    wrong: list[object] = []

    def work(number: int) -> None:
        path = f"/direct-shared-{number}"
        client.create(path, b"")
        for count in range(100):
            content = f"{number} {count}".encode()
            client.set(path, content)
            found = client.get(path)[0]
            if found != content:
                wrong.append((found, content))
        client.delete(path)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_session_outlives_its_timeout_though_nobody_asks(client: DirectClient) -> None:
    """Pings are sent, and their answers read, while nobody uses the client."""
    session, lost = client.client_id, wait_for_states(client, KazooState.LOST)
    assert not lost.wait(3.0)
    assert client.exists("/") is not None
    assert client.client_id == session


def test_cut_connection_comes_back_by_itself(client: DirectClient) -> None:
    """A connection that breaks is noticed and made anew though nobody asks, and is used then."""
    session = client.client_id
    back = wait_for_states(client, KazooState.SUSPENDED, KazooState.CONNECTED)
    cut_connection(client)
    assert back.wait(PATIENCE_S)
    assert client.exists("/") is not None
    assert client.client_id == session


def test_request_on_a_broken_connection_is_lost(client: DirectClient) -> None:
    """Whoever waits for an answer when the connection breaks is told so at once."""
    for _ in range(20):
        back = wait_for_states(client, KazooState.SUSPENDED, KazooState.CONNECTED)
        pending = client.exists_async("/")
        cut_connection(client)
        with contextlib.suppress(ConnectionLoss):
            assert pending.get(timeout=PATIENCE_S) is not None  # the answer was there before
        assert back.wait(PATIENCE_S)
        assert client.exists("/") is not None


def test_request_made_while_there_is_no_connection_waits_for_one(client: DirectClient) -> None:
    """What is asked during a reconnection is sent after it, and its answer is read."""
    for _ in range(20):
        suspended = wait_for_states(client, KazooState.SUSPENDED)
        cut_connection(client)
        assert suspended.wait(PATIENCE_S)
        assert client.exists_async("/").get(timeout=PATIENCE_S) is not None


def test_expired_session_is_replaced_though_nobody_asks(zookeeper_server: Any) -> None:
    """A session that ends elsewhere is noticed long before the next ping; another one is begun."""
    client = connect(zookeeper_server.hosts, timeout_s=60.0, kind=DirectClient)
    try:
        session = client.client_id
        assert session is not None
        back = wait_for_states(client, KazooState.LOST, KazooState.CONNECTED)
        assert expire_session(zookeeper_server.hosts, session)
        assert back.wait(PATIENCE_S)
        assert client.client_id[0] != session[0]
        assert client.exists("/") is not None
    finally:
        stop(client)


def test_server_that_dies_under_a_request_is_noticed() -> None:
    """The request is lost, and the client goes on when the server is back."""
    with Server.start() as server:
        client = connect(server.hosts, timeout_s=2.0, kind=DirectClient)
        try:
            back = wait_for_states(client, KazooState.SUSPENDED, KazooState.CONNECTED)
            os.kill(server.pid, signal.SIGSTOP)
            pending = client.exists_async("/")
            server.kill()
            with pytest.raises(ConnectionLoss):
                pending.get(timeout=PATIENCE_S)
            server.restart()
            assert back.wait(PATIENCE_S)
            assert client.exists("/") is not None
        finally:
            stop(client)
