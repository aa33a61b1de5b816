"""Reading and writing are inverse: for real logs byte by byte, for any transaction by value."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassure_zookeeper.codec import decode, encode
from reassure_zookeeper.jute import NO_DATA, Acl, NoData
from reassure_zookeeper.transactions import (
    CREATE,
    CREATE2,
    CREATE_CONTAINER,
    CREATE_TTL,
    DELETE,
    DELETE_CONTAINER,
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
    committed,
    multi,
)
from reassure_zookeeper.txnlog import read_log
from reassure_zookeeper.txnlog_writer import LogWriter, write_log

ints = st.integers(-(1 << 31), (1 << 31) - 1)
longs = st.integers(-(1 << 63), (1 << 63) - 1)
paths = st.text(st.characters(max_codepoint=0xD7FF), max_size=9).map("/".__add__)
data = st.just(NO_DATA) | st.binary(max_size=30)
acls = st.lists(st.builds(Acl, ints, paths, paths), max_size=3).map(tuple)
plain_creates = st.builds(
    Create, paths, data, acls, st.booleans(), ints, st.sampled_from([CREATE, CREATE2])
)
containers = st.builds(Create, paths, data, acls, st.just(False), ints, st.just(CREATE_CONTAINER))
ttl_nodes = st.builds(Create, paths, data, acls, st.just(False), ints, st.just(CREATE_TTL), longs)
in_multis: st.SearchStrategy[Op] = st.one_of(
    plain_creates,
    containers,
    ttl_nodes,
    st.builds(Delete, paths, st.sampled_from([DELETE, DELETE_CONTAINER])),
    st.builds(SetData, paths, data, ints),
    st.builds(SetAcl, paths, acls, ints),
    st.builds(Check, paths, ints),
    st.builds(Error, ints),
)
alone: st.SearchStrategy[Op] = st.one_of(
    in_multis,
    st.builds(Reconfig, paths, data, ints),
    st.builds(CreateSession, ints),
    st.builds(CloseSession, st.none() | st.lists(paths, max_size=3).map(tuple)),
)
heads = st.fixed_dictionaries({"zxid": longs, "session_id": longs, "cxid": ints, "time_ms": longs})
transactions = st.one_of(
    st.builds(lambda op, head: committed(op, **head), alone, heads),
    st.builds(lambda ops, head: multi(*ops, **head), st.lists(in_multis, max_size=4), heads),
)
digests = st.just(b"") | longs.map(lambda hash_: b"\0\0\0\2" + hash_.to_bytes(8, signed=True))


@given(transactions, digests)
def test_any_transaction_is_read_as_it_was_written(each: Transaction, digest: bytes) -> None:
    """Decoding what was encoded gives the same transaction, missing data and digest included."""
    record = encode(each) + digest
    again = decode(record)
    assert again == each
    assert again.digest == digest
    assert encode(again) == record
    assert [type(op) for op in again.ops] == [type(op) for op in each.ops]
    assert pickle.loads(pickle.dumps(again)) == again


def test_real_log_is_written_as_it_was_read(recording, tmp_path: Path) -> None:
    """A real log, read and written again, is the same bytes up to the preallocated zeros."""
    original = recording.log_file.read_bytes()
    copy = write_log(tmp_path, read_log(recording.log_file)).read_bytes()
    assert copy == original[: len(copy)]
    assert not any(original[len(copy) :])
    assert any(type(op.data) is NoData for op in _creates(recording.transactions))


def _creates(transactions: tuple[Transaction, ...]) -> list[Create]:
    return [op for each in transactions for op in each.ops if isinstance(op, Create)]


def test_refused_multi_keeps_what_it_asked_for(recording) -> None:
    """A refused multi has errors only for ops, and what was asked for up to the failure beside."""
    (refused,) = (each for each in recording.transactions if each.type == 14 and each.error)
    assert refused.error == -103
    assert refused.ops == (Error(0), Error(-103), Error(-2))
    assert refused.attempted == (SetData("/plain", b"never", 23), Error(-103), Error(-2))


def test_an_op_that_was_marked_an_error_is_read_and_written() -> None:
    """A refused multi that a follower was sent later has ops whose kind is overwritten."""
    body = bytes.fromhex("00000011") + b"/controller_epoch" + bytes.fromhex("00000005")
    record = encode(multi(Error(0, body), Error(-103), zxid=1))
    found = decode(record)
    assert found.error == -103
    assert found.ops == (Error(0), Error(-103))
    assert encode(found) == record


def test_surrogate_pairs_are_written_as_java_writes_them(tmp_path: Path) -> None:
    """A character beyond the basic plane becomes two encoded surrogates, as in Java's logs."""
    assert "/😀".encode("utf-16-be").hex() == "002fd83dde00"
    record = encode(committed(Delete("/😀"), zxid=1))
    assert record.endswith(b"/\xed\xa0\xbd\xed\xb8\x80")
    assert encode(decode(record)) == record


def test_old_create_without_parent_count_is_read(tmp_path: Path) -> None:
    """A create of the oldest form, whose record ends before the parent's count, is read."""
    record = encode(committed(Create("/old", b"1", ephemeral=True), zxid=1))
    (op,) = decode(record[:-4]).ops
    assert op == Create("/old", b"1", ephemeral=True, parent_cversion=-1)


def test_writer_refuses_contradictions(tmp_path: Path) -> None:
    """A type that its op does not have, a log with no name and an existing file are refused."""
    with LogWriter(tmp_path / "log.1") as writer:
        with pytest.raises(ValueError, match="of type 2 must have one op of that type"):
            writer.append(Transaction(0, 0, 1, 0, DELETE, (Create("/a"),)))
        writer.append(committed(Create("/a"), zxid=1))
    with pytest.raises(ValueError, match="a log without transactions has no name"):
        write_log(tmp_path, [])
    with pytest.raises(FileExistsError):
        write_log(tmp_path, [committed(Create("/a"), zxid=1)])
