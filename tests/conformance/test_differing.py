"""The verb `diff`: the smallest instance of a difference, and what got worse."""

import json
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.cli import run_command
from reassure_conformance.report.document import Document
from reassure_explorer.engine.compare import compare_models
from reassure_explorer.engine.domains import Int
from reassure_explorer.engine.interface import Action, Model, ModelError
from reassure_proofs.engine import compare

RULES = """
def right(assigned, leader, isr, top, target):
    ranked = list(dict.fromkeys([leader, *isr, *assigned]))
    return {each for each in assigned if each not in ranked[:top]}

def wrong(assigned, leader, isr, top):
    ranked = list(dict.fromkeys([leader, *isr, *assigned]))
    return [each for each in assigned if each not in ranked[:max(top - 1, 1)]]

def raises(assigned, leader, isr, top):
    raise ValueError(top)

def selector(assigned, isr, live):
    return None
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with rules."""
    name = f"rules_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(RULES, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def diff(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and document of the verb."""
    said: list[str] = []
    code = run_command(["diff", *arguments, "--format", "json"], said.append)
    document: dict[str, Any] = json.loads("\n".join(said))
    return code, document


def test_rules_part_at_the_smallest_input(rules: str) -> None:
    """Two replicas are the fewest on which a slice that ends too early drops another set."""
    code, document = diff(f"{rules}:right", f"{rules}:wrong", "--replication-factor", "2")
    assert (code, document["kind"], document["open"]) == (1, "rules", "")
    first = document["differences"][0]
    assert first["instance"][0] == "assigned [1, 2]"
    assert (first["old"], first["new"]) == (["[]"], ["[2]"])
    assert first["instance"][1:4] == ["isr [1]", "leader 1", "top 2"]


def test_rule_is_held_against_the_models_own(rules: str) -> None:
    """A profile stands for the model's rule: one that is written anew answers alike."""
    arguments = ("kip-236", f"{rules}:right", "--replication-factor", "2")
    code, document = diff(*arguments)
    assert (code, document["differences"]) == (0, [])
    assert document["counts"]["looked"] > 100
    assert diff("kip-236-amended", *arguments[1:])[0] == 1


def test_what_a_rule_raises_is_an_answer(rules: str) -> None:
    """A rule that raises differs from one that answers, and from none that raises the same."""
    factor = ("--replication-factor", "1")
    code, document = diff(f"{rules}:right", f"{rules}:raises", *factor)
    assert document["differences"][0]["new"] == ["raises ValueError: 1"]
    assert code == 1
    assert diff(f"{rules}:raises", f"{rules}:raises", *factor)[0] == 0


def test_alike_so_far_is_unknown(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not every input was asked and none differs, nobody can say."""
    monkeypatch.setattr(compare, "MOST", 5)
    code, document = diff(f"{rules}:right", f"{rules}:right")
    assert (code, document["verdict"]) == (2, "unknown")
    assert "5 inputs" in document["open"]


def test_things_of_two_kinds_are_refused(rules: str) -> None:
    """Rules of two kinds, a rule and a connectable, and what is nothing are usage errors."""
    right = f"{rules}:right"
    for other in (f"{rules}:selector", "direct:a.b:C", "no-such", f"{rules}:none"):
        code, document = diff(right, other)
        assert code == 64
        assert document["error"]["message"]
    for wrong in ("drop.slise=x", "drop.slice"):
        assert diff("kip-236", f"kip-236,{wrong}")[0] == 64


def make_counter(limit: int) -> Model:
    """Return a model that counts up to a limit, and back."""
    fields = {"value": Int(0, 5)}
    up = Action("up", lambda s, _: s.replace(value=s.value + 1) if s.value < limit else None)
    down = Action("down", lambda s, _: s.replace(value=s.value - 1) if s.value else None)
    return Model("counter", fields, ({"value": 0},), (up, down))


def test_models_part_after_the_shortest_story() -> None:
    """The first difference has the fewest steps before it; each action is told once."""
    found = compare_models(make_counter(4), make_counter(2), 100)
    (parting,) = found.partings
    assert (parting.story, parting.action) == (("up", "up"), "up")
    assert (parting.old, parting.new) == (("value 2 -> 3",), ())
    assert found.whole and found.states == 5
    assert not compare_models(make_counter(4), make_counter(4), 100).partings
    part = compare_models(make_counter(4), make_counter(2), 2)
    assert not part.partings and not part.whole
    other = Model("other", {"x": Int(0, 1)}, ({"x": 0},), ())
    with pytest.raises(ModelError):
        compare_models(make_counter(1), other, 10)


def test_profiles_are_compared_by_the_states_of_a_scope() -> None:
    """Two readings go apart where the controller carries out the drop, after the same story."""
    arguments = ("kip-236", "kip-236,drop.slice=exclusive")
    code, document = diff(*arguments, "--states", "2000")
    (first, *_) = document["differences"]
    assert (code, document["kind"]) == (1, "models")
    assert first["instance"][0].startswith("submit")
    assert first["instance"][-1] == "then controller"
    assert "assigned [2, 1, 4] -> [2]" in first["old"][0]
    code, document = diff("kafka-42", "kafka-42", "--states", "50")
    assert (code, document["bound"]) == (2, "scope moves")


BUNDLED = "direct:reassure_conformance.adapter.bundled:Bundled"


def test_implementations_part_at_a_step_of_a_story(tmp_path: Path) -> None:
    """A fault shows as the first step that wrote something else; without one nothing differs."""
    run = {"connectable": BUNDLED, "profile": "kip-236", "readings": {}, "seed": 1}
    (tmp_path / "run.json").write_text(json.dumps({**run, "faults": ["drop-skipped"]}))
    code, document = diff(BUNDLED, str(tmp_path), "--story", "cancel", "--story", "a-move")
    (parted,) = document["differences"]
    assert (code, document["counts"]["looked"]) == (1, 2)
    assert parted["instance"][0] == "test case cancel"
    assert parted["instance"][-1] == "cancel orders-0"
    assert any("isr [1, 2] epoch" in line for line in parted["old"])
    assert not any("isr [1, 2] epoch" in line for line in parted["new"])
    code, document = diff(BUNDLED, BUNDLED, "--story", "cancel")
    assert (code, document["differences"], document["counts"]["looked"]) == (0, [], 1)
    assert diff(BUNDLED, BUNDLED, "--story", "no-such")[0] == 3


def make_result(folder: Path, name: str, **verdicts: tuple[str, int]) -> str:
    """Write the result of an audit with these clauses."""
    clauses = [
        {"id": i, "level": "MUST", "verdict": verdict, "exercised": n, "undecided": 0}
        for i, (verdict, n) in verdicts.items()
    ]
    lists = (
        "archives",
        "incidents",
        "needs",
        "not_followed",
        "unjudged",
        "unsettled",
        "violations",
    )
    body = {**{each: [] for each in lists}, "clauses": clauses}
    document = Document("audit", "holds", 1.0, {"partitions": 1}, None, "kip-236", body=body)
    path = folder / f"{name}.json"
    path.write_text(document.as_json(), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("now", "code", "worse"),
    [
        (("holds", 3), 0, 0),
        (("holds", 9), 0, 0),
        (("violated", 3), 1, 1),
        (("unknown", 3), 2, 1),
        (("not exercised", 0), 3, 1),
        (("not followed", 3), 0, 1),
        (None, 3, 1),
    ],
)
def test_comparison_says_what_changed(
    tmp_path: Path, now: tuple[str, int] | None, code: int, worse: int
) -> None:
    """Only what changed is told, and the exit code says whether it got worse, by the table."""
    old = make_result(tmp_path, "old", a=("holds", 3), b=("violated", 1))
    new = make_result(tmp_path, "new", **({"a": now} if now else {}), b=("violated", 1))
    said: list[str] = []
    assert run_command(["diff", old, new, "--format", "json"], said.append) == code
    document = json.loads(said[0])
    assert [each["what"] for each in document["changed"]] == (
        [] if now == ("holds", 3) else ["clauses a"]
    )
    assert document["counts"]["worse"] == worse
    assert run_command(["diff", old, new], said.append) == code
    assert ("clauses a" in said[-1]) == bool(document["changed"])
    assert "clauses b" not in said[-1]


def test_what_got_better_is_no_failure(tmp_path: Path) -> None:
    """From violated to holds is a change, and nothing that got worse."""
    old = make_result(tmp_path, "old", a=("violated", 3))
    new = make_result(tmp_path, "new", a=("holds", 3))
    said: list[str] = []
    assert run_command(["diff", old, new], said.append) == 0
    assert "nothing got worse; 1 of 1 changed" in said[0]


def test_nothing_that_was_asked_is_vacuous(tmp_path: Path) -> None:
    """Two results in which nothing was asked say nothing."""
    old = make_result(tmp_path, "old")
    assert run_command(["diff", old, old], lambda _: None) == 3
