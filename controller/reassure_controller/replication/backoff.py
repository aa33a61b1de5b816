"""A pause that grows from failure to failure, so that a full disk is not tried all the time."""

from dataclasses import dataclass
from typing import Final

FIRST_MS: Final = 100
MOST_MS: Final = 10_000


@dataclass(slots=True)
class Backoff:
    """The pause after the last failure; none after a success."""

    _pause_ms: int = 0
    _until_ms: int = 0

    def is_over(self, now_ms: int) -> bool:
        """Whether it is time to try, or to speak of it, again."""
        return now_ms >= self._until_ms

    def fail(self, now_ms: int) -> None:
        """Pause twice as long as before."""
        self._pause_ms = min(max(FIRST_MS, 2 * self._pause_ms), MOST_MS)
        self._until_ms = now_ms + self._pause_ms

    def succeed(self) -> None:
        """Forget the failures."""
        self._pause_ms = self._until_ms = 0
