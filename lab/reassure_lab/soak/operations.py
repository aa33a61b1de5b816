"""What clients saw: in memory for the checker, and line by line in the directory of the run."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from reassure_spec.znodes import PartitionKey


@dataclass(frozen=True, slots=True)
class Value:
    """One value that somebody saw at one offset of a partition."""

    key: PartitionKey
    offset: int
    value: bytes
    who: str
    """`producer-1` was told so, `consumer-1` has read it."""


@dataclass(frozen=True, slots=True)
class SeenMark:
    """The high watermark that a consumer was shown."""

    key: PartitionKey
    high_watermark: int
    who: str


@dataclass(slots=True)
class History:
    """Everything that clients saw, in the order in which it was written down."""

    stream: TextIO
    acknowledged: list[Value] = field(default_factory=list)
    consumed: list[Value] = field(default_factory=list)
    marks: list[SeenMark] = field(default_factory=list)
    """Only those that differ from the one that the same consumer saw before."""
    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _last: dict[tuple[str, PartitionKey], int] = field(default_factory=dict)

    def acknowledge(self, who: str, key: PartitionKey, base: int, values: list[bytes]) -> None:
        """Write down that records were acknowledged, the first of them at `base`."""
        found = [Value(key, base + number, value, who) for number, value in enumerate(values)]
        with self._lock:
            self.acknowledged += found
            self._write(who, key, acknowledged=[base, base + len(found)])

    def see(
        self, who: str, key: PartitionKey, mark: int, records: tuple[tuple[int, bytes], ...]
    ) -> None:
        """Write down what a consumer was shown."""
        with self._lock:
            self.consumed += [Value(key, offset, value, who) for offset, value in records]
            if self._last.get((who, key)) != mark:
                self._last[who, key] = mark
                self.marks.append(SeenMark(key, mark, who))
                self._write(who, key, mark=mark)

    def note(self, what: str, **more: Any) -> None:
        """Count something that happened, and write it down with what is known of it."""
        with self._lock:
            self.counts[what] += 1
            self._write(what, None, **more)

    def count(self, what: str, by: int = 1) -> None:
        """Count something that happens too often to be written down."""
        with self._lock:
            self.counts[what] += by

    def _write(self, who: str, key: PartitionKey | None, **what: Any) -> None:
        place = {} if key is None else {"topic": key[0], "partition": key[1]}
        line = {"time_ms": time.time_ns() // 1_000_000, "who": who, **place, **what}
        self.stream.write(json.dumps(line) + "\n")


@contextmanager
def open_history(path: Path) -> Iterator[History]:
    """Give a history that is written into a file, a line at a time."""
    with path.open("w", encoding="utf-8", buffering=1) as stream:
        yield History(stream)
