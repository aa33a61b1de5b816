"""What is wrong with what a process is given: it is refused by name, and nothing is lost.

Everything here happens to real processes, or to a real controller on a real ZooKeeper. How the
parts behave in detail is asked where they are tested: `test_storage_*`, `test_full_disk`,
`test_wire_*`, `test_controller_bad_input`.
"""

import logging
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import Record
from reassure_lab.node.machine_clock import MachineClock
from reassure_lab.node.metadata import ClusterMetadata
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.frames import encode_request
from reassure_lab.wire.messages import MetadataRequest

# Processes that refuse to start


def damage(name: str, position: int) -> Callable[[Path], None]:
    """Return what flips a bit of a file among the logs."""

    def act(logs: Path) -> None:
        content = bytearray((logs / name).read_bytes())
        content[position] ^= 1
        (logs / name).write_bytes(content)

    return act


def write(name: str, content: str) -> Callable[[Path], None]:
    """Return what replaces the content of a file among the logs."""
    return lambda logs: (logs / name).write_text(content) and None


@dataclass(frozen=True)
class Refusal:
    """What is done to the disk of broker 1; the exit code; words of the message, in order."""

    act: Callable[[Path], None]
    code: int
    words: tuple[str, ...]


SEGMENT = "t-0/00000000000000000000.log"
REFUSALS = {
    "segment": Refusal(
        damage(SEGMENT, 100), 65, (SEGMENT, "byte 0", "expected checksum", "restore the file")
    ),
    "high watermarks": Refusal(
        write("replication-offset-checkpoint", "0\n1\nt 0\n"),
        65,
        ("replication-offset-checkpoint: line 3", "expected 'topic partition offset'", "delete"),
    ),
    "recovery points": Refusal(
        write("recovery-point-offset-checkpoint", "7\n0\n"),
        65,
        ("recovery-point-offset-checkpoint: line 1", "expected version 0", "delete the file"),
    ),
    "log starts": Refusal(
        write("log-start-offset-checkpoint", "0\n1\nt 0 x\n"),
        65,
        ("log-start-offset-checkpoint: line 3", "expected a number", "restore the file"),
    ),
    "another broker's": Refusal(
        write("meta.properties", "version=0\ncluster.id=/c\nbroker.id=2\n"),
        64,
        ("meta.properties", "expected", "found", "give the broker the directory"),
    ),
    "newer make": Refusal(
        write("meta.properties", "version=9\n"),
        64,
        ("meta.properties", "expected version=0, found 9", "give the broker the directory"),
    ),
}


class Shell:
    """Starts processes of one cluster, and ends them with the test."""

    def __init__(self, cluster: Any, path: Path) -> None:
        self.cluster, self.path = cluster, path
        self._running: list[subprocess.Popen[str]] = []

    def spawn(self, role: str, number: int, *options: str) -> subprocess.Popen[str]:
        """Start one."""
        command = [sys.executable, "-m", "reassure_lab", role]
        command += ["--zookeeper", self.cluster.hosts, "--id", str(number)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [*command, "--session-timeout", "4", "--log-level", "WARNING", *options],
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        self._running.append(process)
        return process

    def start(self, role: str, number: int, *options: str) -> tuple[subprocess.Popen[str], int]:
        """Start one and wait until it is ready; return it, and its port where it has one."""
        process = self.spawn(role, number, *options)
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words[:1] == ["ready"], process.communicate(timeout=60)
        address = words[3] if len(words) > 3 else ":0"
        return process, int(address.rpartition(":")[2])

    def refuse(self, role: str, number: int, *options: str) -> tuple[int, str]:
        """Start one that is to end by itself; return its exit code and what it said."""
        process = self.spawn(role, number, *options)
        _, said = process.communicate(timeout=90)
        return process.returncode, said

    def end(self) -> None:
        """Kill what is left."""
        for process in self._running:
            process.kill()
            process.communicate()


@pytest.fixture
def shell(make_cluster: Any, tmp_path: Path) -> Iterator[Shell]:
    """A cluster without a process."""
    shell = Shell(make_cluster(()), tmp_path)
    yield shell
    shell.end()


def keep_records(shell: Shell) -> Path:
    """Make the disk of broker 1, with ten records of t-0 that are safe; return its logs."""
    logs = shell.path / "b1" / "logs"
    with LogDirectory(logs, 1, ClusterMetadata(shell.cluster.admin).id) as disk:
        disk.log("t", 0).append([Record(None, b"%d" % n) for n in range(10)], 0, 0)
        disk.save_high_watermarks({("t", 0): 10})
    return logs


def contains_in_order(text: str, words: tuple[str, ...]) -> bool:
    """Whether all the words stand in the text, one behind the other."""
    position = 0
    for word in words:
        position = text.find(word, position) + 1
        if not position:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSALS)
def test_damaged_disk_is_refused_by_name(name: str, shell: Shell) -> None:
    """A broker does not start on it, says file, place, expectation and remedy, and changes none."""
    refusal, logs = REFUSALS[name], keep_records(shell)
    refusal.act(logs)
    before = {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    code, said = shell.refuse("broker", 1, "--data", str(shell.path / "b1"))
    assert code == refusal.code, said
    assert contains_in_order(said, refusal.words), said
    assert "Traceback" not in said
    assert {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_damaged_file_of_epochs_is_made_anew(shell: Shell) -> None:
    """What can be told from the records is no reason to refuse: it is named, and written again."""
    logs = keep_records(shell)
    file = logs / "t-0" / "leader-epoch-checkpoint"
    file.write_text("?")
    process, _ = shell.start("broker", 1, "--data", str(shell.path / "b1"))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"{file}: line 1" in said
    assert file.read_text() == "0\n1\n0 0\n"


@pytest.mark.slow
def test_second_of_two_brokers_with_one_id_is_refused(shell: Shell) -> None:
    """With the same disk the file is named, with another one the znode; the first goes on."""
    first, port = shell.start("broker", 1, "--data", str(shell.path / "b1"))
    code, said = shell.refuse("broker", 1, "--data", str(shell.path / "b1"))
    assert code == 64, said
    assert contains_in_order(said, (".lock: another broker has this directory", "end it"))
    code, said = shell.refuse("broker", 1, "--data", str(shell.path / "b2"))
    assert code == 64, said
    assert contains_in_order(said, ("/brokers/ids/1: another session is registered", "end that"))
    assert first.poll() is None
    assert ask_metadata(port) == [1]


@pytest.mark.slow
def test_controller_without_a_readable_epoch_ends(shell: Shell) -> None:
    """No term can begin on an epoch that cannot be read: bad data, by the znode's name."""
    shell.cluster.admin.create("/controller_epoch", b"seven")
    code, said = shell.refuse("controller", 100)
    assert code == 65, said
    words = ("/controller_epoch: expected an epoch in digits, found b'seven'", "mend the znode")
    assert contains_in_order(said, words), said
    assert "Traceback" not in said


# Peers that are out of their minds


def ask_metadata(port: int) -> list[int]:
    """Return the brokers that a broker names."""
    connection = Connection("127.0.0.1", port, "test", timeout_s=20.0)
    try:
        return [broker.node_id for broker in connection.ask(MetadataRequest(None)).brokers]
    finally:
        connection.close()


def send(port: int, content: bytes) -> None:
    """Send bytes over a connection of their own, and leave without waiting for more."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        try:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(20)
            while connection.recv(1 << 16):
                pass
        except OSError:
            return  # it was closed meanwhile, which is an answer as well


BYTE = st.binary(min_size=1, max_size=1)


@pytest.mark.slow
def test_no_bytes_end_a_broker(shell: Shell) -> None:
    """Rubbish, half a frame, a huge size and a damaged request are survived, and named."""
    process, port = shell.start("broker", 1, "--data", str(shell.path / "b1"))
    sound = encode_request(MetadataRequest(None), 1, "test")

    sizes, rests = st.integers(-(2**31), 2**31 - 1), st.binary(max_size=50)
    places = st.integers(0, len(sound) - 1)
    damaged = st.builds(lambda at, byte: sound[:at] + byte + sound[at + 1 :], places, BYTE)
    framed = st.builds(lambda size, rest: struct.pack(">i", size) + rest, sizes, rests)

    @given(st.one_of(st.binary(max_size=200), framed, damaged))
    @settings(max_examples=60, deadline=None)
    def attack(content: bytes) -> None:
        send(port, content)
        assert process.poll() is None

    attack()
    assert ask_metadata(port) == [1]
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "closed: expected a size of 1 to" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "answer",
    [b"", b"\0", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\0\0\x08\0\0\0\x09????", b"rubbish" * 9],
)
def test_broker_out_of_its_mind_is_no_answer(answer: bytes) -> None:
    """Who asks is told the address, and to ask again; no more is read than was promised."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        connection = Connection(host, port, "test", timeout_s=1.0)
        connection._send(MetadataRequest(None), 1.0)  # so that there is somebody to answer
        peer, _ = server.accept()
        with peer:
            peer.sendall(answer)
            peer.shutdown(socket.SHUT_WR)
            with pytest.raises(NoAnswer, match=f"{host}:{port}: .*then ask again"):
                connection.ask(MetadataRequest(None))


@pytest.mark.parametrize("address", [("127.0.0.1", 70_000), ("\0", 9), ("x" * 300, 9)])
def test_address_that_cannot_be_one_is_no_answer(address: tuple[str, int]) -> None:
    """A host or a port that no machine can have is as if nobody were there."""
    with pytest.raises(NoAnswer, match="see whether the broker is alive"):
        Connection(*address, "test").ask(MetadataRequest(None))


# Znodes of another make

ZNODES = (
    "/brokers/ids/9",
    "/brokers/topics/odd",
    "/config/topics/good",
    "/config/brokers/<default>",
    "/admin/reassignment_requests/request_0000000099",
    "/admin/reassignments/good/1",
    "/brokers/topics/bad/partitions/0/state",
)


@pytest.mark.parametrize("content", [b'{"version":99}', b"?"], ids=["newer", "rubbish"])
@pytest.mark.parametrize("path", ZNODES)
def test_controller_outlives_a_znode_of_another_make(
    path: str, content: bytes, cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the znode, and carries out what does not need it; nothing else is touched."""
    cluster.create_topic("good", {0: (1, 2), 1: (1, 2)})
    cluster.create_topic("bad", {0: (1, 2)})
    first = cluster.controller()
    first.drain()
    first.kill()
    cluster.admin.ensure_path(path)
    cluster.admin.set(path, content)
    with caplog.at_level(logging.WARNING):
        controller = cluster.controller()
        controller.drain()
        cluster.request({("good", 0): (2, 3)}, then=controller)
        cluster.join("good", 0, 3, then=controller)
    assert f"{path}: " in caplog.text
    assert cluster.assigned("good", 0) == (2, 3)


# Clocks that are set


def test_machine_that_is_set_back_or_forward_changes_no_span(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two looks as much has passed as has passed, whatever the time of day became."""
    clock = MachineClock()
    before = clock.now_ms()
    for set_to in (0, 2**62):
        monkeypatch.setattr(time, "time_ns", lambda set_to=set_to: set_to)
        assert 0 <= clock.now_ms() - before < 60_000
