"""How much a broker replicates in a window of time: Kafka's replication quotas (KIP-73).

A reassignment copies whole logs; without a limit it takes the network from everybody else. Only
replicas that are out of sync are held up: to delay one that is in sync would push it out
(KAFKA-6937).
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from reassure_spec.znodes import PartitionKey

WINDOW_MS: Final = 1_000


@dataclass(slots=True)
class Throttle:
    """A limit on bytes for each window; what a window has too much, the next ones wait for."""

    bytes_per_window: int
    window_ms: int = WINDOW_MS
    _passed: deque[tuple[int, int]] = field(default_factory=deque)

    def note(self, size: int, now_ms: int) -> None:
        """Note that so many bytes have passed."""
        if size:
            self._passed.append((now_ms, size))

    def is_spent(self, now_ms: int) -> bool:
        """Whether nothing more may pass now.

        >>> throttle = Throttle(100)
        >>> throttle.note(100, 5)
        >>> throttle.is_spent(1004), throttle.is_spent(1005)
        (True, False)
        """
        while self._passed and self._passed[0][0] <= now_ms - self.window_ms:
            self._passed.popleft()
        return sum(size for _, size in self._passed) >= self.bytes_per_window


@dataclass(slots=True)
class Quotas:
    """The limits of one broker, and the replicas that they hold for."""

    as_leader: Throttle | None = None
    as_follower: Throttle | None = None
    throttled: set[PartitionKey] = field(default_factory=set)
    holds_for_all: bool = False
    """Whether every replica counts as throttled."""

    def holds_for(self, key: PartitionKey) -> bool:
        """Whether the limits hold for this partition's replica."""
        return self.holds_for_all or key in self.throttled

    def holds_up(self, throttle: Throttle | None, key: PartitionKey, now_ms: int) -> bool:
        """Whether a replica that is out of sync has to wait."""
        return throttle is not None and self.holds_for(key) and throttle.is_spent(now_ms)

    def note(self, throttle: Throttle | None, key: PartitionKey, size: int, now_ms: int) -> None:
        """Note what was sent to, or fetched by, a replica that is out of sync."""
        if throttle is not None and self.holds_for(key):
            throttle.note(size, now_ms)
