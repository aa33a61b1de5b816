"""Logs that end early and logs that are damaged: told apart wherever the harm is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reassure_zookeeper.codec import encode
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import Create, SetData, Transaction, committed, multi
from reassure_zookeeper.txnlog import FILE_HEADER, read_log, read_logs
from reassure_zookeeper.txnlog_writer import LogWriter, write_log

HISTORY = [
    committed(Create("/a", b"\0" * 40), zxid=1),
    committed(SetData("/a", b"B" * 9, 1), zxid=2),
    multi(SetData("/a", b"x", 2), Create("/a/b"), zxid=3),
    committed(SetData("/a", b"B\0\0\0\0" * 9, 3), zxid=4),
    committed(SetData("/a", b"", 4), zxid=5),
]
PADDING = 64


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log of five records."""
    return write_log(tmp_path_factory.mktemp("log"), HISTORY)


def _bounds(log: Path) -> list[int]:
    """Offsets where records begin, and where the last one ends."""
    bounds = [FILE_HEADER.size]
    for transaction in HISTORY:
        bounds.append(bounds[-1] + 12 + len(encode(transaction)) + 1)
    assert bounds[-1] == log.stat().st_size
    return bounds


def _record_at(bounds: list[int], offset: int) -> int:
    return sum(bound <= offset for bound in bounds) - 1


@pytest.mark.parametrize("padding", [0, PADDING])
def test_log_cut_anywhere_ends_with_its_last_whole_record(log: Path, padding: int) -> None:
    """Cut at any byte, with zeros behind or not, the whole records are read and the tail told."""
    content, bounds = log.read_bytes(), _bounds(log)
    cut_log = log.with_name(f"cut.{padding}")
    header = 8 if padding else FILE_HEADER.size  # its second half is zeros, like the padding
    for cut in range(len(content) + 1):
        kept = content[:cut]
        cut_log.write_bytes(kept + b"\0" * padding)
        logs = read_log(cut_log)
        whole = max(_record_at(bounds, cut), 0)
        assert list(logs) == HISTORY[:whole], cut
        begun = max(FILE_HEADER.size, bounds[whole]) if cut >= header else 0
        if cut >= header and not any(kept[begun:]):
            assert logs.tail is None, cut
        else:
            assert logs.tail is not None, cut
            assert (logs.tail.file, logs.tail.offset) == (cut_log, begun), cut


@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_flipped_bits_are_damage_unless_at_the_very_end(log: Path, data: st.DataObject) -> None:
    """A flipped byte is never read over: damage at its record, or a torn tail if it is the last."""
    content, bounds = log.read_bytes() + b"\0" * PADDING, _bounds(log)
    offset = data.draw(st.integers(0, len(content) - 1), label="offset")
    flip = data.draw(st.integers(1, 255), label="flip")
    harmed = bytearray(content)
    harmed[offset] ^= flip
    file = log.with_name("flipped")
    file.write_bytes(harmed)
    reader, seen, damage = read_log(file), [], None
    try:
        seen.extend(reader)
    except DamagedLog as error:
        damage = error
    hit = _record_at(bounds, offset)
    if offset < 8:
        assert damage is not None
        assert seen == []
    elif hit < 0:
        assert (seen, damage, reader.tail) == (HISTORY, None, None)  # the database id
    elif hit < len(HISTORY) - 1:
        assert damage is not None
        assert (damage.offset, damage.file) == (bounds[hit], file)
    else:
        assert damage is None
        assert reader.tail is not None
        assert (reader.tail.offset, seen) == (bounds[hit], HISTORY[:hit])


def test_damage_names_file_offset_and_remedy(log: Path, tmp_path: Path) -> None:
    """The message of a damaged log says which file, which byte, what is wrong and what to do."""
    content = bytearray(log.read_bytes())
    content[_bounds(log)[1] + 20] ^= 1
    file = tmp_path / "log.1"
    file.write_bytes(content)
    with pytest.raises(DamagedLog) as raised:
        list(read_logs(tmp_path))
    assert str(raised.value) == (
        f"{file}: damaged transaction log at byte {_bounds(log)[1]}: a record does not match its "
        "checksum, yet intact records follow; restore this file from a copy, or leave it and the "
        "newer ones out"
    )


def test_zeros_amid_records_are_damage(log: Path, tmp_path: Path) -> None:
    """A hole of zeros with records after it is not taken for the end of the log."""
    content, bounds = bytearray(log.read_bytes()), _bounds(log)
    content[bounds[2] : bounds[3]] = bytes(bounds[3] - bounds[2])
    (tmp_path / "log.1").write_bytes(content)
    with pytest.raises(DamagedLog, match="zeros amid the records, yet intact records follow"):
        list(read_logs(tmp_path))


def test_zxid_going_backwards_is_damage(tmp_path: Path) -> None:
    """Records must come in the order of their zxids, within a file and from file to file."""
    write_log(tmp_path, [HISTORY[0], HISTORY[2], HISTORY[1]])
    with pytest.raises(DamagedLog, match="zxid 0x2 comes after 0x3"):
        list(read_logs(tmp_path))
    other = tmp_path / "files"
    other.mkdir()
    write_log(other, HISTORY[:3])
    with LogWriter(other / "log.3") as writer:
        writer.append(HISTORY[2])
    with pytest.raises(DamagedLog, match=r"log\.3: .*zxid 0x3 comes after 0x3"):
        list(read_logs(other))


def test_record_that_makes_no_sense_is_damage_even_at_the_end(tmp_path: Path) -> None:
    """A right checksum over nonsense was written so, and is never a torn tail."""
    log = tmp_path / "log.1"
    with LogWriter(log) as writer:
        writer.append(HISTORY[0])
        end = writer._file.tell()
        writer.append(Transaction(0, 0, 2, 0, 5, HISTORY[1].ops, digest=b"short"))
    with pytest.raises(DamagedLog, match=rf"byte {end}: .*5 bytes left over"):
        list(read_log(log))


def test_torn_tail_in_an_earlier_file_is_damage_when_records_are_missing(tmp_path: Path) -> None:
    """A file cut short while the next one goes on later has lost transactions."""
    first = write_log(tmp_path, HISTORY[:3])
    write_log(tmp_path, HISTORY[3:])
    first.write_bytes(first.read_bytes()[:-5])
    with pytest.raises(
        DamagedLog, match=r"where zxid 0x3 should be, .* goes on with 0x4"
    ) as raised:
        list(read_logs(tmp_path))
    assert raised.value.file == first


def test_torn_tail_in_an_earlier_file_is_normal_when_nothing_is_missing(tmp_path: Path) -> None:
    """A file that ends torn and is continued with the very zxid that was torn is whole."""
    first = write_log(tmp_path, HISTORY[:3])
    first.write_bytes(first.read_bytes()[:-5])
    write_log(tmp_path, HISTORY[2:])
    assert list(read_logs(tmp_path)) == HISTORY


def test_server_and_reader_agree_on_a_torn_record(own_server: Server, connect) -> None:
    """What a restarted server forgot of a half-written record, the reader leaves out as well."""
    client = connect(own_server)
    client.create("/kept", b"")
    client.create("/torn", b"T" * 100)
    own_server.kill()
    (log,) = own_server.log_dir.glob("log.*")
    content = log.read_bytes()
    end = content.rindex(b"T" * 100) + 40
    log.write_bytes(content[:end] + bytes(len(content) - end))
    own_server.restart()
    again = connect(own_server)
    assert again.exists("/kept")
    assert not again.exists("/torn")
    again.create("/later", b"")
    logs = read_logs(own_server.data_dir)
    created = [op.path for each in logs for op in each.ops if isinstance(op, Create)]
    assert created == ["/kept", "/later"]
    torn = read_log(log)
    assert [op.path for each in torn for op in each.ops if isinstance(op, Create)] == ["/kept"]
    assert torn.tail is not None


def test_paths_without_logs_are_errors(tmp_path: Path) -> None:
    """A path that does not exist and a directory without logs are named, with what to give."""
    with pytest.raises(LogsMissing, match="nowhere does not exist; name a ZooKeeper data dir"):
        read_logs(tmp_path / "nowhere")
    with pytest.raises(LogsMissing, match="has no transaction log; name a ZooKeeper data dir"):
        read_logs(tmp_path)
    (tmp_path / "log.1").write_bytes(b"#!/bin/sh and so on")
    with pytest.raises(DamagedLog, match="begins with b'#!/b' instead of b'ZKLG'"):
        list(read_logs(tmp_path))


def test_logs_are_read_from_a_zxid_on(tmp_path: Path) -> None:
    """Only what is newer than asked for is given, and files that cannot have it are not read."""
    (tmp_path / "version-2").mkdir()
    first = write_log(tmp_path / "version-2", HISTORY[:2])
    second = write_log(tmp_path / "version-2", HISTORY[2:])
    for after in range(6):
        logs = read_logs(tmp_path, after_zxid=after)
        assert list(logs) == HISTORY[after:]
        assert logs.files == ((first, second) if after < 2 else (second,))
    assert list(read_logs([second, first])) == HISTORY
    assert list(read_logs(str(first))) == HISTORY[:2]
