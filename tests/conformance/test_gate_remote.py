"""Controllers that are reached by nothing but ZooKeeper: judged, left as found, or refused."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import NotEmptyError

from reassure_conformance.adapter import BROKERS, ISR, BadConnectable, Description
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.driver import walk
from reassure_conformance.adapter.remote import Remote, RemotePlace
from reassure_conformance.answers.case_run import tell_document
from reassure_conformance.answers.smoking import smoke_document
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import start_with
from reassure_conformance.report.document import Document
from reassure_controller.client import Client
from reassure_pipeline.watch.follower import LogFollower
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import Create, Delete, SetData

CHROOT = "/mine"
WRITTEN = re.compile(
    r"/mine/(reassure_run|brokers/ids/[1-5]|config/brokers/([1-5]|<default>)|"
    r"(brokers|config)/topics/[a-z]+-\d{5}(/.*)?|admin/reassignment_requests/.+|"
    r"admin/reassign_partitions)"
)
"""What the suite says that it writes."""


@dataclass
class Running:
    """A server, and a controller process in a chroot of it."""

    server: Server
    client: Client

    def name(self, log: bool = True) -> str:
        """Return the connectable."""
        told = f"&log={self.server.log_dir}" if log else ""
        return f"zk:{self.server.hosts}{CHROOT}?quiet=0.2{told}"

    def list_znodes(self) -> set[str]:
        """Return the paths of the chroot."""
        return {path for path, _, _ in walk(self.client, CHROOT)}


Start = Callable[..., Running]


@contextmanager
def open_chroot(folder: Path) -> Iterator[tuple[Server, Client]]:
    """Start a server with a chroot, and a client of it."""
    with Server.start(folder / "zookeeper") as server:
        client = Client(hosts=server.hosts, timeout=30.0)
        client.start()
        client.create(CHROOT, b"")
        yield server, client
        client.stop()
        client.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a server with a controller of ours as a process, perhaps with faults."""
    with open_chroot(tmp_path) as (server, client):
        processes = []

        def go(*faults: str) -> Running:
            command = [sys.executable, "-m", "reassure_lab", "controller", "--id", "1001"]
            command += ["--zookeeper", server.hosts + CHROOT, "--log-level", "WARNING"]
            started = start_with(faults, command)
            processes.append(subprocess.Popen(started, stdout=subprocess.DEVNULL))
            while client.exists(f"{CHROOT}/controller") is None:
                assert processes[-1].poll() is None
                time.sleep(0.05)
            return Running(server, client)

        yield go
        for process in processes:
            process.terminate()
            process.wait(30)


def _smoke(connectable: str, folder: Path) -> Document:
    return smoke_document(Settings(0, connectable=connectable, hang_s=60.0), folder)


def test_running_controller_is_judged_and_left_as_found(start: Start, tmp_path: Path) -> None:
    """Smoke tells it three stories, writes what it announces, and removes that again."""
    running = start()
    before = running.list_znodes()
    follower = LogFollower(running.server.log_dir)
    mine = {one.session_id for one in follower.read_all()}
    document = _smoke(running.name(), tmp_path)
    assert (document.verdict, document.body["amiss"]) == ("holds", "")
    assert "complete.carried-out" in document.body["exercised"]
    assert running.list_znodes() == before
    written = [
        op.path
        for one in follower.read_all()
        if one.session_id not in mine and one.error is None
        for op in one.ops
        if isinstance(op, Create | SetData | Delete)
    ]
    assert len(written) > 10
    assert [path for path in written if not WRITTEN.fullmatch(path)] == []


def test_fault_of_a_running_controller_is_found(start: Start, tmp_path: Path) -> None:
    """A planted fault is told by its clause, and what was written is removed even then."""
    running = start("delete-request-before-child")
    before = running.list_znodes()
    document = _smoke(running.name(), tmp_path)
    amiss = document.body["amiss"]
    assert "request.delete.child-first is violated in a-move" in amiss
    assert running.list_znodes() == before


def test_without_a_log_what_stands_there_is_judged(start: Start, tmp_path: Path) -> None:
    """Only what holds at rest is put to the test, and that is owed is still found."""
    running = start("completion-keeps-child")
    settings = Settings(0, connectable=running.name(log=False), hang_s=60.0)
    document = tell_document(settings, "a-move", tmp_path)
    assert document.verdict == "violated"
    assert document.body["violations"][0]["clause"].startswith("complete.")


def test_chroot_in_use_is_refused(start: Start, tmp_path: Path) -> None:
    """Where there is anything of somebody else's nothing is written; a dead run's is removed."""
    running = start()
    taken = ""
    for own in ("admin/reassign_partitions", "config/brokers/<default>", "brokers/topics/orders"):
        if taken:
            running.client.delete(taken)
        taken = f"{CHROOT}/{own}"
        running.client.create(taken, b'{"version":1,"partitions":{}}')
        before = running.list_znodes()
        document = _smoke(running.name(), tmp_path)
        assert f"is in use: there is /{own}" in document.body["amiss"]
        assert document.get_exit_code() == 78
        assert running.list_znodes() == before
    running.client.create(f"{CHROOT}/reassure_run", b"")
    assert _smoke(running.name(), tmp_path).verdict == "holds"
    assert taken not in running.list_znodes()


def test_chroot_without_a_controller_is_refused(tmp_path: Path) -> None:
    """Where nobody was elected nothing is begun, and the line says what is to be there."""
    with open_chroot(tmp_path) as (server, _):
        document = _smoke(f"zk:{server.hosts}{CHROOT}", tmp_path)
    assert "expected a controller that has been elected there" in document.body["amiss"]


@pytest.mark.parametrize(
    "connectable", ["zk:localhost", "zk:a:1?loog=x", "zk:a:1?quiet=long", "zk:a:1?log=/nowhere"]
)
def test_place_that_is_none_is_refused(connectable: str) -> None:
    """A connectable without a port, with another option, or a log that is none says its form."""
    with pytest.raises(BadConnectable, match=r"write zk:|\?log="):
        RemotePlace(connectable)


class Slow(Bundled):
    """A controller that has not even begun when nothing was written for a moment, or two."""

    def describe(self) -> Description:
        """Declare what is declared of a controller that is reached by nothing but ZooKeeper."""
        return replace(super().describe(), capabilities=frozenset({BROKERS, ISR}))

    def settle_soon(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    def settle(self, timeout_s: float) -> bool:
        """Do nothing but every third time."""
        self.asked = getattr(self, "asked", 0) + 1
        return self.asked % 3 != 0 or super().settle(timeout_s)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("a-move", "kip-236"),
        ("bad-targets", "kip-236"),
        ("foreign-znodes", "kip-236"),
        ("in-sync-set-changes-under-a-write", "kip-236"),
        ("leader-dies", "kip-236"),
        ("malformed-requests", "kip-236"),
        ("old-znode-a-move", "kip-236-legacy"),
        ("online-by-a-move", "kip-236"),
    ],
)
def test_a_moment_is_no_rest_while_anything_is_owed(
    make_harness: Callable[..., Harness], name: str, profile: str
) -> None:
    """Whoever takes longer than a moment to begin is waited for, whatever is to be done."""
    harness = make_harness(Slow(profile=profile))
    example = harness.tell(next(each for each in shipped_stories() if each.name == name))
    assert example.violations == []
    assert example.unsettled == 0


@pytest.mark.slow
def test_drawn_examples_of_a_running_controller_hold(start: Start, tmp_path: Path) -> None:
    """A shortened run of what is drawn ends in time, with a clause put to the test in most ways."""
    running = start()
    settings = Settings(
        7, connectable=running.name(), examples=6, steps_min=0, with_stories=False, hang_s=60.0
    )
    (tmp_path / "run").mkdir()
    result = run(settings, tmp_path / "run")
    assert isinstance(result, ControllersResult)
    assert (result.failure, result.died, result.unsettled) == (None, "", 0)
    assert result.examples >= 6
    exercised = {clause.id for clause in result.clauses if clause.exercised}
    assert {"complete.carried-out", "election.held", "drop.keep-top"} <= exercised


def test_what_the_controller_writes_meanwhile_is_removed_as_well(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A znode that gets another one below it while it is being removed is tried again."""
    running, delete, refused = start(), Client.delete, []

    def interfere(client: Client, path: str, *args: object, **kwargs: object) -> object:
        if "/brokers/topics/" in path and kwargs.get("recursive") and not refused:
            refused.append(path)
            raise NotEmptyError
        return delete(client, path, *args, **kwargs)

    monkeypatch.setattr(Client, "delete", interfere)
    before = running.list_znodes()
    tell_document(Settings(0, connectable=running.name(), hang_s=60.0), "a-move", tmp_path)
    assert refused
    assert running.list_znodes() == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "verb", [["test"], ["test", "--smoke"], ["test", "--case", "a-move"]], ids=" ".join
)
def test_port_where_nobody_listens_is_told(
    verb: list[str], start_process: Callable[..., Any], tmp_path: Path
) -> None:
    """Where no ZooKeeper answers the verb ends with 69 and one line, and nothing is aborted."""
    out = ["--out", str(tmp_path / "run")] if verb == ["test"] else []
    done = start_process(*verb, "-i", "zk:127.0.0.1:1/mine", "--hang-after", "5", *out)
    said = done.stdout + done.stderr
    assert done.returncode == 69
    assert "ZooKeeper at 127.0.0.1:1 did not answer in 10 s; expected a server there" in said
    assert "Fatal Python error" not in said


def test_old_protocol_needs_no_queue_of_requests(tmp_path: Path) -> None:
    """Under kafka-42 a chroot without KIP-236's znode is driven, by the old znode alone."""
    with open_chroot(tmp_path) as (server, client):
        for each in ("brokers", "admin"):
            client.create(f"{CHROOT}/{each}", b"")
        for each in ("brokers/ids", "brokers/topics", "controller_epoch", "controller"):
            client.create(f"{CHROOT}/{each}", b"1")
        place = RemotePlace(f"zk:{server.hosts}{CHROOT}")
        adapter = Remote(place, profile="kafka-42", readings={})
        assert adapter.describe().routes == {"old-znode"}
        adapter.close()
        with pytest.raises(BadConnectable, match="there is no /admin/reassignment_requests at"):
            Remote(place, profile="kip-236", readings={})
