"""How fast the explorer is: against plain Python, SPIN and TLC, warm, on two threads, and growing.

    python benchmarks/explorer.py [--plain-seconds 60] [--large] [--growth] [--tlc tla2tools.jar]

Every figure is one run. Times are wall times and include the plain runs from which the diagrams are
learned and the checks of invariants; compiling or loading the kernels is said apart. Plain Python
is stopped after `--plain-seconds`; its rate until then stands for the whole.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from reassure_explorer.derived import Engine, explore_derived
from reassure_explorer.explore import get_model
from reassure_explorer.plain import explore_plain
from reassure_explorer.reference import Limits, Reference, World
from reassure_explorer.result import Budget, ExploreResult
from reassure_spec.readings import get_profile

PROMELA = Path(__file__).with_name("explorer_logs.pml")
TLA = Path(__file__).with_name("explorer_logs.tla")


def describe(name: str, result: ExploreResult) -> str:
    """Return one line about an exploration."""
    return (
        f"{name:<28} {result.distinct:>12,} states {result.generated:>14,} steps "
        f"{result.seconds:8.2f} s ({result.seconds_compiling:.2f} s to load)  "
        f"{result.generated / result.seconds / 1e6:6.2f} M steps/s  "
        f"{result.bytes_per_state:5.1f} bytes/state  {result.plain_runs:,} plain runs"
    )


def compare_with_plain(scope: str, seconds: float) -> None:
    """Print how many times faster the derived engine is than the plain one."""
    _, model = get_model(scope, "kip-236")
    derived = explore_derived(model, keep_going=True)
    print(describe(f"{scope}, derived", derived))
    plain = explore_plain(model, keep_going=True, budget=Budget(seconds=seconds))
    print(describe(f"{scope}, plain", plain), f"({plain.unfinished or 'complete'})")
    ratio = (derived.generated / derived.seconds) / (plain.generated / plain.seconds)
    print(f"{'':<28} derived takes {ratio:.0f} times as many steps a second as plain")


def measure_warm(scope: str) -> None:
    """Print the rate when all paths are known: expanding, sorting, taking away, invariants."""
    _, model = get_model(scope, "kip-236")
    first = Engine(model)
    first.run(keep_going=True, budget=Budget())
    again = Engine(model)
    again.diagrams = first.diagrams
    again.diagrams.paths = 0
    print(describe(f"{scope}, all paths known", again.run(keep_going=True, budget=Budget())))


def compare_with_spin() -> None:
    """Print SPIN's figures for the same scope. Says so where there is no SPIN."""
    _, model = get_model("logs-three", "kip-236-amended")
    ours = explore_derived(model, keep_going=True)
    print(describe("logs-three, derived", ours))
    if shutil.which("spin") is None or shutil.which("gcc") is None:
        print("no spin or no gcc here")
        return
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        subprocess.run(["spin", "-a", str(PROMELA)], cwd=directory, check=True)
        options = ["-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8000"]
        command = ["gcc", *options, "-o", "pan", "pan.c"]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
        compiled = time.perf_counter() - started
        started = time.perf_counter()
        answer = subprocess.run(
            ["./pan", "-m5000000", "-w24"],
            cwd=directory,
            check=True,
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - started
    for line in answer.stdout.splitlines():
        if "states, stored" in line or "transitions" in line:
            print("   spin:", line.strip())
    # SPIN counts the state before the first step, and the steps into and out of it.
    print(f"   spin: {seconds:.2f} s and {compiled:.2f} s to compile; ours {ours.seconds:.2f} s")
    assert f"{ours.distinct + 1} states, stored" in answer.stdout, "counts differ"
    assert f"{ours.generated + 2} transitions" in answer.stdout, "counts differ"


def compare_with_tlc(jar: Path) -> None:
    """Print TLC's figures for the same scope beside ours on as many threads, counts compared."""
    _, model = get_model("logs-three", "kip-236-amended")
    ours = explore_derived(model, keep_going=True, threads=2)
    print(describe("logs-three, 2 threads", ours))
    java = ["java", "-XX:+UseParallelGC", "-Xmx4g", "-cp", str(jar.resolve()), "tlc2.TLC"]
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        answer = subprocess.run(
            [*java, "-deadlock", "-workers", "2", "-metadir", directory, str(TLA)],
            check=True,
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - started
    print(f"   tlc: {seconds:.2f} s, its start included; {seconds / ours.seconds:.0f} times ours")
    # TLC counts the initial state among those generated.
    counts = f"{ours.generated + 1} states generated, {ours.distinct} distinct states found"
    assert counts in answer.stdout, f"counts differ: expected {counts}"


def measure_large() -> None:
    """Print the large scope on one thread and on two."""
    _, model = get_model("large", "kip-236")
    for threads in (1, 2):
        result = explore_derived(model, keep_going=True, threads=threads)
        print(describe(f"large, {threads} thread(s)", result), flush=True)


GROWTH = (
    Limits(3, 1, 1, 1),
    Limits(3, 2, 1, 1),
    Limits(3, 3, 2, 2),
    Limits(4, 3, 3, 3),
)


def measure_growth() -> None:
    """Print the time a state as the scope grows."""
    for limits in GROWTH:
        targets = tuple((target, False) for target in ((2, 3), (3, 4), (1, 2)))
        world = World(4, ((1, 2),), targets, limits)
        result = explore_derived(Reference(world, get_profile("kip-236")).make_model("growth"))
        nanoseconds = 1e9 * result.seconds / result.generated
        print(
            describe(f"growth {limits.deaths}", result), f"{nanoseconds:.0f} ns a step", flush=True
        )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain-seconds", type=float, default=60.0)
    parser.add_argument("--large", action="store_true", help="the large scope too: minutes")
    parser.add_argument("--growth", action="store_true", help="growing scopes: minutes")
    parser.add_argument("--tlc", type=Path, help="where tla2tools.jar lies: minutes")
    chosen = parser.parse_args()
    measure_warm("medium")
    compare_with_spin()
    if chosen.tlc:
        compare_with_tlc(chosen.tlc)
    compare_with_plain("medium", chosen.plain_seconds)
    if chosen.large:
        measure_large()
    if chosen.growth:
        measure_growth()


if __name__ == "__main__":
    main()
