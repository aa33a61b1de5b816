"""How fast observations are judged: lines per second, in one process.

Writes the lines of many partitions, told by the model: walks through its machine, and leaders by
the clock. Then reads the files with decoding alone, and with decoding and judging, turn by turn.

    python benchmarks/observations.py [LINES] [ROUNDS]
"""

import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "judge"))

from observed_walks import Telling, tell_term, tell_walk

from reassure_pipeline.audit.observed import judge_observations, read_observations, sort_paths
from reassure_spec.observations import encode_observation
from reassure_spec.readings import get_profile, override_readings

READINGS = override_readings(get_profile("kip-236-amended"), {"hw.over-stored-isr": "no"})


def write_files(folder: Path, wanted: int) -> int:
    """Write about as many lines as wanted, one file for each writer; return how many."""
    random, lines, number = Random(1), {}, 0
    while sum(map(len, lines.values())) < wanted:
        telling = Telling("t", number, lines)
        if number % 2:
            tell_walk(random, get_profile("kip-236-amended"), 3, 400, telling)
        else:
            tell_term(random, READINGS, 3, 400, telling)
        number += 1
    for writer, told in lines.items():
        (folder / f"{writer}.ndjson").write_bytes(b"".join(map(encode_observation, told)))
    return sum(map(len, lines.values()))


def measure(action: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that an action took: on the clock, and of processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> int:
    """Print the medians."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        count = write_files(folder, wanted)
        paths = sort_paths([folder])
        megabytes = sum(path.stat().st_size for path in paths.files) / 1e6
        decode, judge = [], []
        for _ in range(rounds):
            decode.append(
                measure(lambda: sum(1 for path in paths.files for _ in read_observations(path)))
            )
            judge.append(measure(lambda: judge_observations(paths, READINGS, is_over=True)))
        report, _ = judge_observations(paths, READINGS, is_over=True)
    print(f"{count:,} lines, {megabytes:.1f} MB, {report.partitions} partitions, ", end="")
    print(f"median of {rounds}, {platform.platform()}, Python {platform.python_version()}")
    for name, times in (("decode", decode), ("decode and judge", judge)):
        clock, processor = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name:>17}: {count / clock:>9,.0f} lines/s on the clock, "
            f"{count / processor:>9,.0f} of processor time"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
