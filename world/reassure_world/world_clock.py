"""A clock that stands still but where somebody waits, and what is due at its times."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Final

FIRST_S: Final = 1_000_000_000
"""When the world begins, in seconds since 1970."""


class Clock:
    """Seconds since the world began, and what is to be done later, soonest first."""

    def __init__(self) -> None:
        self._now_us = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._number = count()

    def monotonic(self) -> float:
        """Return the seconds since the world began."""
        return self._now_us / 1_000_000

    def now_ms(self) -> int:
        """Return the time of day, in milliseconds since 1970."""
        return FIRST_S * 1000 + self._now_us // 1000

    def tick(self, microseconds: int) -> None:
        """Let work take its time, without doing what falls due meanwhile."""
        self._now_us += microseconds

    def call_later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Have something done once somebody waits beyond that time."""
        due = self._now_us + round(delay_s * 1_000_000)
        heapq.heappush(self._due, (due, next(self._number), action))

    def sleep(self, seconds: float) -> None:
        """Do what falls due within so many seconds, each at its time, and be there then."""
        until = self._now_us + round(seconds * 1_000_000)
        while self._due and self._due[0][0] <= until:
            self.step()
        self._now_us = max(self._now_us, until)

    def step(self) -> bool:
        """Wait for what is due next and do it; return whether there was anything."""
        if not self._due:
            return False
        due, _, action = heapq.heappop(self._due)
        self._now_us = max(self._now_us, due)
        action()
        return True
