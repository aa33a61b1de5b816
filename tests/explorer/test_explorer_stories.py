"""Stories as text, trace and picture; the page, the graph, the walks and the command line."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from reassure_conformance.cli import cli
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.interface import Action, Int, Invariant, Model
from reassure_explorer.engine.minimise import count_faults, minimise_faults
from reassure_explorer.engine.renderings import draw_trace, tell_trace
from reassure_explorer.engine.result import Budget, Trace, TraceStep, Verdict
from reassure_explorer.scopes.catalogue import explore_scope
from reassure_explorer.scopes.pictures import name_actor

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"


@pytest.fixture(scope="module")
def story() -> Trace:
    """The shortest story in which logs as written lose a record."""
    result = explore_scope("logs", profile="kafka-4485", keep_going=True).result
    return next(v.trace for v in result.violations if v.invariant == "log.committed-kept")


def test_told_story_names_each_step_and_what_it_changed(story: Trace) -> None:
    """The text has a line for each step, with the values before and after."""
    lines = tell_trace(story).splitlines()
    assert len(lines) == 1 + len(story.steps)
    assert re.search(r"elect 1 .*leader 0 -> 1", lines[-1])


def test_told_story_shows_of_sets_what_came_and_went(story: Trace) -> None:
    """A set is told by its members that changed, a map by its keys, and never as a whole."""
    steps = tell_trace(story).splitlines()[1:]
    assert any(re.search(r"isr -\d", line) for line in steps)
    assert not any("{" in line and "->" in line.split("{")[1] for line in steps)


def test_picture_is_svg_with_a_mark_for_each_step(story: Trace) -> None:
    """The space-time diagram is well-formed and has one circle for each step."""
    root = ET.fromstring(draw_trace(story, "a <title>"))
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == len(story.steps)


@pytest.mark.parametrize(
    "invariants",
    [(Invariant("high", lambda s: "at the bottom" if s.height == 0 else None),), ()],
    ids=["invariant", "deadlock"],
)
def test_fewer_faults_are_preferred_to_fewer_steps(invariants: tuple[Invariant, ...]) -> None:
    """The shortest story falls; the one with the fewest faults walks, and takes longer."""
    model = Model(
        "cliff",
        {"height": Int(0, 4), "falls_left": Int(0, 1)},
        ({"height": 4, "falls_left": 1},),
        (
            Action("walk", lambda s, _: s.replace(height=s.height - 1) if s.height else None),
            Action(
                "fall",
                lambda s, _: s.replace(height=0, falls_left=0) if s.falls_left else None,
            ),
        ),
        invariants,
        faults=("falls_left",),
    )
    (violation,) = explore_derived(model).violations
    assert [step.action for step in violation.trace.steps] == ["fall"]
    fewer = minimise_faults(model, violation)
    assert [step.action for step in fewer.trace.steps] == ["walk"] * 4
    assert (count_faults(model, violation), count_faults(model, fewer)) == (1, 0)


def test_loss_of_records_needs_no_lag() -> None:
    """The shortest story of a loss has a lag in it; without any fault it takes six steps."""
    (shortest,) = explore_scope("logs", profile="kafka-4485").result.violations
    assert [step.action for step in shortest.trace.steps] == ["lag", "append", "advance"]
    exploration = explore_scope("logs", profile="kafka-4485", minimise=True)
    (violation,) = exploration.result.violations
    assert violation.invariant == shortest.invariant
    assert not {"lag", "remove"} & {step.action for step in violation.trace.steps}
    assert len(violation.trace.steps) == 6


def test_command_writes_report_and_stories(tmp_path: Path) -> None:
    """`reassure explore` exits with 1 for a violation and leaves the story in all its forms."""
    arguments = ["explore", "--scope", "logs", "--profile", "kafka-4485", "--format", "json"]
    answer = CliRunner().invoke(cli, [*arguments, "--out", str(tmp_path)], standalone_mode=False)
    assert answer.return_value == 1
    document = json.loads(answer.stdout)
    assert document["violations"][0]["clause"] == "isr.stored.holds-committed"
    names = {path.name for path in tmp_path.iterdir()}
    assert {"result.json", "isr.stored.holds-committed.svg"} <= names


def test_document_example_runs() -> None:
    """The model in docs/models.md does what the text says."""
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    names = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scope", "logs", "--liveness"], "use --scope restless"),
        (["--out", "/nowhere/at/all"], "the directory /nowhere/at does not exist"),
        (["--seconds", "-1"], "not in the range"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: list[str], words: str) -> None:
    """What could not be done afterwards is refused before anything is explored."""
    result = CliRunner(catch_exceptions=True).invoke(cli, ["explore", *options])
    told = result.output + str(result.exception or "")
    assert words in told
    assert result.exit_code != 0


def test_fair_runs_keep_the_budget() -> None:
    """A budget in states holds for liveness as well, and leaves the verdict unknown."""
    exploration = explore_scope("restless", liveness=True, budget=Budget(states=100))
    assert exploration.liveness is not None
    assert exploration.liveness.verdict is Verdict.UNKNOWN
    assert "fair runs: unknown, the budget of 100 states" in exploration.render()


@pytest.mark.parametrize(
    ("action", "parameter", "actor"),
    [
        ("die", 2, "broker 2"),
        ("shut-down", 2, "broker 2"),
        ("join", (("t", 0), 3), "broker 3"),
        ("append", 1, "broker 1"),
        ("append", None, "append"),
        ("catch-up", ("t", 0), "catch-up"),
        ("controller", None, "controller"),
    ],
)
def test_picture_has_a_line_for_who_acts(action: str, parameter: object, actor: str) -> None:
    """A broker acts where the act is a broker's and names one, whatever the protocol."""
    assert name_actor(TraceStep(action, parameter, "", None)) == actor
