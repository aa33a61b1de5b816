"""What a request for many partitions costs Kafka's own controller and ours, on the same brokers.

Three brokers of Apache Kafka and a ZooKeeper run as processes. The partitions hold no records; of
each the leader goes elsewhere and the follower stays, there and back again. Kafka's controller is
asked by the old znode, ours by a request of KIP-236, in turns: ours takes the office from Kafka's,
and gives it back by ending.

    python benchmarks/kafka_moves.py JARS 1000 [ROUNDS]

JARS is a directory with the jars of a Kafka: docs/lab.md, Kafka's own brokers. Each line tells the
seconds from the request until all is where it is wanted, in sync and led there, and how many
transactions ZooKeeper carried out and packets it received meanwhile, by whomever.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from kazoo.exceptions import NoNodeError

from reassure_controller.client import Client
from reassure_controller.session import connect, fetch, stop
from reassure_spec.znodes import (
    BROKER_IDS,
    CONTROLLER,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    RequestZnode,
    decode_controller,
    decode_state,
    decode_topic,
    encode_request,
    encode_topic,
    state_path,
    topic_path,
)
from reassure_zookeeper.server import Server

TOPIC: Final = "many"
BEFORE, AFTER = (1, 2), (3, 2)
OURS: Final = 100
SETTINGS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "zookeeper.session.timeout.ms": 30000,
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.enable": "false",
    "log.index.size.max.bytes": 4096,
    "num.replica.fetchers": 1,
}


def wait(condition: Callable[[], object], seconds: float = 600) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not come about in time")
        time.sleep(0.1)


@contextmanager
def run(log: Path, *command: str) -> Iterator[None]:
    """Run a process while entered, and end it as asked."""
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()


def start_broker(jars: str, root: Path, zookeeper: str, number: int) -> Any:
    """Run a broker of Kafka."""
    settings = {
        **SETTINGS,
        "broker.id": number,
        "zookeeper.connect": zookeeper,
        "log.dirs": root / f"data-{number}",
        "controlled.shutdown.enable": "false",
    }
    file = root / f"{number}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", "kafka.Kafka", str(file))
    return run(root / f"{number}.log", *java)


def ask_server(server: Server) -> tuple[int, int]:
    """Return the last zxid, and how many packets the server received."""
    host, port = server.hosts.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"srvr")
        answer = connection.makefile().read()
    lines = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
    return int(lines["Zxid"], 16), int(lines["Received"])


class Comparison:
    """A cluster, and whoever asks for moves."""

    def __init__(self, server: Server, client: Client, count: int) -> None:
        self.server, self.client, self.count = server, client, count

    def get(self, path: str) -> bytes:
        """Return a znode's content, nothing of one that is not there."""
        with suppress(NoNodeError):
            return bytes(self.client.get(path)[0])
        return b""

    def leads(self, who: str) -> bool:
        """Whether this one is in office."""
        data = self.get(CONTROLLER)
        return bool(data) and (decode_controller("", data) == OURS) is (who == "ours")

    def ask(self, who: str, target: tuple[int, ...]) -> None:
        """Ask for all partitions at once, as this one is asked."""
        if who == "ours":
            request = RequestZnode({(TOPIC, one): target for one in range(self.count)})
            path = f"{REASSIGNMENT_REQUESTS}/request_"
            self.client.create(path, encode_request(request), sequence=True)
            return
        moves = [
            {"topic": TOPIC, "partition": one, "replicas": target} for one in range(self.count)
        ]
        content = json.dumps({"version": 1, "partitions": moves}, separators=(",", ":"))
        self.client.create(REASSIGN_PARTITIONS, content.encode())

    def is_done(self, target: tuple[int, ...]) -> bool:
        """Whether all is where it is wanted, and nothing of the request is left."""
        assigned = decode_topic("", self.get(topic_path(TOPIC)))
        return set(assigned.values()) == {target} and not (
            self.get(REASSIGN_PARTITIONS)
            or self.client.get_children(REASSIGNMENT_REQUESTS)
            or self.client.get_children(REASSIGNMENTS)
        )

    def is_in_sync(self, target: tuple[int, ...]) -> bool:
        """Whether everywhere all are in sync, and the first leads."""
        states = fetch(self.client, [state_path(TOPIC, one) for one in range(self.count)])
        found = [decode_state("", one[0]) for one in states if one is not None]
        whole = [one for one in found if {*one.isr} == {*target} and one.leader == target[0]]
        return len(whole) == self.count

    def measure(self, who: str, target: tuple[int, ...]) -> None:
        """Have all moved, and say what it took."""
        time.sleep(3)
        before, start = ask_server(self.server), time.monotonic()
        self.ask(who, target)
        wait(lambda: self.is_done(target))
        took_s, after = time.monotonic() - start, ask_server(self.server)
        wait(lambda: self.is_in_sync(target))
        transactions, packets = (new - old for old, new in zip(before, after, strict=True))
        print(f"{who:6} {took_s:7.1f} s {transactions:7} transactions {packets:8} packets")


def main(jars: str, count: int, rounds: int = 2) -> None:
    """Measure both in turns."""
    with ExitStack() as ends:
        root = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        server = ends.enter_context(Server.start(root / "zookeeper"))
        client = connect(server.hosts)
        ends.callback(stop, client)
        for number in (1, 2, 3):
            ends.enter_context(start_broker(jars, root, server.hosts, number))
        comparison = Comparison(server, client, count)
        wait(lambda: len(client.get_children(BROKER_IDS) if client.exists(BROKER_IDS) else ()) == 3)
        for path in (REASSIGNMENT_REQUESTS, REASSIGNMENTS):
            client.ensure_path(path)
        wait(lambda: comparison.leads("kafka"))
        client.create(topic_path(TOPIC), encode_topic(dict.fromkeys(range(count), BEFORE)))
        wait(lambda: comparison.is_in_sync(BEFORE))
        asked = ("--zookeeper", server.hosts, "--id", str(OURS), "--depose")
        command = (sys.executable, "-m", "reassure_lab", "controller", *asked)
        for _ in range(rounds):
            comparison.measure("kafka", AFTER)
            with run(root / "ours.log", *command):
                wait(lambda: comparison.leads("ours"))
                comparison.measure("ours", BEFORE)
            wait(lambda: comparison.leads("kafka"))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
