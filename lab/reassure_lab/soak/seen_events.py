"""What clients saw, and what was done to the cluster: a flat file, a line an event.

Records are told by who sent them to which partition, and by a number that grows there; their
content follows from that, with a checksum, so that whoever reads one knows whether it was altered.
Records that were sent, answered or read one behind the other are one line.
"""

import json
import re
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Final, Self, TextIO

from reassure_spec.znodes import PartitionKey

VALUE_BYTES: Final = 100
_NAME: Final = re.compile(rb"([a-z]+-\d+)/([\w.-]+)-(\d+)/(\d+)/.*", re.DOTALL)
READER: Final = "reader"
"""Who reads everything again when all is healed."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line."""

    at_ms: int
    who: str
    """A client (`all-1`, `consumer-2`, `reader`), or the member that something was done to."""
    did: str
    """`began`, `sent`, `acked`, `failed`, `read`, `altered`, `end`, `state`, or what was done."""
    topic: str = ""
    partition: int = 0
    n: int = 0
    """The number of the first record."""
    count: int = 0
    """How many records; of a `state`, how many replicas are in sync."""
    offset: int = -1
    """Of the first record, where it is known; of `end` the one behind all records."""
    of: str = ""
    """Who sent the records that were read; of a `state`, which broker leads."""
    what: str = ""
    """The error, or more about what was done."""

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.topic, self.partition

    def is_continued_by(self, after: "Event") -> bool:
        """Whether both may be told in one line."""
        mine = (self.who, self.did, self.key, self.of, self.what, self.n + self.count)
        offset = self.offset + self.count if self.offset >= 0 else -1
        its = (after.who, after.did, after.key, after.of, after.what, after.n)
        return (*mine, offset) == (*its, after.offset)


_USUAL: Final = {one.name: one.default for one in fields(Event)}


def make_value(who: str, key: PartitionKey, n: int) -> bytes:
    """Return the content of a record.

    >>> make_value("all-1", ("orders", 3), 12)[:18], len(make_value("all-1", ("orders", 3), 12))
    (b'all-1/orders-3/12/', 100)
    """
    name = f"{who}/{key[0]}-{key[1]}/{n}/".encode()
    check = b"%08x" % zlib.crc32(name)
    return name + (check * (VALUE_BYTES // len(check)))[: VALUE_BYTES - len(name)]


def parse_value(key: PartitionKey, value: bytes) -> tuple[str, int] | None:
    """Return who sent a record of this partition and its number, None where it was altered."""
    found = _NAME.fullmatch(value)
    if found is None:
        return None
    who, n = found[1].decode(), int(found[4])
    return (who, n) if value == make_value(who, key, n) else None


def join_runs(events: Iterable[Event]) -> Iterator[Event]:
    """Yield one event in place of those about records that come one behind the other."""
    run: list[Event] = []
    for event in events:
        if run and not run[-1].is_continued_by(event):
            yield _join(run)
            run = []
        run.append(event)
    if run:
        yield _join(run)


def _join(run: list[Event]) -> Event:
    values = {one.name: getattr(run[0], one.name) for one in fields(Event)}
    return Event(**{**values, "count": sum(one.count for one in run)})


@dataclass(slots=True)
class HistoryWriter:
    """A file that events are written into; many threads may. A context manager."""

    stream: TextIO
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return a new file's writer."""
        return cls(path.open("w", encoding="utf-8", buffering=1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def note(self, who: str, did: str, what: str = "") -> None:
        """Write down something that was done now."""
        self.write([Event(now_ms(), who, did, what=what)])

    def write(self, events: Iterable[Event]) -> None:
        """Write events, those about records that follow each other as one."""
        lines = []
        for event in join_runs(events):
            told = {name: value for name, value in asdict(event).items() if value != _USUAL[name]}
            lines.append(json.dumps(told) + "\n")
        with self._lock:
            self.stream.write("".join(lines))


def read_history(paths: Iterable[Path]) -> list[Event]:
    """Return the events of several files in the order of their times."""
    found = []
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            # The last line of a process that was ended may not be whole.
            found += [Event(**json.loads(line)) for line in lines if line.endswith("}\n")]
    return sorted(found, key=lambda event: event.at_ms)


def now_ms() -> int:
    """Return the time by the machine's clock, which all processes have in common."""
    return time.time_ns() // 1_000_000
