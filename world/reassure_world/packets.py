"""ZooKeeper's protocol for clients: requests as they come in, answers as they go out.

The encodings are `reassure_zookeeper.jute`'s. A packet stands here without the length before it.
"""

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from reassure_world.java_sets import JavaSet
from reassure_zookeeper.jute import (
    INT,
    Acl,
    read_acl,
    read_buffer,
    read_string,
    write_buffer,
    write_string,
    write_strings,
)
from reassure_zookeeper.snapshot import Node
from reassure_zookeeper.transactions import (
    CHECK,
    CREATE,
    CREATE2,
    DELETE,
    ERROR,
    SET_DATA,
)

EXISTS, GET_DATA, GET_CHILDREN, SYNC, PING, GET_CHILDREN2 = 3, 4, 8, 9, 11, 12
REMOVE_WATCHES, MULTI_READ, ADD_WATCH, CLOSE = 18, 22, 106, -11
"""Codes of requests, beside those that stand in logs."""

_READABLE: Final = frozenset(
    {*(CREATE, CREATE2, DELETE, SET_DATA, CHECK), *(EXISTS, GET_DATA, GET_CHILDREN, GET_CHILDREN2)}
) | {SYNC, REMOVE_WATCHES, ADD_WATCH}

EVENT_XID: Final = -1
"""The number of an answer that is an event."""

EPHEMERAL, SEQUENTIAL = 1, 2
"""Bits of the flags of a request to create."""

HEADER: Final = struct.Struct(">ii")
_CONNECT: Final = struct.Struct(">iqiq")
_ANSWER: Final = struct.Struct(">iqi")
_CONNECTED: Final = struct.Struct(">iiq")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")
_PART: Final = struct.Struct(">iBi")
_EVENT: Final = struct.Struct(">ii")
_SYNC_CONNECTED: Final = 3
_END: Final = _PART.pack(-1, 1, -1)


class Code(IntEnum):
    """Why a request is refused: ZooKeeper's own codes."""

    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    NO_WATCHER = -121


class WatchEvent(IntEnum):
    """What a watcher is told."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILDREN = 4


class Refused(Exception):
    """A request is not carried out."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code: Final = code


class Hello(NamedTuple):
    """What a client says first: a session to take up again, 0 for none, and its password."""

    timeout_ms: int
    session: int
    password: bytes


class Request(NamedTuple):
    """One request, or one part of a multi; what its kind does not have is left as it is here."""

    kind: int
    path: str = ""
    data: bytes = b""
    acl: tuple[Acl, ...] = ()
    version: int = -1
    flags: int = 0
    """Of a create its flags; of a read whether it leaves a watch; of a watch its mode."""


def read_hello(packet: bytes) -> Hello:
    """Read the first packet of a connection."""
    _, _, timeout_ms, session = _CONNECT.unpack_from(packet)
    password, _ = read_buffer(packet, _CONNECT.size)
    return Hello(timeout_ms, session, password)


def read_request(kind: int, packet: bytes, at: int) -> tuple[Request, int]:
    """Read a request from a place on; return it and where it ends. Raises Refused if unknown."""
    if kind not in _READABLE:
        raise Refused(Code.UNIMPLEMENTED)
    path, at = read_string(packet, at)
    if kind in (CREATE, CREATE2):
        data, at = read_buffer(packet, at)
        acl, at = read_acl(packet, at)
        return Request(kind, path, data, acl, flags=INT.unpack_from(packet, at)[0]), at + 4
    if kind == SET_DATA:
        data, at = read_buffer(packet, at)
        return Request(kind, path, data, version=INT.unpack_from(packet, at)[0]), at + 4
    if kind in (DELETE, CHECK):
        return Request(kind, path, version=INT.unpack_from(packet, at)[0]), at + 4
    if kind in (EXISTS, GET_DATA, GET_CHILDREN, GET_CHILDREN2):
        return Request(kind, path, flags=packet[at]), at + 1
    if kind in (REMOVE_WATCHES, ADD_WATCH):
        return Request(kind, path, flags=INT.unpack_from(packet, at)[0]), at + 4
    return Request(kind, path), at


def read_parts(packet: bytes, at: int) -> list[Request]:
    """Read the parts of a multi, of reads or of writes."""
    parts: list[Request] = []
    while True:
        kind, is_end, _ = _PART.unpack_from(packet, at)
        if is_end:
            return parts
        part, at = read_request(kind, packet, at + _PART.size)
        parts.append(part)


def write_hello(timeout_ms: int, session: int, password: bytes) -> bytes:
    """Write the answer to the first packet; a timeout of 0 says that the session has ended."""
    return _CONNECTED.pack(0, timeout_ms, session) + write_buffer(password) + b"\0"


def write_answer(xid: int, zxid: int, body: bytes = b"", code: int = 0) -> bytes:
    """Write the answer to a request, refused where the code is not 0."""
    return _ANSWER.pack(xid, zxid, code) + body


def write_event(event: WatchEvent, path: str, zxid: int) -> bytes:
    """Write what a watcher is told."""
    told = _EVENT.pack(event, _SYNC_CONNECTED) + write_string(path)
    return write_answer(EVENT_XID, zxid, told)


def write_part(kind: int, body: bytes) -> bytes:
    """Write the result of one part of a multi."""
    return _PART.pack(kind, 0, 0) + body


def write_failed_part(code: int) -> bytes:
    """Write the result of a part that was not carried out."""
    return _PART.pack(ERROR, 0, code) + INT.pack(code)


def join_parts(parts: Iterable[bytes]) -> bytes:
    """Write the results of a multi."""
    return b"".join((*parts, _END))


def write_stat(node: Node) -> bytes:
    """Write what clients see of a node beside its content."""
    children = len(node.children or ())
    return _STAT.pack(
        node.czxid,
        node.mzxid,
        node.ctime,
        node.mtime,
        node.version,
        2 * node.cversion - children,  # those that were created, and those that were deleted
        node.aversion,
        node.ephemeral_owner,
        len(node.data),
        children,
        node.pzxid,
    )


def write_content(node: Node) -> bytes:
    """Write content and stat of a node."""
    return write_buffer(node.data) + write_stat(node)


def write_children(node: Node) -> bytes:
    """Write the names of a node's children, in the order in which a server has them."""
    assert isinstance(node.children, JavaSet)
    return write_strings(tuple(node.children.in_order()))
