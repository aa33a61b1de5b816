"""The processes of an audit: how many are worth it, how they begin and end, how far they may go."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from reassure_pipeline.archives.restored_logs import list_logs

Progress = Callable[[str, int, int], None]
"""Called with what is going on, how much is done and how much there is."""
_NEVER: Final = (1 << 63) - 1
_ALLOCATIONS: Final = 200_000
_BYTES_PER_JOB: Final = 8_000_000
"""Below this starting a process takes longer than it saves."""


def choose_jobs(paths: Sequence[Path]) -> int:
    """Return how many processes are worth starting for these logs, at most one for each core."""
    size = sum(file.stat().st_size for path in paths for file in list_logs(path))
    return max(1, min(len(os.sched_getaffinity(0)), size // _BYTES_PER_JOB))


@contextmanager
def start_processes(
    number: int, begin: Callable[..., None] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """Yield so many processes; each of them begins with what is given, where anything is.

    What they share with this one can be given to them when they are made, and not later. Where an
    error ends the work here, or an interrupt, they are killed: nobody waits for what they do.
    """
    others = set(active_children())
    with ProcessPoolExecutor(number, get_context("fork"), begin, given) as pool:
        try:
            yield pool
        except BaseException:
            for process in set(active_children()) - others:
                process.kill()
            raise


class AuditBudget(NamedTuple):
    """What an audit may spend: one of the two, or neither. It ends in good order then."""

    transactions: int | None = None
    seconds: float | None = None


NO_BUDGET: Final = AuditBudget()


class SharedLimits:
    """How far the shares of an audit may go; made before the processes that share it are.

    All of them end behind the same transaction, so that what they came to adds up. Each asks before
    it judges a batch; the first one for which time is up fixes where all end: where the one that is
    ahead will be by then.
    """

    def __init__(self, budget: AuditBudget, begun: Sequence[int]) -> None:
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


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for cycles rarely: long histories leave none behind, and many objects."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
