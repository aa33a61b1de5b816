"""What is decoded of a record, and what is left out where others look at it."""

from dataclasses import replace

import pytest

from reassure_zookeeper.codec import decode, decode_unless, encode
from reassure_zookeeper.jute import Malformed
from reassure_zookeeper.transactions import Check, Delete, SetData, Transaction, committed, multi

WHEN = {"zxid": 9, "session_id": -5, "cxid": 2, "time_ms": 77}


@pytest.mark.parametrize("elsewhere", [set(), {b"/a", b"/b"}])
def test_multi_that_is_cut_short_is_malformed(elsewhere: set[bytes]) -> None:
    """Wherever the end of a multi is cut off, it is not taken for a shorter one."""
    record = encode(multi(Check("/e", 1), Delete("/a"), SetData("/b", b"z", 1), **WHEN))
    assert decode_unless(record, elsewhere).zxid == 9
    for length in range(len(record)):
        with pytest.raises(Malformed):
            decode_unless(record[:length], elsewhere)


def test_path_that_comes_again_is_the_same_text() -> None:
    """A path is decoded once, and told from others that begin alike."""
    first, second = (decode(encode(committed(Delete(path), zxid=1))) for path in ("/a/b", "/a/b"))
    assert first.ops[0].path is second.ops[0].path  # type: ignore[union-attr]
    assert decode(encode(committed(Delete("/a/bc"), zxid=1))).ops == (Delete("/a/bc"),)


SHARED = {path.encode() for path in ("/a", "/c", "/d", "/ä", "/zookeeper/config")}


def _list_written(transaction: Transaction) -> set[bytes]:
    ops = (op for op in transaction.ops if not isinstance(op, Check))
    return {getattr(op, "path", "").encode() for op in ops}


def test_what_others_look_at_is_left_out_and_nothing_else(every_kind: list[Transaction]) -> None:
    """Ops are left out only where all that was written is elsewhere; the header is never."""
    left_out = 0
    for transaction in every_kind:
        record = encode(transaction)
        assert decode_unless(record, set()) == transaction
        found = decode_unless(record, SHARED)
        if found != transaction:
            left_out += 1
            assert found == replace(transaction, ops=())
            assert _list_written(transaction) <= SHARED
    assert 1 < left_out < len(every_kind) - 5


def test_writes_of_controllers_and_leaders_are_left_out() -> None:
    """What is written most is left out where it is elsewhere, and a single write else keeps all."""
    fence, there = Check("/controller_epoch", 7), SetData("/a", b"", 1)
    here = SetData("/b", b"", 1)
    for ops in ((there,), (fence, there), (fence, Delete("/c"), there)):
        assert decode_unless(encode(committed(*ops, **WHEN)), SHARED).ops == ()
    for ops in ((here,), (fence, here), (fence, there, here), (fence, here, there), (there, here)):
        assert decode_unless(encode(committed(*ops, **WHEN)), SHARED).ops == ops
