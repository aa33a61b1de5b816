"""How many processes logs are worth, how they begin and end, and what is told meanwhile."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Final

from reassure_pipeline.archives.restored_logs import list_logs

Progress = Callable[[str, int, int], None]
"""Called with what is going on, how much is done and how much there is."""
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
