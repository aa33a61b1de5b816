"""Following a log while it grows, over restarts and half-written records."""

from __future__ import annotations

from pathlib import Path

import pytest

from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.log_follower import LogFollower
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import Create, SetData, committed
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import write_log

HISTORY = [committed(Create(f"/{number}", b"x" * number), zxid=number) for number in range(1, 9)]


def test_follower_sees_each_acknowledged_write_at_once(own_server: Server, connect) -> None:
    """What a client was told is done is in the next reading, once, over a kill and a restart."""
    follower = LogFollower(own_server.log_dir)
    assert follower.read_new() == []
    seen = []
    client = connect(own_server)
    client.create("/n", b"")
    for number in range(60):
        if number == 30:
            own_server.restart()
            client = connect(own_server)
        client.set("/n", b"%d" % number)
        new = follower.read_new()
        assert new[-1].ops == (SetData("/n", b"%d" % number, number + 1),)
        seen += new
    assert len(list(own_server.log_dir.glob("log.*"))) == 2
    seen += follower.read_new()
    assert seen == list(read_logs(own_server.data_dir))
    assert follower.last_zxid == seen[-1].zxid


def test_follower_waits_for_the_rest_of_a_record(tmp_path: Path) -> None:
    """Fed byte by byte into preallocated zeros, each record is given once, when it is whole."""
    whole = write_log(tmp_path, HISTORY).read_bytes()
    log = tmp_path / "log.1"
    follower = LogFollower(tmp_path)
    seen = []
    for size in range(len(whole) + 1):
        log.write_bytes(whole[:size] + bytes(len(whole) + 50 - size))
        seen += follower.read_new()
        assert len(seen) == sum(end <= size for end in _ends(whole))
    assert seen == HISTORY
    assert follower.tails == []


def _ends(whole: bytes) -> list[int]:
    ends, at = [], 16
    while at < len(whole):
        at += 13 + int.from_bytes(whole[at + 8 : at + 12])
        ends.append(at)
    return ends


def test_follower_starts_after_a_zxid(tmp_path: Path) -> None:
    """A follower that begins in the middle gives what comes later, across files."""
    write_log(tmp_path, HISTORY[:3])
    follower = LogFollower(tmp_path, after_zxid=2)
    assert follower.read_new() == HISTORY[2:3]
    write_log(tmp_path, HISTORY[3:5])
    write_log(tmp_path, HISTORY[5:])
    assert follower.read_new() == HISTORY[3:]
    assert follower.read_new() == []
    assert LogFollower(tmp_path, after_zxid=8).read_new() == []
    assert LogFollower(tmp_path / "not-yet").read_new() == []


def test_follower_reports_damage(tmp_path: Path) -> None:
    """A damaged record with whole ones behind it is an error at every call, never skipped."""
    log = write_log(tmp_path, HISTORY[:4])
    content = bytearray(log.read_bytes())
    follower = LogFollower(tmp_path)
    content[_ends(bytes(content))[1] + 30] ^= 4
    log.write_bytes(content)
    for _ in range(2):
        with pytest.raises(DamagedLog, match="intact records follow"):
            follower.read_new()
