"""Time, as brokers are given it."""

import threading
import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Return the time in whole milliseconds."""


@dataclass(slots=True)
class VirtualClock:
    """Time that passes when somebody says so; it can be set back, as a machine's can."""

    time_ms: int

    def now_ms(self) -> int:
        """Return the time."""
        return self.time_ms

    def advance(self, by_ms: int) -> None:
        """Let time pass, or go back."""
        self.time_ms += by_ms


class MachineClock:
    """The time of the machine as it was at first, and what has passed since then.

    A lag is a span, so it does not matter to it what the machine's time is set to meanwhile: set
    back, nobody who has stopped fetching stays in sync; set forward, nobody leaves.
    """

    def __init__(self) -> None:
        self._first_ms = time.time_ns() // 1_000_000 - self._passed_ms()

    def now_ms(self) -> int:
        """Return it."""
        return self._first_ms + self._passed_ms()

    def _passed_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class SteadyClock:
    """A clock that never goes back, whatever the one below it does.

    Lags are differences of times: with a time that goes back a replica would be credited for a
    fetch that is still to come. While the clock below is behind, time stands still here.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest_ms = clock.now_ms()
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        """Return the latest time that the clock below has shown."""
        with self._lock:
            self._latest_ms = max(self._latest_ms, self._clock.now_ms())
            return self._latest_ms
