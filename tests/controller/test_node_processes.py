"""Brokers with logs as processes, a controller, and stock clients that produce and consume."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from reassure_controller.admin.move_files import Move, Source
from reassure_controller.admin.verbs import execute, list_active, verify

PARTITION = TopicPartition("orders", 0)


class Nodes:
    """Processes that end with the test."""

    def __init__(self, cluster: Any, data: Path) -> None:
        self.cluster = cluster
        self._data = data
        self._running: dict[tuple[str, int], subprocess.Popen[str]] = {}
        self.ports: dict[int, int] = {}

    def start(self, role: str, *numbers: int) -> None:
        """Start brokers or controllers and return once they are ready."""
        for number in numbers:
            self._running[role, number] = self._spawn(role, number)
        for number in numbers:
            stream = self._running[role, number].stdout
            assert stream is not None
            ready = re.match(rf"ready {role} {number}(?: [0-9.]+:(\d+))?", stream.readline())
            assert ready is not None
            if ready[1]:
                self.ports[number] = int(ready[1])

    def _spawn(self, role: str, number: int) -> subprocess.Popen[str]:
        own = (
            ["--data", str(self._data / f"b{number}"), "--lag-ms", "2000"]
            if role == "broker"
            else ["--wire"]
        )
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "reassure_controller", role),
                *("--zookeeper", self.cluster.hosts, "--id", str(number)),
                *("--log-level", "WARNING", "--session-timeout", "4", *own),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )

    def end(self, role: str, number: int, with_signal: int) -> None:
        """End a process and wait for it."""
        process = self._running.pop((role, number))
        process.send_signal(with_signal)
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()

    def end_all(self) -> None:
        """Kill what is left."""
        for role, number in tuple(self._running):
            self.end(role, number, signal.SIGKILL)

    def judge(self) -> dict[str, Any]:
        """Return what an audit says of the brokers' histories."""
        told = [str(path) for path in self._data.glob("*/observations")]
        command = [str(Path(sys.executable).with_name("reassure")), "audit", *told]
        done = subprocess.run(
            [*command, "--profile", "kafka-4485", "--format", "json"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    @property
    def servers(self) -> list[str]:
        """Where clients begin."""
        return [f"127.0.0.1:{port}" for port in self.ports.values()]

    def produce(self, values: list[bytes]) -> list[int]:
        """Produce to every replica in sync; return the offsets that were acknowledged."""
        producer = KafkaProducer(
            bootstrap_servers=self.servers, acks="all", enable_idempotence=False,
            retries=0, request_timeout_ms=15_000,
        )  # fmt: skip
        sent = [producer.send("orders", value, partition=0) for value in values]
        offsets = [one.get(timeout=30).offset for one in sent]
        producer.close()
        return offsets

    def consume(self, count: int) -> list[tuple[int, bytes]]:
        """Return so many records from the beginning."""
        consumer = KafkaConsumer(bootstrap_servers=self.servers, consumer_timeout_ms=20_000)
        consumer.assign([PARTITION])
        consumer.seek_to_beginning(PARTITION)
        found = [(one.offset, one.value) for _, one in zip(range(count), consumer, strict=False)]
        assert consumer.end_offsets([PARTITION]) == {PARTITION: count}
        consumer.close()
        return found


@pytest.fixture
def nodes(make_cluster: Any, tmp_path: Path) -> Iterator[Nodes]:
    """A controller and three brokers with a topic on all of them."""
    nodes = Nodes(make_cluster(()), tmp_path)
    try:
        nodes.start("broker", 1, 2, 3)
        nodes.start("controller", 100)
        nodes.cluster.create_topic("orders", {0: (1, 2, 3)})
        wait_for(lambda: in_sync(nodes, 3))
        yield nodes
    finally:
        nodes.end_all()


def in_sync(nodes: Nodes, count: int) -> bool:
    """Whether so many replicas are in sync, under a leader."""
    path = "/brokers/topics/orders/partitions/0/state"
    if nodes.cluster.admin.exists(path) is None:
        return False
    state = nodes.cluster.state("orders", 0)
    return state.leader > 0 and len(state.isr) == count


def wait_for(condition: Callable[[], bool], timeout: float = 40.0) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


@pytest.mark.slow
def test_acknowledged_records_outlive_a_killed_leader(nodes: Nodes) -> None:
    """What was acknowledged is there under the next leader, after a return and after a move.

    The histories that the brokers wrote meanwhile hold.
    """
    values = [b"v%d" % number for number in range(50)]
    assert nodes.produce(values[:20]) == list(range(20))
    leader = nodes.cluster.state("orders", 0).leader
    nodes.end("broker", leader, signal.SIGKILL)
    del nodes.ports[leader]
    wait_for(lambda: nodes.cluster.state("orders", 0).leader not in (leader, -1))
    assert nodes.produce(values[20:40]) == list(range(20, 40))
    nodes.start("broker", leader)
    wait_for(lambda: in_sync(nodes, 3))
    nodes.cluster.request({("orders", 0): (leader, 2, 3)})
    wait_for(lambda: nodes.cluster.reassigning() == [])
    assert nodes.produce(values[40:]) == list(range(40, 50))
    assert nodes.consume(50) == list(enumerate(values))
    judged = nodes.judge()
    assert (judged["verdict"], judged["violations"]) == ("holds", [])
    counts = {clause["id"]: clause["exercised"] for clause in judged["clauses"]}
    assert min(counts[one] for one in ("hw.acks-all.answered", "hw.follower.from-leader")) >= 1


@pytest.mark.slow
def test_throttle_holds_one_move_and_no_other(nodes: Nodes) -> None:
    """A move at a byte a second stays behind one that begins after it, until it may go faster."""
    cluster = nodes.cluster
    cluster.create_topic("bills", {0: (1, 2, 3)})
    nodes.start("broker", 4)
    nodes.produce([bytes(10_000)] * 20)
    slow, fast = (
        (Move((topic, 0), (1, 2, 4), Source("moves.json", 1)),) for topic in ("orders", "bills")
    )
    execute(cluster.admin, slow, "kip-236", bytes_per_s=1)
    execute(cluster.admin, fast, "kip-236", additional=True)
    wait_for(lambda: [one.key for one in list_active(cluster.admin)] == [("orders", 0)])
    nodes.produce([bytes(10_000)] * 20)
    assert [one.key for one in list_active(cluster.admin)] == [("orders", 0)]
    execute(cluster.admin, slow, "kip-236", bytes_per_s=10**9, additional=True)
    wait_for(lambda: not verify(cluster.admin, slow).is_any_active)
    assert cluster.assigned("orders", 0) == (1, 2, 4)
    assert cluster.admin.get("/config/brokers/4")[0] == b'{"version":1,"config":{}}'


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (package kcat)")
def test_kcat_talks_to_a_cluster(nodes: Nodes) -> None:
    """The C client finds brokers, leader and replicas, and produces, consumes and asks for ends."""

    def kcat(*arguments: str, given: str = "") -> str:
        command = ["kcat", "-b", nodes.servers[0], "-m", "20", *arguments]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    listed = kcat("-L")
    assert "3 brokers:" in listed
    assert "partition 0, leader 1, replicas: 1,2,3, isrs: 1,2,3" in listed
    kcat("-P", "-t", "orders", "-p", "0", "-X", "acks=all", given="a\nb\nc\n")
    assert kcat("-C", "-t", "orders", "-p", "0", "-o", "beginning", "-e", "-q") == "a\nb\nc\n"
    assert kcat("-Q", "-t", "orders:0:-1").split()[-1] == "3"
