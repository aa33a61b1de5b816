"""Audits on Spark that go on where they were, as those of processes do."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from pipeline_steps import audit_spark, show

from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.audit.jobs import AuditBudget
from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.checkpoints.kept_files import KeptElsewhere, own_directory
from reassure_spec.readings import get_profile

PROFILE = "kip-236"
READINGS = get_profile(PROFILE)


@pytest.mark.slow
@pytest.mark.spark
def test_what_spark_kept_processes_go_on_from(made: Path, tmp_path: Path) -> None:
    """Of logs that have grown, and by whichever engine, only what is new is judged."""
    whole = show(audit_named([made], PROFILE, READINGS, facts=True))
    files = sorted((made / "version-2").iterdir())
    later = {file: file.read_bytes() for file in files[3:]}
    for file in later:
        file.unlink()
    said: list[str] = []
    options: dict[str, Any] = {"facts": True, "resume": tmp_path / "kept", "say": said.append}
    audit_spark([made], PROFILE, READINGS, "local[2]", **options)
    assert len(list((tmp_path / "kept").glob("*.state"))) == 2
    for file, content in later.items():
        file.write_bytes(content)
    assert show(audit_named([made], PROFILE, READINGS, jobs=None, **options)) == whole
    assert said == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_budget_ends_an_audit_on_spark_in_good_order(made: Path, tmp_path: Path) -> None:
    """As much is judged as was asked for, and the next audit goes on there."""
    budget = AuditBudget(transactions=1_150)
    options: dict[str, Any] = {"budget": budget, "resume": tmp_path / "kept"}
    report = audit_spark([made], PROFILE, READINGS, "local[2]", **options)
    assert show(report) == show(audit_named([made], PROFILE, READINGS, budget=budget))
    again = audit_named([made], PROFILE, READINGS, **options)
    assert [each.archives[0].transactions for each in (report, again)] == [1_150, 2_300]


INTERRUPTED = """
import os, signal, sys, threading
from reassure_conformance.cli import run_command
from reassure_pipeline.spark import gateway
from reassure_pipeline.spark.placement import OnSpark

place, name = {"starting": (gateway, "_await_gateway"), "judging": (OnSpark, "run")}[sys.argv[1]]
work = getattr(place, name)

def work_and_interrupt(*given):
    threading.Timer(0.3 if place is gateway else 1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    return work(*given)

setattr(place, name, work_and_interrupt)
sys.exit(run_command(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("moment", ["starting", "judging"])
def test_an_interrupt_leaves_no_process_no_folder_and_no_noise(tmp_path: Path, moment: str) -> None:
    """Amid a question to Java too: it says that it was interrupted, and nothing else is left."""
    write_archive(tmp_path / "made", Size(60_000, 400, 5, 1))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-c", INTERRUPTED, moment, "audit", str(tmp_path / "made")]
    command += ["--spark", "local[2]", "--profile", PROFILE, "--tables", str(tmp_path / "tables")]
    environment = {**psutil.Process().environ(), "TMPDIR": str(scratch)}
    done = subprocess.run(command, capture_output=True, check=False, text=True, env=environment)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.split() == ["interrupted"]
    assert list(scratch.glob("reassure-*")) == []
    assert not (tmp_path / "tables" / "archives").exists()
    left = [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"]]
    assert not [each for each in left if str(scratch) in " ".join(each.info["cmdline"])]


def test_a_directory_is_one_audits(made: Path, tmp_path: Path) -> None:
    """Nobody else may keep anything there at the same time, which is told before Spark starts."""
    with own_directory(tmp_path / "kept"), pytest.raises(KeptElsewhere):
        audit_spark([made], PROFILE, READINGS, "spark://127.0.0.1:1", resume=tmp_path / "kept")
