"""Where the tasks of an audit are done: in this process and others, and how far they may go.

A `Placement` is all in which one audit differs from another: what the tasks are, and what is made
of what they come to, is the same wherever they are done (`audit.run_audit`). That of Spark is
`spark.placement.OnSpark`.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any, Final, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[str, int, int], None]
"""Called with what is going on, how much is done and how much there is."""
Work = Callable[[T, Progress | None], R]
_ALLOCATIONS: Final = 200_000
_BYTES_PER_JOB: Final = 8_000_000
"""Below this starting a process takes longer than it saves."""


class Placement(Protocol):
    """Where tasks are done."""

    workers: int
    """How many are done at a time."""
    progress: Progress | None
    """Who is told how far it is."""
    is_elsewhere: bool
    """Whether a path means something else there, unless it is absolute."""

    def run(self, work: Work[T, R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Yield number and result of each task, as they come; raises what the work raises."""


class Processes:
    """Processes of this machine: this one, and as many more as make `workers`."""

    is_elsewhere = False

    def __init__(self, workers: int, progress: Progress | None = None) -> None:
        self.workers = workers
        self.progress = progress

    def run(self, work: Work[T, R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Do the first task here, and then, from the last on, those that nobody has begun."""
        others = min(self.workers, len(tasks)) - 1
        if others < 1:
            yield from ((n, work(task, self.progress)) for n, task in enumerate(tasks))
            return
        with start_processes(others, _take, work, tasks) as pool:
            waiting = {pool.submit(_do, number): number for number in range(1, len(tasks))}
            yield 0, work(tasks[0], self.progress)
            for future, number in reversed([*waiting.items()]):
                if future.cancel():
                    del waiting[future]
                    yield number, work(tasks[number], self.progress)
            for future in as_completed(waiting):
                yield waiting[future], future.result()


_given: list[Any] = []
"""The work of this process, and its tasks."""


def _take(work: Work[T, R], tasks: Sequence[T]) -> None:
    _given[:] = work, tasks


def _do(number: int) -> Any:
    work, tasks = _given
    return work(tasks[number], None)


def choose_jobs(size: int) -> int:
    """Return how many processes are worth starting for so many bytes, at most one for each core."""
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


class Limits(NamedTuple):
    """How far the judging of an archive may go."""

    transactions: int | None = None
    """How many may be judged that were not before; None for all."""
    until: float | None = None
    """The time (`time.time`) at which it ends; None for never."""

    def grant(self, fresh: int, wanted: int) -> int:
        """Return how many transactions may be judged next where so many were, of those wanted."""
        if self.until is not None and time.time() >= self.until:
            return 0
        return (
            wanted if self.transactions is None else max(0, min(wanted, self.transactions - fresh))
        )


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for cycles rarely: long histories leave none behind, and many objects."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
