"""What an audit costs on Spark: beside one plain process, as it grows, and with a hot partition.

Each figure is of a whole command, from its start to its end: seconds on the clock, processor
seconds of each kind of process (Python: the driver and its workers; Java), and the memory of all of
them together at its peak, looked at five times a second. Runs of one size are made by turns.

    python benchmarks/spark.py [--sizes 100k,300k,1M] [--rounds 3] [--skip-skew]

Nothing is asserted.
"""

import argparse
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

from reassure_pipeline.sample import SampleCluster
from reassure_pipeline.synthetic import Size, write_archive
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog_writer import write_log

PLAIN = ("--jobs", "1")
BOTH = ("--jobs", "2")
ONE_CORE = ("--spark", "local[1]")
TWO_CORES = ("--spark", "local[2]")
EVERY_S = 0.2
HOT = 0.5
"""The share of the changes that the hot partition has."""
SKEWED = 100_000


class Cost(NamedTuple):
    """What one command took."""

    clock: float
    python: float
    java: float
    peak_mb: float

    def __str__(self) -> str:
        processor = self.python + self.java
        return (
            f"{self.clock:7.1f} s, processor {processor:6.1f} s (Python {self.python:.1f}, "
            f"Java {self.java:.1f}), {self.peak_mb:5.0f} MB"
        )


def measure(arguments: Sequence[str]) -> Cost:
    """Run an audit, and look at its processes as long as it runs."""
    command = ["reassure", "audit", "--profile", "kip-236", "--format", "json", *arguments]
    begin, peak = time.perf_counter(), 0.0
    spent: dict[tuple[int, float], tuple[bool, float]] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            memory = 0.0
            for process in list_family(running.pid):
                try:
                    times, java = process.cpu_times(), process.name() == "java"
                    memory += process.memory_info().rss / 1e6
                except psutil.Error:
                    continue
                key = process.pid, process.create_time()
                spent[key] = java, times.user + times.system
            peak = max(peak, memory)
            time.sleep(EVERY_S)
    clock = time.perf_counter() - begin
    java = sum(seconds for is_java, seconds in spent.values() if is_java)
    return Cost(clock, sum(seconds for _, seconds in spent.values()) - java, java, peak)


def list_family(pid: int) -> Iterator[psutil.Process]:
    """Yield a process and all that it has started."""
    try:
        process = psutil.Process(pid)
        yield process
        yield from process.children(recursive=True)
    except psutil.NoSuchProcess:
        return


def compare(path: Path, ways: Sequence[Sequence[str]], rounds: int) -> list[Cost]:
    """Return the medians of several ways to audit one archive, run by turns."""
    costs: list[list[Cost]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, cost in zip(ways, costs, strict=True):
            cost.append(measure([*way, str(path)]))
    return [Cost(*map(statistics.median, zip(*cost, strict=True))) for cost in costs]


def make_history(transactions: int, hot: float) -> list[Transaction]:
    """Return a history in which one partition has a share of the changes."""
    chosen = random.Random(1)
    cluster = SampleCluster(24)
    cluster.create_topic("hot", {0: (1, 2, 3)})
    number, is_in = 0, True
    while len(cluster.transactions) < transactions:
        if chosen.random() < hot:
            cluster.write_isr("hot", 0, (1, 2) if is_in else (1, 2, 3))
            is_in = not is_in
            continue
        if number % 20 == 0:
            topic = f"topic-{number:06d}"
            cluster.create_topic(topic, {0: (4, 5, 6)})
        cluster.write_isr(topic, 0, (4, 5) if number % 2 == 0 else (4, 5, 6))
        number += 1
    return cluster.transactions


def parse_size(text: str) -> int:
    """Return a number written like 300k or 1M."""
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return int(text[:-1] if scale > 1 else text) * scale


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="100k,300k,1M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip-skew", action="store_true")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, medians of {given.rounds}")
    ways = (PLAIN, BOTH, ONE_CORE, TWO_CORES)
    with tempfile.TemporaryDirectory() as scratch:
        for size in map(parse_size, given.sizes.split(",")):
            folder = Path(scratch, str(size))
            write_archive(folder, Size(size, size // 50, 20, 1))
            print(f"\n{size:,} transactions, load {os.getloadavg()[0]:.1f}", flush=True)
            costs = compare(folder, ways, given.rounds)
            for way, cost in zip(ways, costs, strict=True):
                speed = size / cost.clock
                print(f"{' '.join(way):>18}: {cost}, {speed:,.0f} a second", flush=True)
            plain, _, one, two = costs
            print(f"{'':>18}  plain / local[2]: {plain.clock / two.clock:.2f}", end="; ")
            print(f"local[1] / local[2]: {one.clock / two.clock:.2f}")
        for hot in () if given.skip_skew else (0.0, HOT):
            folder = Path(scratch, f"hot-{hot}", "version-2")
            folder.mkdir(parents=True)
            write_log(folder, make_history(SKEWED, hot))
            print(f"\n{SKEWED:,} transactions, {hot:.0%} of the changes at one partition")
            for way, cost in zip(
                (PLAIN, TWO_CORES), compare(folder, (PLAIN, TWO_CORES), given.rounds), strict=True
            ):
                print(f"{' '.join(way):>18}: {cost}", flush=True)


if __name__ == "__main__":
    main()
