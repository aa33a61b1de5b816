"""The body of a transaction log record, decoded and encoded.

A record is a header (session, request number, zxid, time, request code), a body by request code,
and the server's digest of its tree where that is switched on.  Two request codes have two forms:
`create` once had no parent's creation count, and `closeSession` need not list paths.  They are told
apart by what is left of the record, which is nothing or exactly one digest.

`decode` takes the bytes of a record whose checksum was found right, so what does not fit here was
written wrongly, not damaged later; it raises `Malformed` all the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from functools import lru_cache
from typing import Final

from reassure_zookeeper.jute import (
    INT,
    LONG,
    OPEN_ACL,
    Acl,
    Malformed,
    NoData,
    read_acl,
    read_buffer,
    read_length,
    read_string,
    read_strings,
    write_acl,
    write_buffer,
    write_string,
    write_strings,
)
from reassure_zookeeper.transactions import (
    CHECK,
    CLOSE_SESSION,
    CREATE,
    CREATE2,
    CREATE_CONTAINER,
    CREATE_SESSION,
    CREATE_TTL,
    DELETE,
    DELETE_CONTAINER,
    ERROR,
    MULTI,
    RECONFIG,
    SET_ACL,
    SET_DATA,
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    Op,
    Reconfig,
    SetAcl,
    SetData,
    Transaction,
    multi_of,
)

HEADER: Final = struct.Struct(">qiqqi")
OP_HEADER: Final = struct.Struct(">ii")
DIGEST_SIZE: Final = 12
_OPEN_ACL: Final = write_acl(OPEN_ACL)
_WRITING: Final = frozenset({CREATE, CREATE2, DELETE, SET_DATA})
"""Request codes of what writes at a path, with which its body begins."""
_MOST_PATHS: Final = 200_000
"""How many paths are remembered, some 250 bytes each."""

_unpack_header = HEADER.unpack_from
_unpack_int = INT.unpack_from
_unpack_op = OP_HEADER.unpack_from
_unpack_op_at_path = struct.Struct(">iii").unpack_from
"""Kind and size of an op that writes somewhere, or checks, and the length of its path."""
_HEADER_SIZE: Final = HEADER.size
_OP_SIZE: Final = OP_HEADER.size

Reader = Callable[[bytes, int], tuple[Op, int]]


def decode(record: bytes) -> Transaction:
    """Decode one record; raises `Malformed` when it is not a complete, known transaction."""
    try:
        session, cxid, zxid, time_ms, kind = _unpack_header(record, 0)
        if kind == SET_DATA:  # by far the most frequent, hence written out
            op: Op
            op, at = _set_data(record, _HEADER_SIZE)
        elif kind == MULTI:
            ops, at, refused = _multi(record, _HEADER_SIZE)
            if at != len(record):
                _check_rest(record, at)
            if refused:
                return multi_of(session, cxid, zxid, time_ms, ops, record[at:])
            return Transaction(session, cxid, zxid, time_ms, MULTI, ops, None, (), record[at:])
        else:
            op, at = _reader(kind)(record, _HEADER_SIZE)
    except (struct.error, UnicodeDecodeError) as problem:
        raise Malformed(f"a record cut short or garbled ({problem})") from None
    if at != len(record):
        _check_rest(record, at)
    error = op.code if kind == ERROR else None  # type: ignore[union-attr]
    return Transaction(session, cxid, zxid, time_ms, kind, (op,), error, (), record[at:])


def decode_unless(record: bytes, elsewhere: Container[bytes]) -> Transaction:
    """Decode one record, but leave out the ops where all that was written stands at these paths.

    Paths are compared as they are written.  What is left out was looked at only as far as that
    takes.  Raises `Malformed` for the rest.
    """
    # Processes that share a history do this with nearly every record, hence no path is decoded.
    try:
        session, cxid, zxid, time_ms, kind = _unpack_header(record, 0)
        if kind == SET_DATA:
            length = _unpack_int(record, _HEADER_SIZE)[0]
            at = _HEADER_SIZE + 4
            is_elsewhere = length >= 0 and record[at : at + length] in elsewhere
        else:
            is_elsewhere = kind == MULTI and _is_elsewhere(record, elsewhere)
    except struct.error:
        is_elsewhere = False  # told, or not, by whoever decodes all of it
    if is_elsewhere:
        return Transaction(session, cxid, zxid, time_ms, kind, ())
    return decode(record)


def _is_elsewhere(record: bytes, elsewhere: Container[bytes]) -> bool:
    """Whether a multi writes at these paths alone, and does nothing else but check."""
    count, at = _unpack_int(record, _HEADER_SIZE)[0], _HEADER_SIZE + 4
    for _ in range(count):
        kind, size, length = _unpack_op_at_path(record, at)
        at += _OP_SIZE
        if size < 0:
            return False
        if kind != CHECK:
            if kind not in _WRITING or length < 0:
                return False
            if record[at + 4 : at + 4 + length] not in elsewhere:
                return False
        at += size
    return count >= 0 and at <= len(record)


def encode(transaction: Transaction) -> bytes:
    """Encode one record; the inverse of `decode`, digest included where there is one.

    Raises `ValueError` when type and ops contradict each other.
    """
    ops = transaction.attempted or transaction.ops
    kind = transaction.type
    if kind == MULTI:
        written = INT.pack(len(ops)) + b"".join(map(_write_part, ops))
    elif len(ops) == 1 and ops[0].variant == kind:
        written = _write_op(ops[0])
    else:
        raise ValueError(f"a transaction of type {kind} must have one op of that type, not {ops}")
    header = HEADER.pack(
        transaction.session_id, transaction.cxid, transaction.zxid, transaction.time_ms, kind
    )
    return header + written + transaction.digest


class _Paths(dict[bytes, str]):
    """Paths by how they are written: those that come again cost no decoding, and are one text."""

    def __missing__(self, written: bytes) -> str:
        path = written.decode("utf-8", "surrogatepass")
        if len(self) >= _MOST_PATHS:
            self.clear()
        self[written] = path
        return path


_read_path: Final = _Paths().__getitem__


def _path(record: bytes, at: int) -> tuple[str, int]:
    length = _unpack_int(record, at)[0]
    if length < 0:
        return read_string(record, at)
    at += 4
    return _read_path(record[at : at + length]), at + length


def _acl(record: bytes, at: int) -> tuple[tuple[Acl, ...], int]:
    """Read an access control list, nearly always the open one."""
    if record.startswith(_OPEN_ACL, at):
        return OPEN_ACL, at + len(_OPEN_ACL)
    return read_acl(record, at)


def _check_rest(record: bytes, at: int) -> None:
    rest = len(record) - at
    if rest not in (0, DIGEST_SIZE):
        raise Malformed(f"{rest} bytes left over" if rest > 0 else "a record cut short")


def _reader(kind: int) -> Reader:
    try:
        return _READERS[kind]
    except KeyError:
        raise Malformed(f"an unknown request code {kind}") from None


def _multi(record: bytes, at: int) -> tuple[tuple[Op, ...], int, bool]:
    """Read the ops of a multi; the last part of the answer is whether it was refused."""
    count, at = read_length(record, at)
    ops: list[Op] = []
    refused = False
    for _ in range(count):
        kind, size = _unpack_op(record, at)
        at += _OP_SIZE
        if kind == SET_DATA and size >= 0:  # read where it stands, without a copy of its body
            op, stop = _set_data(record, at)
            at += size
            if stop != at:
                raise Malformed(f"{at - stop} bytes left over in an op of a multi")
            ops.append(op)
            continue
        if size < 0:
            body, at = read_buffer(record, at - 4)
        else:
            at += size
            body = record[at - size : at]
        if kind == CHECK:
            ops.append(_check_all(body))
            continue
        refused |= kind == ERROR
        if kind == ERROR and len(body) != INT.size:
            ops.append(Error(0, body))
            continue
        op, stop = _reader(kind)(body, 0)
        _check_length(body, stop)
        ops.append(op)
    return tuple(ops), at, refused


def _create_as(variant: int) -> Reader:
    def read(record: bytes, at: int) -> tuple[Op, int]:
        path, at = _path(record, at)
        data, at = read_buffer(record, at)
        acl, at = _acl(record, at)
        ephemeral = bool(record[at]) if at < len(record) else False
        at += 1
        if at == len(record):  # the old form, without a parent's creation count
            return Create(path, data, acl, ephemeral, -1, variant), at
        parent_cversion = _unpack_int(record, at)[0]
        return Create(path, data, acl, ephemeral, parent_cversion, variant), at + 4

    return read


def _create_container(record: bytes, at: int) -> tuple[Op, int]:
    path, at = read_string(record, at)
    data, at = read_buffer(record, at)
    acl, at = read_acl(record, at)
    parent_cversion = _unpack_int(record, at)[0]
    return Create(path, data, acl, False, parent_cversion, CREATE_CONTAINER), at + 4


def _create_ttl(record: bytes, at: int) -> tuple[Op, int]:
    path, at = read_string(record, at)
    data, at = read_buffer(record, at)
    acl, at = read_acl(record, at)
    parent_cversion = _unpack_int(record, at)[0]
    ttl_ms = LONG.unpack_from(record, at + 4)[0]
    return Create(path, data, acl, False, parent_cversion, CREATE_TTL, ttl_ms), at + 12


def _delete_as(variant: int) -> Reader:
    def read(record: bytes, at: int) -> tuple[Op, int]:
        path, at = _path(record, at)
        return Delete(path, variant), at

    return read


def _set_data(record: bytes, at: int) -> tuple[Op, int]:
    # The two readers are written out here: this op decides how fast a log is read.
    length = _unpack_int(record, at)[0]
    start = at + 4
    at = start + length
    path = _read_path(record[start:at])
    size = _unpack_int(record, at)[0]
    if length < 0 or size < 0:
        data, at = read_buffer(record, at)
        path, _ = read_string(record, start - 4)
        return SetData(path, data, _unpack_int(record, at)[0]), at + 4
    start = at + 4
    at = start + size
    return SetData(path, record[start:at], _unpack_int(record, at)[0]), at + 4


def _reconfig(record: bytes, at: int) -> tuple[Op, int]:
    path, at = read_string(record, at)
    data, at = read_buffer(record, at)
    return Reconfig(path, data, _unpack_int(record, at)[0]), at + 4


def _set_acl(record: bytes, at: int) -> tuple[Op, int]:
    path, at = read_string(record, at)
    acl, at = read_acl(record, at)
    return SetAcl(path, acl, _unpack_int(record, at)[0]), at + 4


def _check(record: bytes, at: int) -> tuple[Op, int]:
    path, at = read_string(record, at)
    return Check(path, _unpack_int(record, at)[0]), at + 4


@lru_cache(maxsize=1_000)
def _check_all(body: bytes) -> Check:
    """Read a check that is all of a body: logs have the same one in most transactions."""
    op, stop = _check(body, 0)
    _check_length(body, stop)
    assert isinstance(op, Check)
    return op


def _check_length(body: bytes, stop: int) -> None:
    if stop != len(body):
        raise Malformed(f"{len(body) - stop} bytes left over in an op of a multi")


def _create_session(record: bytes, at: int) -> tuple[Op, int]:
    return CreateSession(_unpack_int(record, at)[0]), at + 4


def _close_session(record: bytes, at: int) -> tuple[Op, int]:
    try:
        paths, stop = read_strings(record, at)
    except (struct.error, UnicodeDecodeError, Malformed):
        return CloseSession(None), at
    if len(record) - stop in (0, DIGEST_SIZE):
        return CloseSession(paths), stop
    return CloseSession(None), at


def _error(record: bytes, at: int) -> tuple[Op, int]:
    return Error(_unpack_int(record, at)[0]), at + 4


_READERS: Final[dict[int, Reader]] = {
    CREATE: _create_as(CREATE),
    CREATE2: _create_as(CREATE2),
    CREATE_CONTAINER: _create_container,
    CREATE_TTL: _create_ttl,
    DELETE: _delete_as(DELETE),
    DELETE_CONTAINER: _delete_as(DELETE_CONTAINER),
    SET_DATA: _set_data,
    RECONFIG: _reconfig,
    SET_ACL: _set_acl,
    CHECK: _check,
    CREATE_SESSION: _create_session,
    CLOSE_SESSION: _close_session,
    ERROR: _error,
}


def _write_part(op: Op) -> bytes:
    """Write an op of a multi."""
    if isinstance(op, Check):
        return _write_check_part(op.path, op.version)
    body = _write_op(op)
    return OP_HEADER.pack(op.variant, len(body)) + body


@lru_cache(maxsize=1_000)
def _write_check_part(path: str, version: int) -> bytes:
    body = _write_check(path, version)
    return OP_HEADER.pack(CHECK, len(body)) + body


def _write_op(op: Op) -> bytes:
    match op:
        case SetData() | Reconfig():  # the most frequent first: each case costs a little
            path, data = _write_path(op.path), op.data
            if isinstance(data, NoData):
                return path + write_buffer(data) + INT.pack(op.version)
            return b"%b%b%b%b" % (path, INT.pack(len(data)), data, INT.pack(op.version))
        case Check():
            return _write_check(op.path, op.version)
        case Create():
            return _write_create(op)
        case Delete():
            return _write_path(op.path)
        case SetAcl():
            return write_string(op.path) + write_acl(op.acl) + INT.pack(op.version)
        case CreateSession():
            return INT.pack(op.timeout_ms)
        case CloseSession():
            return b"" if op.paths is None else write_strings(op.paths)
        case Error():
            return op.overwritten or INT.pack(op.code)


@lru_cache(maxsize=_MOST_PATHS)
def _write_path(path: str) -> bytes:
    return write_string(path)


@lru_cache(maxsize=1_000)
def _write_check(path: str, version: int) -> bytes:
    return write_string(path) + INT.pack(version)


def _write_create(op: Create) -> bytes:
    acl = _OPEN_ACL if op.acl is OPEN_ACL else write_acl(op.acl)
    body = _write_path(op.path) + write_buffer(op.data) + acl
    if op.variant == CREATE_CONTAINER:
        return body + INT.pack(op.parent_cversion)
    if op.variant == CREATE_TTL:
        return body + INT.pack(op.parent_cversion) + LONG.pack(op.ttl_ms)
    return body + bytes((op.ephemeral,)) + INT.pack(op.parent_cversion)
