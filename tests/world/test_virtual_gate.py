"""The gate in the virtual world: the same stories as in life, and a seed that is a run."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from reassure_conformance.answers.case_run import list_possible, open_bench
from reassure_conformance.cli import run_command
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.replication.brokers import BrokersRunner
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.mutants import load_mutants
from reassure_judge.messages import Told
from reassure_zookeeper.transactions import CloseSession, Transaction

CLOCK: Final = re.compile(rb"^[-0-9]+ [:,0-9]+ ", re.MULTILINE)
"""When a line of implementation.log was written, which is told by the machine's clock."""
TIME: Final = re.compile(rb'("timestamp": ?"?)\d+')


def describe(transactions: Iterable[Transaction]) -> list[Any]:
    """Return what a log says but for its times, with sessions and zxids by their order."""
    sessions: dict[int, int] = {}
    told = []
    for one in transactions:
        number = sessions.setdefault(one.session_id, len(sessions))
        ops = [
            replace(op, data=TIME.sub(rb"\1", op.data)) if hasattr(op, "data") else op
            for op in one.attempted or one.ops
        ]
        told.append((number, one.type, one.error, ops))
    return told


def tell_all(world: str, folder: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Tell every shipped test case in a world: what came of each, and of all by clause."""
    told: dict[str, Any] = {}
    with open_bench(Settings(seed=0, world=world), folder) as harness:
        for story in list_possible(harness):
            told[story.name] = sum_up(harness, harness.tell(story))
        return told, dict(harness.judge.exercised)


def sum_up(harness: Harness, example: Example) -> Any:
    """Return all that came of a story, but for ids and times."""
    messages = [
        replace(one, zxid=0, broker_epoch=None) if isinstance(one, Told) else one
        for one in example.messages
    ]
    steps = [(done.result, done.transactions) for done in example.done]
    found = [violation.clause for violation in example.violations]
    ends = [one for one in example.transactions if isinstance(one.ops[0], CloseSession)]
    return (
        *(steps, found, len(example.quiet), example.unsettled, messages, len(ends)),
        describe(one for one in example.transactions if one not in ends),
    )


def test_stories_end_the_same_in_the_virtual_world_and_in_life(tmp_path: Path) -> None:
    """Every test case has the same steps, writes, messages and verdicts, but for ids and times."""
    virtual, by_clause = tell_all("virtual", tmp_path / "virtual")
    real, really_by_clause = tell_all("real", tmp_path / "real")
    for name, ended in real.items():
        for one, other in zip(virtual[name], ended, strict=True):
            assert one == other, name
    assert by_clause == really_by_clause
    assert virtual.keys() == real.keys()


@pytest.mark.parametrize("fault", ["", "elected-epoch-skips"])
def test_controllers_and_brokers_with_logs_are_one_system(fault: str, tmp_path: Path) -> None:
    """Every test case of controllers holds with brokers that decide themselves who is in sync.

    They change no set without a fetch or a lag, and are judged like those without logs.
    """
    connectable = "direct:reassure_conformance.adapter.bundled_logs:BundledWithLogs"
    faults = (fault,) if fault else ()
    settings = Settings(seed=0, world="virtual", connectable=connectable, faults=faults)
    broken, asked = set[str](), Counter[str]()
    with open_bench(settings, tmp_path) as harness:
        for story in list_possible(harness):
            example = harness.tell(story)
            broken |= {one.clause for one in example.violations}
            asked.update(done.result for done in example.done if "joins" in str(done.step))
            assert not example.unsettled, story.name
            if broken:
                break
    assert bool(broken) == bool(fault), broken
    assert not fault or broken <= set(load_mutants()[fault].clauses)
    assert fault or asked["ok"] > asked["refused"]


def tell_brokers(world: str, folder: Path) -> dict[str, Any]:
    """Tell every shipped test case of brokers with logs in a world: what came of each."""
    settings = Settings(seed=0, world=world, profile=REPLICATION)
    runner = BrokersRunner(settings, folder)
    told = {}
    with runner.open():
        for story in runner.list_shipped():
            outcome = runner.carry_out(story)
            lives: dict[int, int] = {}
            lines = [
                line._replace(run=lives.setdefault(line.run, len(lives)))
                for each in outcome.observed
                for line in each
            ]
            runner.driver.read_log()
            told[story.name] = [
                *(outcome.carried_out, outcome.unrest, outcome.records, outcome.promised),
                *([one.clause for one in outcome.violations], outcome.tally.exercised, lines),
            ]
    return told


def test_brokers_with_logs_say_the_same_in_the_virtual_world_and_in_life(tmp_path: Path) -> None:
    """Every test case has the same steps, lines of every broker and verdicts, but for its lives."""
    virtual = tell_brokers("virtual", tmp_path / "virtual")
    real = tell_brokers("real", tmp_path / "real")
    for name, ended in real.items():
        for one, other in zip(virtual[name], ended, strict=True):
            assert one == other, name
    assert virtual.keys() == real.keys()
    assert all(lines for *_, lines in real.values())


def read_all(place: Path) -> dict[Path, bytes]:
    """Return every file below a directory."""
    return {
        file.relative_to(place): CLOCK.sub(b"", file.read_bytes())
        for file in place.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize(
    ("options", "expected", "kept"),
    [
        ([], 3, "result.json"),
        (["--profile", REPLICATION], 3, "result.json"),
        (
            ["--profile", REPLICATION, "--fault", "follow-untold"],
            1,
            "failure/broker-1/observations/observations.ndjson",
        ),
    ],
)
def test_a_seed_is_a_run_in_the_virtual_world(
    options: list[str], expected: int, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that disturb each other write the same bytes, of log and of report.

    Of a failure what brokers have observed is kept, and their logs. Texts hash differently in the
    two, so that the order of sets does; and different modules are loaded.
    """
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    command = ["test", "--world", "virtual", "--seed", "7", "--examples", "10", "--no-stories"]
    command += ["--out", "run", *options]
    program = [sys.executable, "-c", "from reassure_conformance.cli import main; main()"]
    beside = subprocess.Popen(
        [*program, *command],
        cwd=other,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    monkeypatch.chdir(one)
    said: list[str] = []
    code = run_command(command, said.append)
    words = beside.communicate(timeout=240)[0]
    assert beside.returncode == code == expected, words
    found = read_all(one / "run")
    assert {Path("zookeeper/version-2/log.1"), Path(kept)} <= found.keys()
    assert read_all(other / "run") == found
