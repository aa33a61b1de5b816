"""What an audit costs on Spark: beside one plain process, as it grows, and with a hot partition.

Each figure is of a whole command, from its start to its end: seconds on the clock, processor
seconds of each kind of process (Python: the driver and its workers; Java), and the memory of all of
them together at its peak, looked at five times a second. Runs of one archive are made by turns.
Takes archives of `reassure lab synth` that are there; without any it makes some, the last with a
partition that has half of what happens. When time is up, the command that runs is ended and not
counted.

    python benchmarks/spark.py [--sizes 100k,300k,1M] [--rounds 3] [--minutes 60] [ARCHIVE...]

Nothing is asserted, but that each audit came to a verdict.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

from reassure_lab.protocols.kip_236.synthetic import TRUTH, Size, write_archive

PLAIN = ("--jobs", "1")
BOTH = ("--jobs", "2")
ONE_CORE = ("--spark", "local[1]")
TWO_CORES = ("--spark", "local[2]")
WAYS = (PLAIN, BOTH, ONE_CORE, TWO_CORES)
EVERY_S = 0.2
HOT = 0.5
"""The share of what happens that the hot partition has."""


class Cost(NamedTuple):
    """What one command took."""

    clock: float
    python: float
    java: float
    peak_mb: float
    head: float
    """Of the processor seconds of Python those of the process that was started."""


def measure(arguments: Sequence[str], deadline: float) -> Cost | None:
    """Run an audit, and look at its processes as long as it runs; None where it was ended."""
    command = ["reassure", "audit", "--format", "json", *arguments]
    begin, peak = time.perf_counter(), 0.0
    spent: dict[tuple[int, float], tuple[bool, float]] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            if time.perf_counter() > deadline:
                for process in list(list_family(running.pid)):
                    process.kill()
                return None
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
    if running.returncode not in (0, 1, 2):
        raise SystemExit(f"{' '.join(command)} ended with {running.returncode}")
    java = sum(seconds for is_java, seconds in spent.values() if is_java)
    head = sum(seconds for (pid, _), (_, seconds) in spent.items() if pid == running.pid)
    return Cost(clock, sum(seconds for _, seconds in spent.values()) - java, java, peak, head)


def list_family(pid: int) -> Iterator[psutil.Process]:
    """Yield a process and all that it has started."""
    try:
        process = psutil.Process(pid)
        yield process
        yield from process.children(recursive=True)
    except psutil.NoSuchProcess:
        return


def compare(path: Path, rounds: int, deadline: float) -> list[list[Cost]]:
    """Return what the ways to audit one archive cost, run by turns as long as there is time."""
    costs: list[list[Cost]] = [[] for _ in WAYS]
    for _ in range(rounds):
        for way, cost in zip(WAYS, costs, strict=True):
            found = measure(["--profile", "kip-236", *way, str(path)], deadline)
            if found is None:
                return costs
            cost.append(found)
    return costs


def show(path: Path, rounds: int, deadline: float) -> None:
    """Print the rows of one archive, medians of the rounds that there was time for."""
    truth = json.loads((path / TRUTH).read_text())
    transactions, load = truth["transactions"], os.getloadavg()[0]
    clocks: list[float] = []
    for way, costs in zip(WAYS, compare(path, rounds, deadline), strict=True):
        said = f"| {transactions:,} | {truth['partitions']:,} | {truth['hot']:.0%} "
        said += f"| `{' '.join(way)}` | {len(costs)} "
        if costs:
            cost = Cost(*map(statistics.median, zip(*costs, strict=True)))
            clocks.append(cost.clock)
            said += f"| {cost.clock:.1f} s | {transactions / cost.clock:,.0f} "
            said += f"| {cost.python:.1f} s | {cost.java:.1f} s | {cost.peak_mb:,.0f} MB |"
        else:
            said += "| | | | | |"
        print(said, flush=True)
    if len(clocks) == len(WAYS):
        plain, both, one, two = clocks
        print(
            f"<!-- load {load:.1f}, clock of --jobs 1 / --jobs 2: {plain / both:.2f}, "
            f"--jobs 1 / local[2]: {plain / two:.2f}, local[1] / local[2]: {one / two:.2f} -->"
        )


def parse_size(text: str) -> int:
    """Return a number written like 300k or 1M."""
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return int(text[:-1] if scale > 1 else text) * scale


def main() -> None:
    """Print the figures as a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("archives", nargs="*", type=Path, metavar="ARCHIVE")
    parser.add_argument("--sizes", default="100k,300k,1M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60)
    given = parser.parse_args()
    for path in given.archives:
        if not (path / TRUTH).is_file():
            parser.error(f"{path} has no {TRUTH}; name what `reassure lab synth` has made")
    deadline = time.perf_counter() + 60 * given.minutes
    print("| transactions | partitions | hot | way | rounds ", end="")
    print("| clock | a second | Python | Java | memory |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for path in given.archives:
        show(path, given.rounds, deadline)
    if given.archives:
        return
    sizes = [Size(n, n // 50, 20, 1) for n in map(parse_size, given.sizes.split(","))]
    sizes.append(replace(sizes[-1], hot=HOT))
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            write_archive(Path(scratch), size)
            show(Path(scratch), given.rounds, deadline)


if __name__ == "__main__":
    main()
