"""The whole catalogue of planted faults: by which clause each is caught, how soon, at what cost.

It takes many minutes, so it can be had in parts: each is a run of the kill matrix of its own in
DIRECTORY, and what all parts together say is printed after each. What processors were used for a
planting is counted, ZooKeeper's part included, so that the sum depends little on what else the
machine does.

    python benchmarks/catalogue.py DIRECTORY [PART/PARTS] [SEEDS] [WORKERS]
"""

import json
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

from reassure_conformance.adapter.bundled import list_faults
from reassure_conformance.gate.faultmatrix import KILLED, matrix_document
from reassure_conformance.gate.running import Settings
from reassure_conformance.report.document import RESULT

SEED: Final = 1
STEPS_MAX: Final = 12
STEPS_MEDIAN: Final = 5
MINUTES: Final = 15
CORES: Final = 2


def measure(directory: Path, part: int, parts: int, seeds: int, workers: int) -> None:
    """Plant one part of the faults, every so many of them, and leave the document behind."""
    place = directory / f"{part}-of-{parts}"
    place.mkdir(parents=True)
    faults = tuple(list_faults())[part - 1 :: parts]
    # As the verb `faults` has it.
    settings = Settings(seed=SEED, examples=200, steps_min=0, seconds_max=60.0)

    def progress(what: str, done: int, of: int) -> None:
        print(f"{done:>4}/{of} {what}", file=sys.stderr, flush=True)

    matrix_document(faults, settings, place, progress, seeds=seeds, workers=workers)


def read(directory: Path) -> list[dict[str, Any]]:
    """Return what came of all plantings of which there are documents."""
    found = sorted(directory.glob(f"*/{RESULT}"))
    return [kill for path in found for kill in json.loads(path.read_text())["matrix"]]


def print_table(kills: list[dict[str, Any]]) -> None:
    """Print a row for each fault: its seeds, clauses, lengths of stories, and processor time."""
    by_fault = defaultdict(list)
    for kill in kills:
        by_fault[kill["fault"]].append(kill)
    print("| fault | killed at | by clause | steps | processor s |\n|---|---|---|---|---|")
    for fault, same in by_fault.items():
        clauses = Counter(
            f"{kill['clause'] or kill['outcome']}{'' if kill['expected'] else ' (!)'}"
            for kill in same
        )
        by = ", ".join(clauses)
        steps = ", ".join(str(kill["steps"]) for kill in same)
        used = sum(kill["processor_s"] for kill in same)
        killed = sum(kill["outcome"] == KILLED for kill in same)
        print(f"| `{fault}` | {killed} of {len(same)} | {by} | {steps} | {used:.1f} |")


def main() -> int:
    """Print the table and what it comes to; answer 1 where an aim is missed."""
    directory = Path(sys.argv[1])
    part, parts = map(int, sys.argv[2].split("/")) if len(sys.argv) > 2 else (1, 1)
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    if part:
        measure(directory, part, parts, seeds, workers)
    kills = read(directory)
    print_table(kills)
    missed = [kill for kill in kills if kill["outcome"] != KILLED or not kill["expected"]]
    steps = [kill["steps"] for kill in kills if kill["outcome"] == KILLED]
    used, waited = (sum(kill[name] for kill in kills) for name in ("processor_s", "seconds"))
    longest, median = max(steps), statistics.median(steps)
    minutes = max(used, waited) / CORES / 60
    print(
        f"\n{len({kill['fault'] for kill in kills})} faults, {len(kills)} plantings: "
        f"{len(kills) - len(missed)} killed by a clause that is made for it; "
        f"stories of {median:g} steps in the median and {longest} at most; "
        f"{used:.0f} s of processor time, {waited:.0f} s by the clock one after another: "
        f"{minutes:.1f} min on {CORES} processors"
    )
    met = longest <= STEPS_MAX and median <= STEPS_MEDIAN and minutes <= MINUTES and not missed
    print(f"aims: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
