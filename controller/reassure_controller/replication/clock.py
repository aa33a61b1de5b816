"""Time, as brokers are given it."""

import threading
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Return the time in whole milliseconds."""


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
