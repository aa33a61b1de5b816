"""A watch that is killed at any moment: each violation stands in its journal exactly once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from reassure_pipeline.audit import audit_local
from reassure_pipeline.synthetic import Size, SyntheticHistory
from reassure_pipeline.watch_state import JOURNAL, STATE
from reassure_spec.readings import get_profile
from reassure_zookeeper.txnlog import log_files
from reassure_zookeeper.txnlog_writer import GrowingLog

KILLS = 6
PARTS = 300
LIMIT_S = 60.0
# Often enough that there are states to go on from, and rarely enough that much comes after one.
OFTEN = """
import sys
from reassure_conformance.cli import run_command
from reassure_pipeline import watch_loop

watch_loop._SAVE_S, watch_loop._SAVE_SHARE = 0.2, 0
sys.exit(run_command(sys.argv[1:]))
"""


def test_killed_at_any_moment_it_tells_what_an_audit_finds(tmp_path: Path) -> None:
    """What is told over all its lives is what an audit of the same logs finds, none twice."""
    folder, kept, random = tmp_path / "data", tmp_path / "kept", Random(3)
    folder.mkdir()
    made = SyntheticHistory(Size(9_000, 60, 60, 2))
    history = [each for some in made.steps() for each in some]
    step = -(-len(history) // PARTS)
    parts = [history[start : start + step] for start in range(0, len(history), step)]
    log = GrowingLog(folder)
    printed: list[bytes] = []

    def write() -> None:
        if parts:
            log.append(*parts.pop(0))
            if len(parts) % 40 == 0:
                log.rotate()

    write()
    watch = [sys.executable, "-c", OFTEN, "watch", str(folder), "--checkpoint", str(kept)]
    watch += ["--profile", "kip-236", "--format", "json"]
    for life in range(KILLS):
        with subprocess.Popen(watch, stdout=subprocess.PIPE) as process:
            begun, until = _look(kept / STATE), time.monotonic() + LIMIT_S
            write()
            while _look(kept / STATE) == begun and time.monotonic() < until:
                time.sleep(0.002)
            wanted = _look(kept / JOURNAL)[0] + random.randrange(1, 9_000)
            while _look(kept / JOURNAL)[0] < wanted and len(parts) > KILLS - life:
                write()
                time.sleep(0.02)
            time.sleep(random.random() / 50)
            os.kill(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        printed += output.splitlines()
    while parts:
        write()
    last = subprocess.run([*watch, "--until-caught-up"], stdout=subprocess.PIPE, check=False)
    assert last.returncode == 1
    *lines, end = last.stdout.splitlines()
    document, printed = json.loads(end), printed + lines
    told = [json.loads(line) for line in (kept / JOURNAL).read_text("utf-8").splitlines()]
    report = audit_local([folder], "kip-236", get_profile("kip-236")).as_json_dict()
    names = ("clause", "topic", "partition", "zxid", "before", "after", "reason")
    listed = sorted(tuple(each[name] for name in names) for each in told)
    assert listed == sorted(tuple(each[name] for name in names) for each in report["violations"])
    assert len(listed) == 60
    assert len({each["id"] for each in told}) == 60
    assert document["counts"]["violations"] == 60
    assert document["clauses"] == report["clauses"]
    # Whoever reads the lines misses none either, and can tell what comes again.
    assert {json.loads(line)["id"] for line in printed} == {each["id"] for each in told}
    assert any(json.loads(line)["repeated"] for line in printed)
    assert len(log_files(folder)) > 1


def _look(path: Path) -> tuple[int, int]:
    """Return size and time of a file."""
    status = path.stat() if path.is_file() else None
    return (0, 0) if status is None else (status.st_size, status.st_mtime_ns)
