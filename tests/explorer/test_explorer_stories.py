"""Stories as text, trace and picture; the page, the graph, the walks and the command line."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reassure_conformance.cli import cli
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.graph import draw_graph
from reassure_explorer.engine.interface import Action, Int, Invariant, Model, ModelError
from reassure_explorer.engine.minimise import count_faults, minimise_faults
from reassure_explorer.engine.renderings import draw_trace, make_itf, tell_trace
from reassure_explorer.engine.result import Budget, Trace, TraceStep, Verdict
from reassure_explorer.engine.simulate import NO_PROOF, simulate
from reassure_explorer.engine.stepper import make_page
from reassure_explorer.scopes.catalogue import explore_scope, get_model
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


def test_trace_has_every_state_in_itf(story: Trace) -> None:
    """The ITF trace has all variables in all states, numbers and sets in ITF's own form."""
    document = json.loads(make_itf(story))
    assert document["#meta"]["format"] == "ITF"
    assert len(document["states"]) == 1 + len(story.steps)
    for state in document["states"]:
        assert set(state) == {*document["vars"], "#meta"}
    assert document["states"][0]["isr"] == {"#set": [{"#bigint": "0"}, {"#bigint": "1"}]}
    assert document["states"][-1]["leader"] == {"#bigint": "1"}


def test_picture_is_svg_with_a_mark_for_each_step(story: Trace) -> None:
    """The space-time diagram is well-formed and has one circle for each step."""
    root = ET.fromstring(draw_trace(story, "a <title>"))
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == len(story.steps)


def _read_page(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found.group(1)))


def test_page_holds_states_actions_and_reasons() -> None:
    """The page has the start with its possible actions, and the clause that forbids another."""
    _, model = get_model("small", "kip-236")
    page = make_page(model, states=50)
    data = _read_page(page)
    first = data["states"][data["starts"][0]]
    assert "submit [2, 3]" in [data["actions"][at] for at, *_ in first["a"]]
    why = {data["actions"][at]: reason for at, reason in first["n"]}
    assert why["join 3"].startswith("isr.change.assigned-only")
    assert "http" not in page


def test_page_steps_through_a_story(story: Trace, tmp_path: Path) -> None:
    """The page's own program, run on a stand-in for a browser, goes through the story and back."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    _, model = get_model("logs", "kafka-4485")
    page = make_page(model, story, states=100)
    program = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    stand_in = """
const elements = {};
function element() {
  return {textContent: "", children: [], append(...c) { this.children.push(...c); },
          replaceChildren(...c) { this.children = c; }};
}
const listeners = [];
const document = {
  getElementById: id => elements[id] ??= element(),
  createElement: element,
  addEventListener: (_, f) => listeners.push(f),
};
elements.data = {textContent: require("fs").readFileSync(process.argv[2], "utf8")};
"""
    check = """
let told = 0;
while (!elements.tell.hidden) { elements.tell.onclick(); told += 1; }
const broken = elements.broken.textContent;
listeners[0]({key: "Backspace"});
console.log(JSON.stringify([told, broken, elements.way.children.length]));
"""
    (tmp_path / "data.json").write_text(json.dumps(_read_page(page)), encoding="utf-8")
    (tmp_path / "page.js").write_text(stand_in + program + check, encoding="utf-8")
    command = [node, str(tmp_path / "page.js"), str(tmp_path / "data.json")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    told, broken, left = json.loads(answer.stdout)
    assert (told, left) == (len(story.steps), len(story.steps) - 1)
    assert "log.committed-kept" in broken


def test_graph_merges_states_that_are_alike() -> None:
    """The picture has one box for each class of states and refuses what it cannot draw."""
    _, model = get_model("logs", "kafka-4485")
    root = ET.fromstring(draw_graph(model, ["leader", "shown"]))
    boxes = root.findall("{http://www.w3.org/2000/svg}rect")
    assert len(boxes) == 1 + len({(leader, shown) for leader in (0, 1) for shown in (0, 1, 2)})
    with pytest.raises(ModelError, match="the fields are"):
        draw_graph(model, ["nothing"])
    with pytest.raises(ModelError, match="take fewer fields"):
        draw_graph(model, list(model.fields))


def test_fewer_faults_are_preferred_to_fewer_steps() -> None:
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
        (Invariant("high", lambda s: "at the bottom" if s.height == 0 else None),),
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


def test_walks_find_what_is_broken_and_never_claim_more() -> None:
    """Walks repeat with their seed, find a loss as written, and call nothing proved."""
    _, broken = get_model("logs", "kafka-4485")
    found = simulate(broken, seed=3, walks=60)
    assert "isr.stored.holds-committed" in {v.invariant for v in found.violations}
    again = simulate(broken, seed=3, walks=60)
    assert (again.steps, again.distinct, again.actions) == (
        found.steps,
        found.distinct,
        found.actions,
    )
    _, sound = get_model("logs", "kip-236-amended")
    result = simulate(sound, seed=3, walks=5)
    assert result.verdict is Verdict.UNKNOWN
    assert NO_PROOF in result.render()


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
        (["--scope", "logs", "--liveness"], "scope restless is made for it"),
        (["--graph", "/nowhere/at/all.svg"], "there is no directory /nowhere/at"),
        (["--out", "/nowhere/at/all"], "there is no directory /nowhere/at"),
        (["--walks", "5", "--liveness"], "random walks have no use for --liveness"),
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
