"""Nothing judged is never green: verb by verb, what put nothing to the test ends with 3."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance import cli
from reassure_conformance.adapter import LOG, REQUESTS
from reassure_conformance.answers.checking import CheckResult, Proofs
from reassure_conformance.gate import faultmatrix
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.report.document import EXIT_CODES
from reassure_judge.verdicts import summarise
from reassure_zookeeper.transactions import Create, committed
from reassure_zookeeper.txnlog_writer import write_log

Prepare = Callable[[pytest.MonkeyPatch, Path], list[str]]


def _nothing(*args: object, **kwargs: object) -> list[Any]:
    return []


def _no_theorems(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    monkeypatch.setattr("reassure_conformance.answers.proving.prove_all", _nothing)
    return ["prove"]


def _no_theorems_of_a_rule(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    monkeypatch.setattr("reassure_conformance.answers.proving.prove_candidate", _nothing)
    monkeypatch.setattr("reassure_conformance.answers.proving.list_assumed", _nothing)
    return ["prove", "--code", "some.module:rule"]


def _no_sweep(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    monkeypatch.setattr("reassure_conformance.answers.proving.sweep", _nothing)
    return ["prove", "--sweep"]


def _foreign_log(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    write_log(folder, [committed(Create("/hbase"), zxid=1)])
    return ["audit", str(folder)]


def _no_documents(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    monkeypatch.setattr("reassure_conformance.answers.spec_tables.find_seeds", lambda folder: None)
    return ["spec", "coverage"]


def _no_scenarios(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    monkeypatch.setattr("reassure_conformance.answers.scenario_table.find_scenarios", _nothing)
    return ["scenarios"]


def _no_vectors(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    empty = {"files": [], "clauses": [], "areas": {}}
    exports = "reassure_conformance.scenarios.json_lines.export_vectors"
    monkeypatch.setattr(exports, lambda out: empty)
    return ["scenarios", "--export", "--out", str(folder)]


def _no_faults(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    monkeypatch.setattr("reassure_conformance.mutants.load_mutants", dict)
    return ["mutants", "--out", str(folder / "run")]


def _no_clauses(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    monkeypatch.setattr("reassure_spec.clauses.load_clauses", dict)
    return ["spec", "list"]


@pytest.mark.parametrize(
    "prepare",
    [
        _no_theorems,
        _no_theorems_of_a_rule,
        _no_sweep,
        _foreign_log,
        _no_documents,
        _no_scenarios,
        _no_vectors,
        _no_faults,
        _no_clauses,
    ],
)
def test_verb_that_tests_nothing_is_vacuous(
    prepare: Prepare,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without theorems, clusters, documents, scenarios or faults a verb ends with 3."""
    code = cli.run_command([*prepare(monkeypatch, tmp_path), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert (code, document["exit_code"], document["verdict"]) == (3, 3, "vacuous")


def _make_result(*abilities: str, **changes: Any) -> ControllersResult:
    clauses = summarise("kip-236", {}, {})
    able = frozenset(abilities)
    return ControllersResult(
        Settings(1), {}, "kip-236", {}, capabilities=able, clauses=clauses, **changes
    )


def test_run_that_exercises_nothing_is_vacuous() -> None:
    """A run is vacuous whatever the implementation can do, and says what was not exercised."""
    assert _make_result().verdict() == "vacuous"
    result = _make_result(LOG, REQUESTS)
    assert result.verdict() == "vacuous"
    assert result.missing()


def test_gate_without_proofs_is_vacuous() -> None:
    """The gate is no better than a run that exercised nothing, or than proofs of nothing."""
    explored = {"verdict": "holds", "counts": {}}
    proofs, idle = Proofs(verdict="holds"), _make_result()
    assert CheckResult(idle, idle, proofs, explored, 1.0).verdict() == "vacuous"
    assert Proofs().verdict == "vacuous"


def test_kill_matrix_of_nothing_is_vacuous() -> None:
    """Where no fault was planted none was killed."""
    assert faultmatrix.matrix_verdict([]) == "vacuous"
    assert EXIT_CODES["vacuous"] == 3
