"""Controllers and brokers as processes of their own."""

import logging
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reassure_controller.crashing import BadCrashPoint, crash_at
from reassure_lab.__main__ import main

from .conftest import wait_for


class Processes:
    """Processes that end with the test."""

    def __init__(self, hosts: str, data: Path) -> None:
        self._hosts, self._data = hosts, data
        self._started: list[subprocess.Popen[str]] = []

    def start(self, role: str, number: int, *options: str) -> subprocess.Popen[str]:
        """Start a controller or a broker and return once it is ready."""
        if role == "broker":
            options = (*options, "--data", str(self._data / str(number)))
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "reassure_lab", role),
                *("--zookeeper", self._hosts, "--id", str(number), "--log-level", "WARNING"),
                *options,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"ready {role} {number}")
        return process

    def end(self) -> None:
        """End them all."""
        for process in self._started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def processes(make_cluster: Any, tmp_path: Path) -> Iterator[tuple[Any, Processes]]:
    """A cluster without brokers of its own, and a way to start processes in it."""
    cluster = make_cluster(())
    started = Processes(cluster.hosts, tmp_path)
    yield cluster, started
    started.end()


def test_processes_carry_out_a_reassignment(processes: Any) -> None:
    """Three processes move a partition, and a second controller takes over when the first ends."""
    cluster, started = processes
    first = started.start("controller", 100)
    started.start("broker", 1)
    started.start("broker", 2)
    cluster.create_topic("t", {0: (1,)})
    wait_for(lambda: cluster.admin.exists("/brokers/topics/t/partitions/0/state") is not None)
    started.start("controller", 101)
    first.send_signal(signal.SIGTERM)
    assert first.wait(10) == 0
    cluster.request({("t", 0): (2,)})
    wait_for(lambda: cluster.assigned("t", 0) == (2,) and cluster.reassigning() == [], 30)
    assert cluster.state("t", 0).leader == 2
    assert cluster.admin.get("/controller_epoch")[0] == b"2"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["controller", "--id", "1"],
        ["controller", "--id", "x", "--zookeeper", "127.0.0.1:1"],
        ["juggler", "--id", "1", "--zookeeper", "127.0.0.1:1"],
    ],
)
def test_wrong_usage_is_64(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command line that makes no sense ends with 64 and says why."""
    assert main(argv) == 64
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    "extra",
    [["--profile", "typo"], ["--reading", "drop.slice=typo"]],
)
def test_unknown_names_are_64(extra: list[str], cluster: Any) -> None:
    """A profile or reading that does not exist ends with 64 before anything is done."""
    assert main(["controller", "--id", "1", "--zookeeper", cluster.hosts, *extra]) == 64
    assert cluster.admin.exists("/controller") is None


def test_absent_zookeeper_is_69(caplog: pytest.LogCaptureFixture) -> None:
    """Without a ZooKeeper the process ends with 69 and says what to do."""
    argv = ["controller", "--id", "1", "--zookeeper", "127.0.0.1:1", "--session-timeout", "1"]
    assert main(argv) == 69
    assert "correct --zookeeper" in caplog.text


class OldServer(socketserver.ThreadingTCPServer):
    """A door to a ZooKeeper server that makes it one of 3.5: it knows no request of 3.6.

    Those get a number that no version knows, so that the answer is the server's own.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self.behind = server
        super().__init__(("127.0.0.1", 0), OldConnection)


class OldConnection(socketserver.StreamRequestHandler):
    """One connection to an old server."""

    server: OldServer

    def handle(self) -> None:
        """Hand on what is asked, and what is answered."""
        first = self.rfile.read(4)
        if first == b"srvr":
            self.wfile.write(b"Zookeeper version: 3.5.9-83df9301, built on 01/06/2021\nMode: x\n")
            return
        with socket.create_connection(self.server.behind) as there:
            back = threading.Thread(target=self._answer, args=(there,))
            back.start()
            there.sendall(first + self.rfile.read(int.from_bytes(first)))
            while size := self.rfile.read(4):
                frame = bytearray(self.rfile.read(int.from_bytes(size)))
                if int.from_bytes(frame[4:8]) in (22, 106):
                    frame[4:8] = (222).to_bytes(4)
                there.sendall(size + frame)
            back.join()

    def _answer(self, there: socket.socket) -> None:
        while content := there.recv(4096):
            self.wfile.write(content)
        self.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_old_zookeeper_is_78(
    role: str, cluster: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says which version was found, which is needed, and what to do."""
    host, _, port = cluster.server.hosts.partition(":")
    with OldServer((host, int(port))) as old:
        thread = threading.Thread(target=old.serve_forever)
        thread.start()
        where = f"127.0.0.1:{old.server_address[1]}"
        data = ("--data", str(tmp_path)) * (role == "broker")
        assert main([role, "--id", "1", "--zookeeper", f"{where}/old", *data]) == 78
        old.shutdown()
        thread.join()
    (record,) = [one for one in caplog.records if one.levelno == logging.CRITICAL]
    said = record.getMessage()
    assert said.startswith(f"found ZooKeeper 3.5.9 at {where}; brokers and controllers need ")
    assert "ZooKeeper 3.6 or later" in said
    assert said.endswith("upgrade it, or correct --zookeeper")


def test_a_controller_ends_itself_at_a_named_point(processes: Any) -> None:
    """It is killed before the effect is carried out, and the next controller goes on from there."""
    cluster, started = processes
    started.start("broker", 1)
    first = started.start("controller", 100, "--crash-at", "request.assigned-expanded:1")
    cluster.create_topic("t", {0: (1,)})
    wait_for(lambda: cluster.admin.exists("/brokers/topics/t/partitions/0/state") is not None)
    started.start("broker", 2)
    cluster.request({("t", 0): (2,)})
    assert first.wait(20) == -signal.SIGKILL
    assert cluster.child("t", 0) is not None
    assert cluster.assigned("t", 0) == (1,)
    started.start("controller", 101)
    wait_for(lambda: cluster.assigned("t", 0) == (2,), 30)


@pytest.mark.parametrize("text", ["", "request.child-written", ":1", "a:0", "a:-1", "a:x"])
def test_a_senseless_crash_point_is_refused(text: str) -> None:
    """A place to crash at is a point and a number from 1."""
    with pytest.raises(BadCrashPoint):
        crash_at(text)
