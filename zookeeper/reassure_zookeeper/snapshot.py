"""Read ZooKeeper's snapshots: the whole tree, with every node's stat, as it was about a zxid.

A file `snapshot.ZXID` (or with `.gz` behind) holds the open sessions, a table of access control
lists, and the nodes, parents before children; an Adler-32 checksum of everything so far and the
path "/" end it.  Newer servers append a digest and their last zxid, each again under a checksum;
they are checked as far as they are there.

A snapshot taken while the server works is *fuzzy*: nodes may already show changes newer than the
zxid in the file's name.  Replay the log from that zxid on top of it before comparing anything.
"""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reassure_zookeeper.errors import DamagedSnapshot
from reassure_zookeeper.jute import (
    LONG,
    OPEN_ACL,
    Acl,
    Malformed,
    read_acl,
    read_buffer,
    read_length,
    read_string,
)
from reassure_zookeeper.txnlog import FILE_HEADER, AnyPath, find_log_folder, get_zxid_in_name

MAGIC: Final = b"ZKSN"
OPEN_ACL_ID: Final = -1
_STAT: Final = struct.Struct(">qqqqiiiqq")
_SESSION: Final = struct.Struct(">qi")
_DIGEST: Final = struct.Struct(">qiq")
_NAME: Final = re.compile(r"snapshot\.[0-9a-f]+(?:\.gz)?")


@dataclass(slots=True)
class Node:
    """A node: data, access control list and stat, all as the server keeps them.

    `cversion` counts children created; what clients see under that name also counts the deleted
    ones.  Times are milliseconds since 1970.  `children` are names.
    """

    data: bytes
    acl: tuple[Acl, ...]
    czxid: int = 0
    mzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    version: int = 0
    cversion: int = 0
    aversion: int = 0
    ephemeral_owner: int = 0
    pzxid: int = 0
    children: set[str] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a snapshot file holds; `nodes` by path, the root being "/".

    `sessions` maps ids to timeouts in milliseconds.  `zxid` is the one in the file's name;
    `last_zxid` the one that the file itself says was the newest, None for older servers.
    """

    path: Path
    zxid: int
    sessions: dict[int, int]
    nodes: dict[str, Node]
    last_zxid: int | None


def snapshot_files(source: AnyPath) -> list[Path]:
    """List the snapshots of a data directory or its `version-2`, oldest first."""
    found = find_log_folder(Path(source)).iterdir()
    files = (file for file in found if _NAME.fullmatch(file.name) and file.is_file())
    return sorted(files, key=get_zxid_in_name)


def read_snapshot(path: AnyPath) -> Snapshot:
    """Read one snapshot file, gzipped or plain; raises `DamagedSnapshot`."""
    file = Path(path)
    content = file.read_bytes()
    if file.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as problem:
            raise DamagedSnapshot(file, 0, f"does not unpack ({problem})") from None
    return _Reader(file, content).read()


class _Reader:
    """One pass over a snapshot's bytes; `_at` is how far it has come."""

    def __init__(self, file: Path, content: bytes) -> None:
        self._file = file
        self._content = content
        self._at = 0

    def read(self) -> Snapshot:
        try:
            self._read_header()
            sessions = self._read_sessions()
            nodes = self._read_nodes(self._read_acls())
            self._check_seal()
            last_zxid = self._read_extras()
        except (struct.error, UnicodeDecodeError, Malformed) as problem:
            raise DamagedSnapshot(
                self._file, self._at, f"cut short or garbled ({problem})"
            ) from None
        _link_children(nodes)
        return Snapshot(self._file, get_zxid_in_name(self._file), sessions, nodes, last_zxid)

    def _read_header(self) -> None:
        magic, version, _ = FILE_HEADER.unpack_from(self._content)
        if magic != MAGIC or version != 2:
            raise DamagedSnapshot(
                self._file, 0, f"begins with {magic!r} {version} instead of {MAGIC!r} 2"
            )
        self._at = FILE_HEADER.size

    def _read_count(self) -> int:
        count, self._at = read_length(self._content, self._at)
        return count

    def _read_sessions(self) -> dict[int, int]:
        sessions = {}
        for _ in range(self._read_count()):
            session, timeout_ms = _SESSION.unpack_from(self._content, self._at)
            self._at += _SESSION.size
            sessions[session] = timeout_ms
        return sessions

    def _read_acls(self) -> dict[int, tuple[Acl, ...]]:
        acls = {OPEN_ACL_ID: OPEN_ACL}
        for _ in range(self._read_count()):
            (number,) = LONG.unpack_from(self._content, self._at)
            acls[number], self._at = read_acl(self._content, self._at + LONG.size)
        return acls

    def _read_nodes(self, acls: dict[int, tuple[Acl, ...]]) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        while True:
            path, at = read_string(self._content, self._at)
            if path == "/":
                self._at = at
                return nodes
            data, at = read_buffer(self._content, at)
            (number,) = LONG.unpack_from(self._content, at)
            stat = _STAT.unpack_from(self._content, at + LONG.size)
            if number not in acls:
                raise Malformed(f"{path or '/'} has access control list {number}, not in the table")
            nodes[path or "/"] = Node(data, acls[number], *stat)
            self._at = at + LONG.size + _STAT.size

    def _check_seal(self) -> None:
        """Read a checksum and the "/" after it; the checksum covers all bytes before it."""
        (expected,) = LONG.unpack_from(self._content, self._at)
        if expected != zlib.adler32(memoryview(self._content)[: self._at]):
            raise DamagedSnapshot(self._file, self._at, "the checksum does not match")
        mark, at = read_string(self._content, self._at + LONG.size)
        if mark != "/":
            raise DamagedSnapshot(self._file, self._at, f"ends with {mark!r} instead of '/'")
        self._at = at

    def _read_extras(self) -> int | None:
        """Read what newer servers append; return the last zxid if it is among that."""
        if self._at == len(self._content):
            return None
        _DIGEST.unpack_from(self._content, self._at)
        self._at += _DIGEST.size
        self._check_seal()
        if self._at == len(self._content):
            return None
        last_zxid: int = LONG.unpack_from(self._content, self._at)[0]
        self._at += LONG.size
        self._check_seal()
        if self._at != len(self._content):
            raise Malformed(f"{len(self._content) - self._at} bytes left over")
        return last_zxid


def _link_children(nodes: dict[str, Node]) -> None:
    for path in nodes:
        if path == "/":
            continue
        parent_path, _, name = path.rpartition("/")
        # A fuzzy snapshot can hold a child whose parent went while it was written; the replay of
        # the log removes such a child too.
        parent = nodes.get(parent_path or "/")
        if parent is not None:
            if parent.children is None:
                parent.children = set()
            parent.children.add(name)
