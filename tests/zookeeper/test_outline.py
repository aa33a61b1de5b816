"""Outlines: what is read of a record that nobody decodes as a whole."""

from collections.abc import Callable

import pytest

from reassure_zookeeper.codec import decode, encode, outline
from reassure_zookeeper.jute import READ_ACL, Malformed
from reassure_zookeeper.transactions import (
    CREATE2,
    CREATE_CONTAINER,
    CREATE_TTL,
    DELETE_CONTAINER,
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    Reconfig,
    SetAcl,
    SetData,
    Transaction,
    committed,
    multi,
)

OPS = (
    Create("/a", b"x"),
    Create("/a/ü", b"", READ_ACL, ephemeral=True, variant=CREATE2),
    Create("/c", variant=CREATE_CONTAINER),
    Create("/t", b"y", variant=CREATE_TTL, ttl_ms=5),
    Delete("/a"),
    Delete("/c", DELETE_CONTAINER),
    SetData("/a", b"x" * 300, 3),
    Reconfig("/zookeeper/config", b"server", 1),
    SetAcl("/a", READ_ACL, 2),
    Check("/controller_epoch", 7),
    CreateSession(30_000),
    CloseSession(("/a", "/b")),
    CloseSession(),
    Error(-101),
)
WHEN = {"zxid": 9, "session_id": -5, "cxid": 2, "time_ms": 77}
TRANSACTIONS = (
    *(committed(op, **WHEN) for op in OPS),
    multi(*OPS[:10], **WHEN),
    multi(Check("/controller_epoch", 7), SetData("/a", b"", 1), **WHEN),
    multi(OPS[0], Error(-101), Error(-2), **WHEN),
    multi(**WHEN),
)


@pytest.mark.parametrize("transaction", TRANSACTIONS, ids=lambda t: str(t.type))
def test_outline_agrees_with_what_is_decoded(transaction: Transaction) -> None:
    """Header, kinds and paths are those of the whole; what was refused has no ops."""
    record = encode(transaction)
    assert decode(record) == transaction
    found = outline(record)
    said = transaction.session_id, transaction.zxid, transaction.time_ms, transaction.type
    assert found[:4] == said
    ops = transaction.ops if transaction.error is None else ()
    assert found.ops == tuple((op.kind, getattr(op, "path", "")) for op in ops)


@pytest.mark.parametrize("read", [decode, outline])
def test_multi_that_is_cut_short_is_malformed(read: Callable[[bytes], object]) -> None:
    """Wherever the end of a multi is cut off, it is not taken for a shorter one."""
    record = encode(multi(*OPS[:8], SetData("/b", b"z", 1), **WHEN))
    assert read(record) is not None
    for length in range(len(record)):
        with pytest.raises(Malformed):
            read(record[:length])


def test_path_that_comes_again_is_the_same_text() -> None:
    """A path is decoded once, and told from others that begin alike."""
    first, second = (decode(encode(committed(Delete(path), zxid=1))) for path in ("/a/b", "/a/b"))
    assert first.ops[0].path is second.ops[0].path  # type: ignore[union-attr]
    assert outline(encode(committed(Delete("/a/bc"), zxid=1))).ops == ((2, "/a/bc"),)
