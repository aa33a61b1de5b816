"""What an audit may spend: transactions, or seconds. It ends in good order when that is spent.

All shares of an audit end behind the same transaction, so that what they came to adds up. Each asks
before it judges a batch; the first one for which time is up fixes where all end: where the one that
is ahead will be by then.
"""

import time
from collections.abc import Sequence
from multiprocessing import get_context
from typing import Final, NamedTuple

_NEVER: Final = (1 << 63) - 1


class Budget(NamedTuple):
    """One of the two, or neither."""

    transactions: int | None = None
    seconds: float | None = None


NO_BUDGET: Final = Budget()


class Limits:
    """How far the shares of an audit may go; made before the processes that share it are."""

    def __init__(self, budget: Budget, begun: Sequence[int]) -> None:
        """Begin where each share has judged so many transactions already."""
        self._deadline = None if budget.seconds is None else time.monotonic() + budget.seconds
        ahead = max(begun)
        end = _NEVER if budget.transactions is None else ahead + budget.transactions
        context = get_context("fork")
        self._end = context.Value("q", end)
        self._places = context.Array("q", list(begun), lock=False)

    def grant(self, share: int, done: int, wanted: int) -> int:
        """Return how many transactions a share may judge next, of those that it wants to."""
        end = self._end
        with end.get_lock():
            if end.value == _NEVER and self._is_late():
                end.value = max(*self._places, done)
            granted: int = max(0, min(wanted, end.value - done))
            self._places[share] = done + granted
            return granted

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline
