"""A cluster of processes: started, disturbed, found again, and gone without a trace."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reassure_lab.cluster.processes import Process
from reassure_lab.cluster.state_file import STATE, DirectoryTaken, NoCluster
from reassure_lab.cluster.supervisor import MemberFailed, NoMember, ProcessCluster
from reassure_lab.soak.leftovers import find_processes
from reassure_spec.errors import BadUsage


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    """A cluster of one each, for tests that leave it running."""
    with ProcessCluster.start(tmp_path_factory.mktemp("cluster") / "one", 1, 1, 1) as cluster:
        yield cluster


def is_free(address: tuple[str, int]) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(address) != 0


def test_nothing_is_left_of_a_cluster(tmp_path: Path) -> None:
    """After the end there is no process, no file and no port of any member."""
    directory = tmp_path / "cluster"
    with ProcessCluster.start(directory, 2, 1, 1) as cluster:
        members = cluster.members()
        names = [one.name for one in members]
        assert names == ["zookeeper-1", "broker-1", "broker-2", "controller-101"]
        assert all(one.alive and not one.stopped and one.pid for one in members)
        addresses = [one.address for one in members if one.address is not None]
        assert len(addresses) == 3
        assert not any(map(is_free, addresses))
        cluster.pause("broker-2")  # one that stands still ends like the others
    assert find_processes([str(tmp_path)]) == {}
    assert list(tmp_path.iterdir()) == []
    assert all(map(is_free, addresses))
    assert not any(Path(f"/proc/{one.pid}").exists() for one in members)


def test_what_is_asked_for_is_kept(tmp_path: Path) -> None:
    """Data and logs of the members stay where that is asked for, and no process does."""
    cluster = ProcessCluster.start(tmp_path, 1, 1, 1)
    cluster.stop(keep=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker-1", "log", "zookeeper-1"]
    assert list((tmp_path / "zookeeper-1" / "version-2").glob("log.*")) != []
    assert "was elected with epoch 1" in cluster.get_log("controller-101").read_text("utf-8")
    assert find_processes([str(tmp_path)]) == {}


def test_a_member_is_killed_paused_and_revived(cluster: ProcessCluster) -> None:
    """A member that is killed is gone, one that is paused stands still, and both come back."""
    before = cluster.member("broker-1")
    cluster.kill("broker-1")
    killed = cluster.member("broker-1")
    assert (killed.alive, killed.pid, killed.address) == (False, None, before.address)
    with pytest.raises(NoMember, match="restart it first"):
        cluster.pause("broker-1")
    cluster.restart("broker-1")  # its former registration has to time out before
    revived = cluster.member("broker-1")
    assert revived.alive
    assert revived.pid != before.pid
    assert revived.address == before.address
    cluster.pause("broker-1")
    assert cluster.member("broker-1").stopped
    cluster.resume("broker-1")
    assert not cluster.member("broker-1").stopped
    cluster.kill("zookeeper-1")
    cluster.restart("zookeeper-1")
    assert cluster.member("zookeeper-1").address == cluster.members()[0].address
    with pytest.raises(NoMember, match="broker-1"):
        cluster.kill("broker-7")


def test_a_taken_directory_is_refused(cluster: ProcessCluster, tmp_path: Path) -> None:
    """Neither a directory with a cluster nor one with anything else in it is taken, with 78."""
    with pytest.raises(DirectoryTaken, match=r"`reassure lab cluster down") as taken:
        ProcessCluster.start(cluster.directory, 1, 1, 1)
    assert taken.value.exit_code == 78
    assert all(one.alive for one in cluster.members())
    (tmp_path / "letter").write_text("dear all")
    with pytest.raises(DirectoryTaken, match="it has letter"):
        ProcessCluster.start(tmp_path, 1, 1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_a_cluster_needs_one_of_each(tmp_path: Path) -> None:
    """A count of none is a matter of usage, and nothing is made."""
    with pytest.raises(BadUsage, match="0 brokers"):
        ProcessCluster.start(tmp_path / "c", 0, 1, 1)
    with pytest.raises(NoCluster, match="reassure lab cluster up"):
        ProcessCluster.open(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_failed_start(tmp_path: Path) -> None:
    """Where a member does not start, it is said why, and the others are ended."""
    with pytest.raises(MemberFailed, match=r"controller-101 ended.*(?s:.*)no-such-profile"):
        ProcessCluster.start(
            tmp_path / "c", 1, 1, 1, controller_options=["--profile", "no-such-profile"]
        )
    assert find_processes([str(tmp_path)]) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_outlives_whoever_started_it(tmp_path: Path) -> None:
    """When its supervisor was killed, another process finds the members and ends them."""
    directory = tmp_path / "c"
    code = (
        "import os, pathlib, sys\n"
        "from reassure_lab.cluster.supervisor import ProcessCluster\n"
        "ProcessCluster.start(pathlib.Path(sys.argv[1]), 1, 1, 1)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(directory)], timeout=120)
    assert done.returncode == -signal.SIGKILL
    cluster = ProcessCluster.open(directory)
    assert [one.alive for one in cluster.members()] == [True, True, True]
    cluster.restart("controller-101")
    cluster.stop()
    assert find_processes([str(tmp_path)]) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_process_is_never_ended(tmp_path: Path) -> None:
    """A process that has the id of a member that has ended is left alone."""
    with ProcessCluster.start(tmp_path / "c", 1, 1, 1) as cluster:
        cluster.kill("broker-1")
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            path = cluster.directory / STATE
            state = json.loads(path.read_text("utf-8"))
            [broker] = [one for one in state["members"] if one["name"] == "broker-1"]
            broker["process"]["pid"] = other.pid
            path.write_text(json.dumps(state), "utf-8")
            assert not cluster.member("broker-1").alive
            cluster.kill("broker-1")
            cluster.stop()
            assert other.poll() is None
            assert Process.find(other.pid).is_alive
            other.communicate(b"\n")
    assert other.returncode == 0
