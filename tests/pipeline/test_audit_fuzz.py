"""Damaged logs and snapshots whose checksums are right: an audit answers, or names the place."""

import json
import random
import struct
from pathlib import Path
from zlib import adler32

import pytest
from pipeline_steps import Audit, Server, Snapshot

from reassure_lab.archives.planted import OLD
from reassure_lab.archives.sample import SampleCluster
from reassure_zookeeper.errors import DamagedLog, DamagedSnapshot, LogsMissing, ReplayError
from reassure_zookeeper.txnlog import FILE_HEADER, FRAME

EDGES = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\0\0\0\x01")
"""Lengths, counts and numbers at the edges of what they can be."""


def damage(chosen: random.Random, content: bytes, skip: int) -> bytes:
    """Return the bytes with some changed, behind the first `skip`."""
    changed = bytearray(content)
    for _ in range(chosen.randrange(1, 3)):
        at = chosen.randrange(skip, len(changed))
        match chosen.randrange(4):
            case 0:
                changed[at] ^= 1 << chosen.randrange(8)
            case 1:
                changed[at : at + 4] = chosen.choice(EDGES)
            case 2:
                del changed[at : at + chosen.randrange(1, 12)]
            case 3:
                changed[at:at] = chosen.randbytes(chosen.randrange(1, 12))
    return bytes(changed)


def damage_log(chosen: random.Random, path: Path) -> None:
    """Change some records of a log; each has the checksum and length of what it holds then."""
    content = path.read_bytes()
    out, at = bytearray(content[: FILE_HEADER.size]), FILE_HEADER.size
    while at + FRAME.size <= len(content):
        checksum, length = FRAME.unpack_from(content, at)
        if not checksum:
            break
        record = content[at + FRAME.size : at + FRAME.size + length]
        if chosen.random() < 0.03:
            # The first 24 bytes hold session, cxid and zxid, which are told apart elsewhere.
            record = damage(chosen, record, 24)
        out += FRAME.pack(adler32(record), len(record)) + record + b"B"
        at += FRAME.size + length + 1
    path.write_bytes(out)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_log_is_judged_or_named(server: Server, audit: Audit, seed: int) -> None:
    """A log whose records are not what they were is judged, and damage told by file and offset."""
    chosen = random.Random(seed)
    cluster = SampleCluster()
    cluster.create_topic("events", {0: OLD})
    cluster.reassign("events", {0: (4, 5, 6)})
    folder = server("one", cluster.transactions)
    log = folder / "version-2" / "log.1"
    damage_log(chosen, log)
    body = audit(folder, at_rest=chosen.random() < 0.5).as_json_dict()
    json.dumps(body)
    (archive,) = body["archives"]
    for damage in archive["damages"]:
        assert damage["file"] == str(log)
        assert 0 < damage["offset"] < log.stat().st_size
    missing = len(cluster.transactions) - archive["transactions"]
    assert (missing > 0) == bool(archive["damages"])


@pytest.mark.parametrize("seed", range(60))
def test_damaged_snapshot_is_taken_or_named(
    server: Server, audit: Audit, snapshot: Snapshot, seed: int
) -> None:
    """A snapshot whose nodes are not what they were is used, or is damage with file and offset."""
    chosen = random.Random(seed)
    cluster = SampleCluster()
    cluster.create_topic("events", {0: OLD})
    cut = cluster.zxid
    cluster.reassign("events", {0: (4, 5, 6)})
    folder = server("late", cluster.transactions[cut:])
    path = snapshot(folder, cluster.transactions[:cut], cut)
    seal = struct.calcsize(">qi") + 1
    content = damage(chosen, path.read_bytes()[:-seal], FILE_HEADER.size)
    path.write_bytes(content + struct.pack(">qi", adler32(content), 1) + b"/")
    try:
        body = audit(folder).as_json_dict()
    except DamagedSnapshot as error:
        assert error.file == path  # noqa: PT017
    except ReplayError as error:
        assert "zxid 0x" in str(error)  # noqa: PT017
    else:
        json.dumps(body)


@pytest.mark.parametrize("seed", range(30))
def test_any_bytes_are_judged_or_named(tmp_path: Path, audit: Audit, seed: int) -> None:
    """Bytes of any kind in a file that is called like a log are no error of ours."""
    chosen = random.Random(seed)
    path = tmp_path / f"log.{seed:x}"
    head = chosen.choice((b"", b"ZKLG", FILE_HEADER.pack(b"ZKLG", 2, 0), b"\x1f\x8b\x08"))
    path.write_bytes(head + chosen.randbytes(chosen.choice((0, 1, 7, 20, 500, 70_000))))
    with pytest.raises((DamagedLog, LogsMissing), match=str(path)):
        audit(path)
