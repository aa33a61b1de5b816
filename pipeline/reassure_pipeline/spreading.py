"""Explorations on Spark: whoever has a core free takes the next step of a slice.

Spark gives out tasks and gives them out again where an executor dies. States never pass through it:
they lie in files in a directory that driver and executors share, and what comes back are counts
and names of files (`reassure_explorer.engine.slices`). On one machine that directory is a temporary
one; on several it has to be named.
"""

import gc
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reassure_explorer.engine.explore import Elsewhere
from reassure_explorer.engine.loading import Source
from reassure_explorer.engine.slices import Task, carry_out
from reassure_pipeline.gateway import is_here, open_spark
from reassure_spec.errors import BadUsage

PACKAGES: Final = (
    "reassure_spec",
    "reassure_zookeeper",
    "reassure_model",
    "reassure_explorer",
)
"""What the tasks of an exploration import."""
_SLICES: Final = 2
"""Slices for each core, so that one that is late holds up less."""


def _carry_out(task: Task) -> Any:
    """Carry out a task on an executor, whose process is kept for the next."""
    answer = carry_out(task)
    if not gc.get_freeze_count():
        # Spark's worker looks for garbage after every task, and most of what it would look through
        # each time are the modules and the model, which stay.
        gc.freeze()
    return answer


class NoDirectory(BadUsage):
    """A cluster, and no directory that its machines share."""


@contextmanager
def spread_on_spark(
    source: Source, master: str, directory: Path | None = None, slices: int | None = None
) -> Iterator[Elsewhere]:
    """Start Spark and yield what explores a model there; stop everything at the end.

    `directory` keeps the states, and an exploration that was stopped there goes on; without one
    they are gone at the end. Raises NoDirectory, `SparkUnavailable` and `JavaError`.
    """
    if directory is None and not is_here(master):
        raise NoDirectory(
            f"{master} has machines of its own: name with --directory a directory that they and "
            "this one share, by the same path"
        )
    with (
        tempfile.TemporaryDirectory(prefix="reassure-explore-") as scratch,
        open_spark(master, "reassure explore", PACKAGES) as context,
    ):

        def spread(tasks: Sequence[Task]) -> list[Any]:
            answers: list[Any] = context.parallelize(tasks, len(tasks)).map(_carry_out).collect()
            return answers

        count = slices or _SLICES * max(1, context.defaultParallelism)
        yield Elsewhere(source, spread, directory or Path(scratch), count)
