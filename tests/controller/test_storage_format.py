"""Our batches are Kafka's: others read what we write, and we what others write."""

import gzip
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cramjam import lz4, snappy, zstd
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kio.records.readers import read_batch as read_with_kio

from reassure_controller.storage.codecs import UNPACKED_BYTES_MAX
from reassure_controller.storage.errors import CorruptBatch
from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import Record, check_produced, decode, encode

HEAD = 61
"""How long the header of a batch is."""
RECORDS = [
    Record(b"key", b"value", 1_700_000_000_123),
    Record(None, b"", 1_700_000_000_001),
    Record(b"", None, 1_700_086_400_777),
    Record(b"k" * 200, b"v" * 70_000, 0),
]


def pack_xerial(content: bytes) -> bytes:
    """Return what Java's clients send: a header, and blocks of which each follows its length."""
    blocks = (bytes(snappy.compress_raw(content[n : n + 999])) for n in range(0, len(content), 999))
    framed = (struct.pack(">I", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(framed)


def pack_lz4(content: bytes, *, linked: bool = False) -> bytes:
    """Return a frame of lz4."""
    packer = lz4.Compressor(block_linked=linked)
    packer.compress(content)
    return bytes(packer.finish())


PACKS: Mapping[int, Callable[[bytes], Any]] = {
    1: gzip.compress, 2: snappy.compress_raw, 3: pack_lz4, 4: zstd.compress
}  # fmt: skip
"""By codec: what packs records as a client does."""


def build(codec: int = 0) -> bytes:
    """Return a batch as a client's library builds it, base offset 0, with headers."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 2**20)
    for delta, one in enumerate(RECORDS):
        builder.append(delta, one.timestamp_ms, one.key, one.value, [("h", b"x"), ("n", None)])
    plain = bytes(builder.build())
    return plain if codec == 0 else dress(codec, bytes(PACKS[codec](plain[HEAD:])))


def dress(codec: int, packed: bytes) -> bytes:
    """Return a batch like that of `build`, with sound length and checksum, around packed bytes."""
    content = bytearray(build()[:HEAD] + packed)
    struct.pack_into(">i", content, 8, len(content) - 12)
    struct.pack_into(">h", content, 21, codec)
    struct.pack_into(">I", content, 17, crc32c(bytes(content[21:])))
    return bytes(content)


def test_others_read_our_segment(tmp_path: Path) -> None:
    """Two clients' readers find in a segment the offsets, times, keys and values that we wrote."""
    log = PartitionLog(tmp_path / "t-0")
    log.append(RECORDS[:1], 4, 0)
    log.append(RECORDS, 7, 0)
    raw = (tmp_path / "t-0" / "00000000000000000000.log").read_bytes()
    assert raw == log.read(0, 10**6)
    position, found = 0, []
    for base, epoch in ((0, 4), (1, 7)):
        (length,) = struct.unpack_from(">i", raw, position + 8)
        one = raw[position : position + 12 + length]
        reader = DefaultRecordBatch(one)
        assert reader.validate_crc()
        assert (reader.base_offset, reader.leader_epoch, reader.magic) == (base, epoch, 2)
        records = list(reader)
        assert [r.offset for r in records] == list(range(base, base + len(records)))
        found += [Record(r.key, r.value, r.timestamp) for r in records]
        batch, size = read_with_kio(raw, position)
        assert [(r.key, r.value) for r in batch.records] == [(r.key, r.value) for r in records]
        position += size
    assert (position, found) == (len(raw), RECORDS[:1] + RECORDS)


def test_same_records_make_the_same_bytes() -> None:
    """A client's library builds, of the same records, exactly the bytes that we build."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 2**20)
    for delta, one in enumerate(RECORDS):
        builder.append(delta, one.timestamp_ms, one.key, one.value, [])
    assert bytes(builder.build()) == encode(RECORDS, 0, 0, now_ms=0)


@pytest.mark.parametrize("codec", [0, *PACKS])
def test_batches_of_a_client_are_appended_as_they_are(tmp_path: Path, codec: int) -> None:
    """What a client built gets offsets and an epoch; headers and compression are kept."""
    log = PartitionLog(tmp_path / "t-0")
    log.append(RECORDS[:2], 1, 0)
    assert log.append_produced(check_produced(build(codec)), 5, 0) == range(2, 6)
    assert log.append_produced(check_produced(build(codec)), 5, 0) == range(6, 10)
    raw = log.read(6, 10**6)
    reader = DefaultRecordBatch(raw)
    assert reader.validate_crc()
    assert (reader.base_offset, reader.leader_epoch, reader.last_offset) == (6, 5, 9)
    if codec in (0, 1):  # as the client's library can without others
        records = [(r.offset, r.key, r.value, r.headers) for r in reader]
        headers = [("h", b"x"), ("n", None)]
        assert records == [(6 + n, r.key, r.value, headers) for n, r in enumerate(RECORDS)]
    assert decode(raw) == [(6 + n, r) for n, r in enumerate(RECORDS)]


def test_older_formats_are_refused(tmp_path: Path) -> None:
    """A message of a format before batches is refused, and named by its magic."""
    log = PartitionLog(tmp_path / "t-0")
    old = struct.pack(">qiIbbq", 0, 60, 0, 1, 0, 0) + bytes(46)
    with pytest.raises(CorruptBatch, match="batch at byte 0: expected magic 2, found 1"):
        log.append_produced(check_produced(old), 0, 0)


def test_records_that_do_not_fill_their_batch_are_refused(tmp_path: Path) -> None:
    """Records whose numbers do not add up are refused, though the checksum holds."""
    log = PartitionLog(tmp_path / "t-0")
    sound = encode([Record(b"k", b"v" * 20, 1)], 0, 0, 0)
    numbers = {61: "length", 64: "offset delta", 65: "length of key", 67: "of value", 88: "headers"}
    for position in numbers:
        for bits in (0x02, 0x7F):
            content = bytearray(sound)
            content[position] ^= bits
            struct.pack_into(">I", content, 17, crc32c(bytes(content[21:])))
            with pytest.raises(CorruptBatch, match="record at byte 61: "):
                log.append_produced(check_produced(bytes(content)), 0, 0)
    assert log.append_produced(check_produced(sound), 0, 0) == range(1)


def test_number_that_does_not_end_is_given_up_after_ten_bytes() -> None:
    """A number of 64 bits has ten bytes: of one that goes on and on no more are read."""
    content = bytearray(encode([Record(None, b"v" * 40, 1)], 0, 0, 0))
    content[61:] = b"\xff" * (len(content) - 61)
    struct.pack_into(">I", content, 17, crc32c(bytes(content[21:])))
    with pytest.raises(CorruptBatch, match="expected a number of 64 bits before byte 71"):
        check_produced(bytes(content))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        pytest.param(0b10_0000, "a control batch", id="control"),
        pytest.param(0b1_0000, "a batch of a transaction", id="transaction"),
        pytest.param(5, "codec 5 is unknown", id="codec"),
        pytest.param(1, "gzip: ", id="gzip"),
        pytest.param(2, "snappy: ", id="snappy"),
        pytest.param(3, "lz4: ", id="lz4"),
        pytest.param(4, "zstd: ", id="zstd"),
    ],
)
def test_batches_that_no_client_may_write_are_refused(attributes: int, reason: str) -> None:
    """Control batches, those of transactions and of unknown codecs are no client's to write."""
    content = bytearray(encode(RECORDS, 0, 0, 0))
    check_produced(bytes(content))
    struct.pack_into(">h", content, 21, attributes)
    struct.pack_into(">I", content, 17, crc32c(bytes(content[21:])))
    with pytest.raises(CorruptBatch, match=reason):
        check_produced(bytes(content))


@pytest.mark.parametrize("damage", ["cut", "followed", "inside", "count", "bomb"])
@pytest.mark.parametrize("codec", PACKS)
def test_compressed_garbage_is_refused(codec: int, damage: str) -> None:
    """What a codec unpacks has to be all of the batch, and the records that the batch counts."""
    content, pack = build()[HEAD:], PACKS[codec]
    packed = {
        "cut": lambda: bytes(pack(content))[:-9],
        "followed": lambda: bytes(pack(content)) + b"x",
        "inside": lambda: pack(content[:-1]),
        "count": lambda: pack(content + b"\x02\0"),
        "bomb": lambda: pack(bytes(UNPACKED_BYTES_MAX + 1)),
    }[damage]()
    names = "gzip: |snappy: |lz4: |zstd: |failed to write"
    reason = {"inside": "record at byte", "count": "records up to byte"}.get(damage, names)
    with pytest.raises(CorruptBatch, match=reason):
        check_produced(dress(codec, bytes(packed)))


def test_framed_snappy_is_looked_through() -> None:
    """Of snappy as Java's clients send it every block is unpacked, and has to be there."""
    content = build()[HEAD:]
    sound = pack_xerial(content)
    assert decode(dress(2, sound)) == list(enumerate(RECORDS))
    for packed in (sound[:-1], sound + b"\0\0", sound + b"\0\0\0\1x", pack_xerial(content[:-1])):
        with pytest.raises(CorruptBatch):
            check_produced(dress(2, packed))


def test_linked_blocks_of_lz4_are_refused() -> None:
    """What Kafka's own readers cannot unpack is refused: blocks that depend on those before."""
    with pytest.raises(CorruptBatch, match="none depends on another"):
        check_produced(dress(3, pack_lz4(build()[HEAD:], linked=True)))


def test_batch_of_a_client_leaves_no_offset_out(tmp_path: Path) -> None:
    """A batch that counts fewer records than it takes offsets is refused."""
    content = bytearray(encode(RECORDS, 0, 0, 0))
    struct.pack_into(">i", content, 23, len(RECORDS))
    struct.pack_into(">I", content, 17, crc32c(bytes(content[21:])))
    with pytest.raises(CorruptBatch, match="expected 5 records, found 4"):
        PartitionLog(tmp_path / "t-0").append_produced(check_produced(bytes(content)), 0, 0)
