"""Audits that are killed amid what they write: each row stands once, nothing is left running."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from pipeline_steps import Server, plant, read_tables
from test_tables import audit

from reassure_lab.archives.sample import write_sample

MOMENTS = 7
LIMIT_S = 120.0
KILLED = """
import os, signal, sys, threading
from pathlib import Path

import deltalake

from reassure_pipeline.audit.archive_audit import ArchiveAudit
from reassure_pipeline.checkpoints import audits
from reassure_pipeline.spark.placement import OnSpark
from reassure_pipeline.tables import fleet_tables
from test_tables import audit

_, moment, delay, master, tables, *folders = sys.argv
met = []

def meet(place, name):
    work = getattr(place, name)

    def do(*given, **named):
        met.append(name)
        if len(met) == int(moment):
            threading.Timer(float(delay), os.kill, (os.getpid(), signal.SIGKILL)).start()
        return work(*given, **named)

    setattr(place, name, do)

meet(OnSpark, "run")
meet(ArchiveAudit, "_judge")
meet(audits, "keep")
meet(fleet_tables, "_append")
meet(deltalake, "write_deltalake")
meet(os, "fsync")
audit(Path(tables), *map(Path, folders), master=master or None, members="apart")
print(len(met))
"""


def run(tables: Path, folders: list[Path], *given: object, **options: Any) -> tuple[int, str]:
    """Audit folders in a process that may be killed; return its exit code and what it printed."""
    command = [sys.executable, "-c", KILLED, *map(str, (*given, tables, *folders))]
    options |= {"cwd": Path(__file__).parent, "stdout": subprocess.PIPE, "text": True}
    done = subprocess.run(command, check=False, **options)
    return done.returncode, done.stdout


def count(tables: Path) -> Counter[str]:
    """Return how often each row stands in the tables."""
    there = read_tables(tables) if tables.is_dir() else {}
    return Counter(f"{name} {row}" for name, rows in there.items() for row in rows)


@pytest.fixture
def folders(server: Server) -> list[Path]:
    """Return archives of which two have findings."""
    small = write_sample(topics=1)
    return [server("one", plant()), server("two", small), server("three", plant("/kafka"))]


def test_killed_at_any_moment_each_row_stands_once(folders: list[Path], tmp_path: Path) -> None:
    """Wherever it was, the tables hold rows of the whole, and the next audit adds the others."""
    code, printed = run(tmp_path / "whole", folders, -1, 0, "")
    assert code == 0
    whole, moments, killed = count(tmp_path / "whole"), int(printed), 0
    assert max(whole.values()) == 1
    for number in range(MOMENTS):
        place = tmp_path / f"killed-{number}"
        # Amid what it does there, now soon and now late.
        moment, delay = 1 + number * moments // MOMENTS, 0.003 * (number % 3)
        code, _ = run(place, folders, moment, delay, "")
        assert code in (-9, 0)
        killed += code == -9
        assert count(place) <= whole
        audit(place, *folders, members="apart")
        assert count(place) == whole
    assert killed > MOMENTS // 2


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("moment", "delay"), [(1, 2.0), (4, 0.0)])
def test_killed_on_spark_each_row_stands_once(
    folders: list[Path], tmp_path: Path, moment: int, delay: float
) -> None:
    """So where the driver is killed amid the tasks and amid a commit; its Java ends by itself."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    audit(tmp_path / "whole", *folders, members="apart")
    environment = {**psutil.Process().environ(), "TMPDIR": str(scratch)}
    code, _ = run(tmp_path / "killed", folders, moment, delay, "local[2]", env=environment)
    assert code == -9
    until = time.monotonic() + LIMIT_S
    while left := list_running(scratch):
        assert time.monotonic() < until, left
        time.sleep(0.1)
    assert count(tmp_path / "killed") <= count(tmp_path / "whole")
    audit(tmp_path / "killed", *folders, master="local[2]", members="apart")
    assert count(tmp_path / "killed") == count(tmp_path / "whole")


def list_running(scratch: Path) -> list[str]:
    """Return the command lines that name a folder: Spark's Java, and what it has started."""
    lines = (each.info["cmdline"] for each in psutil.process_iter(["cmdline"]))
    return [" ".join(line) for line in lines if line and str(scratch) in " ".join(line)]
