"""Nothing judged is never green: verb by verb, what put nothing to the test ends with 3."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.adapter import LOG, REQUESTS
from reassure_conformance.answers.checking import CheckResult, Proofs
from reassure_conformance.gate import faultmatrix
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.report.document import EXIT_CODES
from reassure_judge.verdicts import summarise
from reassure_zookeeper.transactions import Create, committed
from reassure_zookeeper.txnlog_writer import write_log


def _nothing(*args: object, **kwargs: object) -> list[Any]:
    return []


ANSWERS = "reassure_conformance.answers"
EMPTY: dict[str, Any] = {"files": [], "clauses": [], "areas": {}}
NOTHING: dict[str, tuple[dict[str, Callable[..., Any]], list[str]]] = {
    "theorems": ({f"{ANSWERS}.proving.prove_all": _nothing}, ["prove"]),
    "theorems of a rule": (
        {f"{ANSWERS}.proving.{name}": _nothing for name in ("prove_candidate", "list_assumed")},
        ["prove", "--code", "some.module:rule"],
    ),
    "sweep": ({f"{ANSWERS}.proving.sweep": _nothing}, ["prove", "--sweep"]),
    "clusters": ({}, ["audit", "{folder}"]),
    "documents": ({f"{ANSWERS}.spec_tables.find_seeds": lambda _: None}, ["spec", "coverage"]),
    "scenarios": ({f"{ANSWERS}.scenario_table.find_scenarios": _nothing}, ["scenarios"]),
    "vectors": (
        {"reassure_conformance.scenarios.json_lines.export_vectors": lambda _: EMPTY},
        ["scenarios", "--export", "--out", "{folder}"],
    ),
    "faults": (
        {"reassure_conformance.mutants.load_mutants": dict},
        ["mutants", "--out", "{folder}/run"],
    ),
    "clauses": ({"reassure_spec.clauses.load_clauses": dict}, ["spec", "list"]),
}
"""By what there is nothing of: what stands for it, and a command line."""


@pytest.mark.parametrize("name", NOTHING)
def test_verb_that_tests_nothing_is_vacuous(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, say: Callable[..., dict[str, Any]]
) -> None:
    """Without theorems, clusters, documents, scenarios or faults a verb ends with 3."""
    exchanged, words = NOTHING[name]
    for place, stands in exchanged.items():
        monkeypatch.setattr(place, stands)
    write_log(tmp_path, [committed(Create("/hbase"), zxid=1)])
    document = say(*(word.format(folder=tmp_path) for word in words))
    assert (document["exit_code"], document["verdict"]) == (3, "vacuous")


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
