"""Following a log while a server writes it."""

from pathlib import Path

import pytest
from kazoo.client import KazooClient
from pipeline_steps import flip

from reassure_pipeline.watch.follower import LogFollower
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import Create, SetData, committed
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import frame, write_log

HISTORY = [committed(Create(f"/{number}", b"x" * number), zxid=number) for number in range(1, 9)]


def test_each_acknowledged_write_is_seen_at_once() -> None:
    """What a client was told is done is in the next reading, once, over a kill and a restart."""
    with Server.start() as server:
        follower = LogFollower(server.log_dir)
        assert follower.read_all() == []
        client = KazooClient(server.hosts)
        client.start()
        client.create("/n", b"")
        seen = []
        for number in range(60):
            if number == 30:
                server.restart()
            client.retry(client.set, "/n", b"%d" % number)
            new = follower.read_all()
            assert new[-1].ops == (SetData("/n", b"%d" % number, number + 1),)
            seen += new
        client.stop()
        client.close()
        assert len(list(server.log_dir.glob("log.*"))) == 2
        seen += follower.read_all()
        assert seen == list(read_logs(server.data_dir))


def test_the_rest_of_a_record_is_waited_for(tmp_path: Path) -> None:
    """Fed byte by byte into preallocated zeros, each record is given once, when it is whole."""
    log = write_log(tmp_path, HISTORY)
    whole, ends = log.read_bytes(), [16]
    for each in HISTORY:
        ends.append(ends[-1] + len(frame(each)))
    follower, seen = LogFollower(tmp_path), []
    for size in range(len(whole) + 1):
        log.write_bytes(whole[:size] + bytes(len(whole) + 50 - size))
        seen += follower.read_all()
        assert len(seen) == sum(end <= size for end in ends[1:])
    assert seen == HISTORY


def test_damage_is_told_at_every_call(tmp_path: Path) -> None:
    """A damaged record with whole ones behind it, and a torn end where records are missing."""
    log = write_log(tmp_path, HISTORY[:4])
    flip(log, 60)
    follower = LogFollower(tmp_path)
    for _ in range(2):
        with pytest.raises(DamagedLog, match="intact records follow"):
            follower.read_all()
    log.unlink()
    first = write_log(tmp_path, HISTORY[:4])
    write_log(tmp_path, HISTORY[4:])
    first.write_bytes(first.read_bytes()[:-5])
    with pytest.raises(DamagedLog, match="instead of 0x4"):
        LogFollower(tmp_path).read_all()
