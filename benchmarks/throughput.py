"""How much three brokers replicate: records of 1 kB, acks=all, everything a process on loopback.

Each producer has a connection and a partition, three replicas each, and sends one batch after
another, the next when the one before is acknowledged. Brokers, controller and ZooKeeper are
processes of their own on this machine, so that more processors mean more.

    python benchmarks/throughput.py [SECONDS] [PRODUCERS] [RECORDS_PER_BATCH]

Prints records and megabytes a second, what a batch takes, and the processor time of each process.
"""

import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import psutil
from kio.schema.errors import ErrorCode

from reassure_controller.session import connect, stop
from reassure_controller.storage.records import Record, encode
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.messages import ProducePartition, ProduceRequest, ProduceTopic
from reassure_spec.znodes import decode_state, encode_topic, state_path, topic_path
from reassure_zookeeper.server import Server

BROKERS: Final = (1, 2, 3)
TOPIC: Final = "bytes"
RECORD_BYTES: Final = 1_000
READY_S: Final = 60.0
TIMEOUT_S: Final = 30.0


class Nodes:
    """Brokers and a controller as processes, ended with the block."""

    def __init__(self, hosts: str, data: Path) -> None:
        self._hosts, self._data = hosts, data
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.ports: dict[int, int] = {}

    def __enter__(self) -> "Nodes":
        self._start("controller", 100)
        for number in BROKERS:
            own = ("--data", str(self._data / str(number)), "--lag-ms", "10000")
            self.ports[number] = self._start("broker", number, *own)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _start(self, role: str, number: int, *options: str) -> int:
        """Start a process and return its port, 0 where it has none, once it is ready."""
        command = [sys.executable, "-m", "reassure_lab", role, "--id", str(number)]
        process = subprocess.Popen(
            [*command, "--zookeeper", self._hosts, "--log-level", "WARNING", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes[f"{role} {number}"] = process
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = re.match(rf"ready {role} {number}(?: [0-9.]+:(\d+))?", line)
        assert ready is not None, line
        return int(ready[1] or 0)


class Producer(threading.Thread):
    """Sends batches to one partition until it is told to end."""

    def __init__(self, partition: int, port: int, records: int, end: threading.Event) -> None:
        super().__init__(daemon=True)
        batch = encode([Record(None, bytes(RECORD_BYTES))] * records, 0, 0, 0)
        data = (ProducePartition(partition, batch),)
        self._request = ProduceRequest(-1, int(TIMEOUT_S * 1000), (ProduceTopic(TOPIC, data),))
        self._connection = Connection("127.0.0.1", port, "throughput", timeout_s=TIMEOUT_S)
        self.end = end
        """Set when it is to end."""
        self.times_s: list[float] = []
        """What each acknowledged batch took."""

    def send(self) -> ErrorCode:
        """Send one batch; return what the broker says of it."""
        answer = self._connection.ask(self._request)
        return answer.responses[0].partition_responses[0].error_code

    def run(self) -> None:
        """Send until the end."""
        while not self.end.is_set():
            since = time.perf_counter()
            error = self.send()
            assert error == ErrorCode.none, error
            self.times_s.append(time.perf_counter() - since)
        self._connection.close()


def wait_until_sent(producer: Producer) -> None:
    """Send until a batch is acknowledged by all."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            if producer.send() == ErrorCode.none:
                return
        except NoAnswer:
            pass
        assert time.monotonic() < deadline, "no batch is acknowledged"
        time.sleep(0.05)


def start_producers(nodes: Nodes, hosts: str, count: int, records: int) -> list[Producer]:
    """Create the topic and return a producer for each partition, each with a batch through."""
    client, end = connect(hosts), threading.Event()
    ring = [BROKERS[at:] + BROKERS[:at] for at in range(len(BROKERS))]
    client.create(topic_path(TOPIC), encode_topic({n: ring[n % len(ring)] for n in range(count)}))
    producers = []
    for partition in range(count):
        path = state_path(TOPIC, partition)
        deadline = time.monotonic() + READY_S
        while client.exists(path) is None:
            assert time.monotonic() < deadline, f"{path} is not there"
            time.sleep(0.02)
        leader = decode_state(path, client.get(path)[0]).leader
        producers.append(Producer(partition, nodes.ports[leader], records, end))
        wait_until_sent(producers[-1])
    stop(client)
    return producers


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    records = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    with (
        tempfile.TemporaryDirectory() as folder,
        Server.start() as server,
        Nodes(server.hosts, Path(folder)) as nodes,
    ):
        producers = start_producers(nodes, server.hosts, count, records)
        watched = {name: psutil.Process(p.pid) for name, p in nodes.processes.items()}
        watched |= {"ZooKeeper": psutil.Process(server.pid), "producers": psutil.Process()}
        before = {name: sum(one.cpu_times()[:2]) for name, one in watched.items()}
        since = time.perf_counter()
        for producer in producers:
            producer.start()
        time.sleep(seconds)
        producers[0].end.set()
        for producer in producers:
            producer.join()
        took = time.perf_counter() - since
        used = {name: sum(one.cpu_times()[:2]) - before[name] for name, one in watched.items()}
    times_s = [one for producer in producers for one in producer.times_s]
    sent = len(times_s) * records
    print(f"{count} producers, {records} records of {RECORD_BYTES} B in a batch, acks=all,")
    print(f"3 replicas of each partition, {platform.platform()}")
    print(f"{sent / took:,.0f} records/s, {sent * RECORD_BYTES / took / 1e6:.1f} MB/s of producers")
    middle = 1e3 * statistics.median(times_s)
    print(f"{middle:.1f} ms for a batch in the median of {len(times_s)}")
    megabytes = sent * RECORD_BYTES / 1e6
    for name, spent in used.items():
        print(
            f"{name:>15}: {spent / took:>5.0%} of a processor, {1e3 * spent / megabytes:.1f} ms/MB"
        )


if __name__ == "__main__":
    main()
