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
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations, product
from random import Random
from types import ModuleType
from typing import Any, Final

import operators
import pytest

from reassure_proofs.engine import prover
from reassure_proofs.engine.candidate import find_theorems, prove_candidate
from reassure_proofs.engine.statement import Parameter, Shape, Theorem

RULES: Final = 2_000
BY_OPERATORS: Final = int(os.environ.get("REASSURE_FUZZ_RULES", "150"))
"""Rules made operator by operator; a thorough run asks for more."""
SEED: Final = int(os.environ.get("REASSURE_FUZZ_SEED", "1"))

HEAD: Final = """
import collections, functools, itertools, math, operator
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

SEVEN = 7
DRAINING = {7, 8}
FROZEN = frozenset({7})
RACKS = {1: "a", 7: "b", 8: ""}
TABLE = MappingProxyType({7: 1})
LISTED = [7, 8]
PAIRS = {(7, 1), (8, 2)}
HALF = 7.5
WHOLE = 7.0
EXACT = Fraction(7)
NAMES = {"7", "8"}
CHECKS = {"seven": lambda n: n == 7, "never": lambda n: False}

def within(n, low=7, *, high=8):
    return low <= n <= high

def make_checker(*wanted):
    members = set(wanted)
    def check(n):
        return n in members
    return check

closed = make_checker(7, 8)

def counted():
    calls = 0
    def check(n):
        return n == 7 and calls == 0
    return check

uncounted = counted()

@functools.lru_cache(maxsize=None)
def remembered(n):
    return n == 7

def swallowed(compute):
    try:
        return bool(compute())
    except:
        return False

def caught(compute):
    try:
        return bool(compute())
    except (TypeError, AttributeError, KeyError, IndexError):
        return False

def at_last(compute):
    found = False
    try:
        found = bool(compute())
    finally:
        return found

def matched(n):
    match n:
        case 7:
            return True
        case [7, *_]:
            return True
        case _:
            return False

def matched_by_class(n):
    match n:
        case int(x) if x == 7:
            return True
    return False

def generated(xs):
    for x in xs:
        yield x == 7

def raised(n):
    if n == 7:
        raise ValueError("seven")
    return n

def sought(n):
    try:
        raised(n)
    except ValueError:
        return True
    else:
        return False

def doubled(n):
    return n + n

def walked(xs):
    found = set()
    for x in xs:
        found.add(x)
    found.discard(1)
    return found

def tallied(xs):
    tally = defaultdict(int)
    for x in xs:
        tally[x] += 1
    return tally
"""


def _blocks(text: str) -> list[str]:
    """Return statements that stand apart in a text, indented as in a function."""
    return [block.replace("\n", "\n    ") for block in text.strip().split("\n\n")]


NUMBERS: Final = """
leader
leader
leader
assigned[0]
assigned[-1]
isr[0]
top
leader + 1
leader - 1
-leader
abs(leader)
leader * 2
leader % 5
+leader
max(assigned)
min(isr)
sum(isr)
max(leader, top)
min(assigned[0], 9)
doubled(leader)
int(leader)
sorted(assigned)[0]
round(leader)
leader // 2
next(iter(assigned))
[*isr, *assigned][0]
(lambda n: n)(leader)
~leader
functools.reduce(operator.add, isr)
len(isr) + leader
leader.real
(leader, 1)[0]
({leader: 7}).get(7, leader)
dict(zip(isr, assigned)).get(leader, 7)
""".strip().splitlines()
OTHERS: Final = """
7
7
8
SEVEN
7.0
7.5
WHOLE
HALF
EXACT
Fraction(7)
Decimal(7)
True
float('inf')
-math.inf
float('nan')
None
'7'
7 + 0j
LISTED[0]
len(assigned) + 5
Fraction(15, 2)
int('7')
sum((3, 4))
(7, 8)[0]
1e300
""".strip().splitlines()
CONDITIONS: Final = """
{n} == {m}
{n} != {m}
{n} < {m}
{n} >= {m}
{m} == {n}
{m} <= {n}
{n} in DRAINING
{n} in FROZEN
{n} in {{7, 8}}
{n} in (7, 8)
{n} in LISTED
{n} in {{7: 1}}
RACKS.get({n})
RACKS.get({n}, '') == 'b'
{n} in RACKS.keys()
TABLE.get({n}, 0)
({n}, 1) in PAIRS
{{({n}, 1)}} & PAIRS
{n} in range(7, 9)
({n} == 7) == 1
({n} == 7) is True
({n} == 7) + 0 > 0
({n} < 8) > ({n} < 7)
isinstance({n}, int) and {n} == 7
type({n}) is int and {n} == 7
isinstance({n}, str)
isinstance({n}, (bool, float))
str({n}) == '7'
str({n}) in NAMES
f'{{{n}}}' == '7'
f'{{{n}:d}}' == '7'
'%s' % ({n},) == '7'
'{{}}'.format({n}) == '7'
repr({n}) == '7'
hash({n}) == 7
{n}.__eq__(7) is True
({n}).bit_length() == 3 and {n} > 6
{n} ** 2 == 49
{n} & 7 == 7 and {n} < 8
{n} ^ 7 == 0
{n} / 7 == 1
{n} << 1 == 14
divmod({n}, 7) == (1, 0)
{n} % 7 == 0 and {n} > 0
{n} // 7 == 1
{n} * 2 == 14
swallowed(lambda: {n} ** 2 == 49)
swallowed(lambda: hash({n}) == 7)
closed({n})
caught(lambda: {n} & 7 == 7)
caught(lambda: RACKS[{n}] == 'b')
at_last(lambda: {n} == 7)
at_last(lambda: f'{{{n}}}' == '7')
matched({n})
matched_by_class({n})
within({n})
within({n}, 6, high=7)
remembered({n})
uncounted({n})
CHECKS['seven']({n})
CHECKS['never']({n})
sought({n})
any(generated(assigned))
matched(isr)
set(isr) & DRAINING
set(assigned) >= {{7, 8}}
not DRAINING - set(assigned)
DRAINING.isdisjoint(isr) is False
DRAINING.issuperset(assigned)
set(isr) == {{7}}
len({{7, {n}}}) == 1
any(r == 7 for r in set(isr))
all(r in DRAINING for r in isr)
sorted({{7, {n}}})[0] == 7 and {n} < 9
[*{{7, {n}}}][0] == {n}
min({{8, {n}}}) == 7
list({{{n}: 0, 7: 1}}.values()) == [1]
len({{**RACKS, {n}: 1}}) == 3 and {n} > 1
Counter(isr)[7]
Counter([7, 8])[{n}]
tallied(assigned)[7]
7 in walked(assigned)
7 in Counter(assigned)
dict.fromkeys(assigned).get(7, 1) is None
{n} in map(int, '78')
assigned.index(leader) == 1 and {n} == 7
assigned.count(7)
[{n}] == [7]
({n}, 0) < (8, 0)
sorted(assigned, key=lambda r: (r != 7, r))[0] == 7
max(assigned, key=lambda r: r == 7) == 7
assigned[:{n}] == ()
assigned[{n} - 7:] == assigned
isr[(lambda: 0)()] == 7
assigned[({n} == 7)] == 7
len(assigned[{n}:]) == 0 and {n} == 7
isr[:1] == (7,)
operator.eq({n}, 7)
operator.is_({n} == 7, True)
operator.index({n}) == 7
list(filter(lambda r: r == 7, isr))
list(itertools.takewhile(lambda r: r == 7, isr))
getattr({n}, 'real', 0) == 7
hasattr({n}, 'term')
callable({n})
bool({n}) is False
{n} == 7 and {n} == 8
{n} in set()
{n} in ()
not {n} == {n}
{n} < {n}
{n} is None
{n} is SEVEN
None in isr
{n} == '7'
{n} in NAMES
{n} == (7,)
float({n}) == 7.0
complex({n}) == 7
pow({n}, 2) == 49
math.floor({n}) == 7
int({n} == 7)
bool({n} == 7)
({n} == 7) * 2 == 2
-({n} == 7) == -1
sum(r == 7 for r in isr)
sum([r == 7 for r in assigned]) > 0
sum(set(isr)) == 7
functools.partial(operator.eq, 7)({n})
list(itertools.chain(isr, LISTED)).count(7) > 1
next((r for r in isr if r == 7), None)
({n} == 7 or {n} == 8) and not {n} == 8
[r for r in DRAINING][0] == {n}
{{r: 1 for r in isr}} == {{7: 1}}
{n} == 7 if top > 1 else False
(found := {n}) == 7
len([*isr, *DRAINING]) == len({{*isr, *DRAINING}})
'7' == ''.join(map(str, [{n}]))
""".strip().splitlines()
DROPS: Final = _blocks("""
gone = [r for r in assigned if r not in ranked[:top]]

kept = set(ranked[:top])
gone = [r for r in assigned if r not in kept]

gone = set(assigned) - set(ranked[:top])

place = {r: i for i, r in enumerate(ranked)}
gone = [r for r in assigned if place[r] >= top]

gone = ranked[top:]

gone = list(ranked)
del gone[:top]

gone = list(itertools.islice(ranked, top, None))

kept = set(itertools.islice(ranked, top))
gone = tuple(r for r in assigned if r not in kept)

gone = []
for r in ranked:
    if len(ranked) - len(gone) > top:
        gone.insert(0, r)
gone = ranked[len(ranked) - len(gone):]

gone = []
while len(ranked) > top:
    gone.append(ranked.pop())

gone = sorted(assigned, key=lambda r: (r != leader, r not in isr))[top:]

gone = [r for i, r in enumerate(ranked) if not i < top]

gone = sorted(ranked, key=ranked.index)[max(top, 0):]
""")
RANKED: Final = _blocks("""
ranked = [leader]
ranked += [r for r in isr if r != leader]
ranked += [r for r in assigned if r not in ranked]

ranked = list(dict.fromkeys((leader, *isr, *assigned)))

ranked = sorted(assigned, key=lambda r: (r != leader, r not in set(isr)))

ranked = [leader, *(r for r in assigned if r != leader)]

ranked = sorted(set(assigned), key=lambda r: (r != leader, r))
""")
ELECTIONS: Final = _blocks("""
found = next((r for r in assigned if r in isr and r in live), None)

able = set(isr) & live
found = next((r for r in assigned if r in able), None)

able = [r for r in assigned if r in live and r in set(isr)]
found = able[0] if able else None

found = None
for r in assigned:
    if r in live and r in isr:
        found = r
        break

dead = set(isr) - live
found = next((r for r in assigned if r in isr and not r in dead), None)

able = {r for r in isr if r in live and r in assigned}
found = min(able, key=assigned.index) if able else None

found = next(filter(lambda r: r in live, [r for r in assigned if r in isr]), None)

able = {r: i for i, r in enumerate(assigned) if r in live}
able = [r for r in assigned if r in able and r in isr]
found = (able or [None])[0]
""")
WRONG_DROPS: Final = """
return assigned
return [leader]
return ()
gone = gone[:0]
pass
gone = list(gone)[::-1]
return [leader, leader]
raise KeyError(leader)
return gone
""".strip().splitlines()
WRONG_ELECTIONS: Final = """
return None
return leader
return 7
return found
pass
found = found
return assigned[-1]
raise KeyError(leader)
""".strip().splitlines()


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
    seed: int, count: int, head: str = HEAD, make: Callable[[str, Random], str] = make_rule
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


def test_no_made_up_rule_is_proved_falsely(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 2,000 rules none is proved that plain Python breaks, nor refuted without reason.

    Hardly any plain inputs are tried, so that the executor alone has to get it right.
    """
    monkeypatch.setattr(prover, "_TRIED_OF_OTHERS", 6)
    tally = Tally(Counter(), [], Counter())
    for number, rule in enumerate(load_rules(SEED, RULES)):
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
    monkeypatch.setattr(prover._Exploration, "try_out", lambda _: (1, {}))
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
