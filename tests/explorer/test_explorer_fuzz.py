"""Thousands of random models, written as Python: the engines agree, or one refuses by name.

A model is drawn as text and compiled, so that it is what somebody would write: set operators,
comprehensions, patterns, formats, `isinstance`, generators, errors that are caught, fields that
overflow, actions that end in several ways, constraints, and now and then what is refused: types,
identities, globals that change.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import pytest
from toys import summarise

from reassure_explorer.engine.derived import Engine, explore_derived
from reassure_explorer.engine.diagrams import Diagrams, NotDeterministic
from reassure_explorer.engine.interface import (
    Action,
    Choice,
    Domain,
    Flag,
    Goal,
    Int,
    Invariant,
    MapOf,
    Model,
    Noted,
    Option,
    SequenceOf,
    SetOf,
)
from reassure_explorer.engine.origins import NotTraceable
from reassure_explorer.engine.packing import EngineError
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget, ExploreResult, Verdict

BUDGET: Final = Budget(states=120)
"""What bounds the time: so many states of each model."""
REFUSALS: Final = (NotTraceable, NotDeterministic, EngineError)

FIELDS: Final[dict[str, Domain]] = {
    "x": Int(0, 4),
    "y": Int(-1, 2),
    "f": Flag(),
    "c": Choice(("a", "b", None)),
    "m": SetOf((1, 2, 3)),
    "q": SequenceOf(Int(0, 2), 2),
    "o": Option(Int(0, 2)),
    "t": MapOf(("a", "b"), Int(0, 2)),
    "u": MapOf((1, 2), SetOf((1, 2))),
}
START: Final = {
    "x": 0,
    "y": 0,
    "f": False,
    "c": "a",
    "m": frozenset({1}),
    "q": (1,),
    "o": None,
    "t": {"a": 0, "b": 1},
    "u": {1: {1}, 2: ()},
}

HELPERS: Final = """
import enum
from collections import Counter
KINDS = {"a": 1, "b": 2, None: 0}
calls = 0
history = []

class Level(enum.IntEnum):
    NONE = 0
    ONE = 1
    TWO = 2

def get(values, at):
    try:
        return values[at]
    except IndexError:
        return 0

def find(values, what):
    try:
        return values.index(what)
    except ValueError:
        return -1

def spell(value):
    try:
        return "%d" % value
    except Exception:
        return "none"

def shape(value):
    match value:
        case ():
            return 0
        case (first,):
            return first
        case (first, *rest):
            return first + len(rest)
        case frozenset():
            return len(value)
        case {"a": first}:
            return first
    return 4
"""

NUMBERS: Final = (
    *("s.x", "s.y", "p", "{k}", "{k}", "len(s.q)", "len(s.m)", "sum(s.q)", "KINDS[s.c]"),
    *("sum(1 for e in s.m if e > {k})", "max(s.q, default=0)", "min(s.m, default=0)"),
    *("s.q.count({k})", "(s.o or 0)", "get(s.q, {k})", "find(s.q, {k})", "shape(s.q)"),
    *("shape(s.m)", "hash(s.q) % 3", "len(str(s.m)) % 3", "len(repr(s.q)) % 3", "s[0]"),
    *("len(s)", "Level({z})", "sorted(s.m, reverse=True)[:1].count({k})", "int(s.f)"),
    *(
        "s.t['a']",
        "s.t['b']",
        "s.t.get('c', {k})",
        "sum(s.t.values())",
        "len(s.u[{w}])",
        "shape(s.t)",
    ),
    *("len(s.t | {{'a': 1}})", "max(s.t.items())[1]", "min(s.u[{w}], default=0)", "hash(s.t) % 3"),
    *("Counter(s.q)[{k}]", "len(s.m ^ {set})", "sum(s._asdict()['q'])", "next(iter(s.m), 0)"),
)
TRUTHS: Final = (
    *("{n} == {n}", "{n} < {n}", "{n} >= {k}", "{k} in s.m", "{k} in s.q", "s.m <= {set}"),
    *("s.m < {set}", "{set} > s.m", "s.m >= {set}", "s.m == {set}", "s.m != {set}", "s.f"),
    *("s.m == dict.fromkeys(({k}, 1)).keys()", "s.m.isdisjoint({set})", "not s.m", "bool(s.q)"),
    *("s.m.issubset(i for i in ({k}, 1))", "isinstance(s.m, frozenset)", "s.c is None"),
    *("isinstance(s.q, tuple)", "s.q < ({k},)", "s.q == ({k},)", "s.q >= (1, {k})"),
    *("f'{s.x}' == '{k}'", "'x={k}' in str(s)", "f'{s.m}' == 'frozenset({1})'", "s.c == 'b'"),
    *("any(e == {k} for e in s.q)", "all(e > {k} for e in s.m)", "s.o is not None"),
    *("s.q + (1,) == (1, {k})", "{seq} == s.q", "{members} == s.m", "s.o in (None, {k})"),
    *("s == s.replace(x={k})", "{k} in {members}", "len({seq}) == {k}", "s.f is True"),
    *("(s.x, s.q) == ({k}, (1,))", "s.q in ((), (1,))", "s.m in ({fixed}, frozenset())"),
    *("s.t['b'] == {k}", "s.t == {{'a': {z}, 'b': 1}}", "{k} in s.t", "{k} in s.t.values()"),
    *("('a', {z}) in s.t.items()", "list(s.t) == ['a', 'b']", "s.u[{w}] <= {set}", "{w} in s.u[1]"),
    *("{map} == s.t", "isinstance(s.t, dict)", "s.t.keys() == {{'a', 'b'}}", "s.u[1] == s.u[2]"),
    *("str(s.t) == str({{'a': 0, 'b': {z}}})", "dict(s.t) in ({{'a': 0, 'b': {z}}}, s.t)"),
    *("spell(s.x) == '{k}'", "hash(s.m) == hash({fixed})", "s.m.union(s.q) == {set}"),
)
MEMBERS: Final = (
    *("s.m | {{{k}}}", "s.m - {{{k}}}", "s.m & {set}", "s.m ^ {set}", "{set} | s.m", "set(s.m)"),
    *("{set} - s.m", "{{e for e in s.m if e != {k}}}", "frozenset(e for e in s.m if e in s.q)"),
    *("s.m.union([{k}])", "s.m.difference(({k},))", "(s.m | {{7}}) & {{1, {k}, 7}} - {{7}}"),
    *("list(s.m)", "tuple(s.m)", "s.m.symmetric_difference([1, 2])", "s.m & s.m", "{set} & s.m"),
    *("s.m.intersection([1, 2], s.m)", "s.m.copy()", "{{*s.m, 2}}", "set(s.q) & {set}"),
)
SEQUENCES: Final = (
    *("(*s.q, {z})[:2]", "s.q[1:]", "(s.q + ({z},))[-2:]", "tuple(reversed(s.q))", "s.q[:1] * 2"),
    *("(s.q * 2)[:2]", "({z},) + s.q[:1]", "tuple(e for e in s.q if e != {k})", "[{z}]", "()"),
    *("s.q[::-1]", "tuple(sorted(s.q))", "max(s.q, ({z},))", "(2 * s.q)[:1]", "[*s.q]"),
)
MAPS: Final = (
    *("s.t | {{'a': {n} % 3}}", "s.t | {{'b': (s.t['b'] + 1) % 3}}", "{{**s.t, 'b': {z}}}", "s.t"),
    *("{{'b': 1}} | s.t", "{{e: {z} for e in s.t}}", "{{e: (v + 1) % 3 for e, v in s.t.items()}}"),
    *("dict(s.t)", "s.t | {{'a': s.t['b']}}", "s.t | {{'a': 0}} | {{'a': {z}}}", "s.t | s.t"),
)
STRANGE_MAPS: Final = ("s.t | {{1: 0}}", "s.t | {{'a': {k}}}", "{{'a': 1}}", "s.u")
MAPS_OF_SETS: Final = (
    *(
        "s.u | {{{w}: s.m - {{3}}}}",
        "s.u | {{{w}: s.u[{w}] | {{{w}}}}}",
        "{{1: s.u[2], 2: s.u[1]}}",
    ),
    *("s.u | {{{w}: ()}}", "{{e: s.u[e] - {{{w}}} for e in s.u}}", "{{**s.u, {w}: [{w}]}}"),
)
RARE: Final = (
    *("type(s.q) is tuple", "s.q is s.m", "id(s.m) == 0", "spell(s.q) == '{k}'"),
    *("(history.append(1) or len(history) < 9)", "bump() > 40"),
)
RARE_HELPER: Final = """
def bump():
    global calls
    calls += 1
    return calls
"""


class Author:
    """Writes one model."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def pick(self, *texts: str) -> str:
        """Fill in one of some texts."""
        text = self.chance.choice(texts)
        fillings = {
            "{k}": lambda: str(self.chance.randint(0, 3)),
            "{z}": lambda: str(self.chance.randint(0, 2)),
            "{w}": lambda: str(self.chance.randint(1, 2)),
            "{set}": lambda: "{" + ", ".join(self.chance.sample("123", 2)) + "}",
            "{fixed}": lambda: "frozenset({1})",
            "{n}": lambda: self.pick(*NUMBERS),
            "{seq}": lambda: self.pick(*SEQUENCES),
            "{map}": lambda: f"({self.pick(*MAPS)})",
            "{members}": lambda: f"({self.pick(*MEMBERS[:12])})",
        }
        for name, fill in fillings.items():
            while name in text:
                text = text.replace(name, fill(), 1)
        return text.replace("{{", "{").replace("}}", "}")

    def write_truth(self) -> str:
        """Return a condition."""
        truths = [self.pick(*TRUTHS) for _ in range(self.chance.randint(1, 3))]
        if self.chance.random() < 0.02:
            truths.append(self.pick(*RARE))
        return f" {self.chance.choice(('and', 'or'))} ".join(f"({truth})" for truth in truths)

    def write_change(self) -> str:
        """Return what is written to one field."""
        bounded = self.pick("(s.x + {n}) % 5", "min(4, s.x + 1)", "max(s.x - 1, 0)")
        free = self.pick("s.x + 1", "s.x + {k}", "Level({z})", "True", "s.x")
        number = free if self.chance.random() < 0.2 else bounded
        return self.chance.choice(
            (
                f"x={number}",
                f"x={number}",
                f"y={self.pick('{n} % 3', '-1', 's.y - 1 if s.y >= 0 else 2', 's.y')}",
                f"f={self.pick('not s.f', '{n} == {k}', '1', '{k} in s.m')}",
                f"c={self.pick('None', repr('a'), repr('b'), 's.c')}",
                f"m={self.pick(*MEMBERS)}",
                f"m={self.pick(*MEMBERS)}",
                f"q={self.pick(*SEQUENCES)}",
                f"t={self.pick(*MAPS)}",
                f"t={self.pick(*MAPS)}",
                f"t={self.pick(*MAPS, *STRANGE_MAPS)}",
                f"u={self.pick(*MAPS_OF_SETS)}",
                f"o={self.pick('None', '{z}', 's.o', 'None if s.o else 1')}",
            )
        )

    def write_action(self, name: str) -> str:
        """Return a function that takes a step."""
        lines = [f"def {name}(s, p):"]
        for _ in range(self.chance.randint(0, 2)):
            lines.append(f"    if {self.write_truth()}:")
            lines.append(self.pick("        return None", "        s = s.replace(f=not s.f)"))
        changes = {c.partition("=")[0]: c for c in (self.write_change(), self.write_change())}
        after = f"s.replace({', '.join(changes.values())})"
        if self.chance.random() < 0.02:
            after = "s.replace(m=(e for e in s.m))"
        noted = self.pick("{a}", "{a}", "Noted({a}, (f'note {p}',))", "{a}._replace()")
        after = noted.replace("{a}", after)
        lines += [f"    {line}" for line in self.write_end(after).splitlines()]
        return "\n".join(lines)

    def write_end(self, after: str) -> str:
        """Return how an action ends: mostly in one way, at times in several or none."""
        if self.chance.random() < 0.7:
            return f"return {after}"
        other = f"s.replace({self.write_change()})"
        several = (
            f"return [{after}, {other}]",
            f"return ({after}, {other}, {after})",
            f"return [{after} for e in s.m if e != {self.pick('{k}')}]",
            "return (s.replace(x=e) for e in s.q)",
            f"return Noted([{after}, {other}], ('several',))",
            "return []",
            f"yield {after}\nyield {other}",
            f"for e in s.m:\n    yield s.replace(o=e % 3)\nyield from [{after}]",
        )
        return self.chance.choice(several)

    def write(self) -> str:
        """Return the text of a model's functions."""
        parts = [HELPERS, RARE_HELPER]
        parts += [self.write_action(f"step{n}") for n in range(self.chance.randint(1, 3))]
        parts += [f"def check{n}(s, p=1):\n    return {self.write_truth()}" for n in range(4)]
        near = self.pick("s.x == 0", "s.x <= {k}", "s.x < 3")
        within = self.chance.choice((near, near, f"{near} or {self.write_truth()}"))
        parts.append(f"def within(s, p=1):\n    return {within}")
        return "\n".join(parts)


@dataclass(frozen=True)
class Drawn:
    """A model drawn; each engine is given functions of its own, as they may keep things."""

    seed: int

    @property
    def text(self) -> str:
        """The model as Python."""
        return Author(self.seed).write()

    @property
    def keeps_going(self) -> bool:
        """Whether it is explored beyond the first violation."""
        return self.seed % 2 == 0

    def make(self) -> Model:
        """Return the model."""
        names: dict[str, Any] = {"Noted": Noted, "__name__": "drawn"}
        exec(compile(self.text, "drawn", "exec"), names)

        def find(check: Callable[[Any], Any]) -> Callable[[Any], str | None]:
            return lambda state: "broken" if check(state) else None

        fields = dict(FIELDS)
        if self.seed % 5 == 0:
            fields["wide"] = Int(0, 2**62)  # a second word
        start = {name: START.get(name, 0) for name in fields}
        first, second = names["check0"], names["check1"]
        steps = [names[f"step{n}"] for n in range(3) if f"step{n}" in names]
        invariants = [
            Invariant("one", find(lambda s: first(s) and second(s))),
            Invariant("two", find(names["check2"])),
        ]
        goals = [Goal("three", names["check3"])]
        if self.seed % 3 == 1:
            # What lies outside most constraints.
            invariants.append(Invariant("near", find(lambda s: s.x == 3)))
            goals.append(Goal("far", lambda s: s.x == 4 or s.y == 2))
        return Model(
            "drawn",
            fields,
            (start,),
            tuple(Action(f"step{n}", step, (0, 1)) for n, step in enumerate(steps)),
            tuple(invariants),
            tuple(goals),
            terminal=names["check2"] if self.seed % 2 else None,
            constraint=names["within"] if self.seed % 3 else None,
        )


def run(explore: Callable[..., ExploreResult], drawn: Drawn) -> Any:
    """Return what an engine found, or the class of the error that it ended with."""
    try:
        return summarise(explore(drawn.make(), keep_going=drawn.keeps_going, budget=BUDGET))
    except REFUSALS as refusal:
        return refusal
    except Exception as problem:
        return type(problem)


def compare(seeds: range) -> tuple[Counter[str], list[Drawn]]:
    """Run both engines on models and count how they end; return those on which they differ."""
    ends: Counter[str] = Counter()
    different: list[Drawn] = []
    for drawn in map(Drawn, seeds):
        plain, derived = run(explore_plain, drawn), run(explore_derived, drawn)
        if isinstance(derived, REFUSALS):
            ends[type(derived).__name__] += 1
        elif plain != derived:
            different.append(drawn)
        elif isinstance(plain, type):
            ends[plain.__name__] += 1
        else:
            ends[plain["verdict"].value] += 1
            ends["reached"] += plain["goals"]["three"] is not None
    return ends, different


@pytest.mark.parametrize("models", [500, pytest.param(1500, marks=pytest.mark.slow)])
def test_random_models_are_answered_alike_or_refused(models: int) -> None:
    """Of random models none is answered otherwise, few are refused, and all ends occur."""
    ends: Counter[str] = Counter()
    for first in range(0, models, 100):
        some, different = compare(range(first, first + 100))
        ends += some
        assert not different, "\n".join(f"seed {d.seed}:\n{d.text}" for d in different)
    assert ends["NotTraceable"] + ends["EngineError"] + ends["NotDeterministic"] < models / 8
    assert ends["EngineError"] + ends["NotDeterministic"] < models / 50
    for verdict in (Verdict.HOLDS, Verdict.VIOLATED, Verdict.VACUOUS):
        assert ends[verdict.value] > models / 100, verdict
    assert ends["RangeError"] > models / 100
    assert ends["reached"] > models / 10


def _forget_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Diagrams.learn

    def forget(self: Diagrams, root: int, path: Any) -> int:
        return right(self, root, type(path)(path.reads[1:], path.steps))

    monkeypatch.setattr(Diagrams, "learn", forget)
    monkeypatch.setattr(Engine, "hold_against_plain", lambda *_: None)


def _go_on_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "split", lambda _, states: (states, states[:0]))


@pytest.mark.parametrize("plant", [_forget_a_read, _go_on_from_outside])
def test_random_models_notice_a_planted_fault(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """An engine that forgets a read unchecked, or goes on beyond a constraint, is found out."""
    plant(monkeypatch)
    _, different = compare(range(100))
    assert different
