"""The whole catalogue of planted faults: by which clause each is caught, how soon, at what cost.

It takes many minutes, so it can be had in parts: each is a run of the kill matrix of its own in
DIRECTORY, and what all parts together say is printed after each. Processor time is counted, that of
ZooKeeper included, which depends less on what else the machine does than the clock.

    python benchmarks/planted_faults.py DIRECTORY [PART/PARTS] [SEEDS] [WORKERS]
"""

import json
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate.faultmatrix import KILLED, matrix_document
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.mutants import load_mutants
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
    faults = tuple(load_mutants())[part - 1 :: parts]
    # As the verb `mutants` has it.
    settings = Settings(seed=SEED, examples=200, steps_min=0, seconds_max=60.0)

    def progress(what: str, done: int, of: int) -> None:
        print(f"{done:>4}/{of} {what}", file=sys.stderr, flush=True)

    matrix_document(faults, settings, place, progress, seeds=seeds, workers=workers)


def read(directory: Path) -> list[dict[str, Any]]:
    """Return the documents of all parts that there are."""
    return [json.loads(path.read_text()) for path in sorted(directory.glob(f"*/{RESULT}"))]


def print_table(kills: list[dict[str, Any]]) -> None:
    """Print a row for each fault: its seeds, clauses, lengths of stories, and seconds."""
    by_fault = defaultdict(list)
    for kill in kills:
        by_fault[kill["fault"]].append(kill)
    print("| fault | killed at | by clause | steps | seconds |\n|---|---|---|---|---|")
    for fault, same in by_fault.items():
        clauses = Counter(
            f"{kill['clause'] or kill['outcome']}{'' if kill['expected'] else ' (!)'}"
            for kill in same
        )
        by = ", ".join(clauses)
        steps = ", ".join(str(kill["steps"]) for kill in same)
        seconds = sum(kill["seconds"] for kill in same)
        killed = sum(kill["outcome"] == KILLED for kill in same)
        print(f"| `{fault}` | {killed} of {len(same)} | {by} | {steps} | {seconds:.1f} |")


def main() -> int:
    """Print the table and what it comes to; answer 1 where an aim is missed."""
    directory = Path(sys.argv[1])
    part, parts = map(int, sys.argv[2].split("/")) if len(sys.argv) > 2 else (1, 1)
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    if part:
        measure(directory, part, parts, seeds, workers)
    parts_made = read(directory)
    kills = [kill for each in parts_made for kill in each["matrix"]]
    print_table(kills)
    missed = [kill for kill in kills if kill["outcome"] != KILLED or not kill["expected"]]
    steps = [kill["steps"] for kill in kills if kill["outcome"] == KILLED]
    used, waited = (sum(each[name] for each in parts_made) for name in ("processor_s", "seconds"))
    longest, median = max(steps), statistics.median(steps)
    minutes = used / CORES / 60
    print(
        f"\n{len({kill['fault'] for kill in kills})} faults, {len(kills)} plantings: "
        f"{len(kills) - len(missed)} killed by a clause that is made for it; "
        f"stories of {median:g} steps in the median and {longest} at most; "
        f"{used:.0f} s of processor time, {minutes:.1f} min on {CORES} processors; "
        f"the parts took {waited:.0f} s by the clock"
    )
    met = longest <= STEPS_MAX and median <= STEPS_MEDIAN and minutes <= MINUTES and not missed
    print(f"aims: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
