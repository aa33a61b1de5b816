"""The verb `prove` as a reviewer meets it: verdicts, exit codes, mistakes."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.cli import run_command
from reassure_proofs.engine.candidate import _time_limit
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.symex import TimeIsUp

RULES = """
import itertools

dice = itertools.cycle((False, True))


def drop(assigned, leader, isr, top):
    ranked = (leader, *(r for r in isr if r != leader))
    ranked = (*ranked, *(r for r in assigned if r not in ranked))
    kept = ranked[:top]
    return tuple(r for r in assigned if r not in kept)


def loops(assigned, leader, isr, top):
    while True:
        pass


def asks_for_ever(assigned, leader, isr, top):
    while top > 0 or top <= 0:
        top = top + 1
    return ()


def throws_dice(assigned, leader, isr, top):
    return assigned if next(dice) else ()


def few(assigned):
    return ()


def selector(assigned, isr, live):
    return next((r for r in assigned if r in live and r in isr), None)


def selector_loops(assigned, isr, live):
    while True:
        pass


def members(replicas, offsets, pseudo_isr, high_watermark):
    return tuple(r for r in replicas if r in pseudo_isr)


def members_by_dice(replicas, offsets, pseudo_isr, high_watermark):
    return tuple(r for r in replicas if next(dice))
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reviewer's module in the working directory."""
    (tmp_path / "reviewed_rules.py").write_text(RULES, encoding="utf-8")
    (tmp_path / "broken_rules.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with nothing that was proved before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit code, output and error output of the verb."""
    code = run_command(["prove", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_group_tells_what_its_theorems_share_and_each_theorem_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Code, profile, readings, bound, time and idle shapes stand once; then claim and verdict."""
    names = ("drop-leader-kept", "drop-leaves-top", "drop-exclusive-leader-kept")
    code, out, _ = run(capsys, *names, "--replication-factor", "2")
    verdict, first, second = out.strip().split("\n\n")
    assert code == 0
    assert all(len(line) <= 100 for line in out.splitlines())
    head = first.replace("\n    inputs", " inputs").splitlines()
    assert head[0] == "the drop rule (drop), profile kip-236"
    assert head[1].startswith("  any number of brokers; all integers unbounded; 1 paths, ")
    assert head[2].startswith("  readings: drop.slice=inclusive, drop.protects=nothing")
    assert head[3:7] == [
        "  proved  drop-leader-kept (drop.leader-kept)",
        "    A drop never removes the leader from the assigned replicas.",
        "    assumes: top-positive",
        "    bounds: assigned-distinct, isr-distinct, isr-assigned, leader-in-sync",
    ]
    assert "  proved  drop-leaves-top (drop.keep-top)" in head
    assert "profile kip-236 with drop.slice=exclusive" in second.replace("\n ", "")
    assert "  refuted (finding drop-1)  drop-exclusive-leader-kept" in second
    assert "    Not so: with assigned = [1], isr = [1], leader = 1, top = 1" in second
    assert verdict.startswith("HOLDS in ")
    assert verdict.endswith("s: theorems 3, proved 2, refuted 1, findings 1")


def test_what_is_wrong_comes_after_the_verdict(
    rules: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict comes first, then the theorems that a rule breaks, then those that it keeps."""
    code, out, _ = run(capsys, "--code", "reviewed_rules:members", "--replication-factor", "2")
    assert code == 1
    verdicts = re.findall(r"^  (proved|refuted)", out, flags=re.MULTILINE)
    assert out.startswith("VIOLATED in ")
    assert verdicts == sorted(verdicts, reverse=True)
    assert set(verdicts) == {"proved", "refuted"}


def test_theorems_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The list names every theorem with what is expected of it, and proves nothing."""
    code, out, _ = run(capsys, "--list")
    assert code == 0
    assert "drop-exclusive-leader-kept: refuted (drop-1), drop.slice.inclusive, kip-236" in out
    _, out, _ = run(capsys, "--list", "--format", "json")
    document = json.loads(out)
    assert document["counts"]["theorems"] == len(document["theorems"]) == len(get_theorems())


def test_explanation_has_the_bound_of_the_set(capsys: pytest.CaptureFixture[str]) -> None:
    """A theorem is explained with the bound, readings and verdict that the whole set gives it."""
    _, out, _ = run(capsys, "drop-nothing-at-first-request", "--explain")
    assert "any number of brokers; all integers unbounded" in out
    assert "readings  " in out
    _, out, _ = run(capsys, "protocol-starts-in-invariant", "--explain")
    assert "up to 2 brokers; lists of up to 2; all integers unbounded" in out


def test_document_has_the_agreed_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON report names everything that was agreed for each theorem."""
    code, out, _ = run(capsys, "drop-leader-kept", "--replication-factor", "1", "--format", "json")
    document = json.loads(out)
    assert (code, document["verb"], document["verdict"]) == (0, "prove", "holds")
    (theorem,) = document["theorems"]
    wanted = {"name", "clause", "profile", "bound", "layer", "verdict", "seconds", "hypotheses"}
    assert wanted <= set(theorem)
    assert document["counts"] == {
        "theorems": 1,
        "proved": 1,
        "refuted": 0,
        "unknown": 0,
        "findings": 0,
    }


def test_unknown_is_exit_code_2_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the time is up nothing is claimed: verdict unknown, exit code 2, and why."""
    arguments = ("drop-leader-kept", "--replication-factor", "2", "--timeout", "0.001")
    code, out, _ = run(capsys, *arguments)
    assert code == 2
    assert "unknown: no result in the" in out
    assert out.strip().splitlines()[0].startswith("UNKNOWN")
    code, out, _ = run(capsys, *arguments, "--format", "json")
    assert (code, json.loads(out)["verdict"]) == (2, "unknown")


def test_solver_that_does_not_know_is_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the solver itself answers unknown, so does the verb."""
    import z3

    from reassure_proofs.engine import symex

    class Doubtful:
        def check(self, *_: object) -> Any:
            return z3.unknown

        def reason_unknown(self) -> str:
            return "too hard"

    original = symex.PathExplorer.check

    def check(engine: symex.PathExplorer, *assumptions: Any) -> Any:
        engine._solver = Doubtful()
        return original(engine, *assumptions)

    monkeypatch.setattr(symex.PathExplorer, "check", check)
    code, out, _ = run(capsys, "drop-leader-kept", "--replication-factor", "1")
    assert code == 2
    assert "the solver does not know: too hard" in out


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("no_such_module:drop", "module 'no_such_module' cannot be imported (ModuleNotFoundError"),
        ("broken_rules:drop", "(ZeroDivisionError: division by zero)"),
        ("reviewed_rules:nothing", "has no function 'nothing'; it has: drop, loops"),
        ("reviewed_rules", "write it as module:function"),
        ("reviewed_rules:few", "the parameters assigned are those of no rule; expected one of"),
        ("reviewed_rules:throws_dice", "nothing but its arguments: no chance, no clock"),
        ("reviewed_rules:members_by_dice", "nothing but its arguments: no chance, no clock"),
    ],
)
def test_mistake_of_a_reviewer_is_told(
    code: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A candidate that cannot be proved anything of is a usage error that says what to do."""
    exit_code, _, err = run(capsys, "--code", code)
    assert exit_code == 64
    assert complaint in err


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("name", ["loops", "asks_for_ever", "selector_loops"])
def test_candidate_that_does_not_end_is_unknown(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A loop is given up after the time it was given, whether or not it asks anything."""
    code, out, _ = run(capsys, "--code", f"reviewed_rules:{name}", "--timeout", "0.5")
    assert code == 2
    assert "    unknown: " in out


def test_time_is_not_up_while_an_object_is_removed() -> None:
    """What is raised in a finaliser is lost; the time limit waits until it is over."""
    removed: list[float] = []

    class Slow:
        def __del__(self) -> None:
            time.sleep(0.3)
            removed.append(time.monotonic())

    def loop() -> None:
        with _time_limit(0.05):
            Slow()
            while True:
                pass

    with pytest.raises(TimeIsUp):
        loop()
    assert removed


@pytest.mark.usefixtures("rules")
def test_candidates_get_their_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    """A sound rule and selector hold; a definition without the high watermark is refuted."""
    small = ("--replication-factor", "2")
    code, out, _ = run(capsys, "--code", "reviewed_rules:drop", "--assume", "all", *small)
    assert code == 0
    assert re.search(r"paths, tried on [1-9]\d* plain inputs", " ".join(out.split()))
    assert run(capsys, "--code", "reviewed_rules:selector", *small)[0] == 0
    code, out, _ = run(capsys, "--code", "reviewed_rules:members", *small)
    assert code == 1
    assert "Not so: with replicas = [1], offsets = [0]" in out


@pytest.mark.usefixtures("rules")
def test_what_is_assumed_of_a_rule_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict and the JSON report name what is assumed of every input, and what is not."""
    arguments = ("--code", "reviewed_rules:drop", "--replication-factor", "1")
    code, out, _ = run(capsys, *arguments)
    assert code == 1
    assert ", with no assumption on inputs: theorems" in out.splitlines()[0]
    assert "not assumed: leader-in-sync (the leader is in the in-sync set)" in out
    assert "add --assume NAME" in " ".join(out.split())
    named = ("--assume", "leader-in-sync", "--assume", "top-positive")
    _, out, _ = run(capsys, *arguments, *named)
    assert ", assuming top-positive, leader-in-sync of every input: theorems" in out.splitlines()[0]
    assert "\nassumed: leader-in-sync (the leader is in the in-sync set)" in out
    _, out, _ = run(capsys, *arguments, *named, "--format", "json")
    told = {each["name"]: each["assumed"] for each in json.loads(out)["preconditions"]}
    assert (told["leader-in-sync"], told["isr-assigned"]) == ("accepted", "")
    _, out, _ = run(capsys, "--code", "reviewed_rules:members", "--replication-factor", "1")
    assert "\ngiven: leader-counted (" in out
    code, _, err = run(capsys, "drop-leader-kept", "--assume", "all")
    assert (code, "add --code" in err) == (64, True)


def test_second_time_is_told_to_be_cached(capsys: pytest.CaptureFixture[str]) -> None:
    """What was proved before is told as that, in both reports; --fresh proves it anew."""
    arguments = ("drop-leader-kept", "--replication-factor", "1")
    assert "cached" not in run(capsys, *arguments)[1]
    told = run(capsys, *arguments)[1]
    assert "(1 cached; --fresh proves them again)" in told.splitlines()[0]
    assert "when it was proved (cached)" in " ".join(told.split())
    report = json.loads(run(capsys, *arguments, "--format", "json")[1])
    assert report["theorems"][0]["cached"]
    assert "cached" not in run(capsys, *arguments, "--fresh")[1]


def test_misspelt_theorem_is_told_what_is_close(capsys: pytest.CaptureFixture[str]) -> None:
    """A name there is not gives those that are close, not all of them."""
    code, _, err = run(capsys, "drop-leader-keep")
    assert code == 64
    assert "names that are close: drop-leader-kept" in err
    assert len(err) < 500


def test_explanation_needs_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    """What is to be explained has to be named."""
    code, _, err = run(capsys, "--explain")
    assert code == 64
    assert "needs the name of a theorem" in err


def test_sweep_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """The sweep tells what is refuted, and under which reading; what is registered is no news."""
    code, out, _ = run(capsys, "drop-leader-kept", "--sweep")
    assert code == 0
    assert "drop-leader-kept under kip-236, drop.slice=exclusive: refuted (drop-1" in out
    code, out, _ = run(capsys, "drop-leader-kept", "--sweep", "--format", "json")
    document = json.loads(out)
    assert document["counts"]["news"] == 0
    assert {row["change"] for row in document["sweep"]} == {
        "drop.slice=exclusive",
        "offline.drop=as-written",
        "offline.drop=skip",
    }
