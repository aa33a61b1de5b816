"""Tasks on Spark, each a row, a partition and a task of Spark's own; nothing is shuffled."""

import gc
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reassure_pipeline.audit.jobs import Progress, Work
from reassure_pipeline.spark.gateway import is_local, open_spark

if TYPE_CHECKING:
    from pyarrow import RecordBatch

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE: Final = 32
"""How many tasks for each core are given to Spark at once: what they come to waits here."""


class OnSpark:
    """The Spark that is open."""

    def __init__(self, session: Any, progress: Progress | None = None) -> None:
        self.workers = max(1, session.sparkContext.defaultParallelism)
        self.progress = progress
        self.is_elsewhere = not is_local(session.sparkContext.master)
        self._session = session

    def run(self, work: Work[T, R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Do the tasks, some at a time; the next ones are begun before these have all ended."""
        # Elsewhere what was sent is imported from where a worker was started.
        size, here = self.workers * _AT_ONCE, None if self.is_elsewhere else Path.cwd()
        starts = range(0, len(tasks), size)

        def collect(start: int) -> Any:
            some = tasks[start : start + size]
            rows = self._session.range(0, len(some), 1, len(some))
            return rows.mapInArrow(
                _make_stage(work, some, here), "number bigint, result binary"
            ).toArrow()

        # A core that finds nothing of the first job to do takes of the second one.
        with ThreadPoolExecutor(2) as threads:
            try:
                jobs = (threads.submit(collect, start) for start in starts)
                coming = deque(islice(jobs, 2))
                for start in starts:
                    if self.progress is not None:
                        self.progress("judging on Spark, tasks", start, len(tasks))
                    told = coming.popleft().result()
                    coming.extend(islice(jobs, 1))
                    columns = (column.to_pylist() for column in told.columns)
                    for number, result in zip(*columns, strict=True):
                        yield start + number, pickle.loads(result)
            except BaseException:
                # Whoever collects ends only with what is collected, or with Spark.
                with suppress(Exception):
                    self._session.sparkContext.cancelAllJobs()
                raise


def _make_stage(
    work: Work[T, R], tasks: Sequence[T], here: Path | None
) -> Callable[[Iterable["RecordBatch"]], Iterator["RecordBatch"]]:
    def do(batches: Iterable["RecordBatch"]) -> Iterator["RecordBatch"]:
        from pyarrow import RecordBatch

        # A worker looks for cycles after each task, in all that it has imported too, unless that
        # is set apart.
        gc.freeze()
        if here is not None:
            os.chdir(here)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = pickle.dumps(work(tasks[number], None))
                yield RecordBatch.from_pydict({"number": [number], "result": [result]})

    return do


@contextmanager
def open_placement(master: str, progress: Progress | None = None) -> Iterator[OnSpark]:
    """Start Spark, and end it behind. Raises what `open_spark` raises."""
    if progress is not None:
        progress("starting Spark", 0, 1)
    with open_spark(master) as session:
        yield OnSpark(session, progress)
