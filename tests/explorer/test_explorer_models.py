"""Anybody's model: published specifications with the counts that TLC has for them, and mistakes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.cli import run_command
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.interface import (
    Action,
    Choice,
    FrozenMap,
    Int,
    Invariant,
    MapOf,
    Model,
    ModelError,
    SetOf,
    Symmetry,
    rename_whole,
)
from reassure_explorer.engine.liveness import check_liveness
from reassure_explorer.engine.loading import load_model
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Verdict
from reassure_explorer.engine.temporal import always_eventually, eventually

ROOT = Path(__file__).parents[2]
EXAMPLE = f"{ROOT}/examples/two_phase.py:two_phase"
ENGINES = (explore_plain, explore_derived)


@pytest.mark.parametrize("explore", ENGINES)
def test_example_has_the_counts_that_tlc_has(explore: Any) -> None:
    """Two-phase commit of three has what the manifest of tlaplus/Examples says of TwoPhase.cfg."""
    result = explore(load_model(EXAMPLE))
    assert result.as_tlc == {"generated": 1146, "distinct": 288, "depth": 11}
    assert result.verdict is Verdict.HOLDS


def test_example_has_as_many_states_of_six_as_its_author_counted() -> None:
    """Of six resource managers there are 50,816 states, as TwoPhase.tla says at its end."""
    load_model(EXAMPLE)  # which leaves its module there
    assert explore_derived(sys.modules["explored_two_phase"].two_phase(6)).distinct == 50_816


def make_commit() -> Model:
    """Return transaction commit (TCommit.tla) of three: each may decide in one of two ways."""
    rms = ("r1", "r2", "r3")

    def prepare(s: Any, rm: str) -> Any:
        return s.replace(rm=s.rm | {rm: "prepared"}) if s.rm[rm] == "working" else None

    def decide(s: Any, rm: str) -> Any:
        states = set(s.rm.values())
        if s.rm[rm] == "prepared" and states <= {"prepared", "committed"}:
            yield s.replace(rm=s.rm | {rm: "committed"})
        if s.rm[rm] in ("working", "prepared") and "committed" not in states:
            yield s.replace(rm=s.rm | {rm: "aborted"})

    states = MapOf(rms, Choice(("working", "prepared", "committed", "aborted")))
    alike = Symmetry("rm", rms, {"rm": rename_whole}, (), dict.fromkeys(("p", "d"), rename_whole))
    actions = (Action("p", prepare, rms), Action("d", decide, rms))
    start = {"rm": dict.fromkeys(rms, "working")}
    return Model(
        "commit",
        {"rm": states},
        (start,),
        actions,
        symmetries=(alike,),
        terminal=lambda s: set(s.rm.values()) in ({"committed"}, {"aborted"}),
    )


@pytest.mark.parametrize("explore", ENGINES)
def test_action_of_several_ways_counts_as_tlc_counts(explore: Any) -> None:
    """Transaction commit has what the manifest says of TCommit.cfg, each way a step of its own."""
    result = explore(make_commit())
    assert result.as_tlc == {"generated": 94, "distinct": 34, "depth": 7}


def test_symmetry_is_found_where_maps_and_several_ways_are() -> None:
    """Both engines leave the same orbits of maps by member, and refuse a rule that favours one."""
    model = make_commit()
    counts = [explore(model, symmetry=True).as_tlc for explore in ENGINES]
    assert counts[0] == counts[1]
    assert counts[0]["distinct"] < 34

    def favour(s: Any, _: None) -> Any:
        return [s.replace(rm=s.rm | {"r1": "aborted"}), s]

    unfair = Model(
        *("favour", model.fields, model.initial, (Action("favour", favour),)),
        symmetries=(Symmetry("rm", ("r1", "r2", "r3"), {"rm": rename_whole}),),
    )
    for explore in ENGINES:
        with pytest.raises(ModelError, match="is not symmetric"):
            explore(unfair, symmetry=True)


def make_counter(bound: int, **changes: Any) -> Model:
    """Return a counter without end, but for a constraint."""
    actions = (Action("add", lambda s, p: s.replace(x=s.x + p), (1, 2)),)
    parts = {"constraint": lambda s: s.x < bound, **changes}
    return Model("counter", {"x": Int(0, bound + 1)}, ({"x": 0},), actions, **parts)


@pytest.mark.parametrize("explore", ENGINES)
def test_states_outside_the_constraint_are_generated_and_not_distinct(explore: Any) -> None:
    """A state outside is a step, no state, and nothing follows from it; invariants look at it."""
    result = explore(make_counter(10))
    # Twenty steps from ten states; three of them lead outside, where the range would end too.
    assert result.as_tlc == {"generated": 21, "distinct": 10, "depth": 6}
    outside = Invariant("inside", lambda s: f"{s.x} is reached" if s.x > 10 else None)
    (violation,) = explore(make_counter(10, invariants=(outside,))).violations
    assert [step.words for step in violation.trace.steps] == ["add 1", *["add 2"] * 5]


def test_constraint_is_refused_by_liveness() -> None:
    """Of fair runs a constraint would say too much, and one that nothing meets leaves nothing."""
    with pytest.raises(ModelError, match="write the bound into the actions"):
        check_liveness(make_counter(10, temporal=(always_eventually("far", lambda s: s.x > 5),)))
    with pytest.raises(ModelError, match="no initial state is within"):
        make_counter(0)


def test_fair_action_of_several_ways_is_done_justice_by_any_of_them() -> None:
    """A fair choice between staying and going need never go; a fair step that only goes must."""

    def choose(s: Any, _: None) -> Any:
        return [s, s.replace(done=True)] if not s.done else None

    def go(s: Any, _: None) -> Any:
        return None if s.done else s.replace(done=True)

    def make(step: Any) -> Model:
        fields, start = {"done": Choice((False, True))}, ({"done": False},)
        actions = (Action("act", step, fair=True), Action("wait", lambda s, _: s))
        return Model(
            "fair", fields, start, actions, temporal=(eventually("done", lambda s: s.done),)
        )

    lasso = check_liveness(make(choose)).lasso
    assert lasso is not None
    assert [step.words for step in lasso.cycle] == ["act"]
    assert check_liveness(make(go)).verdict is Verdict.HOLDS


def test_map_is_read_as_a_dict_and_never_changes() -> None:
    """A map equals a dict, can be hashed, and gives another one for other values."""
    before = FrozenMap({"a": 1, "b": 2})
    after = before | {"b": 3}
    assert before == {"a": 1, "b": 2}
    assert after == {"b": 3, "a": 1}
    assert hash(after) == hash(FrozenMap({"b": 3, "a": 1}))
    assert {"a": 0} | before == before
    domain = MapOf(("a", "b"), SetOf((1, 2)))
    for value, why in (({"a": ()}, "'b' has no value"), ({"a": (), "b": (), "c": ()}, "'c' is")):
        with pytest.raises(ValueError, match=why):
            domain.normalise(value)


FAULTY = """
from reassure_explorer.engine.interface import Action, Int, Model

def strange():
    return 5

def failing():
    return Model("m", {"x": Int(0, 3)}, ({"x": 9},), ())

def make(step):
    return Model("m", {"x": Int(0, 3)}, ({"x": 0},), (Action("a", step),))

def beyond():
    return make(lambda s, _: s.replace(x=s.x + 1))

def broken():
    def divide(s, _):
        return s.replace(x=1 // (s.x - 0))
    return make(divide)

def crooked():
    return make(lambda s, _: 7)
"""


def call(*arguments: str) -> int:
    """Run the verb in this process and return its exit code."""
    return run_command(["explore", *arguments])


def test_model_is_explored_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model from a file or a module is explored and told like a scope."""
    assert call("--model", EXAMPLE, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["as_tlc"] == {"generated": 1146, "distinct": 288, "depth": 11}
    assert (document["scope"], document["profile"], document["readings"]) == ("two-phase", None, {})
    (tmp_path / "here.py").write_text("from two_phase import two_phase as again\n")
    assert call("--model", f"{tmp_path}/here.py:again", "--symmetry") == 65
    assert "declares no symmetry" in capsys.readouterr().err


def test_story_of_a_model_from_elsewhere_is_written(tmp_path: Path) -> None:
    """What is broken is written as text, trace and picture; there is no scenario of it."""
    text = Path(EXAMPLE.rpartition(":")[0]).read_text()
    bad = text.replace('s.manager == "init" and all(', "any(")
    assert bad != text
    (tmp_path / "bad.py").write_text(bad)
    out = tmp_path / "out"
    assert call("--model", f"{tmp_path}/bad.py:two_phase", "--out", str(out)) == 1
    assert {path.name for path in out.iterdir()} == {
        *("result.json", "agreement.txt", "agreement.itf.json", "agreement.svg")
    }
    trace = json.loads((out / "agreement.itf.json").read_text())
    assert trace["states"][0]["managers"]["r1"] == "working"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("faulty", 64, "names no function"),
        ("nowhere.to_be_found:make", 78, "there is no module 'nowhere'"),
        ("{here}/absent.py:make", 78, "there is no file"),
        ("{here}/faulty.py:nothing", 78, "it has strange, failing"),
        ("{here}/faulty.py:FAULTS", 78, "no function 'FAULTS'"),
        ("{here}/faulty.py:strange", 65, "returned 5; it must return"),
        ("{here}/faulty.py:make", 65, "TypeError"),
        ("{here}/faulty.py:failing", 65, "9 is not a whole number from 0 to 3"),
        ("{here}/faulty.py:beyond", 65, "Widen the field's range"),
        ("{here}/faulty.py:broken", 65, "ZeroDivisionError"),
        ("{here}/faulty.py:crooked", 65, "answered 7"),
        ("{here}/unreadable.py:make", 65, "SyntaxError"),
    ],
)
def test_mistake_in_a_model_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, code: int, said: str
) -> None:
    """What is not there, is no model or goes wrong is said, with the place and what to do."""
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "unreadable.py").write_text("def make(:\n")
    assert call("--model", name.format(here=tmp_path)) == code
    complaint = capsys.readouterr().err
    assert said in complaint
    assert "Traceback" not in complaint
    if said == "ZeroDivisionError":
        assert f"{tmp_path}/faulty.py:18" in complaint


@pytest.mark.parametrize(
    "options",
    [
        *(("--scope", "small"), ("--profile", "kip-236"), ("--reading", "a=b"), ("--sweep",)),
        (("--liveness",)),
    ],
)
def test_option_that_a_model_has_no_use_for_is_refused(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    """What is about our own scopes only is refused beside --model, before anything is explored."""
    assert call("--model", EXAMPLE, *options) == 64
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("    return s.replace(nope=1)", 4),
        ("    return sorted([1, s.x], key=lambda v: v.nope)", 4),
        ("    return TABLE[s]", 4),
    ],
)
def test_mistakes_are_placed_in_the_file_of_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, line: int
) -> None:
    """An error that comes up in code of Python's names the line that led there."""
    path = tmp_path / "mistaken.py"
    path.write_text(
        "from functools import cache\n"
        "from reassure_explorer.engine.interface import Action, Int, Model\n"
        f"def step(s, _):\n{body}\n"
        "TABLE = {}\n"
        "def make():\n"
        "    return Model('m', {'x': Int(0, 3)}, ({'x': 0},), (Action('a', step),))\n"
        "@cache\n"
        "def build(x):\n"
        "    return Model('m', {'x': Int(0, 3)}, ({'x': 0},), (Action('a', lambda s: s),))\n"
        "def lonely():\n"
        "    return build(0)\n"
        "def strange():\n"
        "    return Model('m', {'x': Int(0, 3)}, ({'x': 9},), (Action('a', step),))\n"
    )
    assert call("--model", f"{path}:make") == 65
    assert f"mistaken.py:{line}" in capsys.readouterr().err
    assert call("--model", f"{path}:lonely") == 65
    assert "def" not in (told := capsys.readouterr().err) or "lambda state" in told
    assert "mistaken.py:10" in told
    assert call("--model", f"{path}:strange") == 65
    assert "at " + str(path) + ":14" in capsys.readouterr().err
