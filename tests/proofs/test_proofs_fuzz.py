"""Rules made up at random, held against brute force: none may be proved that plain Python breaks.

A rule does right except where a condition holds; the conditions are made of what Python has to say
about a number. The truth is what the plain rule answers on every input of a small domain around the
numbers that the conditions speak of.
"""

import inspect
import linecache
import os
import re
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations, product
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, Final

import operators
import pytest

from reassure_proofs.engine import shape_exploration
from reassure_proofs.engine.candidate import find_theorems, prove_candidate
from reassure_proofs.engine.statement import Parameter, Shape, Theorem

RULES: Final = 1_000
PARTS: Final = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
BY_OPERATORS: Final = int(os.environ.get("REASSURE_FUZZ_RULES", "150"))
"""Rules made operator by operator; a thorough run asks for more."""
SEED: Final = int(os.environ.get("REASSURE_FUZZ_SEED", "1"))


def _blocks(text: str) -> list[str]:
    """Return statements that stand apart in a text, indented as in a function."""
    return [block.replace("\n", "\n    ") for block in text.strip().split("\n\n")]


def _lines(name: str) -> list[str]:
    """Return the parts of a rule that stand in a line each."""
    text: str = PARTS[name]
    return text.strip().splitlines()


NUMBERS, OTHERS, CONDITIONS = map(_lines, ("numbers", "others", "conditions"))
WRONG_DROPS, WRONG_ELECTIONS = map(_lines, ("wrong_drops", "wrong_elections"))
DROPS, RANKED, ELECTIONS = (_blocks(PARTS[name]) for name in ("drops", "ranked", "elections"))


def make_rule(name: str, chance: Random) -> str:
    """Return the text of one rule."""
    condition = make_condition(chance)
    if chance.random() < 0.25:
        joint = chance.choice(("{} and {}", "{} or {}", "not ({}) and ({})", "({}) is ({})"))
        condition = joint.format(f"({condition})", f"({make_condition(chance)})")
    if chance.random() < 0.7:
        lines = [f"def {name}(assigned, leader, isr, top):", chance.choice(RANKED)]
        lines += [chance.choice(DROPS), f"if {condition}:", "    " + chance.choice(WRONG_DROPS)]
        lines.append("return gone")
    else:
        lines = [f"def {name}(assigned, isr, live):", "leader = isr[0]"]
        lines += ["top = len(assigned)", chance.choice(ELECTIONS), f"if {condition}:"]
        lines += ["    " + chance.choice(WRONG_ELECTIONS), "return found"]
    return "\n    ".join(lines) + "\n"


def make_condition(chance: Random) -> str:
    """Return the text of one condition."""
    number, other = chance.choice(NUMBERS), chance.choice(OTHERS)
    return chance.choice(CONDITIONS).format(n=f"({number})", m=f"({other})")


def load_rules(
    seed: int,
    count: int,
    head: str = PARTS["fuzz_head"],
    make: Callable[[str, Random], str] = make_rule,
) -> list[Callable[..., Any]]:
    """Return rules as a module would have them that was read from a file."""
    chance = Random(seed)
    names = [f"rule_{number}" for number in range(count)]
    text = head + "\n".join(make(name, chance) for name in names)
    module, file = ModuleType(f"rules_{seed}"), f"<{make.__module__} {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    with warnings.catch_warnings():
        # Some conditions compare what is never equal, or call what cannot be called.
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    return [getattr(module, name) for name in names]


DOMAIN: Final = (-8, -7, 0, 1, 4, 6, 7, 8, 14)
"""The numbers that the conditions speak of, and others."""
DROP_SHAPE: Final[Shape] = {
    "assigned": Parameter(2, floor=1),
    "isr": Parameter(1, floor=1),
    "leader": Parameter(floor=1),
    "top": Parameter(),
    "minimum": Parameter(floor=1),
}
ELECTION_SHAPE: Final[Shape] = {
    "assigned": Parameter(2, floor=1),
    "isr": Parameter(1, floor=1),
    "live": Parameter(kind="set"),
}
HELD: Final = ("drop-leader-kept", "drop-leaves-top", "election-offline-first-in-order")


def theorems_of(rule: Callable[..., Any], length: int) -> list[Theorem]:
    """Return what a rule is held against, in one small shape of so many assigned."""
    drop = "top" in inspect.signature(rule).parameters
    shape = {**(DROP_SHAPE if drop else ELECTION_SHAPE), "assigned": Parameter(length, floor=1)}
    return [
        replace(theorem, subject=replace(theorem.subject, shapes=lambda _: iter((shape,))))
        for theorem in find_theorems(rule, assume=("all",))
        if theorem.name in HELD
    ]


@cache
def all_inputs(drop: bool, length: int) -> list[dict[str, Any]]:
    """Return every input of the shape over the domain that satisfies the hypotheses."""
    if drop:
        return [
            {"assigned": some, "isr": (leader,), "leader": leader, "top": top, "minimum": 1}
            for some in permutations(DOMAIN, length)
            for leader in some
            for top in (1, 2, 3, 7, 8, 2**63)
        ]
    few = (-7, 1, 6, 7, 8)
    return [
        {"assigned": some, "isr": (one,), "live": frozenset(live)}
        for some in product(few, repeat=length)
        for one in few
        for size in range(3)
        for live in combinations(sorted({*some, one, 7}), size)
    ]


def is_true(rule: Callable[..., Any], theorems: Sequence[Theorem], length: int) -> dict[str, bool]:
    """Return of each theorem whether the plain rule keeps it on every input of the domain."""
    held = {theorem.name: True for theorem in theorems}
    for values in all_inputs("top" in inspect.signature(rule).parameters, length):
        open_ones = [theorem for theorem in theorems if held[theorem.name]]
        if not open_ones:
            break
        for theorem in open_ones:
            held[theorem.name] = keeps(theorem, values)
    return held


def keeps(theorem: Theorem, values: dict[str, Any]) -> bool:
    """Return whether the plain rule keeps a theorem on one input; an error keeps nothing."""
    try:
        return bool(theorem.claim(values, theorem.subject.function(values)))
    except Exception:
        return False


@dataclass(slots=True)
class Tally:
    """What came of the rules."""

    outcomes: Counter[tuple[bool, str]]
    wrong: list[str]
    reasons: Counter[str]

    def report(self) -> str:
        """Return in lines how many were proved, refuted and refused, and why refused."""
        counts = [
            f"{'true' if true else 'false'} {verdict} {count}"
            for (true, verdict), count in sorted(self.outcomes.items(), reverse=True)
        ]
        why = "; ".join(f"{count} {reason}" for reason, count in self.reasons.most_common(8))
        return f"\nseed {SEED}: {', '.join(counts)}. Unknown is most often: {why}\n"

    def judge(self, rule: Callable[..., Any], length: int, timeout_s: float = 60.0) -> None:
        """Hold one rule against its theorems, and the verdicts against the truth."""
        theorems = theorems_of(rule, length)
        truth = is_true(rule, theorems, length)
        for result in prove_candidate(rule, 2, timeout_s=timeout_s, theorems=theorems):
            true, verdict = truth[result.theorem.name], result.verdict
            self.outcomes[true, verdict] += 1
            if verdict == "unknown":
                self.reasons[re.sub(r" \(<.*", "", result.reason)[:90]] += 1
            told = result.counterexample
            shown = told is not None and not keeps(result.theorem, plain_arguments(told))
            if (verdict == "proved" and not true) or (verdict == "refuted" and not shown):
                self.wrong.append(f"{rule.__name__}: {result.theorem.name} {verdict}")


def plain_arguments(counterexample: Any) -> dict[str, Any]:
    """Return the arguments of a counterexample from its report."""
    return {
        name: frozenset(value) if name == "live" else tuple(value) if type(value) is list else value
        for name, value in counterexample["arguments"].items()
    }


@pytest.mark.slow
def test_no_made_up_rule_is_proved_falsely(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 1,000 rules none is proved that plain Python breaks, nor refuted without reason.

    Hardly any plain inputs are tried, so that the executor alone has to get it right.
    """
    monkeypatch.setattr(shape_exploration, "_TRIED_OF_OTHERS", 6)
    tally = Tally(Counter(), [], Counter())
    for number, rule in enumerate(load_rules(SEED, RULES, PARTS["fuzz_head"], make_rule)):
        tally.judge(rule, 1 + number % 2)
    with capsys.disabled():
        sys.stdout.write(tally.report())
    assert tally.wrong == []
    # Of every kind there are enough for that to say something.
    every, outcomes = sum(tally.outcomes.values()), tally.outcomes
    assert outcomes[True, "proved"] > every / 4
    assert outcomes[False, "refuted"] > every / 4
    # A fifth of the conditions is made of what numbers do not say: text, bits, identity, hashes.
    assert outcomes[True, "unknown"] + outcomes[False, "unknown"] < every / 4


def test_no_rule_made_by_operators_is_proved_falsely(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of rules made operator by operator none is proved that plain Python breaks on small inputs.

    No plain inputs are tried. Of the rules that are right at most one in ten is not proved.
    """
    monkeypatch.setattr(shape_exploration.ShapeExploration, "try_out", lambda _: (1, {}))
    tally = Tally(Counter(), [], Counter())
    rules = load_rules(SEED, BY_OPERATORS, operators.HEAD, operators.make_rule)
    for number, rule in enumerate(rules):
        tally.judge(rule, 1 + number % 2, timeout_s=5.0)
    with capsys.disabled():
        sys.stdout.write(tally.report())
    assert tally.wrong == []
    outcomes = tally.outcomes
    right = sum(count for (true, _), count in outcomes.items() if true)
    assert outcomes[True, "unknown"] <= right / 10
    assert outcomes[True, "proved"] > BY_OPERATORS / 4
    assert outcomes[False, "refuted"] > BY_OPERATORS / 4
