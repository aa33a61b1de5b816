"""A process that writes a log is killed at random moments; what it had flushed is there."""

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import decode

ROUNDS = 8

WRITER = """
import pathlib, sys
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import Record

directory = LogDirectory(pathlib.Path(sys.argv[1]), 1, "c", segment_bytes=3000)
log = directory.log("t", 0)
epoch = max(log.epochs.latest, 0)
print("safe", log.recovery_point, flush=True)
while True:
    first = log.end_offset
    if first % 7 == 6:
        epoch += 1
    log.append([Record(b"%d" % n, b"x" * (n % 50)) for n in range(first, first + 3)], epoch, 0)
    if first % 5 == 0:
        directory.flush()
        print("safe", log.end_offset, flush=True)
    if first % 11 == 10:
        print("safe", min(first - 9, log.recovery_point), flush=True)
        log.truncate_to(first - 9)
"""


def test_killed_writer_keeps_what_it_flushed(tmp_path: Path) -> None:
    """Each kill leaves a log that opens, holds all that was said to be safe, and has no hole."""
    chance = random.Random(0)
    heard = 0
    for _ in range(ROUNDS):
        said = run_and_kill(tmp_path, chance.uniform(0.02, 0.3))
        heard += len(said)
        with LogDirectory(tmp_path, 1, "c", segment_bytes=3000) as directory:
            log = directory.log("t", 0)
            assert log.end_offset >= said[-1]
            position = 0
            while raw := log.read(position, 10_000):
                for offset, record in decode(raw):
                    assert (offset, record.key) == (position, b"%d" % position)
                    assert record.value == b"x" * (position % 50)
                    position += 1
            assert position == log.end_offset
    assert heard > 5 * ROUNDS, "the writer was killed before it wrote much"


def run_and_kill(path: Path, seconds: float) -> list[int]:
    """Let a writer go on with the log for so long; return up to where it said it is safe."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        said = first + process.stdout.read()
    assert first.startswith("safe"), "the log did not open after a kill"
    return [int(number) for number in re.findall(r"^safe (\d+)\b.*\n", said, re.MULTILINE)]
