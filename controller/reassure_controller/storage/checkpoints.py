"""Kafka's checkpoint files: a version, a number of lines, and that many lines of numbers.

`replication-offset-checkpoint`, `recovery-point-offset-checkpoint` and
`log-start-offset-checkpoint` hold `topic partition offset` lines for a whole directory,
`leader-epoch-checkpoint` holds `epoch offset` lines for one log.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from reassure_controller.storage.epochs import EpochSpan
from reassure_controller.storage.errors import CorruptCheckpoint, describe
from reassure_controller.storage.files import Sync, write_atomically
from reassure_spec.znodes import PartitionKey

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"

_VERSION: Final = "0"
_REMEDY: Final = {
    HIGH_WATERMARKS: "delete the file, and high watermarks start from 0",
    RECOVERY_POINTS: "delete the file, and every log is recovered from its start",
    LOG_STARTS: "restore the file, or delete it where no log begins above 0",
    LEADER_EPOCHS: "delete the file, and it is made again from the log's batches",
}


def write_offsets(path: Path, offsets: Mapping[PartitionKey, int], sync: Sync) -> None:
    """Write an offset for each partition."""
    lines = (f"{topic} {number} {offset}" for (topic, number), offset in sorted(offsets.items()))
    _write(path, lines, sync)


def read_offsets(path: Path) -> dict[PartitionKey, int]:
    """Return the offset of each partition; none where there is no file.

    Raises CorruptCheckpoint.
    """
    found: dict[PartitionKey, int] = {}
    for line, parts in enumerate(_read(path, "topic partition offset"), start=3):
        key = (parts[0], _number(path, line, parts[1]))
        if key in found:
            raise _corrupt(path, line, f"{parts[0]}-{key[1]} stands there twice")
        found[key] = _number(path, line, parts[2])
    return found


def write_epochs(path: Path, spans: Iterable[EpochSpan], sync: Sync) -> None:
    """Write where epochs begin."""
    _write(path, (f"{span.epoch} {span.first_offset}" for span in spans), sync)


def read_epochs(path: Path) -> tuple[EpochSpan, ...]:
    """Return where epochs begin; nothing where there is no file. Raises CorruptCheckpoint."""
    spans: list[EpochSpan] = []
    for line, parts in enumerate(_read(path, "epoch offset"), start=3):
        span = EpochSpan(_number(path, line, parts[0]), _number(path, line, parts[1]))
        if spans and not (
            spans[-1].epoch < span.epoch and spans[-1].first_offset < span.first_offset
        ):
            raise _corrupt(path, line, describe(f"more than {tuple(spans[-1])}", tuple(span)))
        spans.append(span)
    return tuple(spans)


def _write(path: Path, lines: Iterable[str], sync: Sync) -> None:
    content = list(lines)
    text = "\n".join([_VERSION, str(len(content)), *content])
    write_atomically(path, f"{text}\n", sync)


def _read(path: Path, form: str) -> list[list[str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise _corrupt(path, 1, f"not UTF-8 at byte {error.start}") from error
    if lines[:1] != [_VERSION]:
        raise _corrupt(path, 1, describe(f"version {_VERSION}", lines[:1]))
    content = [line.split() for line in lines[2:]]
    count = _number(path, 2, lines[1] if len(lines) > 1 else "")
    if count != len(content):
        raise _corrupt(path, 2, describe(f"{count} lines after this", len(content)))
    for line, parts in enumerate(content, start=3):
        if len(parts) != len(form.split()):
            raise _corrupt(path, line, describe(repr(form), repr(" ".join(parts))))
    return content


def _number(path: Path, line: int, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _corrupt(path, line, describe("a number", repr(text)))
    return int(text)


def _corrupt(path: Path, line: int, reason: str) -> CorruptCheckpoint:
    return CorruptCheckpoint(path, line, reason, _REMEDY[path.name])
