"""The gate joins what the run, the proofs and the exploration say."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reassure_conformance.answers import checking
from reassure_conformance.answers.checking import (
    CheckResult,
    Proofs,
    drive_brokers,
    explore_gate_scope,
    settle_brokers,
    tell_in_life,
)
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.requirements import list_unseen
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.report.document import Document
from reassure_conformance.report.qualified import read_report
from reassure_explorer.scopes import catalogue
from reassure_judge.verdicts import summarise
from reassure_spec.clauses import clauses_of_profile


def result(
    *, run: str = "holds", brokers: str = "holds", proofs: str = "holds", exploration: str = "holds"
) -> CheckResult:
    """Return a gate's result with these verdicts."""
    ran: Any = SimpleNamespace(verdict=lambda: run)
    beside: Any = SimpleNamespace(verdict=lambda: brokers)
    explored = {"verdict": exploration, "counts": {}}
    return CheckResult(ran, beside, Proofs(verdict=proofs), explored, 1.0)


@pytest.mark.parametrize("part", ["run", "brokers", "proofs", "exploration"])
@pytest.mark.parametrize("verdict", ["violated", "unknown", "vacuous"])
def test_gate_is_no_better_than_its_worst_part(part: str, verdict: str) -> None:
    """Whichever part does not hold, the gate does not."""
    assert result().verdict() == "holds"
    assert result(**{part: verdict}).verdict() == verdict


@pytest.mark.parametrize(
    ("lived", "whole"), [("violated", "violated"), ("unknown", "unknown"), ("vacuous", "holds")]
)
def test_what_fails_in_life_alone_fails_the_gate_of_the_virtual_world(
    lived: str, whole: str
) -> None:
    """Test cases that are told in life must not fail there; what they leave out is no matter."""
    told: Any = SimpleNamespace(verdict=lambda: lived)
    assert replace(result(), in_life=told).verdict() == whole


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_gate_explores_every_state_and_reaches_every_goal(profile: str) -> None:
    """The scope of the gate holds under both profiles of the bundled controller."""
    found = explore_gate_scope(profile)
    assert (found["verdict"], found["unfinished"]) == ("holds", None)
    assert found["counts"]["goals_reached"] == found["counts"]["goals"] > 0
    assert found["counts"]["invariants"] > 0
    assert f"explore small ({profile}): holds" in found["text"]


def test_gate_fails_where_the_counts_are_not_those_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """One state more or fewer than is pinned is another model, though nothing is violated in it."""
    scope, profile = "moves", "kip-236-amended"
    monkeypatch.setattr(checking, "SCOPE", scope)
    states, steps, depth = catalogue.COUNTS[scope, profile]
    monkeypatch.setitem(
        cast("dict[Any, Any]", catalogue.COUNTS), (scope, profile), (states + 1, steps, depth)
    )
    found = explore_gate_scope(profile)
    assert found["differs_from_pinned"]
    assert result(exploration=found["verdict"]).verdict() == "violated"


def theorem(outcome: str, verdict: str, **more: Any) -> dict[str, Any]:
    """Return a theorem of a report, about one clause under kip-236."""
    plain = {"clause": "a.b", "finding": "", "profile": "kip-236", "profiles": ["kip-236"]}
    return {"outcome": outcome, "verdict": verdict, "readings": {}, **plain, **more}


@pytest.mark.parametrize(
    ("outcomes", "notes"),
    [
        ([("a", "holds", ""), ("b", "finding", "")], []),
        (
            [("a", "unknown", "z3 gave up"), ("b", "holds", "")],
            ["Theorems a: unknown: z3 gave up; try `reassure prove a`"],
        ),
        (
            [("a", "unknown", "z3 gave up"), ("b", "unknown", "z3 gave up"), ("c", "stale", "")],
            [
                "Theorems a, b: unknown: z3 gave up",
                "Theorems c: stale; try `reassure prove c`",
            ],
        ),
        ([("a", "violated", "")], ["Theorems a: violated; try `reassure prove a`"]),
    ],
)
def test_theorems_that_keep_the_gate_from_holding_are_named(
    outcomes: list[tuple[str, str, str]], notes: list[str]
) -> None:
    """A theorem without a proof is named with the reason; a proof or a finding keeps nothing."""
    theorems = [{"name": n, "outcome": said, "reason": why} for n, said, why in outcomes]
    document = Document("check", "unknown", 1.0, {}, body={"theorems": theorems}).as_dict()
    assert list(read_report(document).notes) == notes


PROVED = theorem("holds", "proved")
FOUND = theorem("finding", "refuted", finding="drop-1", profiles=[])
BROKEN = theorem("violated", "refuted")


@pytest.mark.parametrize(
    ("theorems", "said"),
    [
        ([PROVED, FOUND], {"a.b": "proved"}),
        ([PROVED, BROKEN], {"a.b": "violated"}),
        ([FOUND], {"a.b": "refuted without it (drop-1)"}),
        ([theorem("holds", "proved", profile="kip-236-amended", profiles=["kip-236-amended"])], {}),
        ([theorem("holds", "proved", readings={"drop.slice": "exclusive"})], {}),
    ],
)
def test_column_says_what_was_proved_under_the_profile(
    theorems: list[dict[str, Any]], said: dict[str, str]
) -> None:
    """A refutation is no proof, and what another profile's code does is not."""
    assert Proofs(theorems).by_clause("kip-236") == said


def test_proof_under_a_reading_counts_for_that_reading_alone() -> None:
    """Where the run changes a reading that the code looked at, the proof is not shown."""
    looked = theorem("holds", "proved", readings={"drop.slice": "inclusive"})
    assert Proofs([looked]).by_clause("kip-236") == {"a.b": "proved"}
    assert Proofs([looked]).by_clause("kip-236", {"drop.slice": "exclusive"}) == {}


SETTINGS = Settings(1, examples=0, with_stories=False)


def joined(controllers: dict[str, int], brokers: dict[str, int]) -> CheckResult:
    """Return a gate's result of runs that put these clauses to the test so often."""
    ran = ControllersResult(SETTINGS, {}, "kip-236", {}, frozenset())
    ran.clauses = summarise("kip-236", controllers, {})
    beside = BrokersResult(settle_brokers(SETTINGS), {}, "kafka-4485", {})
    beside.clauses = summarise("kafka-4485", brokers, {})
    explored: dict[str, Any] = {"verdict": "holds", "counts": {}}
    return CheckResult(ran, beside, Proofs([PROVED], verdict="holds"), explored, 1.0)


def test_clause_that_nobody_exercises_makes_the_gate_vacuous() -> None:
    """What brokers have to show is required of them; a proof does not stand in for it."""
    every = {clause.id: 1 for clause in clauses_of_profile("kafka-4485")}
    unseen = list_unseen()
    controllers = {c.id: 1 for c in clauses_of_profile("kip-236") if c.id not in unseen}
    assert joined(controllers, every).verdict() == "holds"
    for name in unseen:
        gate = joined(controllers, {**every, name: 0})
        assert (gate.verdict(), gate.as_body()["not_exercised"]) == ("vacuous", [name])
        assert gate.counts()["clauses_exercised"] == gate.counts()["clauses_required"] - 1


def test_table_says_who_exercised_a_clause_and_how_often() -> None:
    """A clause that both runs put to the test has one row, with both counts in it."""
    body = joined({"election.clean": 2}, {"election.clean": 3, "hw.never-decreases": 4}).as_body()
    rows = {row["id"]: (row["exercised"], row["by"]) for row in body["clauses"]}
    assert len(rows) == len(body["clauses"])
    assert rows["election.clean"] == (5, {"controllers": 2, "brokers": 3})
    assert rows["hw.never-decreases"] == (4, {"brokers": 4})
    assert rows["lag.definition"] == (0, {})


def test_failure_of_brokers_is_the_failure_of_the_gate(tmp_path: Path) -> None:
    """Where brokers alone fail, story, clause and directory of the report are theirs."""
    settings = replace(settle_brokers(SETTINGS), faults=("truncation-skipped",), with_stories=True)
    gate = joined({}, {})
    gate.brokers = drive_brokers(settings, tmp_path)
    body = gate.as_body()
    assert gate.verdict() == "violated"
    assert body["clause"] == "follower.truncation.common-prefix"
    assert body["story"] and body["directory"] == str(tmp_path)
    assert (tmp_path / "result.json").exists()


def test_failure_in_life_is_the_failure_of_the_gate(tmp_path: Path) -> None:
    """Where a test case fails on a real ZooKeeper alone, the report tells that one."""
    virtual = replace(SETTINGS, world="virtual", faults=("follower-leads",), with_stories=True)
    gate = joined({}, {})
    gate.in_life = tell_in_life(replace(virtual, shrink_s=0), tmp_path)
    body = gate.as_body()
    assert gate.verdict() == "violated"
    assert body["story"] and body["directory"] == str(tmp_path)
    assert any((tmp_path / "zookeeper" / "version-2").glob("log.*"))
    asked = json.loads((tmp_path / "run.json").read_text())
    assert (asked["world"], asked["examples"]) == ("real", 0)
