"""A log with everything in it, made once by a real server and a real client."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.protocol.serialization import int_struct, write_buffer, write_string
from kazoo.security import make_acl, make_digest_acl

from reassure_zookeeper.interruptions import expire_session
from reassure_zookeeper.jute import NO_DATA, OPEN_ACL, READ_ACL, Acl
from reassure_zookeeper.launch import ServerSettings
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import (
    CREATE2,
    CREATE_CONTAINER,
    CREATE_TTL,
    DELETE_CONTAINER,
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    Reconfig,
    SetAcl,
    SetData,
    Transaction,
    committed,
    multi,
)
from reassure_zookeeper.txnlog import read_logs

Connect = Callable[..., KazooClient]
OPEN = struct.pack(">ii", 1, 31) + write_string("world") + write_string("anyone")


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request that kazoo has no name for, in the shape its queue expects."""

    type: int
    body: bytes

    def serialize(self) -> bytes:
        """Return the bytes to send."""
        return self.body

    @staticmethod
    def deserialize(reply: bytes, offset: int) -> bool:
        """Ignore what a success says."""
        return True


def create_container(client: KazooClient, path: str) -> None:
    """Create a container node, which goes after its last child."""
    body = write_string(path) + write_buffer(b"box") + OPEN + int_struct.pack(4)
    call(client, RawRequest(19, bytes(body)))


def create_with_ttl(client: KazooClient, path: str, ttl_ms: int) -> None:
    """Create a node that goes when it was not written for a while."""
    body = write_string(path) + write_buffer(b"") + OPEN + struct.pack(">iq", 5, ttl_ms)
    call(client, RawRequest(21, bytes(body)))


def call(client: KazooClient, request: RawRequest) -> None:
    """Send a raw request and wait for its success."""
    result = client.handler.async_result()
    client._call(request, result)
    result.get(timeout=10)


@pytest.fixture
def own_server() -> Iterator[Server]:
    """Start a server of one's own, to be killed at will."""
    with Server.start() as server:
        yield server


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Give a way to connect clients; they are stopped and closed after the test."""
    clients = []

    def connect(server: Server, timeout: float = 10.0) -> KazooClient:
        clients.append(_connect(server, timeout))
        return clients[-1]

    yield connect
    _end(*clients)


def _connect(server: Server, timeout: float = 10.0) -> KazooClient:
    client = KazooClient(server.hosts, timeout=timeout)
    client.start(timeout=10)
    return client


def _end(*clients: KazooClient) -> None:
    for client in clients:
        client.stop()
        client.close()


@dataclass(frozen=True, slots=True)
class Recording:
    """A data directory, what its logs hold, and the session that was open when it was left."""

    data_dir: Path
    log_file: Path
    transactions: tuple[Transaction, ...]
    open_session: int


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Record a varied workload, end the server hard, and let it write a snapshot on its return."""
    data_dir = tmp_path_factory.mktemp("recording")
    with Server.start(data_dir, settings=ServerSettings(container_check_ms=50)) as server:
        client, leaving, expiring = _connect(server), _connect(server), _connect(server)
        _plain(client)
        _multis(client)
        _lists(client)
        create_container(client, "/box")
        client.create("/box/child", b"")
        client.delete("/box/child")
        create_with_ttl(client, "/fleeting", 30)
        for each in (client, leaving, expiring):
            each.create(f"/live-{each.client_id[0]}", b"here", ephemeral=True)
            each.create("/queue/n-", b"", ephemeral=True, sequence=True)
        assert expire_session(server.hosts, expiring.client_id)
        _end(leaving)
        _await_gone(client, "/box", "/fleeting")
        session = client.client_id[0]
        server.kill()
        _end(client, expiring)
        (log_file,) = server.log_dir.glob("log.*")
        transactions = tuple(read_logs(data_dir))
        server.restart()
    return Recording(data_dir, log_file, transactions, session)


def _plain(client: KazooClient) -> None:
    client.create("/plain", b'{"a": 1}')
    client.create("/nothing", None)
    client.create("/stat", b"", include_data=True)
    client.create("/queue", b"")
    for number in range(12):
        client.create("/queue/n-", b"%d" % number, sequence=True)
    for number in range(20):
        client.set("/plain", b"%d" % number, version=number)
    client.set("/plain", b"line\n")
    client.set("/nothing", None)
    client.create("/ünï/cödé", "žluťoučký".encode(), makepath=True)
    client.create("/big", bytes(range(32, 127)) * 4000)
    client.delete("/queue/n-0000000003")
    with pytest.raises(NodeExistsError):
        client.create("/plain", b"")
    with pytest.raises(NoNodeError):
        client.delete("/not-there")


def _multis(client: KazooClient) -> None:
    good = client.transaction()
    good.check("/plain", 21)
    good.create("/m", b"1")
    good.create("/m/child-", b"2", sequence=True)
    good.create("/m/live", b"2", ephemeral=True)
    good.set_data("/plain", b"in multi", version=21)
    good.delete("/queue/n-0000000004")
    assert "/m" in good.commit()
    bad = client.transaction()
    bad.set_data("/plain", b"never")
    bad.check("/plain", 99)
    bad.create("/never", b"")
    bad.commit()
    client.transaction().commit()


def _lists(client: KazooClient) -> None:
    client.create("/guarded", b"", acl=[make_digest_acl("me", "secret", all=True)])
    client.create("/shown", b"")
    reader = make_acl("world", "anyone", read=True, admin=True)
    writer = make_acl("ip", "127.0.0.1", all=True)
    client.set_acls("/shown", [reader, writer])
    client.set_acls("/shown", [reader, writer], version=1)


def _await_gone(client: KazooClient, *paths: str) -> None:
    deadline = time.monotonic() + 10
    while any(client.exists(path) for path in paths):
        assert time.monotonic() < deadline, f"{paths} are still there"
        time.sleep(0.02)


@pytest.fixture
def every_kind() -> list[Transaction]:
    """Return a transaction of each kind that there is."""
    return EVERY_KIND


EVERY_KIND = [
    committed(CreateSession(4000), zxid=0x100000001, session_id=-5, time_ms=1),
    committed(Create("/a", b"one\ntwo", OPEN_ACL, False, 1), zxid=0x100000002),
    committed(Create("/b", b"", READ_ACL + OPEN_ACL, True, 2, CREATE2), zxid=0x100000003),
    committed(Create("/c", NO_DATA, OPEN_ACL, False, 3, CREATE_CONTAINER), zxid=0x100000004),
    committed(Create("/d", b"x", OPEN_ACL, False, 4, CREATE_TTL, 12345), zxid=0x100000005),
    committed(Delete("/a"), zxid=0x100000006, cxid=7, time_ms=1_700_000_000_000),
    committed(Delete("/c", DELETE_CONTAINER), zxid=0x100000007),
    committed(SetData("/ä", "ö".encode(), 3), zxid=0x100000008),
    committed(SetAcl("/d", (Acl(1, "digest", "u:p"), Acl(31, "ip", "10.0.0.1")), 2), zxid=1 << 33),
    committed(Reconfig("/zookeeper/config", b"server.1=x", 1), zxid=(1 << 33) + 1),
    multi(Check("/d", 1), SetData("/d", b"y", 1), Delete("/d"), zxid=(1 << 33) + 2),
    multi(SetData("/d", b"y", 1), Error(-103), Error(-2), zxid=(1 << 33) + 3),
    multi(zxid=(1 << 33) + 4),
    committed(Error(-101), zxid=(1 << 33) + 5),
    committed(CloseSession(("/b", "/e")), zxid=(1 << 33) + 6, session_id=-5),
]
