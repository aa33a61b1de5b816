"""The embedded server: quickly there, on loopback only, and gone with its owner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reassure_zookeeper.errors import ServerError
from reassure_zookeeper.server import HOST, Server, _four_letters, _is_alive


def await_true(what: str, condition, seconds: float = 10.0) -> None:
    """Wait until a condition holds; fail with `what` if it does not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_server_in_a_directory_of_its_own_leaves_nothing() -> None:
    """A server without a named directory answers, and its process and files go at the end."""
    with Server.start() as server:
        pid, data_dir = server.pid, server.data_dir
        assert "Mode: standalone" in _four_letters(server._port, b"srvr")
        assert server.running
        assert server.log_dir.is_dir()
    assert not _is_alive(pid)
    assert not data_dir.exists()
    assert not server.running
    server.stop()
    with pytest.raises(ServerError, match="is not running; restart it"):
        _ = server.pid
    with pytest.raises(ServerError, match="was stopped; start a new one"):
        server.restart()


def test_server_listens_on_loopback_only(own_server: Server) -> None:
    """The one listening socket of the server is bound to 127.0.0.1."""
    port = int(own_server.hosts.partition(":")[2])
    listening = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{own_server.pid}/net/{table}").read_text().splitlines()
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    ]
    assert listening == [f"0100007F:{port:04X}"]


def test_killed_server_returns_on_the_same_port_with_its_data(own_server: Server, connect) -> None:
    """After kill and restart the address is the same, nobody got it meanwhile, data is kept."""
    client = connect(own_server)
    client.create("/kept", b"data")
    hosts, pid = own_server.hosts, own_server.pid
    own_server.kill()
    assert not _is_alive(pid)
    with socket.socket() as rival:
        address = HOST, int(hosts.partition(":")[2])
        assert rival.connect_ex(address) != 0
        with pytest.raises(OSError, match="in use"):
            rival.bind(address)
    own_server.restart()
    assert (own_server.hosts, own_server.pid != pid) == (hosts, True)
    own_server.restart()
    assert connect(own_server).get("/kept")[0] == b"data"


def test_restart_refuses_a_port_that_another_program_took(own_server: Server) -> None:
    """When another program listens on the port, restart says so instead of passing it off."""
    own_server.kill()
    with socket.socket() as rival:
        rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        rival.bind((HOST, int(own_server.hosts.partition(":")[2])))
        rival.listen()
        with pytest.raises(ServerError, match=r"another program listens on .* or start a new"):
            own_server.restart()
    own_server.restart()
    assert own_server.running


def test_directory_serves_one_server_at_a_time(tmp_path: Path) -> None:
    """A directory in use is refused, whoever asks, and is free again once the server ended."""
    with Server.start(tmp_path) as server:
        with pytest.raises(ServerError, match=f"{tmp_path} is in use by a running server; stop"):
            Server.start(tmp_path)
        server.kill()
        with pytest.raises(ServerError, match="in use"):
            Server.start(tmp_path)
    with Server.start(tmp_path):
        pass
    assert (tmp_path / "version-2").is_dir()


def test_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A data directory that cannot be made is named, with what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(ServerError, match=r"file/data cannot hold a server's data .* can write to"):
        Server.start(tmp_path / "file" / "data")


def test_server_that_does_not_come_up_shows_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that ends while starting leaves its last words in the error."""
    (tmp_path / "version-2").mkdir()
    (tmp_path / "version-2" / "log.1").write_bytes(b"this is no transaction log" * 9)
    (tmp_path / "version-2" / "snapshot.0").write_bytes(b"this is no snapshot")
    with pytest.raises(ServerError, match=r"(?s)ended while starting; check .*wrote:\n  .*\w"):
        Server.start(tmp_path)
    monkeypatch.setattr("reassure_zookeeper.server._READY_SECONDS", 0.01)
    with pytest.raises(ServerError, match=r"did not answer within 0\.01 s"):
        Server.start()


OWNER = """
import os, sys, threading, time
from reassure_zookeeper.server import Server
servers = []
thread = threading.Thread(target=lambda: servers.append(Server.start()))
thread.start(); thread.join()
time.sleep(0.1)
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
print(servers[0].pid, child, servers[0].data_dir, servers[0].running, flush=True)
if sys.argv[1] == "crash":
    os.abort()
if sys.argv[1] == "leave":
    sys.exit()
time.sleep(60)
"""


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "SIGINT", "crash", "leave"])
def test_server_ends_with_its_owner_however_that_ends(end: str, tmp_path: Path) -> None:
    """Started by a thread that is gone, with a forked child alive, the server ends all the same."""
    complaints = tmp_path / "stderr"
    with (
        complaints.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", OWNER, end],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        ) as owner,
    ):
        assert owner.stdout is not None
        answer = owner.stdout.readline()
        assert answer, complaints.read_text()
        pid, child, data_dir, running = answer.split()
        assert running == "True"  # the end of the thread that started it did not end it
        try:
            if end.startswith("SIG"):
                owner.send_signal(signal.Signals[end])
            owner.wait(10)
            await_true("the server outlives its owner", lambda: not _is_alive(int(pid)))
            await_true("its files outlive it", lambda: not Path(data_dir).exists())
            assert _is_alive(int(child))
        finally:
            os.kill(int(child), signal.SIGKILL)
