"""What reports say of mutants of the rules: how many are killed, which survive, and of no score."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from reassure_conformance.answers.checking import CheckResult, Proofs
from reassure_conformance.answers.explaining import explain_document
from reassure_conformance.answers.workers import merge
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.discrimination import Score
from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.requirements import ALL_ABILITIES, list_unseen
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.story import read_story
from reassure_conformance.report.badge import render_badge
from reassure_conformance.report.junit import render_junit
from reassure_conformance.report.page import render_page
from reassure_conformance.report.qualified import read_report
from reassure_conformance.report.sarif import render_sarif
from reassure_conformance.report.summary import render_summary
from reassure_conformance.report.terminal import render_run
from reassure_judge.verdicts import summarise
from reassure_mutation.score import Scorer, Survivor
from reassure_mutation.table import Killable
from reassure_spec.clauses import clauses_of_profile
from reassure_spec.readings import get_profile, override_readings

ALIKE = "drop.keep-top"
"""The clause of which every mutant survives."""
OTHER = "drop.leader-kept"
"""One of which some are killed."""


def survivor(name: str, clause: str, *steps: str) -> Survivor:
    """Return a mutant that these steps kill."""
    return Survivor(f"m: {name}", f"in m {name} is left out", Killable(clause, steps, False))


CREATE = "create orders with 1,2,3"
FIRST, SECOND = (survivor(name, ALIKE, CREATE) for name in ("a", "b"))
HELD = survivor("c", OTHER, CREATE, "hold after 2")
SCORE = Score({ALIKE: 2, OTHER: 5}, (FIRST, SECOND, HELD), ALL_ABILITIES - {"hold"})


def make_run(score: Score, directory: str | None = "runs/x", **more: Any) -> ControllersResult:
    """Return a run that exercised every clause."""
    exercised = {clause.id: 1 for clause in clauses_of_profile("kip-236")}
    clauses = score.mark(summarise("kip-236", exercised, {}))
    place = None if directory is None else Path(directory)
    settings, able = Settings(seed=1), score.capabilities
    return ControllersResult(
        settings,
        {"name": "some", "capabilities": sorted(able)},
        "kip-236",
        {},
        able,
        clauses=clauses,
        score=score,
        directory=place,
        **more,
    )


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """The document of a run of which a clause was not discriminated."""
    return make_run(SCORE).as_document().as_dict()


def test_first_line_counts_mutants_and_what_no_capability_allows(result: dict[str, Any]) -> None:
    """It says how many are killed, and how many cannot be for want of which capability."""
    assert result["verdict"] == "vacuous"
    line = read_report(result).headline
    assert "4 of 7 mutants killed (1 cannot be without hold)" in line
    whole = make_run(replace(SCORE, survivors=(), capabilities=ALL_ABILITIES)).as_document()
    assert read_report(whole.as_dict()).headline.endswith("7 of 7 mutants killed")
    assert whole.verdict == "holds"


def test_every_report_carries_the_score(result: dict[str, Any]) -> None:
    """Terminal, page, Markdown, JUnit and SARIF say it; the badge where the verdict is holds."""
    said = "4 of 7 mutants killed"
    line = next(iter(render_run(result, "markdown").splitlines()))
    assert said in line
    assert said in render_page(result)
    assert said in render_summary(result).splitlines()[0]
    suite = Xml.fromstring(render_junit(result))
    told = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert (told["mutants_killed"], told["mutants"]) == ("4", "7")
    assert said in str(told["verdict"])
    about = json.loads(render_sarif(result))["runs"][0]["properties"]
    assert (said in about["verdict"], about["counts"]["mutants_killed"]) == (True, 4)
    whole = make_run(replace(SCORE, survivors=(), capabilities=ALL_ABILITIES)).as_document()
    assert "7 of 7 mutants killed" in render_badge(whole.as_dict())


def test_clause_that_is_not_discriminated_is_called_so(result: dict[str, Any]) -> None:
    """Every table has the word for the clause, and none for one of which a mutant is killed."""
    words = {clause["id"]: clause["verdict"] for clause in result["clauses"]}
    assert (words[ALIKE], words[OTHER]) == ("not discriminated", "holds")
    assert result["not_exercised"] == [ALIKE]
    row = next(r for r in render_run(result, "markdown").splitlines() if r.startswith(f"| {ALIKE}"))
    assert "not discriminated" in row
    page = render_page(result)
    assert '<span class="pill o-open">not discriminated</span>' in page
    assert page.count(">not discriminated</span>") == 1
    assert f"**`{ALIKE}`**" in render_summary(result)
    suite = Xml.fromstring(render_junit(result))
    errors = {case.get("name"): case.find("error") for case in suite.iter("testcase")}
    wrong = {name: each.get("message", "") for name, each in errors.items() if each is not None}
    assert wrong.keys() == {ALIKE}
    assert "not discriminated" in wrong[ALIKE]
    (finding,) = json.loads(render_sarif(result))["runs"][0]["results"]
    assert (finding["ruleId"], finding["level"]) == (ALIKE, "warning")
    assert "not discriminated" in finding["message"]["text"]


def test_vacuous_verdict_says_which_clause_and_what_to_do(result: dict[str, Any]) -> None:
    """Of a clause that was not discriminated there is the test case, of another the next step."""
    (note,) = (each for each in read_report(result).notes if "not discriminated" in each)
    assert ALIKE in note
    assert "`reassure test --case runs/x/survivors/1.txt`" in note
    idle = make_run(SCORE)
    idle.clauses = summarise("kip-236", {}, {})
    (never,) = (each for each in read_report(idle.as_document().as_dict()).notes if "never" in each)
    assert "and" in never
    assert idle.missing()[0] in never
    assert "--until covered" in never


def test_survivors_have_their_test_cases(tmp_path: Path) -> None:
    """The file that the document names is there and has the steps."""
    run = make_run(SCORE, str(tmp_path))
    run.score.write_cases(tmp_path)
    told = run.as_document().as_dict()["survivors"]
    cases = [read_story(Path(each["case"])) for each in told]
    assert [len(case.steps) for case in cases] == [1, 1, 2]
    assert [each["needs"] for each in told] == [[], [], ["hold"]]
    unkept = make_run(SCORE, None).as_document().as_dict()
    assert any(CREATE in note for note in read_report(unkept).notes)


def test_mutant_counts_as_killed_where_any_worker_kills_it() -> None:
    """Survivors of a run of several are those of all; a failure of one leaves it without score."""
    one = make_run(replace(SCORE, survivors=(FIRST, SECOND)), "runs/x/worker-1")
    two = make_run(replace(SCORE, survivors=(SECOND, HELD)), "runs/x/worker-2")
    first, second = (each.as_document().as_dict() for each in (one, two))
    merged = merge(Settings(seed=1), [first, second], 1.0).as_dict()
    assert [each["name"] for each in merged["survivors"]] == [SECOND.name]
    assert merged["survivors"][0]["case"] == "runs/x/worker-1/survivors/2.txt"
    assert (merged["counts"]["mutants_killed"], merged["counts"]["mutants"]) == (6, 7)
    assert {c["id"]: c["verdict"] for c in merged["clauses"]}[ALIKE] == "holds"
    both = merge(Settings(seed=1), [first, first], 1.0).as_dict()
    assert (both["verdict"], both["not_exercised"]) == ("vacuous", [ALIKE])
    assert {c["id"]: c["verdict"] for c in both["clauses"]}[ALIKE] == "not discriminated"
    failed = make_run(Score()).as_document().as_dict()
    merged = merge(Settings(seed=1), [first, failed], 1.0).as_dict()
    assert (merged["mutants"], merged["survivors"]) == ({}, [])
    assert (merged["counts"]["mutants_killed"], merged["counts"]["mutants"]) == (0, 0)


def test_gate_carries_the_score() -> None:
    """Its table has the word, though brokers may have exercised the clause as well."""
    every = {clause.id: 1 for clause in clauses_of_profile("kafka-4485")}
    brokers = BrokersResult(Settings(seed=1), {}, "kafka-4485", {})
    brokers.clauses = summarise("kafka-4485", every, {})
    explored: dict[str, Any] = {"verdict": "holds", "counts": {}, "text": ""}
    shared = "election.clean"
    score = Score({shared: 1}, (survivor("a", shared, CREATE),), ALL_ABILITIES)
    gate = CheckResult(make_run(score), brokers, Proofs(verdict="holds"), explored, 1.0)
    document = gate.as_document().as_dict()
    assert {c["id"]: c["verdict"] for c in document["clauses"]}[shared] == "not discriminated"
    assert (document["verdict"], document["not_exercised"]) == ("vacuous", [shared])
    assert "0 of 1 mutants killed" in read_report(document).headline
    assert shared not in list_unseen()


def test_gate_counts_mutants_of_brokers_with_those_of_controllers() -> None:
    """A clause that brokers' mutants alone stand for is missing, and the tale for it is told."""
    of_leaders = "hw.never-decreases"
    brokers = BrokersResult(Settings(seed=1), {}, "kafka-4485", {})
    brokers.score = Score(
        {of_leaders: 2}, (survivor("b", of_leaders, "world brokers"),) * 2, ALL_ABILITIES
    )
    every = {clause.id: 1 for clause in clauses_of_profile("kafka-4485")}
    brokers.clauses = brokers.score.mark(summarise("kafka-4485", every, {}))
    run = make_run(Score({OTHER: 5}, (HELD,), ALL_ABILITIES))
    explored: dict[str, Any] = {"verdict": "holds", "counts": {}, "text": ""}
    gate = CheckResult(run, brokers, Proofs(verdict="holds"), explored, 1.0)
    document = gate.as_document().as_dict()
    report = read_report(document)
    assert "4 of 7 mutants killed" in report.headline
    assert (document["mutants"], document["not_exercised"]) == (
        {OTHER: 5, of_leaders: 2},
        [of_leaders],
    )
    assert any("the test case world brokers" in note for note in report.notes)


def test_other_readings_are_not_scored() -> None:
    """What can be killed under them nobody looked for; the report says why there is no score."""
    usual = get_profile("kip-236")
    assert Scorer("kip-236", usual).not_scored == ""
    scorer = Scorer("kip-236", override_readings(usual, {"target.dead-replica": "refuse"}))
    score = Score.of(scorer, (), ALL_ABILITIES)
    assert score.counts() == {"mutants_killed": 0, "mutants": 0}
    told = read_report(make_run(score).as_document().as_dict())
    assert "Mutants of the rules are not scored: readings differ from the profile's." in told.notes
    assert "mutants" not in told.headline


def test_mutant_of_the_rules_is_explained() -> None:
    """By the name that a result has of it: what it changes, what kills it, and by which steps."""
    scorer = Scorer("kip-236", get_profile("kip-236"))
    told = scorer.list_survivors()[0]
    text = " ".join(" ".join(explain_document(told.name).body["text"]).split())
    assert " ".join(told.sentence.split()) in text
    assert told.kill.clause in text
    assert told.kill.steps[-1] in text
