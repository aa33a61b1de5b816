"""Our controllers lead brokers of Apache Kafka itself, while stock clients go on.

It runs where KAFKA_JARS names a directory with the jars of a Kafka that has ZooKeeper (2.2 to 3.9);
docs/lab.md says how to get them.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import confluent_kafka as kafka
import pytest
from confluent_kafka import admin as parts
from kazoo.exceptions import NoNodeError

from reassure_conformance.cli import run_command
from reassure_controller.session import connect, stop
from reassure_spec import znodes
from reassure_zookeeper.server import Server

BROKERS = 4
PARTITIONS = 6
LOG4J = Path(__file__).with_name("log4j.properties")
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "zookeeper.session.timeout.ms": 4000,
    "replica.lag.time.max.ms": 4000,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "log.cleaner.enable": "false",
}


class Field:
    """Brokers of Kafka, controllers of ours, and who looks into ZooKeeper."""

    def __init__(self, jars: str, root: Path, ends: ExitStack) -> None:
        self.jars, self.root, self.ends = jars, root, ends
        self.zookeeper = ends.enter_context(Server.start(root / "zookeeper"))
        self.eyes = connect(self.zookeeper.hosts)
        ends.callback(stop, self.eyes)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, number: int, *command: str) -> None:
        """Run a process, which ends with the test."""
        with (self.root / f"{number}.log").open("ab") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        self.processes[number] = process
        self.ends.callback(self.kill, number)

    def kill(self, number: int) -> None:
        """End a process as a crash does."""
        self.processes[number].kill()
        self.processes[number].wait()

    def start_broker(self, number: int) -> None:
        """Run a broker of Kafka."""
        settings = {
            **SETTINGS,
            "broker.id": number,
            "zookeeper.connect": self.zookeeper.hosts,
            "log.dirs": self.root / f"data-{number}",
        }
        file = self.root / f"{number}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java = shutil.which("java") or "java"
        small = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        logged = f"-Dlog4j.configuration={LOG4J.as_uri()}"
        self.run(number, java, *small, logged, "-cp", f"{self.jars}/*", "kafka.Kafka", str(file))

    def start_controller(self, number: int) -> None:
        """Run a controller of ours."""
        asked = ("--zookeeper", self.zookeeper.hosts, "--id", str(number), "--depose")
        self.run(
            number,
            *(sys.executable, "-m", "reassure_lab", "controller"),
            *(*asked, "--session-timeout", "4"),
        )

    def get(self, path: str) -> bytes:
        """Return a znode's content, nothing of one that is not there."""
        with suppress(NoNodeError):
            return bytes(self.eyes.get(path)[0])
        return b""

    def wait(self, condition: Callable[[], object], seconds: float = 60) -> None:
        """Wait until the condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.describe()
            time.sleep(0.1)

    def describe(self) -> str:
        """Return what stands in ZooKeeper, for whoever reads that a test failed."""
        states = [self.get(znodes.state_path("t", one)) for one in range(PARTITIONS)]
        return f"{self.get(znodes.CONTROLLER)!r} {self.get(znodes.topic_path('t'))!r} {states}"

    @property
    def leader(self) -> int:
        """Who is the controller."""
        data = self.get(znodes.CONTROLLER)
        return znodes.decode_controller("", data) if data else -1

    def request(self, targets: dict[int, list[int]]) -> None:
        """Ask for a reassignment by KIP-236."""
        content = {"version": 1, "assignments": {"t": {str(k): v for k, v in targets.items()}}}
        path = f"{znodes.REASSIGNMENT_REQUESTS}/request_"
        self.eyes.create(path, json.dumps(content).encode(), sequence=True)

    def is_done(self, targets: dict[int, list[int]]) -> bool:
        """Whether the partitions are where they were asked to be, all in sync, and led there."""
        assigned = znodes.decode_topic("", self.get(znodes.topic_path("t")))
        states = {
            one: znodes.decode_state("", self.get(znodes.state_path("t", one))) for one in targets
        }
        return all(
            assigned[one] == tuple(target) and {*states[one].isr} == {*target}
            for one, target in targets.items()
        )

    def list_moving(self) -> list[str]:
        """Return the partitions that are being reassigned."""
        with suppress(NoNodeError):
            return list(self.eyes.get_children(f"{znodes.REASSIGNMENTS}/t"))
        return []

    def is_left_clean(self) -> bool:
        """Whether no request and no record is left."""
        roots = (znodes.REASSIGNMENT_REQUESTS, znodes.REASSIGNMENTS)
        return not any(self.eyes.get_children(root) for root in roots)


class Traffic:
    """A stock producer with acks=all and a stock consumer, of numbered records."""

    def __init__(self, bootstrap: str) -> None:
        self.at = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.acknowledged: list[tuple[int, int]] = []
        self.failed: list[str] = []
        self.seen: Counter[tuple[int, int]] = Counter()
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=act) for act in (self.produce, self.consume)]
        for thread in self.threads:
            thread.start()

    def note(self, error: Any, message: Any) -> None:
        """Take note of what became of a record."""
        if error is None:
            self.acknowledged.append((message.partition(), int(message.key() or 0)))
        else:
            self.failed.append(str(error))

    def produce(self) -> None:
        """Send until told to end, then wait for all answers."""
        producer = kafka.Producer({**self.at, "acks": "all", "linger.ms": 5})
        number = 0
        while not self.ended.wait(0.005):
            number += 1
            producer.produce(
                "t", b"x" * 200, str(number), number % PARTITIONS, on_delivery=self.note
            )
            producer.poll(0)
        producer.flush(60)

    def consume(self) -> None:
        """Read until nothing comes any more after the producer was told to end."""
        consumer = kafka.Consumer({**self.at, "group.id": "g", "enable.auto.commit": False})
        consumer.assign([kafka.TopicPartition("t", one, 0) for one in range(PARTITIONS)])
        quiet = 0
        while quiet < 15:
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                self.seen[message.partition() or 0, int(message.key() or 0)] += 1
            quiet = quiet + 1 if message is None and self.ended.is_set() else 0
        consumer.close()

    def end(self) -> None:
        """End both."""
        self.ended.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    """Run brokers of Kafka and two controllers of ours, the first of which is in office."""
    jars = os.environ.get("KAFKA_JARS")
    if not jars or not shutil.which("java"):
        pytest.skip("set KAFKA_JARS to the jars of a Kafka: docs/lab.md, Kafka's own brokers")
    with ExitStack() as ends:
        found = Field(jars, tmp_path, ends)
        for number in range(1, BROKERS + 1):
            found.start_broker(number)
        found.wait(lambda: found.leader > 0, 120)
        found.start_controller(100)
        found.wait(lambda: found.leader == 100)
        found.start_controller(101)
        ids = znodes.BROKER_IDS
        found.wait(lambda: len(found.eyes.get_children(ids)) == BROKERS, 120)
        yield found


def spread(by: int) -> dict[int, list[int]]:
    """Return for each partition two brokers, shifted."""
    return {
        one: [(one + by) % BROKERS + 1, (one + by + 1) % BROKERS + 1] for one in range(PARTITIONS)
    }


def test_reassignments_go_on_among_kafkas_own_brokers(
    field: Field, capsys: pytest.CaptureFixture[str]
) -> None:
    """Moved, changed, cancelled and failed over, and no acknowledged record is lost."""
    addresses = [
        znodes.decode_broker("", field.get(znodes.broker_path(one)))
        for one in range(1, BROKERS + 1)
    ]
    bootstrap = ",".join(f"{host}:{port}" for host, port in addresses)
    admin = parts.AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    field.wait(lambda: admin.list_topics(timeout=10).controller_id == 100)
    topic = parts.NewTopic(  # type: ignore[attr-defined]  # as test_stock_clients has it
        "t", PARTITIONS, replica_assignment=[*spread(0).values()]
    )
    admin.create_topics([topic])["t"].result(30)
    traffic = Traffic(bootstrap)
    field.ends.callback(traffic.end)
    field.request(spread(2))
    field.wait(lambda: field.is_done(spread(2)) and field.is_left_clean())

    field.kill(4)
    field.wait(lambda: not field.get(znodes.broker_path(4)))
    field.request({0: [4, 1], 1: [4, 2], 2: [3, 4]})  # waits for the one that is gone
    field.wait(lambda: len(field.list_moving()) == 3)
    field.request({0: [1, 2]})  # changed
    field.request({2: spread(2)[2]})  # cancelled
    field.wait(lambda: field.is_done({0: [1, 2], 2: spread(2)[2]}))
    field.kill(100)
    field.wait(lambda: field.leader == 101)
    field.start_broker(4)
    field.wait(lambda: field.is_done({1: [4, 2]}) and field.is_left_clean(), 120)

    field.request(spread(1))
    field.wait(lambda: field.is_done(spread(1)) and field.is_left_clean())

    def list_told() -> dict[int, list[int]]:
        """Return the replicas that brokers tell clients of."""
        found = admin.list_topics("t", timeout=10).topics["t"].partitions
        return {one: found[one].replicas for one in found}

    field.wait(lambda: list_told() == spread(1))
    field.wait(lambda: len(traffic.acknowledged) > 1000)
    traffic.end()
    assert not traffic.failed
    assert not set(traffic.acknowledged) - traffic.seen.keys()
    assert run_command(["audit", "--profile", "kip-236", str(field.root / "zookeeper")]) == 0
    assert "HOLDS" in capsys.readouterr().out
