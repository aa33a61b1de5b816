"""Tables that a watch appends to: they hold what an audit writes, while it goes on telling."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pipeline_steps import Server, flip, plant, read_tables, watch

from reassure_conformance.answers.auditing import audit_document
from reassure_lab.archives.sample import write_sample
from reassure_pipeline.audit.passes import Options
from reassure_pipeline.watch import appending
from reassure_pipeline.watch.appending import Appending
from reassure_zookeeper.txnlog_writer import GrowingLog

PROFILE = "kip-236"
LIMIT_S = 60.0


def audit(tables: Path, *paths: Path) -> None:
    """Append what an audit says of paths."""
    options = Options()._asdict()
    audit_document(paths, PROFILE, {}, None, tables=tables, **options)


def count(tables: Path) -> Counter[str]:
    """Return how often each row stands in the tables, whenever it was appended."""
    there = read_tables(tables) if tables.is_dir() else {}
    return Counter(f"{name} {row | {'run': 0}}" for name, rows in there.items() for row in rows)


def test_rows_are_those_of_audits(server: Server, tmp_path: Path) -> None:
    """Of what is broken, damaged, or sound and growing: each once, also after it has grown."""
    folders = [server("bad", plant()), server("torn", plant("/kafka"))]
    flip(next(folders[1].rglob("log.*")))
    history = write_sample(topics=2)
    grown = tmp_path / "grown"
    grown.mkdir()
    log = GrowingLog(grown)
    log.append(*history[:60])
    folders.append(grown)
    watched, audited = tmp_path / "watched", tmp_path / "audited"
    _, document = watch(*folders, tables=watched)
    audit(audited, *folders)
    assert document["verdict"] == "violated"
    first = count(watched)
    assert first == count(audited)
    assert set(first.values()) == {1}
    watch(*folders, tables=watched)
    assert count(watched) == first
    log.append(*history[60:])
    watch(*folders, tables=watched)
    audit(audited, *folders)
    assert first < count(watched) == count(audited)


class Slow:
    """An audit that takes its time, and says what it did by files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> Exception | None:
        """Begin, and end once somebody says so."""
        (self.folder / f"{time.monotonic()}").touch()
        while not (self.folder / "go on").exists():
            time.sleep(0.01)
        return None

    def count(self) -> int:
        """Return how many have begun."""
        return len([each for each in self.folder.iterdir() if each.name != "go on"])


def wait_for(what: Any) -> None:
    """Wait until it is so."""
    until = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_audits_are_one_at_a_time_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing was told the next one is far, after an alert it is not, and one ends all."""
    monkeypatch.setattr(appending, "ALERT_S", 0.0)
    audits = Slow(tmp_path)
    tables = Appending(audits, pytest.fail)
    tables.look(0, 0)
    tables.look(5, 0)
    wait_for(lambda: audits.count() == 1)
    tables.look(9, 1)
    assert audits.count() == 1
    (tmp_path / "go on").touch()

    def is_again() -> bool:
        tables.look(9, 1)
        return audits.count() == 2

    monkeypatch.setattr(appending, "_COST", 0)
    wait_for(is_again)
    for _ in range(50):
        tables.look(50, 1)
        time.sleep(0.002)
    assert audits.count() == 2
    tables.finish(50, 1)
    assert audits.count() == 3
    tables.finish(50, 1)
    assert audits.count() == 3
    assert tables.problems == ()


def test_what_is_not_written_is_told(server: Server, tmp_path: Path) -> None:
    """A verdict on all of it lacks the tables, and an audit that died is not taken for done."""
    good = server("good", write_sample(1))
    (tmp_path / "tables").write_text("a file")
    told, document = watch(good, tables=tmp_path / "tables" / "there")
    assert document["verdict"] == "unknown"
    assert [each for each in document["needs"] if "not all is in the tables" in each] == told.said
    said: list[str] = []
    died = Appending(partial(os._exit, 3), said.append)
    died.finish(1, 0)
    assert "ended with 3" in said[0]
    assert died.problems == (said[0],)


def test_killed_amid_what_it_appends_each_row_stands_once(server: Server, tmp_path: Path) -> None:
    """Whoever kills a watch finds the tables whole after the next one, and no process left."""
    bad, tables = server("bad", plant()), tmp_path / "tables"
    command = [sys.executable, "-c", "from reassure_conformance.cli import main; main()"]
    command += ["audit", "--follow", str(bad), "--profile", PROFILE, "--tables", str(tables)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: (tables / "findings" / "_delta_log").is_dir())
        children = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert psutil.wait_procs(children, LIMIT_S)[1] == []
    watch(bad, tables=tables)
    audit(tmp_path / "whole", bad)
    assert count(tables) == count(tmp_path / "whole") != Counter()
