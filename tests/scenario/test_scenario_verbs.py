"""`scenarios --export`, `spec coverage` and `spec diff`, as the command line runs them."""

import json
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.cli import run_command
from reassure_conformance.scenarios.scenario import find_scenario

HEAD = ["verb", "version", "verdict", "exit_code", "seconds", "seed", "profile", "readings"]


def read_document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one JSON document that was printed."""
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(document)[:9] == [*HEAD, "counts"]
    return document


def test_vectors_are_written_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verb writes lines and manifest and says how many there are."""
    out = tmp_path / "vectors"
    assert run_command(["scenarios", "--export", "--out", str(out), "--format", "json"]) == 0
    document = read_document(capsys)
    lines = (out / "scenarios.jsonl").read_text().splitlines()
    assert document["counts"]["vectors"] == len(lines) >= 150
    assert document["manifest"] == json.loads((out / "manifest.json").read_text())


def test_verb_tells_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scenarios that are told as they expect are counted; what differs is shown by its lines."""
    assert run_command(["scenarios", "batches", "--format", "json"]) == 0
    counts = read_document(capsys)["counts"]
    assert (counts["passed"], counts["failed"]) == (counts["scenarios"], 0)
    path = tmp_path / "wrong.txt"
    text = find_scenario("reassignment/a-move").read_text("utf-8")
    path.write_text(text.replace("top 2", "top 7"), encoding="utf-8")
    assert run_command(["scenarios", str(path), "--format", "json"]) == 1
    (failure,) = read_document(capsys)["failures"]
    assert "-in flight to [2,3], top 7" in failure["difference"].splitlines()
    assert run_command(["scenarios", "nowhere"]) == 65
    assert "name an area" in capsys.readouterr().err


def test_diff_of_profiles_names_readings_and_clauses(capsys: pytest.CaptureFixture[str]) -> None:
    """What the amendments change shows as readings that differ and as clauses of one side."""
    assert run_command(["spec", "diff", "kip-236", "kip-236-amended", "--format", "json"]) == 0
    document = read_document(capsys)
    assert {
        "reading": "drop.protects",
        "kip-236": "nothing",
        "kip-236-amended": "target",
    }.items() <= document["readings_changed"][0].items()
    only = {(entry["profile"], entry["clause"]) for entry in document["clauses_only"]}
    assert ("kip-236-amended", "drop.protect-target") in only
    assert document["counts"]["clauses_only_first"] == 0


def test_diff_of_a_profile_with_itself_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    """A profile does not differ from itself."""
    assert run_command(["spec", "diff", "kip-236", "kip-236"]) == 0
    assert capsys.readouterr().out == "kip-236 and kip-236 do not differ\n"


def test_diff_with_an_unknown_profile_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown profile is refused with those there are."""
    assert run_command(["spec", "diff", "kip-236", "kip-237"]) == 64
    assert "the profiles are: " in capsys.readouterr().err


def test_coverage_without_problems_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """The map holds where the documents are at hand: every sentence of it is accounted for.

    Without them nothing was held against anything, and that is vacuous.
    """
    code = run_command(["spec", "coverage", "--format", "json"])
    document = read_document(capsys)
    assert code == (0 if document["documents_checked"] else 3)
    counts = document["counts"]
    assert list(counts) == ["sentences", "accounted", "clauses", "scenarios"]
    assert counts["sentences"] == counts["accounted"] > 300
    assert counts["scenarios"] >= 150
    assert document["problems"] == []


def test_coverage_of_other_documents_is_violated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder without the documents fails the check and each document is named."""
    assert run_command(["spec", "coverage", "--seeds", str(tmp_path), "--format", "json"]) == 1
    problems = read_document(capsys)["problems"]
    assert {problem["kind"] for problem in problems} == {"no-document"}
    assert len(problems) == 5


def test_coverage_of_a_missing_folder_is_bad_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is not there is an error that says what should be in it."""
    assert run_command(["spec", "coverage", "--seeds", str(tmp_path / "nowhere")]) == 65
    assert "it should hold the documents as *.txt" in capsys.readouterr().err
