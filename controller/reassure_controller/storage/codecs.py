"""What Kafka's codecs have compressed, unpacked up to a bound: a batch may claim to be anything.

Snappy has two forms: one block, or, as Java's clients write it, a header and blocks of which each
follows its length (xerial's framing). Of lz4 Kafka reads only frames whose blocks stand for
themselves.
"""

import mmap
import struct
from collections.abc import Callable, Mapping
from typing import Final

from cramjam import DecompressionError, gzip, lz4, snappy, zstd

UNPACKED_BYTES_MAX: Final = 100 * 2**20
"""How much a batch may unpack to."""
_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_HEAD_BYTES: Final = len(_XERIAL) + 8
"""Two versions follow the name, which no reader looks at."""
_LZ4_FLAGS_AT: Final = 4
_INDEPENDENT: Final = 0b10_0000
_LENGTH: Final = struct.Struct(">I")


def unpack(codec: int, packed: bytes) -> bytes:
    """Return what was compressed.

    Raises ValueError for bytes that are none of that codec, and for too many.
    """
    name, unpack_into = CODECS[codec]
    content = mmap.mmap(-1, UNPACKED_BYTES_MAX)  # memory that is there once it is filled
    try:
        count = unpack_into(packed, memoryview(content))
    except (DecompressionError, struct.error) as error:
        raise ValueError(f"{name}: {error}") from error
    return content[:count]


def _unpack_snappy(packed: bytes, content: memoryview) -> int:
    if not packed.startswith(_XERIAL):
        return snappy.decompress_raw_into(packed, content)
    position, count = _XERIAL_HEAD_BYTES, 0
    while position < len(packed):
        (length,) = _LENGTH.unpack_from(packed, position)
        begin, position = position + _LENGTH.size, position + _LENGTH.size + length
        if position > len(packed):
            raise DecompressionError(f"expected a block of {length} bytes at byte {begin}")
        count += snappy.decompress_raw_into(packed[begin:position], content[count:])
    return count


def _unpack_lz4(packed: bytes, content: memoryview) -> int:
    if not any(byte & _INDEPENDENT for byte in packed[_LZ4_FLAGS_AT : _LZ4_FLAGS_AT + 1]):
        raise DecompressionError("expected blocks of which none depends on another")
    return lz4.decompress_into(packed, content)


CODECS: Final[Mapping[int, tuple[str, Callable[[bytes, memoryview], int]]]] = {
    1: ("gzip", gzip.decompress_into),
    2: ("snappy", _unpack_snappy),
    3: ("lz4", _unpack_lz4),
    4: ("zstd", zstd.decompress_into),
}
"""By number: the name, and what unpacks into memory and returns how many bytes it has filled."""
