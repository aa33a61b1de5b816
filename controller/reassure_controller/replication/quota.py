"""How much a broker replicates in a second: Kafka's replication quotas (KIP-73).

A reassignment copies whole logs; without a limit it takes the network from everybody else. Only
replicas that are out of sync are held up: to delay one that is in sync would push it out
(KAFKA-6937). Kafka counts what these take as well, so that ordinary traffic above the limit stops
a move for ever; here only what can be held up counts.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from reassure_spec.znodes import PartitionKey


@dataclass(slots=True)
class Quota:
    """A limit, as leader or as follower, and the replicas that it holds for.

    There is at most one second's worth to have at once. A batch that is larger than what there is
    passes as a whole, and what it took too much is waited for: over time the rate is as set.
    """

    usual: int | None = None
    """Bytes per second for every replica, where no other limit is set; None: no limit."""
    throttled: dict[str, frozenset[int] | None] = field(default_factory=dict)
    """Partitions by topic; None stands for all of them."""
    _rate: int | None = None
    _left: int = 0
    """What may pass now, in thousandths of bytes; below zero what has to be waited for."""
    _counted_ms: int = 0
    """Up to when `_left` is counted."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Begin with the usual limit."""
        self.limit(None)

    def limit(self, bytes_per_s: int | None) -> None:
        """Set another limit, None for the usual one; what is set already goes on as it stands."""
        rate = self.usual if bytes_per_s is None else bytes_per_s
        with self._lock:
            if rate != self._rate:
                self._rate, self._left = rate, 1000 * (rate or 0)

    def holds_for(self, key: PartitionKey) -> bool:
        """Whether the broker's replica of a partition is throttled."""
        partitions = self.throttled.get(key[0], frozenset())
        named = partitions is None or key[1] in partitions
        return self._rate is not None and (named or self.usual is not None)

    def allow(self, key: PartitionKey, wanted: int, now_ms: int) -> int:
        """Return how many of the bytes that a replica out of sync wants it may have now.

        >>> quota = Quota(throttled={"t": None})
        >>> quota.limit(100)
        >>> quota.note(("t", 0), 150, 5000)
        >>> [quota.allow(("t", 0), 40, ms) for ms in (5000, 5500, 5510, 9000)]
        [0, 0, 1, 40]
        """
        if not self.holds_for(key):
            return wanted
        with self._lock:
            self._count(now_ms)
            return max(0, min(wanted, self._left // 1000))

    def note(self, key: PartitionKey, size: int, now_ms: int) -> None:
        """Note what was sent to, or fetched by, a replica that is out of sync."""
        if self.holds_for(key):
            with self._lock:
                self._count(now_ms)
                self._left -= 1000 * size

    def _count(self, now_ms: int) -> None:
        rate = self._rate or 0
        self._left = min(1000 * rate, self._left + rate * (now_ms - self._counted_ms))
        self._counted_ms = now_ms


@dataclass(slots=True)
class Quotas:
    """The two limits of one broker."""

    as_leader: Quota = field(default_factory=Quota)
    as_follower: Quota = field(default_factory=Quota)
    catch_up: Callable[[], None] = field(default=lambda: None, compare=False)
    """Takes over what was set before now; called before a new replica fetches anything."""
