"""A watch that is killed at any moment: each violation stands in its journal exactly once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.watch.watch_checkpoint import JOURNAL, STATE
from reassure_spec.readings import get_profile
from reassure_zookeeper.txnlog import log_files
from reassure_zookeeper.txnlog_writer import GrowingLog

KILLS = 6
FAULTS = 60
LIMIT_S = 240.0  # Spark takes a minute to begin where others keep the processors busy
# Often enough that there are states to go on from, and rarely enough that much comes after one.
OFTEN = """
import sys
from reassure_conformance.cli import run_command
from reassure_pipeline.watch import loop as watch_loop

watch_loop._SAVE_S, watch_loop._SAVE_SHARE = 0.2, 0
sys.exit(run_command(sys.argv[1:]))
"""
# Stops itself once so many alerts were written, in one piece each, and what follows was kept.
STOPPING = """
import os, signal, sys
from reassure_conformance.cli import run_command
from reassure_pipeline.watch.watch_checkpoint import WatchCheckpoint, Journal

_, moment, appends, *arguments = sys.argv
done = []

def wrap(kind, name):
    real = getattr(kind, name)
    def do(*given):
        real(*given)
        done.append(name)
        if name == moment and done.count("append") == int(appends):
            os.kill(os.getpid(), signal.SIGSTOP)
    setattr(kind, name, do)

wrap(Journal, "append")
wrap(WatchCheckpoint, "save")
sys.exit(run_command(arguments))
"""


class GrowingArchive:
    """A history with violations in it, written part by part."""

    def __init__(self, folder: Path, parts: int) -> None:
        folder.mkdir()
        self.folder = folder
        made = SyntheticHistory(Size(9_000, 60, FAULTS, 2))
        history = [each for some in made.steps() for each in some]
        step = -(-len(history) // parts)
        self.parts = [history[start : start + step] for start in range(0, len(history), step)]
        self._planted = [fault.zxid for fault in made.planted]
        self._files = parts // 7
        self._log = GrowingLog(folder)
        self.last_zxid = -1

    def write(self) -> None:
        """Write the next part, if there is one."""
        if self.parts:
            part = self.parts.pop(0)
            self._log.append(*part)
            self.last_zxid = part[-1].zxid
            if len(self.parts) % self._files == 0:
                self._log.rotate()

    def write_faults(self) -> None:
        """Write parts until there are some more faults among what is written."""
        wanted = self._planted[2]
        while self.parts and self.last_zxid < wanted:
            self.write()
        self._planted = [zxid for zxid in self._planted if zxid > self.last_zxid]

    def finish(self) -> None:
        """Write all that is left."""
        while self.parts:
            self.write()


def test_killed_at_any_moment_it_tells_what_an_audit_finds(tmp_path: Path) -> None:
    """What is told over all its lives is what an audit of the same logs finds, none twice."""
    kept, random = tmp_path / "kept", Random(3)
    archive = GrowingArchive(tmp_path / "data", 300)
    archive.write()
    watch = make_command([sys.executable, "-c", OFTEN], archive, kept)
    printed: list[bytes] = []
    for life in range(KILLS):
        with subprocess.Popen(watch, stdout=subprocess.PIPE) as process:
            begun = look(kept / STATE)
            archive.write()
            await_that(process, lambda begun=begun: look(kept / STATE) != begun)
            wanted = look(kept / JOURNAL)[0] + random.randrange(1, 9_000)
            while look(kept / JOURNAL)[0] < wanted and len(archive.parts) > KILLS - life:
                archive.write()
                time.sleep(0.02)
            time.sleep(random.random() / 50)
            os.kill(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        printed += output.splitlines()
    check_the_last_life(watch, archive, kept, printed)
    assert len(log_files(archive.folder)) > 1


@pytest.mark.slow
@pytest.mark.spark
def test_killed_on_spark_it_tells_what_an_audit_finds(tmp_path: Path) -> None:
    """So on Spark, where what was told and what was kept is killed before Spark has noted it.

    First the driver is killed, whose Java ends by itself while the next driver starts; then both.
    """
    kept, scratch = tmp_path / "kept", tmp_path / "scratch"
    scratch.mkdir()
    archive = GrowingArchive(tmp_path / "data", 30)
    printed: list[bytes] = []
    left: list[psutil.Process] = []
    for moment, appends in (("append", 2), ("save", 1)):
        archive.write_faults()
        begin = [sys.executable, "-c", STOPPING, moment, str(appends)]
        watch = make_command(begin, archive, kept, "--spark", "local[2]")
        given: Any = {"stdout": subprocess.PIPE, "env": {**os.environ, "TMPDIR": str(scratch)}}
        with subprocess.Popen(watch, **given) as process:
            driver = psutil.Process(process.pid)
            try:
                if appends > 1:
                    await_that(process, lambda: look(kept / JOURNAL)[0] > 0)
                    archive.write_faults()
                await_that(process, lambda driver=driver: driver.status() == psutil.STATUS_STOPPED)
            finally:
                family = driver.children(recursive=True)
                driver.kill()
                for each in family if moment == "save" else ():
                    with suppress(psutil.NoSuchProcess):  # it has ended with another of them
                        each.kill()
                output, _ = process.communicate()
        printed += output.splitlines()
        left += family
        assert len(family) > 1
    watch = make_command([sys.executable, "-c", OFTEN], archive, kept)
    check_the_last_life([*watch, "--spark", "local[2]"], archive, kept, printed)
    assert psutil.wait_procs(left, timeout=LIMIT_S)[1] == []


def make_command(start: list[str], archive: GrowingArchive, kept: Path, *options: str) -> list[str]:
    """Return the command line of a watch that keeps what it tells."""
    watch = [*start, "audit", "--follow", str(archive.folder), "--checkpoint", str(kept), *options]
    return [*watch, "--profile", "kip-236", "--format", "json"]


def check_the_last_life(
    watch: list[str], archive: GrowingArchive, kept: Path, printed: list[bytes]
) -> None:
    """Let a watch come to the end of all there is, and see that everything was told, once."""
    archive.finish()
    last = subprocess.run([*watch, "--until-caught-up"], stdout=subprocess.PIPE, check=False)
    assert last.returncode == 1
    *lines, end = last.stdout.splitlines()
    document, printed = json.loads(end), printed + lines
    told = [json.loads(line) for line in (kept / JOURNAL).read_text("utf-8").splitlines()]
    report: Any = audit_named([archive.folder], "kip-236", get_profile("kip-236")).as_json_dict()
    names = ("clause", "topic", "partition", "zxid", "before", "after", "reason")
    listed = sorted(tuple(each[name] for name in names) for each in told)
    assert listed == sorted(tuple(each[name] for name in names) for each in report["violations"])
    assert len(listed) == FAULTS
    assert len({each["id"] for each in told}) == FAULTS
    assert document["counts"]["violations"] == FAULTS
    assert document["clauses"] == report["clauses"]
    # Whoever reads the lines misses none either, and can tell what comes again.
    assert {json.loads(line)["id"] for line in printed} == {each["id"] for each in told}
    assert any(json.loads(line)["repeated"] for line in printed)


def await_that(process: "subprocess.Popen[bytes]", holds: Callable[[], bool]) -> None:
    """Wait until something holds that a process brings about."""
    until = time.monotonic() + LIMIT_S
    while not holds():
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.002)


def look(path: Path) -> tuple[int, int]:
    """Return size and time of a file."""
    status = path.stat() if path.is_file() else None
    return (0, 0) if status is None else (status.st_size, status.st_mtime_ns)
