"""What 10,000 reassignments of empty partitions cost ZooKeeper, and how long a failover takes.

Brokers without logs on one embedded server. Clients ask for all reassignments, 100 in a request;
when all are in flight the controller ends and the next one takes over; then the leaders take the
new replicas in, as they would at once with nothing to copy, and all reassignments complete.

An operation is what goes to ZooKeeper as one request, from clients, controllers and brokers
together: a transaction counts once, and so do many reads in one request. What the failover reads
is told apart. The server counts the watches.

    python benchmarks/reassignments.py [PARTITIONS] [MOVED]

MOVED of each partition's three replicas go elsewhere, one by default.
"""

import platform
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from reassure_controller.broker import Broker
from reassure_controller.client import Client
from reassure_controller.controller import Controller
from reassure_controller.session import commit, ensure_roots, stop
from reassure_controller.transport import LocalTransport
from reassure_spec.znodes import (
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    PartitionKey,
    ReplicaList,
    RequestZnode,
    StateZnode,
    encode_request,
    encode_state,
    encode_topic,
    partition_path,
    state_path,
    topic_path,
)
from reassure_zookeeper.server import Server

PER_TOPIC: Final = 100
BROKERS: Final = (1, 2, 3, 4, 5, 6)
OPERATIONS_MAX: Final = 12
FAILOVER_S_MAX: Final = 5.0
SETTLE_S: Final = 600.0


class Counted(Client):
    """A client whose operations are counted by what they are for."""

    def __init__(self, who: str, counts: Counter[str], **options: Any) -> None:
        super().__init__(**options)
        self.who = who
        self.point = ""
        """What the next transaction brings about."""
        self._counts = counts

    def _call(self, request: Any, result: Any) -> Any:
        kind = type(request).__name__.strip("_")
        if kind == "Transaction":
            kind, self.point = self.point or "write", ""
        self._counts[f"{self.who}: {kind}"] += 1
        return super()._call(request, result)


class Cluster:
    """Six brokers and the controllers started so far."""

    def __init__(self, hosts: str) -> None:
        self.hosts = hosts
        self.counts: Counter[str] = Counter()
        self.transport = LocalTransport()
        self.clients = {one: self._connect("broker") for one in BROKERS}
        self.brokers = {
            one: Broker(client, one, self.transport) for one, client in self.clients.items()
        }
        for broker in self.brokers.values():
            broker.register()
        self.admin = self._connect("client")
        self._controllers = 0

    def _connect(self, who: str) -> Counted:
        client = Counted(who, self.counts, hosts=self.hosts, timeout=30.0)
        client.start()
        return client

    def start_controller(self) -> Controller:
        """Return a controller that stands for election."""
        self._controllers += 1
        client = self._connect("controller")

        def note(point: str) -> None:
            client.point = point

        number = 1000 + self._controllers
        controller = Controller(client, number, self.transport, on_point=note)
        controller.contend()
        return controller

    def close(self) -> None:
        """End the brokers and the administrator."""
        for broker in self.brokers.values():
            broker.kill()
        stop(self.admin)

    def ask_server(self, word: bytes) -> str:
        """Return the server's answer to a four letter word."""
        host, _, port = self.hosts.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(word)
            return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()

    def count_watches(self) -> int:
        """Return how many watches the server holds, of all sessions."""
        found = re.search(r"Total watches:(\d+)", self.ask_server(b"wchs"))
        assert found is not None
        return int(found[1])

    @contextmanager
    def counting(self) -> Iterator[Counter[str]]:
        """Count the operations of a part of the work."""
        before, part = self.counts.copy(), Counter[str]()
        yield part
        part.update(self.counts - before)


def list_moves(partitions: int, moved: int) -> dict[PartitionKey, tuple[ReplicaList, ReplicaList]]:
    """Return of each partition the assigned replicas and the target."""
    moves = {}
    for number in range(partitions):
        first = number % len(BROKERS)
        ring = tuple(BROKERS[(first + step) % len(BROKERS)] for step in range(len(BROKERS)))
        topic, place = divmod(number, PER_TOPIC)
        moves[f"topic-{topic:03d}", place] = (ring[:3], ring[: 3 - moved] + ring[3 : 3 + moved])
    return moves


def make_topics(cluster: Cluster, moves: dict[PartitionKey, Any]) -> None:
    """Create all topics as an earlier controller would have brought them online."""
    topics: dict[str, dict[int, ReplicaList]] = {}
    for (topic, number), (assigned, _) in moves.items():
        topics.setdefault(topic, {})[number] = assigned
    ensure_roots(cluster.admin)
    for topic, assignment in topics.items():
        creates = [
            (topic_path(topic), encode_topic(assignment)),
            (f"{topic_path(topic)}/partitions", b""),
        ]
        for number, assigned in assignment.items():
            state = StateZnode(assigned[0], leader_epoch=0, controller_epoch=0, isr=assigned)
            creates.append((partition_path(topic, number), b""))
            creates.append((state_path(topic, number), encode_state(state)))
        commit(cluster.admin, [("create", create) for create in creates])


def ask(cluster: Cluster, moves: dict[PartitionKey, Any], controller: Controller) -> None:
    """Ask for all reassignments and have the controller begin with them."""
    keys = list(moves)
    path = f"{REASSIGNMENT_REQUESTS}/request_"
    for at in range(0, len(keys), PER_TOPIC):
        targets = {key: moves[key][1] for key in keys[at : at + PER_TOPIC]}
        cluster.admin.create(path, encode_request(RequestZnode(targets)), sequence=True)
    controller.drain(SETTLE_S)


def join_all(cluster: Cluster, moves: dict[PartitionKey, Any], controller: Controller) -> None:
    """Have each leader take in the new replicas, and the controller complete."""
    for number, (key, (assigned, target)) in enumerate(moves.items(), start=1):
        leader = cluster.brokers[assigned[0]]
        for replica in target:
            if replica not in assigned:
                outcome = leader.change_isr(*key, add=replica)
                assert outcome == "ok", (key, outcome)
        if number % PER_TOPIC == 0:
            controller.drain(SETTLE_S)


def print_counts(title: str, counts: Counter[str], partitions: int) -> float:
    """Print operations for each reassignment; return their sum."""
    print(f"\n{title}")
    for name, count in counts.most_common():
        print(f"{count / partitions:>10.4f}  {name}")
    total = counts.total() / partitions
    print(f"{total:>10.2f}  in all", flush=True)
    return total


def fail_over(cluster: Cluster, old: Controller, new: Controller, partitions: int) -> float:
    """End a controller and have the next one go on; return the seconds until it has planned."""
    with cluster.counting() as planned:
        old.kill()
        since, used = time.perf_counter(), time.process_time()
        while not new.pump(0).held:
            time.sleep(0.001)
        seconds, processor_s = time.perf_counter() - since, time.process_time() - used
    print_counts("The failover, until all is planned", planned, partitions)
    print(f"{seconds:>10.2f}  seconds from the end of the old controller,")
    print(f"{processor_s:>10.2f}  of processor time in this process", flush=True)
    with cluster.counting() as carried_out:
        new.drain(SETTLE_S)
    print_counts("The failover, what was planned", carried_out, partitions)
    return seconds


def main() -> int:
    """Count, print, and answer 1 where an aim is missed."""
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    moved = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    moves = list_moves(partitions, moved)
    print(f"{partitions:,} partitions, {moved} of 3 replicas moved, {platform.platform()}")
    with Server.start() as server:
        cluster = Cluster(server.hosts)
        make_topics(cluster, moves)
        old = cluster.start_controller()
        old.drain(SETTLE_S)
        new = cluster.start_controller()
        idle = cluster.count_watches()
        with cluster.counting() as begun:
            ask(cluster, moves, old)
        flying, busy = len(old.context.in_flight()), cluster.count_watches()
        print(f"\n{flying:,} in flight; watches: {idle} before, {busy} then", flush=True)
        failover_s = fail_over(cluster, old, new, partitions)
        with cluster.counting() as completed:
            join_all(cluster, moves, new)
        left = cluster.admin.get_children(REASSIGNMENTS)
        new.kill()
        cluster.close()
    assert (flying, left) == (partitions, []), (flying, left)
    total = print_counts("From request to completion", begun + completed, partitions)
    met = total <= OPERATIONS_MAX and idle == busy and failover_s < FAILOVER_S_MAX
    aims = f"{OPERATIONS_MAX} operations, watches as before, {FAILOVER_S_MAX:.0f} s"
    print(f"\naims: {aims}: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
