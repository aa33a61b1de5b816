"""A watch that is killed at any moment: each violation stands in its journal exactly once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.watch.watch_checkpoint import JOURNAL, STATE
from reassure_spec.readings import get_profile
from reassure_zookeeper.txnlog import log_files
from reassure_zookeeper.txnlog_writer import GrowingLog

KILLS = 6
FAULTS = 60
LIMIT_S = 240.0
# Often enough that there are states to go on from, and rarely enough that much comes after one.
OFTEN = """
import sys
from reassure_conformance.cli import run_command
from reassure_pipeline.watch import loop as watch_loop

watch_loop._SAVE_S, watch_loop._SAVE_SHARE = 0.2, 0
sys.exit(run_command(sys.argv[1:]))
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
        self._files = parts // 7
        self._log = GrowingLog(folder)

    def write(self) -> None:
        """Write the next part, if there is one."""
        if self.parts:
            self._log.append(*self.parts.pop(0))
            if len(self.parts) % self._files == 0:
                self._log.rotate()

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


def make_command(start: list[str], archive: GrowingArchive, kept: Path) -> list[str]:
    """Return the command line of a watch that keeps what it tells."""
    watch = [*start, "audit", "--follow", str(archive.folder), "--checkpoint", str(kept)]
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
