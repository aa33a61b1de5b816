"""The replay against the server: the same nodes, data, lists, stats and sessions."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from reassure_zookeeper.errors import DamagedSnapshot, ReplayError
from reassure_zookeeper.launch import ServerSettings
from reassure_zookeeper.server import Server
from reassure_zookeeper.snapshot import FILE_HEADER, Snapshot, read_snapshot, snapshot_files
from reassure_zookeeper.transactions import (
    Create,
    Delete,
    Error,
    Reconfig,
    SetData,
    committed,
    multi,
)
from reassure_zookeeper.tree import CONTAINER_OWNER, TTL_OWNER, Tree
from reassure_zookeeper.txnlog import read_logs


def test_replay_equals_the_snapshot_node_for_node(recording) -> None:
    """Replaying a whole log gives every node, list, stat and session of the server's snapshot."""
    snapshot = read_snapshot(snapshot_files(recording.data_dir)[-1])
    tree = Tree().apply_all(recording.transactions)
    assert tree.zxid == snapshot.zxid == snapshot.last_zxid
    assert tree.sessions == snapshot.sessions
    assert tree.nodes == snapshot.nodes
    assert tree.ephemerals == Tree.from_snapshot(snapshot).ephemerals | _emptied(tree)
    assert {len(node.acl) for node in tree.nodes.values()} == {1, 2}
    assert any(node.ephemeral_owner == recording.open_session for node in tree.nodes.values())


def _emptied(tree: Tree) -> dict[int, set[str]]:
    return {session: set() for session, paths in tree.ephemerals.items() if not paths}


def test_replay_on_a_fuzzy_snapshot_equals_replay_from_the_start(tmp_path: Path, connect) -> None:
    """Snapshots taken while clients write, with the log on top, give the tree of the whole log."""
    with Server.start(tmp_path, settings=ServerSettings(snap_count=40)) as server:
        client = connect(server)
        client.create("/n", b"")
        pending = []
        for number in range(600):
            path = f"/n/{number % 50}"
            pending.append(client.create_async(path, b"", ephemeral=number % 3 == 0))
            pending.append(client.set_async(path, b"%d" % number))
            if number % 2:
                pending.append(client.delete_async(path))
        for each in pending:
            each.wait(10)
        server.kill()
    whole = Tree().apply_all(read_logs(tmp_path))
    snapshots = snapshot_files(tmp_path)
    assert len(snapshots) > 3
    for file in snapshots:
        snapshot = read_snapshot(file)
        tree = Tree.from_snapshot(snapshot)
        tree.apply_all(read_logs(tmp_path, after_zxid=snapshot.zxid))
        assert tree.nodes == whole.nodes, file
        assert tree.sessions == whole.sessions, file


def test_stats_equal_what_clients_are_told(own_server: Server, connect) -> None:
    """Every stat field that a client reads is the replayed one, its view of cversion included."""
    client = connect(own_server)
    client.create("/a", b"12")
    client.create("/a/b", b"", ephemeral=True)
    client.create("/a/c", b"")
    client.delete("/a/c")
    client.set("/a", b"345")
    told = {path: client.get(path) for path in ("/a", "/a/b")}
    tree = Tree().apply_all(read_logs(own_server.data_dir))
    for path, (data, stat) in told.items():
        node = tree.nodes[path]
        count = len(node.children or ())
        assert node.data == data
        assert stat == (
            *(node.czxid, node.mzxid, node.ctime, node.mtime),
            *(node.version, 2 * node.cversion - count, node.aversion),
            *(node.ephemeral_owner, len(node.data), count, node.pzxid),
        )


def test_refused_transactions_change_nothing() -> None:
    """A refused multi leaves the tree as it was, although its record says what it asked for."""
    tree = Tree().apply_all([committed(Create("/a", b"1"), zxid=1)])
    before = dict(tree.nodes)
    tree.apply(multi(SetData("/a", b"2", 1), Delete("/a"), Error(-103), Error(-2), zxid=2))
    assert tree.nodes == before
    assert tree.nodes["/a"].data == b"1"
    assert tree.zxid == 2


def test_marks_of_containers_and_ttl_nodes_are_no_sessions(recording) -> None:
    """Container and TTL nodes carry ZooKeeper's marks as owner and belong to no session."""
    tree = Tree()
    marks = set()
    for transaction in recording.transactions:
        tree.apply(transaction)
        marks |= {
            node.ephemeral_owner for p, node in tree.nodes.items() if p in ("/box", "/fleeting")
        }
    assert marks == {CONTAINER_OWNER, TTL_OWNER | 30}
    assert not marks & tree.ephemerals.keys()


def test_reconfig_writes_the_configuration_node() -> None:
    """A reconfiguration is a write of the node that holds the configuration."""
    tree = Tree().apply_all([committed(Reconfig("/zookeeper/config", b"x", 7), zxid=9, time_ms=3)])
    node = tree.nodes["/zookeeper/config"]
    assert (node.data, node.version, node.mzxid, node.mtime) == (b"x", 7, 9, 3)


@pytest.mark.parametrize(
    ("op", "problem"),
    [
        (Create("/missing/child"), "/missing is not there"),
        (Create("/zookeeper"), "/zookeeper is created, but is there already"),
        (Delete("/missing"), "/missing is not there"),
        (Delete("/zookeeper"), "/zookeeper is deleted, but has children"),
        (SetData("/missing", b"", 1), "/missing is not there"),
    ],
)
def test_history_with_a_gap_is_an_error(op, problem: str) -> None:
    """A change that cannot have happened to this tree is refused, with zxid, path and advice."""
    with pytest.raises(ReplayError, match=rf"zxid 0x5 .*{problem}.*from a snapshot"):
        Tree().apply(committed(op, zxid=5))


def test_one_transaction_may_be_half_done_when_a_snapshot_is_finished(tmp_path: Path) -> None:
    """The first transaction after the snapshot's last zxid may show already, the second may not."""
    nodes = dict(Tree().nodes)
    tree = Tree.from_snapshot(Snapshot(tmp_path / "snapshot.3", 3, {}, nodes, 5))
    tree.apply(committed(Delete("/gone"), zxid=4))
    tree.apply(committed(Delete("/gone-as-well"), zxid=6))
    with pytest.raises(ReplayError, match="zxid 0x7 does not fit: /missing"):
        tree.apply(committed(Delete("/missing"), zxid=7))


def test_snapshot_reads_packed_as_it_reads_plain(recording, tmp_path: Path) -> None:
    """A gzipped snapshot holds what the plain one holds."""
    plain = snapshot_files(recording.data_dir)[-1]
    packed = tmp_path / f"{plain.name}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_snapshot(packed).nodes == read_snapshot(plain).nodes
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(DamagedSnapshot, match="does not unpack"):
        read_snapshot(packed)


def test_snapshot_damaged_anywhere_is_an_error(recording, tmp_path: Path) -> None:
    """A flipped bit or a cut at any of many places in a snapshot never passes for a snapshot."""
    content = read_snapshot(snapshot_files(recording.data_dir)[-1]).path.read_bytes()
    file = tmp_path / "snapshot.1"
    database = range(8, FILE_HEADER.size)  # the one field that nobody reads
    offsets = [*range(0, 400, 7), *range(400, len(content) - 60, 5003)]
    for offset in [*offsets, *range(len(content) - 60, len(content))]:
        flipped = bytearray(content)
        flipped[offset] ^= 0x10
        file.write_bytes(flipped)
        if offset in database:
            continue
        with pytest.raises(DamagedSnapshot, match="restore this file"):
            read_snapshot(file)
        if offset not in _seals(content):
            file.write_bytes(content[:offset])
            with pytest.raises(DamagedSnapshot):
                read_snapshot(file)


def _seals(content: bytes) -> list[int]:
    """Offsets where an older server's snapshot would be complete."""
    mark = b"\0\0\0\1/"
    ends = [at for at in range(len(content) - 60, len(content)) if content[:at].endswith(mark)]
    return [
        at
        for at in ends
        if int.from_bytes(content[at - 13 : at - 5]) == zlib.adler32(content[: at - 13])
    ]
