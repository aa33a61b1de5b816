"""Runs from the command line: exit codes, the one document, run directories and their replay."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance import cli
from reassure_conformance.gate.evidence import judge_again, read_json
from reassure_conformance.gate.rests import RESTS
from reassure_conformance.gate.story import read_story
from reassure_conformance.report.timeline import draw_timeline
from reassure_judge import verdicts
from reassure_mutation.score import Scorer
from reassure_spec.clauses import LEVELS
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Create
from reassure_zookeeper.txnlog import read_logs

Say = Callable[..., dict[str, Any]]
NOT_DRIVEN = ("kafka-4485", "kafka-zk")
"""The profiles that no bundled controller carries out; of one of them `run` drives brokers."""
LINES = "kafka-4485"
"""The profile that is judged by observations: without any there is nothing to judge."""
VIOLATION = {"clause", "topic", "partition", "zxid", "path", "session", "before", "after"}


def _call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run one command line and return its exit code and what it printed."""
    code = cli.run_command([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that caught a planted fault."""
    directory = tmp_path_factory.mktemp("runs") / "failed"
    arguments = ["test", "--fault", "isr-keeps-removed", "--examples", "0", "--seed", "1"]
    assert cli.run_command([*arguments, "--out", str(directory)]) == 1
    return directory


def test_planted_fault_is_violated_with_a_short_story(failed_run: Path) -> None:
    """A planted fault ends in exit code 1 and a shrunk story of at most eight steps."""
    report = read_json(failed_run / "result.json")
    assert (report["verdict"], report["exit_code"]) == ("violated", 1)
    assert report["clause"] == "complete.isr-before-assigned"
    assert len(report["story"]) <= 8
    assert report["repeats"] is True
    assert set(report["violations"][0]) >= VIOLATION


def test_run_directory_holds_what_it_takes_to_repeat(failed_run: Path) -> None:
    """A run directory has settings, story, readable transactions, a log and the report."""
    assert read_json(failed_run / "run.json")["seed"] == 1
    story = read_story(failed_run / "failure.txt")
    assert story.violates == "complete.isr-before-assigned"
    lines = (failed_run / "transactions.jsonl").read_text().splitlines()
    assert len(lines) == len(list(read_logs(failed_run / "log")))
    assert all("zxid" in json.loads(line) for line in lines)
    assert (failed_run / "zookeeper" / "version-2").is_dir()


def test_kept_log_shows_the_same_violation(failed_run: Path) -> None:
    """The judge finds the violation again in the log that the run kept, without any process."""
    report = read_json(failed_run / "result.json")
    found = judge_again(failed_run, report["profile"], {})
    assert [v.as_dict() for v in found] == report["violations"]


def test_replay_says_same_violation(failed_run: Path, say: Say) -> None:
    """Replaying a run against the same implementation finds the same violation, exit code 1."""
    document = say("test", "--replay", failed_run)
    assert document["verdict"] == "violated"
    assert (document["same_violation"], document["same_in_log"]) == (True, True)


def test_replay_says_passed_now(
    failed_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replaying against an implementation without the fault passes now, exit code 3."""
    mended = tmp_path / "mended"
    mended.mkdir()
    for entry in failed_run.iterdir():
        if entry.name != "zookeeper":
            (mended / entry.name).symlink_to(entry)
    run = read_json(failed_run / "run.json")
    (mended / "run.json").unlink()
    (mended / "run.json").write_text(json.dumps({**run, "faults": []}))
    code, out, _ = _call(capsys, "test", "--replay", mended)
    assert code == 3
    assert "passed now" in out
    assert "shows the same violation" in out


@pytest.mark.slow
def test_saved_failure_is_told_first_and_is_stale_when_it_passes(
    failed_run: Path, tmp_path: Path, say: Say
) -> None:
    """A saved failure that passes now is reported as stale and keeps the run from holding."""
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "old.txt").write_text((failed_run / "failure.txt").read_text())
    out = tmp_path / "run"
    arguments = ("test", "--failures", saved, "--examples", 0, "--out", out)
    document = say(*arguments)
    assert document["stale"] == ["old"]
    assert document["exit_code"] == 3


@pytest.mark.parametrize("strict", [pytest.param(False, marks=pytest.mark.slow), True])
def test_advice_not_followed_fails_no_run_unless_strict(
    tmp_path: Path,
    say: Say,
    monkeypatch: pytest.MonkeyPatch,
    strict: bool,
) -> None:
    """A run in which only advice is broken goes on and counts it; with --strict it is violated."""
    monkeypatch.setattr(verdicts, "ADVICE", frozenset(LEVELS))
    arguments = ["test", "--fault", "isr-keeps-removed", "--examples", 0, "--out", tmp_path / "run"]
    report = say(*arguments, *(["--strict"] if strict else []))
    words = {c["id"]: c["verdict"] for c in report["clauses"]}
    if strict:
        assert (report["exit_code"], report["clause"]) == (1, "complete.isr-before-assigned")
        assert words["complete.isr-before-assigned"] == "violated"
        return
    assert report["exit_code"] != 1
    assert report["counts"]["stories"] > 10
    assert words["complete.isr-before-assigned"] == "not followed"
    assert report["counts"]["not_followed"] == len(report["not_followed"]) > 0
    assert report["violations"] == []


def test_new_failure_is_saved_once(tmp_path: Path, say: Say) -> None:
    """A failure is saved in the folder given, told first next time, and not saved twice."""
    saved = tmp_path / "saved"
    saved.mkdir()
    arguments = ("test", "--fault", "target-reordered", "--failures", saved, "--examples", 0)
    first = say(*arguments, "--seed", 4, "--out", tmp_path / "first")
    second = say(*arguments, "--seed", 5, "--out", tmp_path / "second")
    assert [path.name for path in saved.iterdir()] == ["complete.target-order-4.txt"]
    assert first["violations"][0]["clause"] == second["violations"][0]["clause"]
    assert (second["counts"]["stories"], second["exit_code"]) == (1, 1)


@pytest.fixture(scope="module")
def green_run(tmp_path_factory: pytest.TempPathFactory, say: Say) -> tuple[Path, dict[str, Any]]:
    """The directory and the document of a run of the shipped stories alone."""
    directory = tmp_path_factory.mktemp("runs") / "green"
    return directory, say("test", "--examples", 0, "--seed", 5, "--out", directory)


def test_shipped_stories_alone_hold(green_run: tuple[Path, dict[str, Any]]) -> None:
    """The stories alone exercise every required clause, so a run without examples holds."""
    _, document = green_run
    assert (document["verdict"], document["seed"]) == ("holds", 5)
    counts = document["counts"]
    assert counts["clauses_exercised"] == counts["clauses_required"]
    assert {"examples", "steps", "transactions"} <= set(counts)


def test_log_of_a_run_is_audited_alike(green_run: tuple[Path, dict[str, Any]], say: Say) -> None:
    """The audit of a run's directory judges what the run judged, and says nothing of time.

    It finds when the clusters were quiescent, so that it scores mutants as the run did, but for
    those that no log shows.
    """
    directory, run = green_run
    audit = say("audit", directory)
    assert (audit["violations"], audit["seconds"]) == ([], None)
    assert audit["verdict"] == "holds"
    profile = run["profile"]
    known = Scorer(profile, get_profile(profile), live=False).killable
    alive = [each["name"] for each in run["survivors"] if each["name"] in known]
    assert [each["name"] for each in audit["survivors"]] == alive
    assert sum(audit["mutants"].values()) == audit["counts"]["mutants"] == len(known)
    assert 0 < audit["counts"]["mutants_killed"] == len(known) - len(alive)
    assert run["counts"]["mutants"] > len(known)
    assert audit["counts"]["transactions"] >= run["counts"]["transactions"]
    ids = {clause["id"] for clause in audit["clauses"] if clause["verdict"] == "holds"}
    told = {clause["id"]: clause for clause in run["clauses"]}
    assert "leader-epoch.raised-by-one" in ids
    assert all(told[clause]["verdict"] == "holds" for clause in ids)


def _copy(run: Path, to: Path, rests: str | None) -> Path:
    """Return a run's directory with the same log and other moments, or none."""
    to.mkdir()
    for name in ("run.json", "zookeeper"):
        (to / name).symlink_to(run / name)
    if rests is not None:
        (to / RESTS).write_text(rests, encoding="utf-8")
    return to


def test_audit_of_a_run_judges_what_was_due_at_rest(
    green_run: tuple[Path, dict[str, Any]], tmp_path: Path, say: Say
) -> None:
    """A cluster said to be quiescent right behind a request owes what comes next of it."""
    directory, _ = green_run
    head, *lines = (directory / RESTS).read_text(encoding="utf-8").splitlines()
    made = (
        (each.zxid, op.path)
        for each in read_logs(directory / "zookeeper")
        for op in each.ops
        if isinstance(op, Create) and "/request_" in op.path
    )
    zxid, path = next(made)
    planted = {"zxid": zxid, "chroot": path[: path.index("/", 1)], "moment": "quiescent"}
    at = sum(json.loads(line)["zxid"] < zxid for line in lines)
    lines.insert(at, json.dumps(planted))
    audit = say("audit", _copy(directory, tmp_path / "run", "\n".join([head, *lines, ""])))
    assert (audit["verdict"], audit["exit_code"]) == ("violated", 1)
    assert (audit["survivors"], audit["counts"]["mutants"]) == ([], 0)
    due = audit["violations"][0]
    assert due["zxid"] == zxid
    assert due["path"].startswith(f"{planted['chroot']}/")
    assert {c["id"]: c["verdict"] for c in audit["clauses"]}[due["clause"]] == "violated"
    assert audit["counts"]["violations"] == len(audit["violations"])


def test_run_that_kept_no_moments_is_audited_by_its_log(
    green_run: tuple[Path, dict[str, Any]], tmp_path: Path, say: Say
) -> None:
    """Then nothing says what was due, nor is there a score."""
    audit = say("audit", _copy(green_run[0], tmp_path / "run", None))
    assert audit["violations"] == []
    assert "survivors" not in audit
    assert "mutants" not in audit["counts"]


def test_failure_is_audited_as_the_run_found_it(failed_run: Path, say: Say) -> None:
    """The violation is listed once, though both the log and the moments show it."""
    audit = say("audit", failed_run)
    run = read_json(failed_run / "result.json")
    assert audit["verdict"] == "violated"
    found = [each["clause"] for each in audit["violations"]]
    assert run["clause"] in found
    places = [(each["clause"], each["zxid"], each["path"]) for each in audit["violations"]]
    assert len(set(places)) == len(places)


def test_run_without_stories_is_vacuous(tmp_path: Path, say: Say) -> None:
    """A run that exercises nothing does not hold: it is vacuous, exit code 3."""
    arguments = ("test", "--no-stories", "--examples", 0, "--out", tmp_path / "run")
    document = say(*arguments)
    assert (document["verdict"], document["exit_code"]) == ("vacuous", 3)
    assert "complete.carried-out" in document["not_exercised"]


def test_diagram_names_actors_and_steps(failed_run: Path) -> None:
    """The space-time diagram has a lane for each actor, every step and each zxid as elsewhere."""
    failure = read_json(failed_run / "failure.json")
    transactions = list(read_logs(failed_run / "log"))
    lines = list(draw_timeline(read_json(failed_run / "result.json")["timeline"]))
    assert "client" in lines[0]
    assert "ctl 1001" in lines[0]
    text = "\n".join(lines)
    assert all(f"> {step['step']}" in text for step in failure["steps"])
    assert "child orders/0" in text
    shown = {line.split()[0] for line in lines[1:] if line.split()[0] not in (">", "!")}
    assert shown <= {f"0x{transaction.zxid:x}" for transaction in transactions}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "--profile", "kip-1"], 64),
        (["test", "--reading", "drop.slice"], 64),
        (["test", "--reading", "drop.slice=sideways"], 64),
        (["test", "-i", "direct:no.such.module:Thing", "--out", "{tmp}/run"], 78),
        (["explain", "no.such.clause"], 64),
        *((["test", "--profile", name], 78) for name in NOT_DRIVEN if name != LINES),
        *((["check", "--profile", name], 78) for name in NOT_DRIVEN),
        *((["mutants", "--profile", name], 78) for name in NOT_DRIVEN),
        *((["audit", "{tmp}", "--profile", name], 65) for name in NOT_DRIVEN if name != LINES),
        (["audit", "{tmp}", "--profile", LINES], 3),
        (["test", "--replay", "{tmp}/absent"], 64),
        (["prove", "no-such-theorem"], 64),
        (["--help"], 0),
        (["--version"], 0),
    ],
)
def test_exit_codes(
    arguments: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage, data and configuration errors have exit codes of their own, and say something."""
    got, out, err = _call(capsys, *(text.format(tmp=tmp_path) for text in arguments))
    assert got == code
    assert out or err


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("audit", "recognised from the log"),
        ("explore", "that of the scope"),
        ("test", "kip-236, or the one that the adapter declares"),
        ("mutants", "kip-236, or that of the mutant"),
        ("check", "kip-236"),
    ],
)
def test_help_says_which_profile_counts(
    verb: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no profile is named, who chooses it is what the help says."""
    _, out, _ = _call(capsys, verb, "--help")
    (said,) = re.findall(r"kafka-zk\. \[default: \(?(.*?)\)?\]", " ".join(out.split()))
    assert said == told


def test_taken_directory_is_refused(failed_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run does not overwrite the directory of another run."""
    code, _, err = _call(capsys, "test", "--examples", 0, "--out", failed_run)
    assert code == 78
    assert "holds a run already" in err


def test_bad_saved_story_is_bad_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A saved story that cannot be read is bad data, named with its line."""
    (tmp_path / "bad.txt").write_text("world cluster\n\nelect\ndance\n")
    out = tmp_path / "run"
    code, _, err = _call(capsys, "test", "--failures", tmp_path, "--examples", 0, "--out", out)
    assert code == 65
    assert "bad.txt:4" in err


@pytest.mark.parametrize("mistake", [ZeroDivisionError, EOFError])
def test_our_own_mistakes_are_neither_pass_nor_violation(
    mistake: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected exception is an internal error with exit code 70, and says how to report it."""

    def fail(*_: object) -> None:
        raise mistake("oops")

    monkeypatch.setattr("reassure_conformance.answers.clause_matrix.make_matrix", fail)
    code, _, err = _call(capsys, "spec", "matrix")
    assert code == 70
    assert "report it" in err


@pytest.mark.parametrize(
    "verb", ["list", "readings", pytest.param("findings", marks=pytest.mark.slow), "matrix"]
)
def test_spec_verbs_print_one_document(verb: str, say: Say) -> None:
    """Each look into the spec prints one document with the common head and its records."""
    document = say("spec", verb)
    assert document["verb"] == f"spec {verb}"
    assert len(document[verb]) in document["counts"].values()


def test_explain_shows_what_it_is_asked_for(
    failed_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`explain` tells a violation from its run's directory, as it does a name."""
    _, finding, _ = _call(capsys, "explain", "drop-4")
    assert "theorem drop-target-in-sync-kept, theorem" in finding
    _, run, _ = _call(capsys, "explain", failed_run)
    assert "VIOLATED complete.isr-before-assigned" in run
    assert "reassure test --replay" in run


def test_markdown_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The form `markdown` prints a table that a document can take over."""
    _, out, _ = _call(capsys, "spec", "readings", "--format", "markdown")
    assert "| name | values | why | source |" in out
