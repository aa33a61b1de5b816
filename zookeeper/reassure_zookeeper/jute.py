"""The few encodings that ZooKeeper's files are made of, read from and written to bytes.

Everything is big-endian.  A string or buffer is a 32-bit length and its bytes, a vector a 32-bit
count and its items, and the length -1 stands for "none at all".  Java's writer encodes characters
beyond the basic plane as two surrogates of three bytes each, which `surrogatepass` accepts and
gives back unchanged.

The readers take the bytes and a position and return the value and the position after it.  They do
not check against the end of the bytes: a slice past the end is short, so the caller compares the
final position with the length once, which is enough and much cheaper.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple


class NoData(bytes):
    """Empty bytes that stand for data which is not there at all."""

    __slots__ = ()


NO_DATA: Final[bytes] = NoData()
"""What a node holds that was created with no data; equal to `b""`, but written as length -1."""


class Acl(NamedTuple):
    """One entry of an access control list: permission bits, and whom they are for."""

    permissions: int
    scheme: str
    identity: str


OPEN_ACL: Final[tuple[Acl, ...]] = (Acl(31, "world", "anyone"),)
"""All permissions for everybody."""

READ_ACL: Final[tuple[Acl, ...]] = (Acl(1, "world", "anyone"),)
"""Read permission for everybody."""

INT: Final = struct.Struct(">i")
LONG: Final = struct.Struct(">q")
_unpack_int = INT.unpack_from


class Malformed(ValueError):
    """The bytes are not what their type says."""


def read_length(source: bytes, at: int) -> tuple[int, int]:
    """Read a length or count of at least -1."""
    length: int = _unpack_int(source, at)[0]
    if length < -1:
        raise Malformed(f"a length of {length}")
    return length, at + 4


def read_buffer(source: bytes, at: int) -> tuple[bytes, int]:
    """Read a buffer; `NO_DATA` if there is none."""
    length, at = read_length(source, at)
    if length < 0:
        return NO_DATA, at
    return source[at : at + length], at + length


def read_string(source: bytes, at: int) -> tuple[str, int]:
    """Read a string that must be there."""
    length, at = read_length(source, at)
    if length < 0:
        raise Malformed("a string is missing")
    stop = at + length
    return source[at:stop].decode("utf-8", "surrogatepass"), stop


def read_acl(source: bytes, at: int) -> tuple[tuple[Acl, ...], int]:
    """Read an access control list; none at all reads as an empty one."""
    count, at = read_length(source, at)
    entries = []
    for _ in range(count):
        permissions = _unpack_int(source, at)[0]
        scheme, at = read_string(source, at + 4)
        identity, at = read_string(source, at)
        entries.append(Acl(permissions, scheme, identity))
    return tuple(entries), at


def read_strings(source: bytes, at: int) -> tuple[tuple[str, ...], int]:
    """Read a vector of strings."""
    count, at = read_length(source, at)
    strings = []
    for _ in range(count):
        string, at = read_string(source, at)
        strings.append(string)
    return tuple(strings), at


def write_buffer(data: bytes) -> bytes:
    """Write a buffer; the inverse of `read_buffer`."""
    return INT.pack(-1) if isinstance(data, NoData) else INT.pack(len(data)) + data


def write_string(text: str) -> bytes:
    """Write a string as Java does; the inverse of `read_string`."""
    if not text.isascii():
        text = "".join(_surrogates(character) for character in text)
    encoded = text.encode("utf-8", "surrogatepass")
    return INT.pack(len(encoded)) + encoded


def write_acl(acl: tuple[Acl, ...]) -> bytes:
    """Write an access control list; the inverse of `read_acl`."""
    entries = (
        INT.pack(entry.permissions) + write_string(entry.scheme) + write_string(entry.identity)
        for entry in acl
    )
    return INT.pack(len(acl)) + b"".join(entries)


def write_strings(strings: tuple[str, ...]) -> bytes:
    """Write a vector of strings; the inverse of `read_strings`."""
    return INT.pack(len(strings)) + b"".join(map(write_string, strings))


def _surrogates(character: str) -> str:
    code = ord(character) - 0x10000
    return character if code < 0 else chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))
