"""A real ensemble whose leader has logged what nobody followed, and did not come back."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from reassure_zookeeper.ensemble import EnsembleMember, Merged, merge
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.launch import HOST, mend_epoch
from reassure_zookeeper.log_survey import survey_log
from reassure_zookeeper.snapshot import snapshot_files
from reassure_zookeeper.transactions import SetData, Transaction
from reassure_zookeeper.txnlog import EPOCH_BITS, LogFile, is_next, log_files

WAIT_S = 60.0
TICK_MS = 2000
"""A leader that is left alone notices within half of it, and goes on logging until then."""


class Ensemble:
    """Three servers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folders = {number: folder / f"member-{number}" for number in (1, 2, 3)}
        with ExitStack() as stack:
            holders = [stack.enter_context(socket.socket()) for _ in range(9)]
            for holder in holders:
                holder.bind((HOST, 0))
            ports = [holder.getsockname()[1] for holder in holders]
        self.clients = dict(zip(self.folders, ports[:3], strict=True))
        self._servers = [
            f"--server={number}:{ports[2 + number]}:{ports[5 + number]}" for number in self.folders
        ]
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, *numbers: int) -> None:
        """Start servers."""
        for number in numbers:
            words = ["--data", str(self.folders[number]), "--port", str(self.clients[number])]
            words += ["--own", str(number), *self._servers, "--tick-ms", str(TICK_MS)]
            self._running[number] = subprocess.Popen(
                [sys.executable, "-m", "reassure_zookeeper", *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def kill(self, *numbers: int) -> None:
        """End servers with SIGKILL."""
        ended = [self._running.pop(number) for number in numbers]
        for process in ended:
            process.kill()
        for process in ended:
            process.wait()

    def stop(self) -> None:
        """End whatever runs."""
        self.kill(*self._running)

    def find_leader(self) -> int:
        """Wait until one leads and all others that run follow."""

        def look() -> int | None:
            modes = {number: self._ask(number) for number in self._running}
            leaders = [number for number, mode in modes.items() if mode == "leader"]
            return leaders[0] if leaders and None not in modes.values() else None

        return _await(look)

    def _ask(self, number: int) -> str | None:
        try:
            with socket.create_connection((HOST, self.clients[number]), 1) as connection:
                connection.sendall(b"srvr")
                said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except OSError:
            return None
        return said.partition("Mode: ")[2].partition("\n")[0] or None

    def connect(self, number: int) -> KazooClient:
        """Connect a client to a server."""
        client = KazooClient(f"{HOST}:{self.clients[number]}", timeout=30)
        client.start(timeout=WAIT_S)
        return client

    def read(self, number: int) -> list[Transaction]:
        """Return what a server has logged."""
        folder = self.folders[number]
        return [each for file in log_files(folder) for each in LogFile(file)]


def _await(look: Callable[[], int | None]) -> int:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("the ensemble did not get there in time")


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    """Start three servers, and end them."""
    servers = Ensemble(tmp_path)
    try:
        servers.start(1, 2, 3)
        yield servers
    finally:
        servers.stop()


def _list_written(transactions: list[Transaction]) -> list[bytes]:
    return [op.data for each in transactions for op in each.ops if isinstance(op, SetData)]


def _merge(folders: list[Path]) -> Merged:
    return merge(
        [
            EnsembleMember.of(
                folder.name,
                [survey_log(file, decodes=True) for file in log_files(folder)],
                [int(file.name.split(".")[1], 16) for file in snapshot_files(folder)],
            )
            for folder in folders
        ]
    )


def _read(merged: Merged) -> list[Transaction]:
    found: list[Transaction] = []
    for piece in merged.pieces:
        found += LogFile(piece.path, offset=piece.start, stop=piece.stop)
    return found


@pytest.mark.slow
def test_what_a_lost_leader_logged_alone_is_no_history(ensemble: Ensemble) -> None:
    """Proposals that nobody followed stay in the leader's log; the others go on without them."""
    old = ensemble.find_leader()
    others = [number for number in ensemble.folders if number != old]
    client = ensemble.connect(old)
    client.create("/a", b"")
    for number in range(20):
        client.set("/a", b"committed %d" % number)
    ensemble.kill(*others)
    for number in range(3):
        client.set_async("/a", b"lost %d" % number)

    def look() -> int | None:
        try:
            written = _list_written(ensemble.read(old))
        except DamagedLog:  # it was written to in the middle of reading
            return None
        return 1 if b"lost 2" in written else None

    _await(look)
    ensemble.kill(old)
    client.stop()
    client.close()
    ensemble.start(*others)
    client = ensemble.connect(ensemble.find_leader())
    client.set("/a", b"after")
    client.stop()
    client.close()
    ensemble.kill(*others)

    merged = _merge(list(ensemble.folders.values()))
    written = _list_written(_read(merged))
    assert written == [*(b"committed %d" % number for number in range(20)), b"after"]
    assert merged.holes == ()
    logs = [*map(ensemble.read, others), _read(merged)]
    assert all(is_next(one.zxid, other.zxid) for log in logs for one, other in pairwise(log))
    assert len({each.zxid >> 32 for each in logs[-1]}) > 1
    (found,) = merged.divergences
    assert (found.member, found.certain) == (f"member-{old}", True)
    file = LogFile(found.file)
    file.offset = found.offset
    left = [each for each in file if each.zxid <= found.last]
    assert _list_written(left) == [b"lost 0", b"lost 1", b"lost 2"]

    two = _merge([ensemble.folders[old], ensemble.folders[others[0]]])
    assert [each.certain for each in two.divergences] == [False]
    assert [hole.before >> 32 for hole in two.holes] == [(found.last >> 32) + 1]


@pytest.mark.slow
def test_a_member_that_was_killed_before_it_wrote_its_epoch_starts_again(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    """ZooKeeper would refuse for ever: the epoch it has noted is older than its transactions."""
    client = ensemble.connect(ensemble.find_leader())
    client.create("/a", b"before")
    client.stop()
    client.close()
    ensemble.kill(*ensemble.folders)
    noted = ensemble.folders[1] / "version-2" / "currentEpoch"
    reached = ensemble.read(1)[-1].zxid >> EPOCH_BITS
    assert noted.read_text() == str(reached)
    noted.write_text(str(reached - 1))
    assert "ZOOKEEPER-2354" in mend_epoch(ensemble.folders[1])
    assert (noted.read_text(), mend_epoch(ensemble.folders[1])) == (str(reached), "")

    # So where a snapshot is all that it was sent, if that is whole; what is no number is left.
    sent = tmp_path / "sent" / "version-2"
    sent.mkdir(parents=True)
    snapshot = sent / f"snapshot.{reached << EPOCH_BITS:x}"
    content = snapshot_files(ensemble.folders[1])[-1].read_bytes()
    for said, kept, ends in (
        (str(reached - 1), content, str(reached)),
        (str(reached - 1), content[: len(content) // 2], str(reached - 1)),
        ("", content, ""),
    ):
        snapshot.write_bytes(kept)
        (sent / "currentEpoch").write_text(said)
        assert bool(mend_epoch(sent.parent)) == (said != ends)
        assert (sent / "currentEpoch").read_text() == ends

    noted.write_text(str(reached - 1))
    ensemble.start(1, 2)
    client = ensemble.connect(ensemble.find_leader())
    assert client.get("/a")[0] == b"before"
    client.stop()
    client.close()
