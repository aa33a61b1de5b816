"""The files of all replicas, compared byte by byte when all is at rest.

A log is its segment files one behind the other; where it ends by the mark is told by the batches'
own headers, which are read here as Kafka's format has them and by nobody's code of the brokers.
"""

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from reassure_lab.soak.guarantees import SoakFindings
from reassure_spec.znodes import PartitionKey, ReplicaList

_HEAD: Final = struct.Struct(">qi")
"""Base offset, and the length of what follows."""
_LAST_DELTA: Final = struct.Struct(">i")
_LAST_DELTA_AT: Final = 23


def read_log(directory: Path, below: int) -> bytes:
    """Return the batches before an offset, as they stand in the segments of a partition."""
    whole = b"".join(one.read_bytes() for one in sorted(directory.glob("*.log")))
    position = 0
    while position + _HEAD.size <= len(whole):
        base, length = _HEAD.unpack_from(whole, position)
        (delta,) = _LAST_DELTA.unpack_from(whole, position + _LAST_DELTA_AT)
        if base + delta >= below:
            break
        position += _HEAD.size + length
    return whole[:position]


def compare_replicas(
    brokers: Mapping[int, Path],
    assigned: Mapping[PartitionKey, ReplicaList],
    marks: Mapping[PartitionKey, int],
    findings: SoakFindings,
) -> None:
    """Hold the log of each replica against that of the first one, up to the mark.

    `brokers` says where each keeps its logs, `marks` up to where consumers may read.
    """
    for (topic, number), replicas in assigned.items():
        mark = marks.get((topic, number), 0)
        logs = {one: read_log(brokers[one] / f"{topic}-{number}", mark) for one in replicas}
        first = logs[replicas[0]]
        for broker, log in logs.items():
            findings.count("replicas-equal", replicas=1, bytes=len(log))
            if log != first:
                at = _find_difference(first, log)
                findings.break_it(
                    "replicas-equal",
                    f"{topic}-{number}: the logs of brokers {replicas[0]} and {broker} differ from "
                    f"byte {at} on ({len(first)} and {len(log)} bytes up to offset {mark})",
                )


def _find_difference(one: bytes, other: bytes) -> int:
    pairs: Iterable[tuple[int, int]] = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((at for at, (left, right) in enumerate(pairs) if left != right), shorter)
