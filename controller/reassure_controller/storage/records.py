"""Record batches in Kafka's format v2: the same bytes on disk, in requests and in responses.

A batch is a header of 61 bytes and its records. The header's checksum (CRC-32C) covers everything
behind itself, so a leader can write base offset and leader epoch, which stand before it, into a
batch that a client built. The format is described at
https://kafka.apache.org/documentation/#recordbatch. Kio's own batches are not used: they keep time
as a float, which loses milliseconds.
"""

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final, NoReturn

from crc32c import crc32c
from kio.serial.writers import write_signed_varint, write_signed_varlong

from reassure_controller.replication.errors import INVALID_TXN_STATE, UNSUPPORTED_COMPRESSION_TYPE
from reassure_controller.storage.codecs import CODECS, unpack
from reassure_controller.storage.errors import CorruptBatch, describe

NO_TIMESTAMP: Final = -1
"""Kafka's own number for a record that says no time."""

MAGIC: Final = 2
_BEFORE: Final = struct.Struct(">qiibI")
"""Base offset, length, leader epoch, magic, checksum."""
_CHECKED: Final = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, first and largest timestamp, three of the producer, count."""
_CHECKED_FROM: Final = _BEFORE.size
_HEADER_BYTES: Final = _BEFORE.size + _CHECKED.size
_BEFORE_LENGTH_COUNTS: Final = 12
"""Base offset and length stand before the bytes that the length counts."""
_NUMBER_BITS: Final = 64
_COMPRESSION: Final = 0b111
_LOG_APPEND_TIME: Final = 0b1000
_TRANSACTIONAL: Final = 0b1_0000
_CONTROL: Final = 0b10_0000


@dataclass(frozen=True, slots=True)
class Record:
    """One record."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """What the header of a batch says, and where in its buffer the batch stands."""

    position: int
    size: int
    base_offset: int
    leader_epoch: int
    last_offset: int
    count: int
    attributes: int
    first_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    """-1: a producer that numbers nothing."""
    producer_epoch: int
    base_sequence: int

    @property
    def codec(self) -> int:
        """How its records are compressed, 0 where they are not."""
        return self.attributes & _COMPRESSION

    @property
    def offsets(self) -> range:
        """The offsets that it takes."""
        return range(self.base_offset, self.last_offset + 1)

    @property
    def end(self) -> int:
        """The position behind the batch."""
        return self.position + self.size


@dataclass(frozen=True, slots=True)
class Checked:
    """Batches of a producer that were looked through: there is nothing wrong with them."""

    raw: bytes
    count: int
    """How many records they have, and how many offsets they take."""
    largest_bytes: int
    """The size of the largest batch."""
    numbered: RecordBatch | None
    """The batch, where an idempotent producer has numbered it."""


def encode(records: Sequence[Record], base_offset: int, leader_epoch: int, now_ms: int) -> bytes:
    """Return one batch of the records, which get consecutive offsets.

    A record without a timestamp gets `now_ms`. Raises ValueError when there are no records.
    """
    if not records:
        raise ValueError("a batch has at least one record")
    times = [now_ms if one.timestamp_ms == NO_TIMESTAMP else one.timestamp_ms for one in records]
    body = BytesIO()
    for delta, (record, time_ms) in enumerate(zip(records, times, strict=True)):
        content = BytesIO()
        content.write(b"\0")  # attributes: none are defined
        write_signed_varlong(content, time_ms - times[0])
        write_signed_varint(content, delta)
        for part in (record.key, record.value):
            write_signed_varint(content, -1 if part is None else len(part))
            content.write(part or b"")
        write_signed_varint(content, 0)  # headers
        write_signed_varint(body, content.tell())
        body.write(content.getvalue())
    count, no_producer = len(records), (-1, -1, -1)
    checked = _CHECKED.pack(0, count - 1, times[0], max(times), *no_producer, count)
    checked += body.getvalue()
    length = len(checked) + _CHECKED_FROM - _BEFORE_LENGTH_COUNTS
    before = _BEFORE.pack(base_offset, length, leader_epoch, MAGIC, crc32c(checked))
    return before + checked


def assign(raw: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batches with consecutive offsets from `base_offset` on, and this epoch.

    Raises CorruptBatch when the bytes are not whole and sound batches.
    """
    content = bytearray(raw)
    for batch in scan(raw):
        struct.pack_into(">q", content, batch.position, base_offset)
        struct.pack_into(">i", content, batch.position + _BEFORE_LENGTH_COUNTS, leader_epoch)
        base_offset += batch.last_offset - batch.base_offset + 1
    return bytes(content)


def read_batch(raw: bytes | memoryview, position: int = 0) -> RecordBatch:
    """Return the batch that begins at this position of the buffer.

    Raises CorruptBatch unless it is there as a whole, in format v2, with its checksum.
    """
    left = len(raw) - position
    if left < _HEADER_BYTES:
        reason = describe(f"a header of {_HEADER_BYTES} bytes", f"{left} bytes")
        raise CorruptBatch(position, reason)
    base, length, epoch, magic, checksum = _BEFORE.unpack_from(raw, position)
    size = length + _BEFORE_LENGTH_COUNTS
    if magic != MAGIC:
        raise CorruptBatch(position, describe(f"magic {MAGIC}", magic))
    if not _HEADER_BYTES <= size <= left:
        reason = describe(f"a size of {_HEADER_BYTES} to {left} bytes", size)
        raise CorruptBatch(position, reason)
    found = crc32c(memoryview(raw)[position + _CHECKED_FROM : position + size])
    if found != checksum:
        raise CorruptBatch(position, describe(f"checksum {checksum:#010x}", f"{found:#010x}"))
    attributes, last_delta, first_ms, max_ms, *producer, count = _CHECKED.unpack_from(
        raw, position + _CHECKED_FROM
    )
    if base < 0 or not 0 < count <= last_delta + 1:
        reason = f"base offset {base}, {count} records up to {last_delta} behind it"
        raise CorruptBatch(position, reason)
    return RecordBatch(
        position,
        size,
        base,
        epoch,
        base + last_delta,
        count,
        attributes,
        first_ms,
        max_ms,
        *producer,
    )


def scan(raw: bytes | memoryview) -> Iterator[RecordBatch]:
    """Yield the batches of a buffer. Raises CorruptBatch where one is not whole and sound."""
    position = 0
    while position < len(raw):
        batch = read_batch(raw, position)
        yield batch
        position = batch.end


def check_produced(raw: bytes) -> Checked:
    """Return batches as a client may send them. Raises CorruptBatch for bytes that are none.

    The offsets of a batch leave nothing out, and its records, unpacked, fill it. As with Kafka no
    client may write control batches; nor those of transactions, which no broker here carries out.
    """
    batches = tuple(scan(raw))
    if not batches:
        raise CorruptBatch(0, describe("a batch", "nothing"))
    for batch in batches:
        if batch.attributes & _CONTROL:
            raise CorruptBatch(batch.position, "a control batch")
        if batch.attributes & _TRANSACTIONAL:
            raise CorruptBatch(batch.position, "a batch of a transaction", INVALID_TXN_STATE)
        if batch.count != batch.last_offset - batch.base_offset + 1:
            reason = describe(f"{batch.last_offset - batch.base_offset + 1} records", batch.count)
            raise CorruptBatch(batch.position, reason)
        if batch.producer_id >= 0 and (batch.base_sequence < 0 or len(batches) > 1):
            raise CorruptBatch(batch.position, "an id without a sequence, or beside other batches")
        deque(_walk(batch, *_unpack(raw, batch)), maxlen=0)
    first = batches[0]
    return Checked(
        raw,
        sum(batch.count for batch in batches),
        max(batch.size for batch in batches),
        None if first.producer_id < 0 else first,
    )


def decode(raw: bytes) -> list[tuple[int, Record]]:
    """Return the records of all batches with their offsets; headers of records are left out.

    Raises CorruptBatch when the bytes are not whole and sound batches of records that can be read.
    """
    found: list[tuple[int, Record]] = []
    for batch in scan(raw):
        found += _read_records(raw, batch)
    return found


def _read_records(raw: bytes, batch: RecordBatch) -> list[tuple[int, Record]]:
    is_appended = batch.attributes & _LOG_APPEND_TIME
    content, *where = _unpack(raw, batch)
    return [
        (
            batch.base_offset + delta,
            Record(
                None if key is None else content[key],
                None if value is None else content[value],
                batch.max_timestamp_ms if is_appended else batch.first_timestamp_ms + since_ms,
            ),
        )
        for delta, since_ms, key, value in _walk(batch, content, *where)
    ]


def _unpack(raw: bytes, batch: RecordBatch) -> tuple[bytes, int, int]:
    """Return what has the records of a batch, and where they begin and end. Raises CorruptBatch."""
    begin = batch.position + _HEADER_BYTES
    if batch.codec == 0:
        return raw, begin, batch.end
    if batch.codec not in CODECS:
        reason = f"codec {batch.codec} is unknown"
        raise CorruptBatch(batch.position, reason, UNSUPPORTED_COMPRESSION_TYPE)
    try:
        content = unpack(batch.codec, raw[begin : batch.end])
    except ValueError as error:
        raise CorruptBatch(batch.position, str(error)) from error
    return content, 0, len(content)


def _walk(
    batch: RecordBatch, raw: bytes, position: int, stop: int
) -> Iterator[tuple[int, int, slice | None, slice | None]]:
    """Yield the records of a batch: offset and time since its first, where key and value stand.

    Every record that a producer sends is looked at, so nothing is copied. Raises CorruptBatch.
    """
    begun, delta, most = position, -1, batch.last_offset - batch.base_offset
    try:
        for _ in range(batch.count):
            begun = position
            length, position = _read_number(raw, position)
            end = position + length
            since_ms, position = _read_number(raw, position + 1)  # its attributes say nothing
            before, (delta, position) = delta, _read_number(raw, position)
            key, position = _find_bytes(raw, position)
            value, position = _find_bytes(raw, position)
            headers, position = _read_number(raw, position)
            for _ in range(2 * headers):
                _, position = _find_bytes(raw, position)
            if position != end or headers < 0 or not before < delta <= most:
                _refuse_record(end, f"it at {position}, offset delta {delta}, {headers} headers")
            yield delta, since_ms, key, value
    except (ValueError, IndexError) as error:
        raise CorruptBatch(batch.position, f"record at byte {begun}: {error}") from error
    if position != stop:
        raise CorruptBatch(batch.position, describe(f"records up to byte {stop}", position))


def _refuse_record(end: int, found: str) -> NoReturn:
    raise ValueError(describe(f"its end at byte {end}", found))


def _read_number(raw: bytes, position: int) -> tuple[int, int]:
    """Return the number at this position, and the position behind it.

    It is written with its sign last and its lowest seven bits first, as far as they go. Raises
    ValueError where it has more than 64 bits, IndexError where it does not end.
    """
    byte = raw[position]
    position += 1
    if byte < 0x80:  # as most are
        return byte >> 1 ^ -(byte & 1), position
    number, shift = byte & 0x7F, 7
    while byte >= 0x80 and shift < _NUMBER_BITS:
        byte = raw[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    if byte >= 0x80 or number >> _NUMBER_BITS:
        raise ValueError(f"expected a number of {_NUMBER_BITS} bits before byte {position}")
    return number >> 1 ^ -(number & 1), position


def _find_bytes(raw: bytes, position: int) -> tuple[slice | None, int]:
    """Return where bytes stand whose length is at this position, and the position behind them."""
    length, start = _read_number(raw, position)
    if length == -1:
        return None, start
    end = start + length
    if length < 0 or end > len(raw):
        raise ValueError(f"expected at most {len(raw) - start} bytes at byte {start}: {length}")
    return slice(start, end), end
