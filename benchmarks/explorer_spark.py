"""Explorations on Spark beside those in one process, as they grow.

    python benchmarks/explorer_spark.py [--master local[2]] [--runs 3] [--scopes medium …]

Both are run in turns, in processes that have loaded the kernels, with all paths remembered from a
first run that is not counted. Spark's start is said apart. Wall time is what counts: on two cores
the executors share them with the driver, and one process beside them may have threads. Where other
work has the cores as well, processor time says more: that of one thread, and that of all of Spark's
processes and the driver.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.loading import Source
from reassure_explorer.engine.result import Budget, ExploreResult
from reassure_explorer.engine.sliced import explore_sliced
from reassure_explorer.scopes.catalogue import get_scope, make_model
from reassure_pipeline.spreading import spread_on_spark


def spend() -> float:
    """Return the processor seconds of this process and all that it has started and that live."""
    spent, us = 0.0, psutil.Process()
    for process in (us, *us.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            spent += times.user + times.system
    return spent


def measure(scope: str, master: str, runs: int, most: int) -> None:
    """Print the medians of one scope, which is cut off at so many states."""
    source = Source(partial(make_model, scope, get_scope(scope).profile, {}))
    budget = Budget(states=most)
    took: dict[str, list[float]] = {"one": [], "two": [], "spark": []}
    spent: dict[str, list[float]] = {"one": [], "spark": []}
    with tempfile.TemporaryDirectory() as scratch:
        memory, places = Path(scratch, "paths"), iter(range(10**6))
        explore_derived(source.make(), keep_going=True, budget=budget, memory=memory)
        started = time.perf_counter()
        with spread_on_spark(source, master) as where:
            start = time.perf_counter() - started

            def on_spark() -> ExploreResult:
                place = Path(scratch, str(next(places)))
                return explore_sliced(
                    source,
                    where.spread,
                    place,
                    where.slices,
                    keep_going=True,
                    budget=budget,
                    memory=memory,
                )

            on_spark()
            options = {"keep_going": True, "budget": budget, "memory": memory}
            for _ in range(runs):
                at = [spend()]
                ours = explore_derived(source.make(), **options)
                at.append(spend())
                both = explore_derived(source.make(), threads=2, **options)
                at.append(spend())
                spark = on_spark()
                at.append(spend())
                spent["one"].append(at[1] - at[0])
                spent["spark"].append(at[3] - at[2])
                assert spark.levels == ours.levels, "counts differ"
                assert spark.generated == ours.generated, "counts differ"
                for name, result in (("one", ours), ("two", both), ("spark", spark)):
                    took[name].append(result.seconds)
    median = {name: statistics.median(times) for name, times in took.items()}
    processor = {name: statistics.median(times) for name, times in spent.items()}
    print(
        f"{scope:<16} {ours.distinct:>12,} states  one thread {median['one']:8.2f} s  two "
        f"{median['two']:8.2f} s  Spark {median['spark']:8.2f} s and {start:.1f} s to start  "
        f"processor {processor['one']:.2f} s, on Spark {processor['spark']:.2f} s  "
        f"{spark.bytes_per_state:.1f} bytes/state on disk",
        flush=True,
    )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--states", type=int, default=20_000_000, help="where scopes are cut off")
    parser.add_argument("--scopes", nargs="+", default=["logs-again", "medium", "large"])
    chosen = parser.parse_args()
    for scope in chosen.scopes:
        measure(scope, chosen.master, chosen.runs, chosen.states)


if __name__ == "__main__":
    main()
