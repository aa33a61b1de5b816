"""Explorations on Spark beside those in one process, as they grow.

    python benchmarks/explorer_spark.py [--master local[2]] [--runs 3] [--scopes medium …]

Both are run in turns, in processes that have loaded the kernels, with all paths remembered from a
first run that is not counted. Spark's start is said apart. Wall time is what counts: on two cores
the executors share them with the driver, and one process beside them may have threads.
"""

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.loading import Source
from reassure_explorer.engine.result import Budget, ExploreResult
from reassure_explorer.engine.sliced import explore_sliced
from reassure_explorer.scopes.catalogue import get_scope, make_model
from reassure_pipeline.spreading import spread_on_spark


def measure(scope: str, master: str, runs: int, most: int) -> None:
    """Print the medians of one scope, which is cut off at so many states."""
    source = Source(partial(make_model, scope, get_scope(scope).profile, {}))
    budget = Budget(states=most)
    took: dict[str, list[float]] = {"one": [], "two": [], "spark": []}
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
                ours = explore_derived(source.make(), **options)
                both = explore_derived(source.make(), threads=2, **options)
                spark = on_spark()
                assert spark.levels == ours.levels, "counts differ"
                assert spark.generated == ours.generated, "counts differ"
                for name, result in (("one", ours), ("two", both), ("spark", spark)):
                    took[name].append(result.seconds)
    median = {name: statistics.median(times) for name, times in took.items()}
    print(
        f"{scope:<16} {ours.distinct:>12,} states  one thread {median['one']:8.2f} s  two "
        f"{median['two']:8.2f} s  Spark {median['spark']:8.2f} s and {start:.1f} s to start  "
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
