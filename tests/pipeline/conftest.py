"""Fixtures of the pipeline's tests."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import adler32

import pytest

from reassure_pipeline.audit import audit_local
from reassure_pipeline.audit_report import AuditReport
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
def audit() -> Callable[..., AuditReport]:
    """Audit paths with the local engine and the default profile."""

    def run(*paths: Path, **options: Any) -> AuditReport:
        return audit_local(paths, PROFILE, get_profile(PROFILE), **options)

    return run


@pytest.fixture
def snapshot() -> Callable[[Path, list[Transaction], int], Path]:
    """Write a snapshot: `snapshot(data directory, transactions it shows, zxid in its name)`.

    It is fuzzy where it shows more than its name says.
    """

    def write(folder: Path, shown: list[Transaction], zxid: int) -> Path:
        path = folder / "version-2" / f"snapshot.{zxid:x}"
        path.write_bytes(_encode_snapshot(Tree().apply_all(shown)))
        return path

    return write


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
