"""The clock of a broker that is a process."""

import time


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
