"""Fixtures of the pipeline's tests."""

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from zlib import adler32

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))

from pipeline_steps import SIZE

from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import write_archive
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import audit_named
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.tree import Tree
from reassure_zookeeper.txnlog_writer import write_log

PROFILE = "kip-236"


@pytest.fixture
def server(tmp_path: Path) -> Callable[..., Path]:
    """Make data directories: `server(name, first file's transactions, second file's, ...)`."""

    def make(name: str, *files: list[Transaction]) -> Path:
        folder = tmp_path / name / "version-2"
        folder.mkdir(parents=True)
        for transactions in files:
            write_log(folder, transactions)
        return folder.parent

    return make


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Make an archive of several files."""
    write_archive(tmp_path / "made", SIZE, per_file=700)
    return tmp_path / "made"


@pytest.fixture
def audit() -> Callable[..., AuditReport]:
    """Audit paths with the local engine and the default profile."""

    def run(*paths: Path, **options: Any) -> AuditReport:
        return audit_named(paths, PROFILE, get_profile(PROFILE), **options)

    return run


@pytest.fixture(scope="session")
def snapshot() -> Callable[[Path, list[Transaction], int], Path]:
    """Write a snapshot: `snapshot(data directory, transactions it shows, zxid in its name)`.

    It is fuzzy where it shows more than its name says.
    """
    return _write_snapshot


def _write_snapshot(folder: Path, shown: list[Transaction], zxid: int) -> Path:
    path = folder / "version-2" / f"snapshot.{zxid:x}"
    path.write_bytes(_encode_snapshot(Tree().apply_all(shown)))
    return path


TOPICS = ("a", "orders.eu", "version", "assignments", "0", "\u00fc", '":{"', "back\\slash")


@pytest.fixture
def draw_requests() -> Callable[..., list[Transaction]]:
    """Draw a history in which anybody makes, changes and removes requests about many topics.

    Some are malformed and, unless `numbers_grow`, some have the name of one that is gone.
    """

    def draw(seed: int, *, numbers_grow: bool = False) -> list[Transaction]:
        random = Random(seed)
        cluster = SampleCluster(chroot=random.choice(("", "/kafka")))
        for topic in TOPICS:
            cluster.create_topic(topic, {0: (1, 2), 1: (2, 3)})
        for _ in range(200):
            _do_something(cluster, random, numbers_grow=numbers_grow)
        return cluster.transactions

    return draw


def _draw_request(random: Random) -> bytes:
    replicas = [(1, 3), (2, 4), (), (1, 99)]
    keys = [(random.choice((*TOPICS, "none")), random.randrange(3)) for _ in range(2)]
    asked = {key: random.choice(replicas) for key in keys[: random.choice((0, 1, 1, 1, 2))]}
    usual = znodes.encode_request(znodes.RequestZnode(asked, random.random() < 0.1))
    topic = json.dumps(random.choice(TOPICS))
    odd = [
        b"none of ours",
        usual[:-1],
        usual.replace(b":", b" : ").replace(b"{", b"{ \n"),
        usual.replace(b"a", b"\\u0061"),
        usual.decode().encode("utf-16"),
        f'{{"assignments":{{{topic}:{{"0":[2,4]}}}},"version":1}}'.encode(),
        f'{{"version":1,"assignments":{{{topic}:{{"0":[1]}},{topic}:{{"0":[4]}}}}}}'.encode(),
        f'{{"version":1,"assignments":{{"a":{{"0":{{{topic}:[1]}}}}}}}}'.encode(),
    ]
    return random.choice(odd) if random.random() < 0.3 else usual


def _do_something(cluster: SampleCluster, random: Random, *, numbers_grow: bool) -> None:
    number = random.randrange(max(cluster.requests - 8, 0), cluster.requests + 1)
    if not numbers_grow:
        number %= 10
    path = znodes.request_path(number)
    if random.random() < 0.03:
        path = random.choice((f"{znodes.REASSIGNMENT_REQUESTS}/mine", path.replace("_0", "_", 1)))
    elif numbers_grow and not cluster.knows(path):
        number = cluster.requests
        path = znodes.request_path(number)
    kind = random.choice(("change", "change", "remove", "withdraw", "do", "do"))
    if not cluster.knows(path):
        cluster.requests += number == cluster.requests or not numbers_grow
        cluster.append(cluster.create(path, _draw_request(random)))
    elif kind == "change":
        cluster.append(cluster.put(path, _draw_request(random)))
    elif kind == "withdraw":
        cluster.append(cluster.delete(path))
    elif kind == "remove":
        cluster.control(cluster.delete(path))
    elif kind == "do":
        _carry_out(cluster, path)
    if random.random() < 0.2:
        cluster.write_state(random.choice(TOPICS), 0)
    if random.random() < 0.02:
        cluster.act(cluster.controller, cluster.delete(znodes.CONTROLLER))
        cluster.elect(random.choice((1, 2)))


def _carry_out(cluster: SampleCluster, path: str) -> None:
    """Do what a controller does with a request: record what it asks for, and remove it."""
    written = (op for one in reversed(cluster.transactions) for op in one.ops)
    data = next(op.data for op in written if getattr(op, "path", "") == cluster.chroot + path)
    try:
        asked = znodes.decode_request(path, data).assignments
    except znodes.BadZnode:
        asked = {}
    for (topic, number), target in asked.items():
        if (topic, number) in cluster.partitions and target == (2, 4):
            cluster.record(topic, number, target)
    cluster.control(cluster.delete(path))


def _encode_snapshot(tree: Tree) -> bytes:
    parts = [struct.pack(">4siqii", b"ZKSN", 2, 0, 0, 0)]
    for path, node in tree.nodes.items():
        stat = (node.czxid, node.mzxid, node.ctime, node.mtime)
        versions = (node.version, node.cversion, node.aversion)
        parts.append(_encode_text(b"" if path == "/" else path.encode()) + _encode_text(node.data))
        parts.append(struct.pack(">q", -1))
        parts.append(struct.pack(">qqqqiiiqq", *stat, *versions, node.ephemeral_owner, node.pzxid))
    content = b"".join(parts) + _encode_text(b"/")
    return content + struct.pack(">q", adler32(content)) + _encode_text(b"/")


def _encode_text(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text
