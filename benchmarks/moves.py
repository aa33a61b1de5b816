"""How long one request for many partitions takes: three brokers with logs, everything a process.

Each partition's leader goes elsewhere, its follower stays; they hold no records. A cluster is
started for each run, and the time is that from the request until the last partition is where it is
wanted.

    python benchmarks/moves.py [PARTITIONS] [RUNS]

To compare two checkouts run it with each one's python, by turns.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from reassure_controller.session import connect, stop
from reassure_spec.znodes import (
    REASSIGNMENT_REQUESTS,
    RequestZnode,
    decode_topic,
    encode_request,
    encode_topic,
    state_path,
    topic_path,
)

TOPIC: Final = "many"
BEFORE, AFTER = (1, 2), (3, 2)
WAIT_S: Final = 600.0
POLL_S: Final = 0.05


def wait_for(done: Any) -> float:
    """Return how long it took until `done` answered yes."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > WAIT_S:
            raise SystemExit(f"not done within {WAIT_S:.0f} s")
        time.sleep(POLL_S)
    return time.monotonic() - began


def move(partitions: int, hosts: str) -> float:
    """Create a topic and move all of it; return how long the request took."""
    client = connect(hosts)
    try:
        numbers = range(partitions)
        client.create(topic_path(TOPIC), encode_topic(dict.fromkeys(numbers, BEFORE)))
        wait_for(lambda: all(client.exists(state_path(TOPIC, number)) for number in numbers))
        asked = encode_request(RequestZnode(dict.fromkeys(((TOPIC, n) for n in numbers), AFTER)))
        client.create(f"{REASSIGNMENT_REQUESTS}/request_", asked, sequence=True)

        def is_done() -> bool:
            content = client.get(topic_path(TOPIC))[0]
            return set(decode_topic(topic_path(TOPIC), content).values()) == {AFTER}

        return wait_for(is_done)
    finally:
        stop(client)


def main(partitions: int = 120, runs: int = 5) -> None:
    """Print each run's time, and the median."""
    reassure = str(Path(sys.executable).with_name("reassure"))
    found = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            command = (reassure, "lab", "cluster")
            where = ("--directory", f"{folder}/cluster")
            up = subprocess.run(
                [*command, "up", "--detach", *where], check=True, capture_output=True, text=True
            )
            try:
                match = re.search(r"zookeeper (\S+)", up.stdout)
                assert match is not None, up.stdout
                found.append(move(partitions, match[1]))
            finally:
                subprocess.run([*command, "down", *where], check=True, capture_output=True)
        print(f"{partitions} partitions: {found[-1]:.2f} s", flush=True)
    print(f"{partitions} partitions: median {statistics.median(found):.2f} s of {runs} runs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
