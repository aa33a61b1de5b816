"""The verb `audit --follow` as somebody meets it who reads its lines, or sits at a terminal."""

import io
import json
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from reassure_conformance.cli import run_command
from reassure_conformance.report.document import alert_schema, result_schema
from reassure_conformance.report.watch_view import render_status
from reassure_judge.protocols import make_rules
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_pipeline.audit.passes import Options
from reassure_pipeline.watch.alerts import DAMAGE, HOLE, NOT_FOLLOWED, UNSETTLED, VIOLATION
from reassure_pipeline.watch.loop import ArchiveWatch, Ending, LogWatch
from reassure_pipeline.watch.watch_checkpoint import JOURNAL, Journal
from reassure_spec.readings import get_profile
from reassure_zookeeper.txnlog_writer import GrowingLog

ADVICE = "isr.change.by-leader"
"""A clause that is taken for advice where a test needs some."""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return logs in which all is found that can be told: of each kind some."""
    cluster = SampleCluster()
    plant_all(cluster)
    folder = tmp_path / "broken"
    folder.mkdir()
    log, history = GrowingLog(folder), cluster.transactions
    log.append(*history[:120])
    log.write(b"\1" * 40)
    log.rotate()
    log.append(*history[125:])
    return folder


def say(*arguments: object) -> tuple[int, list[str]]:
    """Return exit code and what a command line says."""
    said: list[str] = []
    code = run_command(list(map(str, arguments)), said.append)
    return code, said


def test_lines_are_of_the_schema(
    broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each alert, of each kind, then the document; the journal has the same."""
    monkeypatch.setattr(
        "reassure_pipeline.watch.watched_archive.binds", lambda name: name != ADVICE
    )
    kept = tmp_path / "kept"
    options = ("--until-caught-up", "--profile", "kip-236", "--checkpoint", kept)
    code, said = say("audit", "--follow", broken, *options, "--format", "json")
    *lines, last = [json.loads(line) for line in said]
    assert {line["kind"] for line in lines} >= {VIOLATION, NOT_FOLLOWED, UNSETTLED, HOLE, DAMAGE}
    Draft202012Validator.check_schema(alert_schema())
    for line in lines:
        Draft202012Validator(alert_schema()).validate(line)
    Draft202012Validator(result_schema()).validate(last)
    assert (code, last["verdict"]) == (1, "violated")
    kinds = {"violations": VIOLATION, "not_followed": NOT_FOLLOWED, "unsettled": UNSETTLED}
    for name, kind in kinds.items():
        assert last["counts"][name] == sum(line["kind"] == kind for line in lines)
    journal = [json.loads(line) for line in (kept / JOURNAL).read_text("utf-8").splitlines()]
    assert [{**line, "repeated": False} for line in journal] == lines


def test_the_schema_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever writes a receiver finds what it is sent."""
    assert run_command(["spec", "schema", "alert"]) == 0
    assert json.loads(capsys.readouterr().out) == alert_schema()


def test_exit_codes_tell_the_verdict(tmp_path: Path, broken: Path) -> None:
    """0 where all holds, 1 where something is violated, 2 where it is not known, 3 for nothing."""
    history = write_sample(topics=1)
    for name, transactions in (("good", history), ("amid", history[20:])):
        (tmp_path / name).mkdir()
        GrowingLog(tmp_path / name).append(*transactions)
    options = ("--until-caught-up", "--profile", "kip-236")
    assert say("audit", "--follow", tmp_path / "good", *options)[0] == 0
    assert say("audit", "--follow", tmp_path / "amid", *options)[0] == 2
    assert say("audit", "--follow", broken, *options)[0] == 1
    assert say("audit", "--follow", tmp_path / "absent", "--for", "0")[0] == 3


def test_people_read_what_is_wrong_and_what_it_came_to(broken: Path) -> None:
    """The clause, the znode and the reason stand in the lines; the verdict heads the summary."""
    code, said = say("audit", "--follow", broken, "--until-caught-up", "--profile", "kip-236")
    assert code == 1
    text = "\n".join(said)
    assert "VIOLATED controller.write.epoch-checked\n  of       faulty-00-0\n" in text
    assert f"DAMAGE {broken}: " in text
    assert f"HOLE {broken}: " in text
    assert len(re.findall(r"^VIOLATED in [\d.]+ s: transactions ", text, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["{tmp}/absent", "--until-caught-up"], 65, "does not exist"),
        (["{tmp}/text", "--for", "9"], 65, "is it a transaction log?"),
        (["{tmp}/told.ndjson", "--for", "9"], 64, "reassure audit"),
        (["{tmp}/one", "{tmp}/one/../one", "--for", "9"], 64, "name only one of them"),
        (["{tmp}", "--profile", "kip-999"], 64, "there is no profile 'kip-999'"),
        (["{tmp}", "--checkpoint", "{tmp}/text"], 64, "is a file"),
        (["{tmp}/one", "--spark"], 64, "cannot be used with --follow"),
        (["{tmp}/one", "--for", "9", "--tables", "{tmp}/a[1]"], 64, "[ ] in its path"),
        ([], 64, "Missing argument"),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is wrong is said, with what to do, and the document says so as well."""
    (tmp_path / "one").mkdir()
    GrowingLog(tmp_path / "one").append(*write_sample(topics=1))
    (tmp_path / "text").write_text("nothing of the kind, and long enough")
    (tmp_path / "told.ndjson").write_text('{"kind": "writer", "writer": "x"}\n')
    given = [each.format(tmp=tmp_path) for each in arguments]
    got, said = say("audit", "--follow", *given, "--format", "json")
    assert got == code
    assert words in capsys.readouterr().err
    (line,) = said
    document = json.loads(line)
    Draft202012Validator(result_schema()).validate(document)
    assert (document["exit_code"], document["verdict"]) == (code, "unknown")


MAIN = "from reassure_conformance.cli import main; main()"
KEEPING_LATE = """
import time
from reassure_conformance.cli import main
from reassure_pipeline.watch.watch_checkpoint import WatchCheckpoint

save = WatchCheckpoint.save

def save_late(*given):
    time.sleep(1.0)
    save(*given)

WatchCheckpoint.save = save_late
main()
"""


def test_an_interrupt_ends_in_order(broken: Path, tmp_path: Path) -> None:
    """What was judged is summed up and kept, and the exit code is that of the verdict.

    What was told is kept as well, though the interrupt comes before that: nothing is told again.
    """
    kept = tmp_path / "kept"
    command = [sys.executable, "-c", KEEPING_LATE, "audit", "--follow", str(broken)]
    command += ["--checkpoint", str(kept), "--profile", "kip-236", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(rest.splitlines()[-1])["verdict"] == "violated"
    again = ["--checkpoint", kept, "--until-caught-up", "--format", "json"]
    code, said = say("audit", "--follow", broken, *again)
    assert (code, len(said)) == (1, 1)


def test_a_terminal_shows_how_it_stands(broken: Path, tmp_path: Path) -> None:
    """Archives, the clauses that are broken most often, and what is not at rest now."""
    rules = make_rules("kip-236", get_profile("kip-236"))
    paths = (broken, tmp_path / "absent")
    archives = [ArchiveWatch(path, rules, Options(facts=True)) for path in paths]
    journal = Journal(tmp_path / "alerts")
    watch = LogWatch(archives, journal, ending=Ending(threading.Event()))
    watch._look()
    journal.close()
    console = Console(width=150, file=io.StringIO(), record=True)
    console.print(render_status(watch.find_status()))
    shown = console.export_text()
    first, second = (line for line in shown.splitlines() if str(tmp_path) in line)
    assert "caught up" in first
    assert "waiting" in second
    assert "violated" in shown
    assert "controller.write.epoch-checked" in shown
    assert "Partitions now   0 without a leader, " in shown
    assert "Moves under way  " in shown
    assert "Controller now   " in shown


@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_is_full_from_the_start_silences_nothing(
    broken: Path, tmp_path: Path, there: bool
) -> None:
    """All that the logs show is told first, and then that it cannot be kept; later it can."""
    kept = tmp_path / "kept"
    if there:
        kept.mkdir(0o700)
    command = [sys.executable, "-c", MAIN, "audit", "--follow", str(broken)]
    command += ["--checkpoint", str(kept), "--profile", "kip-236", "--format", "json"]

    def fill() -> None:
        # No file may have a byte, as on a disk without a free block.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = subprocess.run(command, capture_output=True, preexec_fn=fill, timeout=240, check=False)
    *alerts, last = map(json.loads, done.stdout.splitlines())
    assert last["exit_code"] == done.returncode not in (0, 1, 2, 3)
    assert b"File too large" in done.stderr
    code, said = say(*command[3:], "--until-caught-up")
    *again, document = map(json.loads, said)
    assert code == 1
    assert [each["id"] for each in alerts] == [each["id"] for each in again]
    assert not any(each["repeated"] for each in again)
    assert document["counts"]["violations"] > 2
