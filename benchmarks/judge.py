"""How fast transaction logs are judged: transactions per second, by stage and by processes.

Writes a log of correct reassignments, some changed in flight; nearly every transaction is a write
that the judge must examine. Or takes logs that are there, as `reassure lab synth` makes them. Then,
by turns: decodes it; decodes it and finds what each write means; judges it in one process, and in
two. Ratios hardly depend on the machine; the figures do.

    python benchmarks/judge.py [TRANSACTIONS [ROUNDS [PATH]]]
"""

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from reassure_judge.protocols import make_rules
from reassure_lab.archives.sample import write_sample
from reassure_pipeline.archives.archive import find_archives, read_archive
from reassure_pipeline.archives.beginnings import load_base
from reassure_pipeline.audit.jobs import rare_collections
from reassure_pipeline.audit.passes import Routing
from reassure_pipeline.audit.run_audit import audit_named
from reassure_spec.readings import get_profile
from reassure_zookeeper.txnlog_writer import write_log

PROFILE: Final = "kip-236"
PER_TOPIC: Final = 150
DECODE_TARGET: Final = 200_000
JUDGE_TARGET: Final = 60_000
JOBS_TARGET: Final = 1.7

Cost = tuple[float, float]
"""Seconds on the clock, and of processor time, of processes that were started included."""


def measure(action: Callable[[], object]) -> Cost:
    """Return what an action costs."""
    clock, processor = time.perf_counter(), sum(os.times()[:4])
    with rare_collections():
        action()
    return time.perf_counter() - clock, sum(os.times()[:4]) - processor


def decode(path: Path) -> int:
    """Decode all there is; answer how many transactions that are."""
    return sum(1 for archive in find_archives([path]) for _ in read_archive(archive))


def route(path: Path) -> None:
    """Decode all there is, and find out what each write means."""
    for archive in find_archives([path]):
        rules = make_rules(PROFILE, get_profile(PROFILE))
        routing = Routing(archive.begins, load_base(archive), rules)
        routing.begin()
        for transaction in read_archive(archive):
            routing.feed(transaction)


def judge(path: Path, jobs: int) -> None:
    """Judge all there is."""
    audit_named([path], PROFILE, get_profile(PROFILE), jobs=jobs)


def main() -> int:
    """Print the medians; answer 1 where a target is missed."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(scratch)
        if len(sys.argv) <= 3:
            write_log(path, write_sample(topics=wanted // PER_TOPIC + 1))
        stages: dict[str, Callable[[], object]] = {
            "decode": lambda: decode(path),
            "and route": lambda: route(path),
            "and judge": lambda: judge(path, 1),
            "in two jobs": lambda: judge(path, 2),
        }
        count = decode(path)
        costs: dict[str, list[Cost]] = {name: [] for name in stages}
        for _ in range(rounds):
            for name, action in stages.items():
                costs[name].append(measure(action))
    print(f"{count:,} transactions, medians of {rounds}, {platform.platform()},")
    print(f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} processors")
    print(f"{'':>12}  {'on the clock':>14}  {'processor time':>14}  {'for each':>9}  {'more':>8}")
    medians, before = {}, 0.0
    for name, each in costs.items():
        clock, processor = (statistics.median(column) for column in zip(*each, strict=True))
        medians[name] = clock
        alone, more = processor / count * 1e6, (processor - before) / count * 1e6
        before = processor
        speeds = f"{count / clock:>12,.0f}/s  {count / processor:>12,.0f}/s"
        print(f"{name:>12}  {speeds}  {alone:>6.2f} µs  {more:>5.2f} µs")
    gain = statistics.median(
        one[0] / two[0] for one, two in zip(costs["and judge"], costs["in two jobs"], strict=True)
    )
    targets = (
        ("decode", count / medians["decode"], DECODE_TARGET),
        ("and judge", count / medians["and judge"], JUDGE_TARGET),
        ("in two jobs, times as fast as in one", gain, JOBS_TARGET),
    )
    for name, reached, wished in targets:
        told = "met" if reached >= wished else "MISSED"
        print(f"{name}: {reached:,.2f}, wanted {wished:,}: {told}")
    return 0 if all(reached >= wished for _, reached, wished in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
