"""Counts of what happened since an object was made."""

import threading
import time
from collections import Counter


class LabelCounts:
    """Counts by label; may be added to by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, ...]] = Counter()

    def add(self, *labels: str) -> None:
        """Count one more."""
        with self._lock:
            self._counts[labels] += 1

    def list(self) -> list[tuple[tuple[str, ...], int]]:
        """Return the labels that came up with their counts, in order."""
        with self._lock:
            return sorted(self._counts.items())


class TermTimes:
    """The terms of a controller: how often it was elected, and how long it took to take over."""

    def __init__(self) -> None:
        self.elections = 0
        self.failovers = 0
        """Elections after which all was read and carried out that was owed."""
        self.failovers_s = 0.0
        """How long they took together."""
        self.last_failover_s = 0.0
        self._elected_s = 0.0

    def begin(self) -> None:
        """Note an election."""
        self.elections += 1
        self._elected_s = time.monotonic()

    def settle(self) -> None:
        """Note that the failover is carried out."""
        self.last_failover_s = time.monotonic() - self._elected_s
        self.failovers += 1
        self.failovers_s += self.last_failover_s
