"""How soon `reassure watch` tells: from the write of a transaction to the line that names it.

    python benchmarks/watch.py [--rate 2000] [--seconds 30] [--partitions 1000] [--spark MASTER]

A history of a cluster at work, with faults planted in it, is written into a growing log, with zeros
in advance and file after file as ZooKeeper does, at a rate that is kept by the clock. The time of a
fault's write is taken once it is in the file; that of its line as it is read. The clock starts when
the first fault was told, so that starting is no part of it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import quantiles
from typing import IO, Any

from reassure_pipeline.synthetic import Size, SyntheticHistory
from reassure_zookeeper.txnlog_writer import GrowingLog

FAULTS_PER_S = 10
TICK_S = 0.01
BLOCK = 1 << 26
PER_FILE = 20_000
LIMIT_S = 180.0


def measure(rate: int, seconds: int, partitions: int, spark: str | None) -> dict[str, Any]:
    """Return the time that each fault took to be told, and what the watch took of the processor."""
    faults = FAULTS_PER_S * seconds
    size = Size(rate * seconds + 12 * partitions, partitions, faults, 1)
    made = SyntheticHistory(size)
    history = [each for some in made.steps() for each in some]
    planted = {fault.zxid for fault in made.planted}
    first = min(planted)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "log"
        folder.mkdir()
        command = [str(Path(sys.executable).with_name("reassure")), "watch", str(folder)]
        command += ["--profile", "kip-236", "--checkpoint", f"{scratch}/kept", "--format", "json"]
        command += ["--spark", spark] if spark else []
        told: dict[int, float] = {}
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            reader = threading.Thread(target=note, args=(process.stdout, told))
            reader.start()
            log = GrowingLog(folder, block=BLOCK)
            begun = next(n for n, each in enumerate(history) if each.zxid == first) + 1
            log.append(*history[:begun])
            await_told(told, {first}, process)
            written, kept = write(log, history, begun, rate)
            wanted = {zxid for zxid in planted if zxid in written}
            await_told(told, wanted, process)
            process.terminate()
            reader.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = sorted(told[zxid] - written[zxid] for zxid in wanted)
    cuts = quantiles(took, n=100)
    return {
        "transactions": len(history) - begun,
        "rate": round(kept),
        "partitions": partitions,
        "faults": len(took),
        "p50_s": round(cuts[49], 3),
        "p99_s": round(cuts[98], 3),
        "max_s": round(took[-1], 3),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "load": os.getloadavg()[0],
    }


def note(lines: IO[bytes], told: dict[int, float]) -> None:
    """Note when each line came, by the zxid that it names."""
    for line in lines:
        now = time.monotonic()
        alert = json.loads(line)
        if "zxid" in alert:
            told.setdefault(alert["zxid"], now)


def await_told(told: dict[int, float], wanted: set[int], process: subprocess.Popen[bytes]) -> None:
    """Wait until all of these were told."""
    until = time.monotonic() + LIMIT_S
    while not wanted <= told.keys():
        if process.poll() is not None or time.monotonic() > until:
            sys.exit(f"{len(wanted - told.keys())} of {len(wanted)} were not told")
        time.sleep(0.01)


def write(
    log: GrowingLog, history: list[Any], begun: int, rate: int
) -> tuple[dict[int, float], float]:
    """Write what is left; return when each zxid was written, and the rate that was kept."""
    written: dict[int, float] = {}
    start, at = time.monotonic(), begun
    while at < len(history):
        due = begun + round((time.monotonic() - start) * rate)
        part = history[at : min(due, at + PER_FILE)]
        if part:
            log.append(*part)
            now = time.monotonic()
            written.update((each.zxid, now) for each in part)
            if at // PER_FILE != (at + len(part)) // PER_FILE:
                log.rotate()
            at += len(part)
        time.sleep(TICK_S)
    return written, (at - begun) / (time.monotonic() - start)


def main() -> None:
    """Measure, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--spark", metavar="MASTER")
    given = parser.parse_args()
    print(json.dumps(measure(given.rate, given.seconds, given.partitions, given.spark)))


if __name__ == "__main__":
    main()
