"""Contents of znodes that no client should write, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from reassure_spec.znodes import MAX_ZNODE_BYTES

RAW_KINDS: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "not-json": b"{ this is not JSON",
        "not-an-object": b"[1,2,3]",
        "no-content": b"",
        "no-version": b'{"assignments":{"orders":{"0":[1]}}}',
        "wrong-version": b'{"version":7,"assignments":{"orders":{"0":[1]}}}',
        "unknown-key": (
            b'{"version":1,"assignments":{"orders":{"0":[1]}},"original_replicas":[1]}'
        ),
        "duplicate-key": b'{"version":1,"assignments":{},"assignments":{"orders":{"0":[1]}}}',
        "no-assignments": b'{"version":1}',
        "replicas-not-a-list": b'{"version":1,"assignments":{"orders":{"0":"1,2"}}}',
        "replica-not-a-number": b'{"version":1,"assignments":{"orders":{"0":["one"]}}}',
        "partition-not-a-number": b'{"version":1,"assignments":{"orders":{"zero":[1]}}}',
        "nothing-asked": b'{"version":1,"assignments":{}}',
        "deep": b"[" * 5000,
    }
)
"""Malformed request contents by name, which ask for something wherever they can: who reads them
more kindly than the rules do begins a reassignment. `too-large` is made when it is needed."""
TOO_LARGE: Final = "too-large"

FOREIGN_KINDS: Final[Mapping[str, tuple[str, bytes]]] = MappingProxyType(
    {
        "queue-name": ("/admin/reassignment_requests/notes", b"not ours"),
        "queue-short-number": (
            "/admin/reassignment_requests/request_12",
            b'{"version":1,"assignments":{}}',
        ),
        "child-of-no-topic": (
            "/admin/reassignments/ghost/0",
            b'{"version":1,"top":1,"assignment":[1],"legacy":false}',
        ),
        "child-of-no-partition": (
            "/admin/reassignments/orders/99",
            b'{"version":1,"top":1,"assignment":[1],"legacy":false}',
        ),
        "child-name": ("/admin/reassignments/orders/zero", b"not ours"),
        "child-leading-zero": (
            "/admin/reassignments/orders/00",
            b'{"version":1,"top":1,"assignment":[1],"legacy":false}',
        ),
        "child-unreadable": ("/admin/reassignments/orders/0", b"not ours"),
    }
)
"""Znodes in the admin paths that no controller and no tool would make: path and content."""

OLD_KINDS: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "not-json": b"{ this is not JSON",
        "no-content": b"",
        "wrong-version": b'{"version":7,"partitions":[]}',
        "no-partitions": b'{"version":1}',
        "replicas-not-a-list": b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
        "partition-twice": (
            b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1]},'
            b'{"topic":"orders","partition":0,"replicas":[2]}]}'
        ),
        "nothing-asked": b'{"version":1,"partitions":[]}',
    }
)
"""Contents of the old znode that ask for nothing or make no sense, by name."""


def make_raw_request(kind: str) -> bytes:
    """Return a malformed request content of this kind."""
    if kind == TOO_LARGE:
        return b'{"version":1,"assignments":{}' + b" " * MAX_ZNODE_BYTES + b"}"
    return RAW_KINDS[kind]
