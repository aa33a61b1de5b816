"""Sums over a history that stay small however long it is, and are the same however it is split.

Each of them can take in another of its kind; what comes out does not depend on how the history was
spread over tasks, nor on the order in which their sums are put together.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

MOST_BINS: Final = 120
"""How many bins the time of a history is cut into at most."""
_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_WIDTHS_MS: Final = (
    *(1, 10, 100, _SECOND, 5 * _SECOND, 10 * _SECOND, 30 * _SECOND),
    *(_MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE, _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY << doubled for doubled in range(40)),
)
"""How wide bins may be: each width divides the next, so that bins can be joined without loss."""
EDGES_MS: Final = (
    *(10, 20, 50, 100, 200, 500),
    *(n * _SECOND for n in (1, 2, 5, 10, 20, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 20, 30)),
    *(n * _HOUR for n in (1, 2, 4, 8, 12, 24)),
    *(n * _DAY for n in (2, 4, 7, 14, 30)),
)
"""Up to how long the durations of each class are; the last class has no end."""


class TimeBins:
    """Counts, or sums, by name and by time.

    A bin is `width_ms` wide, and begins at a multiple of that since 1970. The width is the least of
    a fixed row of widths with which all times noted fit in `MOST_BINS` bins, gaps included.
    """

    def __init__(self) -> None:
        self.series: dict[str, dict[int, int]] = {}
        """By name: by the number of the bin, since 1970."""
        self._level = 0
        self._first_ms: int | None = None
        self._last_ms = 0

    @property
    def width_ms(self) -> int:
        """How wide a bin is."""
        return _WIDTHS_MS[self._level]

    @property
    def range_ms(self) -> tuple[int, int] | None:
        """The first and the last time noted; None where nothing was."""
        return None if self._first_ms is None else (self._first_ms, self._last_ms)

    def reach(self, time_ms: int) -> None:
        """Note that a time belongs to the history, whether or not something is counted there."""
        if self._first_ms is None:
            self._first_ms = self._last_ms = time_ms
        elif time_ms < self._first_ms:
            self._first_ms = time_ms
        elif time_ms > self._last_ms:
            self._last_ms = time_ms
        else:
            return
        level = self._level
        while self._last_ms // _WIDTHS_MS[level] - self._first_ms // _WIDTHS_MS[level] >= MOST_BINS:
            level += 1
        self._widen(level)

    def _widen(self, level: int) -> None:
        if level == self._level:
            return
        factor = _WIDTHS_MS[level] // _WIDTHS_MS[self._level]
        self._level = level
        for name, bins in self.series.items():
            joined: dict[int, int] = {}
            for number, value in bins.items():
                joined[number // factor] = joined.get(number // factor, 0) + value
            self.series[name] = joined

    def add(self, name: str, time_ms: int, value: int = 1) -> None:
        """Add to the bin of a time."""
        self.reach(time_ms)
        bins = self.series.setdefault(name, {})
        number = time_ms // self.width_ms
        bins[number] = bins.get(number, 0) + value

    def spread(self, name: str, since_ms: int, until_ms: int) -> None:
        """Add to every bin how long, in milliseconds, it has of a stretch of time."""
        if until_ms <= since_ms:
            return
        self.reach(since_ms)
        self.reach(until_ms)
        bins, width = self.series.setdefault(name, {}), self.width_ms
        for number in range(since_ms // width, (until_ms - 1) // width + 1):
            part = min(until_ms, (number + 1) * width) - max(since_ms, number * width)
            bins[number] = bins.get(number, 0) + part

    def take_in(self, other: "TimeBins", group: str = "") -> None:
        """Add what others counted, under names that begin with that of the group."""
        if other.range_ms is None:
            return
        for time_ms in other.range_ms:
            self.reach(time_ms)
        factor = self.width_ms // other.width_ms
        for name, bins in other.series.items():
            mine = self.series.setdefault(group + name, {})
            for number, value in bins.items():
                mine[number // factor] = mine.get(number // factor, 0) + value

    def as_dict(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return by group and name: by the beginning of each bin that is not 0, its value.

        A name is divided at its first dot.
        """
        told: dict[str, dict[str, dict[str, int]]] = {}
        for name in sorted(self.series):
            group, _, rest = name.partition(".")
            bins = sorted(self.series[name].items())
            told.setdefault(group, {})[rest] = {str(n * self.width_ms): v for n, v in bins if v}
        return told


@dataclass(slots=True)
class Durations:
    """How long things took: a histogram with fixed classes, and the whole."""

    count: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    """By class, which is numbered by `EDGES_MS`."""

    def add(self, duration_ms: int) -> None:
        """Add one."""
        self.count += 1
        self.total_ms += duration_ms
        self.longest_ms = max(self.longest_ms, duration_ms)
        place = bisect_left(EDGES_MS, duration_ms)
        self.counts[place] = self.counts.get(place, 0) + 1

    def take_in(self, other: "Durations") -> None:
        """Add what others took."""
        self.count += other.count
        self.total_ms += other.total_ms
        self.longest_ms = max(self.longest_ms, other.longest_ms)
        for place, count in other.counts.items():
            self.counts[place] = self.counts.get(place, 0) + count

    def as_dict(self) -> dict[str, Any]:
        """Return the whole, and the classes that are not empty."""
        places = sorted(self.counts)
        return {
            "count": self.count,
            "total_ms": self.total_ms,
            "longest_ms": self.longest_ms,
            "classes": [
                {
                    "over_ms": EDGES_MS[place - 1] if place else None,
                    "up_to_ms": EDGES_MS[place] if place < len(EDGES_MS) else None,
                    "count": self.counts[place],
                }
                for place in places
            ],
        }


Record = TypeVar("Record")


class First(Generic[Record]):
    """The first `most` records by a rank that no two of them share, and how many there were."""

    def __init__(self, most: int, rank: Callable[[Record], Any]) -> None:
        self.count = 0
        self._most = most
        self._rank = rank
        self.kept: list[Record] = []
        """The first ones, and maybe some more."""

    def add(self, record: Record) -> None:
        """Add one."""
        self.count += 1
        self.kept.append(record)
        if len(self.kept) > 2 * self._most:
            self._cut()

    def _cut(self) -> None:
        self.kept.sort(key=self._rank)
        del self.kept[self._most :]

    def take_in(self, other: "First[Record]") -> None:
        """Add what others have."""
        self.count += other.count
        self.kept += other.kept
        self._cut()

    def __iter__(self) -> Any:
        self._cut()
        return iter(self.kept)
