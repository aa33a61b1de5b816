"""Sessions expired and connections cut on purpose."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from kazoo.client import KazooClient, KazooState

from reassure_zookeeper.errors import FaultError
from reassure_zookeeper.interruptions import cut_connection, expire_session
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import CloseSession
from reassure_zookeeper.txnlog import read_logs


@pytest.fixture(scope="module")
def server() -> Server:
    """Start one server for all of these tests; they use different nodes."""
    with Server.start() as server:
        yield server


def _watch_states(client: KazooClient) -> tuple[list[str], threading.Event]:
    states: list[str] = []
    back = threading.Event()

    def note(state: str) -> None:
        states.append(state)
        if state == KazooState.CONNECTED:
            back.set()

    client.add_listener(note)
    return states, back


def test_expired_session_is_gone_when_the_call_returns(server: Server, connect) -> None:
    """Ephemerals are gone and the end is in the log at return; the victim learns that it is new."""
    victim, witness = connect(server), connect(server)
    victim.create("/mine", b"", ephemeral=True)
    states, back = _watch_states(victim)
    session = victim.client_id
    threads = threading.active_count()
    assert expire_session(server.hosts, session) is True
    assert threading.active_count() <= threads
    assert witness.exists("/mine") is None
    last = list(read_logs(server.data_dir))
    ended = [each.ops for each in last if each.session_id == session[0] and each.type == -11]
    assert ended == [(CloseSession(("/mine",)),)]
    assert back.wait(10)
    assert states == [KazooState.SUSPENDED, KazooState.LOST, KazooState.CONNECTED]
    assert victim.client_id[0] != session[0]


def test_expiring_holds_against_a_victim_that_keeps_writing(server: Server, connect) -> None:
    """Ten times over, with requests in flight, the session that was meant is the one that ends."""
    witness = connect(server)
    for number in range(10):
        victim = connect(server)
        path = f"/busy-{number}"
        victim.create(path, b"", ephemeral=True)
        for _ in range(200):
            victim.set_async(path, b"x")
        assert expire_session(server.hosts, victim.client_id) is True
        assert witness.exists(path) is None


def test_unknown_session_or_wrong_password_ends_nothing(server: Server, connect) -> None:
    """A session that the server does not know, or not by this password, gives False."""
    client = connect(server)
    session, password = client.client_id
    assert expire_session(server.hosts, (session + 1, password)) is False
    assert expire_session(server.hosts, (session, b"0" * 16)) is False
    # A server cuts the connection of a session that somebody asks for before it looks at passwords.
    client.retry(client.create, "/still-here", b"", ephemeral=True)
    assert client.client_id == (session, password)


def test_expiring_without_a_server_says_where_it_tried() -> None:
    """With nobody at the address the fault is refused in time, and the message names it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(FaultError, match=rf"session 0x5 .* {address} within 0.2 s .*refused"):
            expire_session(address, (5, b""), timeout=0.2)
        assert time.monotonic() - begun < 5
    with pytest.raises(FaultError, match="'here' is not an address; write host:port"):
        expire_session("here", (5, b""))


def test_cut_connection_keeps_the_session(server: Server, connect) -> None:
    """After a cut the client is back with the same session and its ephemerals."""
    client = connect(server)
    client.create("/lasting", b"", ephemeral=True)
    states, back = _watch_states(client)
    session = client.client_id
    cut_connection(client)
    assert back.wait(10)
    assert states == [KazooState.SUSPENDED, KazooState.CONNECTED]
    assert client.client_id == session
    assert client.exists("/lasting").ephemeralOwner == session[0]


def test_cutting_what_is_not_connected_is_refused() -> None:
    """There is nothing to cut in a client that has no connection, and that is said."""
    with pytest.raises(FaultError, match="no connection to cut; wait until"):
        cut_connection(KazooClient("127.0.0.1:1"))
