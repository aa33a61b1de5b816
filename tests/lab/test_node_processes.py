"""Clusters of processes, and stock clients that produce and consume."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from reassure_lab.admin.move_files import FilePlace, PartitionMove
from reassure_lab.admin.verbs import execute, list_active, verify
from reassure_lab.cluster.overview import Watcher
from reassure_lab.cluster.supervisor import ClusterMember, ProcessCluster
from reassure_lab.node.settings import BROKER_PROFILE
from reassure_lab.soak.leftovers import find_processes
from reassure_spec.readings import PROFILES, READINGS, field_name
from reassure_spec.rooms import BROKER, ROOMS

from ..controller.conftest import wait_for

PARTITION = TopicPartition("orders", 0)
LAG = ("--lag-ms", "2000")
AMENDED = [
    f"--reading={one.name}={getattr(PROFILES[BROKER_PROFILE], field_name(one.name))}"
    for one in READINGS
    if one.name in ROOMS[BROKER].asks
]
"""What the brokers go by, reading by reading."""


class Nodes:
    """A cluster of processes, an administrator's hands in its ZooKeeper, and clients."""

    def __init__(self, cluster: ProcessCluster, hands: Any) -> None:
        self.cluster = cluster
        self.hands = hands

    def judge(self) -> dict[str, Any]:
        """Return what an audit says of the brokers' histories."""
        told = [str(path) for path in self.cluster.directory.glob("broker-*/observations")]
        command = [str(Path(sys.executable).with_name("reassure")), "audit", *told]
        done = subprocess.run(
            [*command, "--profile", "kafka-4485", *AMENDED, "--format", "json"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    @property
    def servers(self) -> list[str]:
        """Where clients begin: brokers that are alive."""
        members = self.cluster.members()
        alive = (one.address for one in members if one.role == "broker" and one.alive)
        return [f"{address[0]}:{address[1]}" for address in alive if address is not None]

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
def nodes(make_hands: Any, tmp_path: Path) -> Iterator[Nodes]:
    """A controller and four brokers, with a topic on three of them."""
    with ProcessCluster.start(tmp_path / "cluster", 4, 1, 1, broker_options=LAG) as cluster:
        nodes = Nodes(cluster, make_hands(cluster.zookeeper))
        nodes.hands.create_topic("orders", {0: (1, 2, 3)})
        wait_for(lambda: in_sync(nodes, 3))
        yield nodes


def in_sync(nodes: Nodes, count: int) -> bool:
    """Whether so many replicas are in sync, under a leader."""
    path = "/brokers/topics/orders/partitions/0/state"
    if nodes.hands.admin.exists(path) is None:
        return False
    state = nodes.hands.state("orders", 0)
    return state.leader > 0 and len(state.isr) == count


def scrape(member: ClusterMember) -> dict[str, float]:
    """Return what a member answers Prometheus: values by name and labels."""
    assert member.metrics is not None
    with urlopen("http://{}:{}/metrics".format(*member.metrics), timeout=20) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        " ".join((sample.name, *(value for _, value in sorted(sample.labels.items())))): (
            sample.value
        )
        for family in families
        for sample in family.samples
    }


@pytest.mark.slow
def test_a_move_outlives_its_controller(make_hands: Any, tmp_path: Path) -> None:
    """A move that one controller began is carried out by the next, and nothing is left behind.

    Meanwhile metrics, overview and logs say of it what ZooKeeper has.
    """
    values = [b"v%d" % number for number in range(30)]
    json_lines = ("--log-format", "json")
    with ProcessCluster.start(
        tmp_path / "cluster", 3, 2, 1, broker_options=LAG, controller_options=json_lines
    ) as cluster:
        nodes = Nodes(cluster, make_hands(cluster.zookeeper))
        nodes.hands.create_topic("orders", {0: (1, 2)})
        wait_for(lambda: in_sync(nodes, 2))
        assert nodes.produce(values[:20]) == list(range(20))
        cluster.pause("broker-3")  # who is to join cannot
        nodes.hands.request({("orders", 0): (2, 3)})
        wait_for(lambda: nodes.hands.assigned("orders", 0) == (1, 2, 3))
        wait_for(lambda: nodes.hands.requests() == [])  # broker 3 keeps the controller waiting
        check_what_is_told(nodes)
        elected = nodes.hands.admin.get("/controller")[0]
        first = f"controller-{json.loads(elected)['brokerid']}"
        cluster.kill(first)
        cluster.resume("broker-3")
        wait_for(lambda: nodes.hands.assigned("orders", 0) == (2, 3))
        wait_for(lambda: nodes.hands.reassigning() == [])
        [second] = [one for one in cluster.members() if one.role == "controller" and one.alive]
        told = scrape(second)
        assert told["reassure_controller_epoch"] == told["reassure_controller_elections_total"] + 1
        assert told["reassure_controller_failover_seconds_count"] == 1
        assert nodes.produce(values[20:]) == list(range(20, 30))
        assert nodes.consume(30) == list(enumerate(values))
        check_logs(cluster, first, second.name)
    assert find_processes([str(tmp_path)]) == {}
    assert list(tmp_path.iterdir()) == []


def check_what_is_told(nodes: Nodes) -> None:
    """Hold metrics and overview against ZooKeeper while replica 3 is on its way."""
    members = {one.name: one for one in nodes.cluster.members()}
    state = nodes.hands.state("orders", 0)
    controllers = [scrape(one) for one in members.values() if one.role == "controller"]
    [told] = [one for one in controllers if one["reassure_controller_active"]]
    assert told["reassure_controller_epoch"] == state.controller_epoch
    expected = {
        "reassigning_partitions": 1,
        "leaving_replicas": 1,
        "under_replicated_partitions": 1,
    }
    assert {name: told[f"reassure_controller_{name}"] for name in expected} == expected
    leads, leader_name = "reassure_broker_leader 0 orders", f"broker-{state.leader}"
    wait_for(lambda: scrape(members[leader_name])[leads] == 1)  # until it has heard so
    leader = scrape(members[leader_name])
    for name, value in (("log_end_offset", 20), ("high_watermark", 20), ("leader", 1)):
        assert leader[f"reassure_broker_{name} 0 orders"] == value
    assert leader["reassure_broker_in_sync_replicas 0 orders"] == len(state.isr)
    assert leader["reassure_broker_lag 3 0 orders"] == 20
    assert leader["reassure_broker_requests_total Produce NONE"] >= 1
    assert leader["reassure_zookeeper_operations_total Transaction"] >= 1
    with Watcher(nodes.cluster) as watcher:
        overview = watcher.look()
    [view] = overview.partitions
    assert (view.leader, view.isr, view.target) == (state.leader, state.isr, (2, 3))
    assert (view.arrived, view.leaving) == ((2,), (1,))
    assert view.ends[state.leader] == (20, 20)
    assert (overview.moving, overview.under_replicated, overview.requests) == (1, 1, 0)
    statuses = {one.member.name: one.status for one in overview.members}
    assert statuses["broker-3"] == "paused"
    elected = [one.epoch for one in overview.members if one.member.role == "controller"]
    assert sorted(elected, key=str) == [state.controller_epoch, None]


def check_logs(cluster: ProcessCluster, *names: str) -> None:
    """Each controller's log is JSON, and says once that it was elected, as whom and when."""
    for epoch, name in enumerate(names, 1):
        lines = [json.loads(line) for line in cluster.get_log(name).read_text("utf-8").splitlines()]
        elected = [line for line in lines if "was elected" in line["event"]]
        assert [line["controller_epoch"] for line in elected] == [epoch]
        assert elected[0]["broker"] == int(name.rpartition("-")[2])


@pytest.mark.slow
def test_an_ensemble_outlives_one_of_its_servers(make_hands: Any, tmp_path: Path) -> None:
    """With three servers of ZooKeeper one may be killed, and comes back, while all else goes on."""
    with ProcessCluster.start(tmp_path / "cluster", 3, 2, 3, broker_options=LAG) as cluster:
        assert len(cluster.zookeeper.split(",")) == 3
        nodes = Nodes(cluster, make_hands(cluster.zookeeper))
        nodes.hands.create_topic("orders", {0: (1, 2)})
        wait_for(lambda: in_sync(nodes, 2))
        cluster.kill("zookeeper-2")
        assert nodes.produce([b"a"]) == [0]
        nodes.hands.admin.retry(lambda: nodes.hands.request({("orders", 0): (2, 3)}))
        wait_for(lambda: nodes.hands.admin.retry(nodes.hands.assigned, "orders", 0) == (2, 3))
        cluster.restart("zookeeper-2")
        cluster.kill("zookeeper-1")
        assert nodes.produce([b"b"]) == [1]
        assert nodes.consume(2) == [(0, b"a"), (1, b"b")]
    assert find_processes([str(tmp_path)]) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_acknowledged_records_outlive_a_killed_leader(nodes: Nodes) -> None:
    """What was acknowledged is there under the next leader, after a return and after a move.

    The histories that the brokers wrote meanwhile hold.
    """
    values = [b"v%d" % number for number in range(50)]
    assert nodes.produce(values[:20]) == list(range(20))
    leader = nodes.hands.state("orders", 0).leader
    nodes.cluster.kill(f"broker-{leader}")
    wait_for(lambda: nodes.hands.state("orders", 0).leader not in (leader, -1))
    assert nodes.produce(values[20:40]) == list(range(20, 40))
    nodes.cluster.restart(f"broker-{leader}")
    wait_for(lambda: in_sync(nodes, 3))
    nodes.hands.request({("orders", 0): (leader, 2, 3)})
    wait_for(lambda: nodes.hands.reassigning() == [])
    assert nodes.produce(values[40:]) == list(range(40, 50))
    assert nodes.consume(50) == list(enumerate(values))
    judged = nodes.judge()
    assert (judged["verdict"], judged["violations"]) == ("holds", [])
    counts = {clause["id"]: clause["exercised"] for clause in judged["clauses"]}
    assert min(counts[one] for one in ("hw.acks-all.answered", "hw.follower.from-leader")) >= 1


@pytest.mark.slow
def test_throttle_holds_one_move_and_no_other(nodes: Nodes) -> None:
    """A move at a byte a second stays behind one that begins after it, until it may go faster."""
    cluster = nodes.hands
    cluster.create_topic("bills", {0: (1, 2, 3)})
    nodes.produce([bytes(10_000)] * 20)
    slow, fast = (
        (PartitionMove((topic, 0), (1, 2, 4), FilePlace("moves.json", 1)),)
        for topic in ("orders", "bills")
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
    assert "4 brokers:" in listed
    assert "partition 0, leader 1, replicas: 1,2,3, isrs: 1,2,3" in listed
    kcat("-P", "-t", "orders", "-p", "0", "-X", "acks=all", given="a\nb\nc\n")
    assert kcat("-C", "-t", "orders", "-p", "0", "-o", "beginning", "-e", "-q") == "a\nb\nc\n"
    assert kcat("-Q", "-t", "orders:0:-1").split()[-1] == "3"
