"""What brokers write of themselves, beside what they write to their logs, while idle and at work.

Three brokers as processes; each partition has three replicas. First nothing happens for a while,
then records of 1 kB arrive at a rate, acks=all, a producer for each partition.

    python benchmarks/written_lines.py [SECONDS] [PARTITIONS] [BATCH] [RECORDS_PER_SECOND]

Prints the bytes written while nothing happened, and then by kind of line, of those of the logs.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from throughput import RECORD_BYTES, TOPIC, Nodes, Producer, start_producers

from reassure_zookeeper.server import Server

SETTLE_S = 8.0
"""How long marks may take to be saved after the last record."""


def measure_lines(data: Path) -> Counter[str]:
    """Return the bytes of all lines by kind."""
    found: Counter[str] = Counter()
    for file in data.glob("*/observations/*"):
        for line in file.read_bytes().splitlines(keepends=True):
            found[json.loads(line)["kind"]] += len(line)
    return found


def measure_logs(data: Path) -> int:
    """Return the bytes of all logs."""
    return sum(file.stat().st_size for file in data.glob(f"*/logs/{TOPIC}-*/*.log"))


def send_at_pace(producer: Producer, pause_s: float, until: float) -> int:
    """Send a batch each `pause_s`, or as soon as the last one is acknowledged; return how many."""
    sent, due = 0, time.monotonic()
    while (now := time.monotonic()) < until:
        time.sleep(max(0.0, due - now))
        producer.send()
        sent, due = sent + 1, max(due, now) + pause_s
    return sent


def main() -> None:
    """Measure and print."""
    given = [float(word) for word in sys.argv[1:]]
    seconds, count, records, rate = given + [20.0, 15.0, 50.0, 1_000.0][len(given) :]
    with (
        tempfile.TemporaryDirectory() as folder,
        Server.start() as server,
        Nodes(server.hosts, Path(folder)) as nodes,
    ):
        data = Path(folder)
        producers = start_producers(nodes, server.hosts, int(count), int(records))
        time.sleep(SETTLE_S)
        before = measure_lines(data)
        time.sleep(seconds)
        idle = measure_lines(data) - before
        before, log_before = measure_lines(data), measure_logs(data)
        until = time.monotonic() + seconds
        pause_s = count * records / rate
        with ThreadPoolExecutor(len(producers)) as pool:
            work = [pool.submit(send_at_pace, one, pause_s, until) for one in producers]
            sent = sum(one.result() for one in work)
        lines, log = measure_lines(data) - before, measure_logs(data) - log_before
    print(f"{count:.0f} partitions, batches of {records:.0f} records of {RECORD_BYTES} B")
    print(f"nothing happens for {seconds:.0f} s: {idle.total()} B {dict(idle)}")
    print(
        f"{sent * records / seconds:,.0f} records/s: {log:,} B of logs, lines {lines.total():,} B"
    )
    print(f"{lines.total() / log:.2%} " + str({k: f"{n / log:.2%}" for k, n in lines.items()}))


if __name__ == "__main__":
    main()
