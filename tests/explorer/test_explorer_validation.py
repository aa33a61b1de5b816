"""Histories that are held against a model: what fits, what does not, and what cannot be read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import validate as validate_schema

from reassure_conformance.cli import run_command
from reassure_conformance.report.document import result_schema
from reassure_explorer.engine.interface import Action, Int, MapOf, Model, SetOf
from reassure_explorer.engine.renderings import make_plain
from reassure_explorer.engine.result import Verdict
from reassure_explorer.engine.validation import fits, read_history, validate

EXAMPLE = f"{Path(__file__).parents[2]}/examples/two_phase.py:two_phase"


def take_up(s: Any, who: str) -> Any:
    """Take the next number, or pass it over: two ways."""
    if s.next == 3 or who in s.out:
        return None
    taken = s.replace(next=s.next + 1, held=s.held | {who: s.next})
    return [taken, s.replace(next=s.next + 1)]


def leave(s: Any, who: str) -> Any:
    """Be out for good."""
    return None if who in s.out else s.replace(out=s.out | {who})


QUEUE = Model(
    "queue",
    fields={"next": Int(0, 3), "held": MapOf(("a", "b"), Int(0, 3)), "out": SetOf(("a", "b"))},
    initial=({"next": 0, "held": {"a": 0, "b": 0}, "out": ()},),
    actions=(Action("take", take_up, ("a", "b")), Action("leave", leave, ("a", "b"))),
    terminal=lambda s: len(s.out) == 2 or s.next == 3,
)


def list_runs(state: Any, lines: list[dict[str, Any]]) -> Iterator[Any]:
    """Yield where each run ends that fits lines that all name an action, by brute force."""
    if not lines:
        yield state
        return
    for action, who in QUEUE.instances:
        if action.name == lines[0]["action"] and lines[0].get("parameter", who) == who:
            for after, _ in QUEUE.take(state, action, who):
                said = lines[0].get("state", {})
                plain = {name: make_plain(getattr(after, name)) for name in said}
                if plain == said:
                    yield from list_runs(after, lines[1:])


LINES = st.lists(
    st.builds(
        lambda action, parameter, state: {"action": action, **parameter, "state": state},
        st.sampled_from(["take", "take", "leave"]),
        st.sampled_from([{}, {"parameter": "a"}, {"parameter": "b"}]),
        st.sampled_from(
            [{}, {}, {"next": 1}, {"next": 2}, {"held": {"a": 0, "b": 1}}, {"out": []}]
        ),
    ),
    min_size=1,
    max_size=4,
)


def hold(path: Path, lines: list[Any], *unlogged: str) -> Any:
    """Hold lines against the queue."""
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return validate(QUEUE, read_history(path, QUEUE), unlogged)


@given(LINES)
def test_verdict_is_that_of_brute_force(tmp_path_factory: Any, lines: list[dict[str, Any]]) -> None:
    """A history holds where some run fits it, and is refused at the first line that none fits."""
    path = tmp_path_factory.getbasetemp() / "drawn.jsonl"
    start = QUEUE.initial_states[0]
    fitted = max(n for n in range(len(lines) + 1) if any(list_runs(start, lines[:n])))
    found = hold(path, lines)
    assert found.fitted == fitted
    assert (found.verdict is Verdict.HOLDS) == (fitted == len(lines))
    assert found.candidates == len(set(list_runs(start, lines[:fitted])))
    assert len(found.trace.steps) == fitted


def test_unlogged_actions_happen_between_lines(tmp_path: Path) -> None:
    """What is called unlogged explains a state that no logged action leads to."""
    lines = [{"action": "leave", "parameter": "a"}, {"state": {"next": 2}}]
    assert hold(tmp_path / "h", lines).verdict is Verdict.VIOLATED
    found = hold(tmp_path / "h", lines, "take")
    assert found.verdict is Verdict.HOLDS
    assert hold(tmp_path / "h", [{"state": {"next": 2}}]).unlogged == ("take", "leave")


def test_a_refusal_says_what_is_otherwise(tmp_path: Path) -> None:
    """The closest state is told, key by key; an action that is not possible is called so."""
    lines = [{"action": "take", "parameter": "a", "state": {"next": 1, "held": {"b": 1}}}]
    assert hold(tmp_path / "h", lines).reasons == ("held[b]: logged 1, the model has 0",)
    lines = [{"action": "leave", "parameter": "a"}] * 2
    assert hold(tmp_path / "h", lines).reasons == (
        'leave "a" is possible in no state that the lines before allow',
    )


def test_nothing_is_vacuous_and_a_budget_makes_it_unknown(tmp_path: Path) -> None:
    """A history without lines holds of nothing; one that is cut short is not known."""
    assert hold(tmp_path / "h", []).verdict is Verdict.VACUOUS
    path = tmp_path / "many"
    path.write_text('{"state": {"next": 3}}\n')
    call = ["explore", "--model", EXAMPLE, "--trace", str(path), "--format", "json"]
    path.write_text('{"state": {"manager": "init"}}\n{"state": {"manager": "committed"}}\n')
    assert run_command(call) == 0
    assert run_command([*call, "--states", "5"]) == 2


@pytest.mark.parametrize(
    ("said", "value"), [([2, 1], (1, 2)), (1, True), (True, 1), ("1", 1), ([1], frozenset({1, 2}))]
)
def test_what_is_alike_only_in_python_does_not_fit(said: Any, value: Any) -> None:
    """Order counts in a tuple, size in a set, and a number is neither a truth nor a text."""
    assert not fits(said, value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 2: no JSON"),
        ("[]", "line 2: expected an object with some of action, parameter, state"),
        ('{"action": "obay"}', "no action 'obay'; it has commit"),
        ('{"action": "obey", "parameter": 7}', "action obey has no parameter 7; it has r1, r2"),
        ('{"state": {"boss": 1}}', "no field 'boss'; it has managers"),
        ('{"parameter": 1}', "a parameter without an action"),
        ('{"state": {}}', "it says nothing"),
    ],
)
def test_bad_line_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    """What cannot be read ends with 65 and says file, line and what was expected."""
    path = tmp_path / "h.jsonl"
    path.write_text(f'{{"action": "abort"}}\n{text}\n')
    assert run_command(["explore", "--model", EXAMPLE, "--trace", str(path)]) == 65
    assert words in capsys.readouterr().err


def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each mistake of the command line ends with 64, or 65 without a file, and says what to do."""
    path = tmp_path / "h.jsonl"
    path.write_text('{"action": "abort"}\n')
    call = ["explore", "--model", EXAMPLE, "--trace", str(path)]
    for options, words in (
        ([*call, "--liveness"], "--liveness does not go with --trace"),
        ([*call, "--unlogged", "abort"], "the history logs abort"),
        ([*call, "--unlogged", "abbot"], "no such action; the model has commit"),
        ([*call[:3], "--unlogged", "abort"], "name one with --trace"),
        (["explore", "--trace", str(path)], "name one with --model"),
    ):
        assert run_command(options) == 64
        assert words in capsys.readouterr().err
    assert run_command([*call[:4], str(tmp_path / "none")]) == 65


def test_document_says_what_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has line, reasons and a run that fits the lines before."""
    path = tmp_path / "h.jsonl"
    path.write_text('{"action": "abort"}\n{"action": "commit"}\n')
    assert (
        run_command(["explore", "--model", EXAMPLE, "--trace", str(path), "--format", "json"]) == 1
    )
    document = json.loads(capsys.readouterr().out)
    assert document["refused"]["line"] == 2 and document["counts"]["fitted"] == 1
    assert [record["action"] for record in document["story"]] == [None, "abort"]
    validate_schema(document, result_schema())
