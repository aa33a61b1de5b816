"""How many watches a controller needs, counted at the server."""

import re
import socket
from collections import Counter
from typing import Any

import pytest
from kazoo.protocol.serialization import Transaction

from reassure_controller.session import connect, stop
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    LegacyEntry,
    encode_reassign_partitions,
)

PARTITIONS = 12


def ask_server(hosts: str, word: bytes) -> str:
    """Return the server's answer to a four letter word."""
    host, _, port = hosts.partition("/")[0].partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def count_watches(hosts: str) -> int:
    """Return how many watches the server holds, for data and for children, of all sessions."""
    found = re.search(r"^zk_watch_count\s+(\d+)$", ask_server(hosts, b"mntr"), re.MULTILINE)
    assert found is not None
    return int(found[1])


def list_watched(hosts: str) -> set[str]:
    """Return the paths in the chroot whose data somebody watches."""
    chroot = "/" + hosts.partition("/")[2]
    paths = ask_server(hosts, b"wchp").splitlines()
    return {path.removeprefix(chroot) for path in paths if path.startswith(f"{chroot}/")}


def test_watches_are_counted_at_the_server(make_cluster: Any) -> None:
    """A watch for children and one for data both count; the latter's path is told."""
    hosts = make_cluster().hosts
    client = connect(hosts)
    before = count_watches(hosts)
    client.get_children("/brokers", watch=lambda _: None)
    client.get("/brokers", watch=lambda _: None)
    assert count_watches(hosts) == before + 2
    assert list_watched(hosts) == {"/brokers"}
    stop(client)


@pytest.mark.clause("legacy.watch.one-more")
def test_watches_do_not_grow_with_what_is_watched(cluster: Any) -> None:
    """However many topics, partitions and reassignments in flight: the watches are the same."""
    controller = cluster.controller()
    controller.drain()
    idle, watched = count_watches(cluster.hosts), list_watched(cluster.hosts)
    for topic in ("t", "u"):
        cluster.create_topic(topic, dict.fromkeys(range(PARTITIONS), (1, 2)))
        cluster.request({(topic, number): (2, 3) for number in range(PARTITIONS)}, then=controller)
        assert all(cluster.child(topic, number) for number in range(PARTITIONS))
        assert count_watches(cluster.hosts) == idle
        assert list_watched(cluster.hosts) == watched


@pytest.mark.clause("legacy.watch.one-more")
def test_old_znode_needs_one_watch(cluster: Any) -> None:
    """Whoever looks after the old znode watches it, there or not, and nothing else more."""
    cluster.create_topic("t", dict.fromkeys(range(PARTITIONS), (1, 2)))
    plain = cluster.controller()
    plain.drain()
    without = count_watches(cluster.hosts)
    plain.kill()
    controller = cluster.controller(profile="kip-236-legacy")
    controller.drain()
    assert count_watches(cluster.hosts) == without + 1
    entries = [LegacyEntry(("t", number), (2, 3)) for number in range(PARTITIONS)]
    cluster.admin.create(REASSIGN_PARTITIONS, encode_reassign_partitions(entries))
    controller.drain()
    assert all(cluster.child("t", number) for number in range(PARTITIONS))
    assert count_watches(cluster.hosts) == without + 1


def count_operations(cluster: Any, partitions: int) -> Counter[str]:
    """Return what a controller asks ZooKeeper for to move partitions in one request, by kind."""
    controller, counts = cluster.controller(), Counter[str]()
    topic = f"t{partitions}"
    cluster.create_topic(topic, dict.fromkeys(range(partitions), (1, 2)), then=controller)
    client = controller._client
    call = client._call

    def note(request: Any, result: Any) -> Any:
        counts["write" if isinstance(request, Transaction) else "read"] += len(
            getattr(request, "reads", "1")
        )
        return call(request, result)

    client._call = note
    cluster.request({(topic, number): (1, 3) for number in range(partitions)}, then=controller)
    for number in range(partitions):
        cluster.join(topic, number, 3)
    controller.drain()
    assert not cluster.reassigning()
    controller.kill()
    return counts


def test_a_reassignment_costs_its_writes_and_one_read(cluster: Any) -> None:
    """Each further partition costs seven writes, and a read of the state its leader has changed."""
    few, many = count_operations(cluster, 3), count_operations(cluster, PARTITIONS)
    writes = ("child", "assigned", "epoch", "epoch again", "in-sync set", "target", "child gone")
    more = PARTITIONS - 3
    assert many - few == {"write": len(writes) * more, "read": more}
