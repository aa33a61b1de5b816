"""How fast transaction logs are judged: transactions per second, in one process.

Writes a synthetic log of correct reassignments, some changed in flight; nearly every transaction
is a write that the judge must examine. Then reads it with decoding alone, and with decoding and
judging, turn by turn. The ratio of the two hardly depends on the machine; the figures do.

    python benchmarks/judge.py [TRANSACTIONS] [ROUNDS]
"""

import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from reassure_pipeline.audit import audit_local
from reassure_pipeline.sample import write_sample
from reassure_spec.readings import get_profile
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import write_log

PROFILE = "kip-236"
PER_TOPIC = 150
TARGET = 60_000


def measure(action: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that an action took: on the clock, and of processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> int:
    """Print the medians; answer 1 where the target is missed."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        history = write_sample(topics=wanted // PER_TOPIC + 1)
        log, count = write_log(folder, history), len(history)
        del history
        megabytes = log.stat().st_size / 1e6
        readings = get_profile(PROFILE)
        decode, judge = [], []
        for _ in range(rounds):
            decode.append(measure(lambda: sum(len(batch) for batch in read_logs(log).batches())))
            judge.append(measure(lambda: audit_local([log], PROFILE, readings)))
    print(f"{count:,} transactions, {megabytes:.1f} MB, median of {rounds}, {platform.platform()},")
    print(f"Python {platform.python_version()}")
    speeds = []
    for name, times in (("decode", decode), ("decode and judge", judge)):
        clock, processor = (statistics.median(column) for column in zip(*times, strict=True))
        speeds.append(count / clock)
        print(
            f"{name:>17}: {count / clock:>9,.0f} transactions/s on the clock, "
            f"{count / processor:>9,.0f} of processor time"
        )
    ratio = statistics.median(j[1] / d[1] for d, j in zip(decode, judge, strict=True))
    print(f"{'ratio':>17}: decoding and judging takes {ratio:.1f} times as long as decoding")
    print(
        f"{'target':>17}: {TARGET:,} transactions/s: {'met' if speeds[1] >= TARGET else 'MISSED'}"
    )
    return 0 if speeds[1] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
