"""Rules of others: what Python decides without asking is seen or refused, the natural is proved.

Each rule is a sound drop rule, or a sound selector, in which something is done to the number of a
broker. They are written to a module and loaded from there, as `reassure prove --code` does.
"""

import linecache
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from textwrap import indent
from types import ModuleType
from typing import Any, Final

import pytest
import z3
from proving import prove

from reassure_proofs.engine import dialect, prover
from reassure_proofs.engine.candidate import (
    CandidateError,
    find_theorems,
    load_candidate,
    prove_candidate,
)
from reassure_proofs.engine.containers import RuleDict, RuleSet
from reassure_proofs.engine.dialect import make_twin, run_twin
from reassure_proofs.engine.library import get_plain_type
from reassure_proofs.engine.runner import TheoremResult
from reassure_proofs.engine.statement import Parameter
from reassure_proofs.engine.symbols import SBool, SInt, _Symbolic
from reassure_proofs.engine.symex import Engine, GaveUp

HEAD: Final = """
import collections, functools, itertools, math, operator, random, time
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

DRAINING = {7, 8}
RACKS = {1: "a", 7: "b"}
LISTED = [7, 8]
SETTINGS = SimpleNamespace(avoided=7)
SEVEN = 7
SEEN = []
clock = iter(range(10**9))

def ranked(assigned, leader, isr):
    first = [leader, *(r for r in isr if r != leader)]
    return first + [r for r in assigned if r not in first]

def sound(assigned, leader, isr, top):
    order = ranked(assigned, leader, isr)
    kept = order[:top]
    return [r for r in assigned if r not in kept]

def first(assigned, isr, live):
    return next((r for r in assigned if r in isr and r in live), None)

def attempt(compute):
    try:
        return compute()
    except:
        return False

def attempt_type(compute):
    try:
        return compute()
    except (TypeError, AttributeError):
        return False

def at_last(compute):
    found = False
    try:
        found = compute()
    finally:
        return found

def of_class(n):
    match n:
        case int(x) if x == 7:
            return True
    return False

def of_mapping(d):
    match d:
        case {7: _}:
            return True
    return False

@functools.lru_cache
def remembered(n):
    return n == 7

def make_counter():
    calls = 0
    def count():
        nonlocal calls
        calls += 1
        return calls
    return count

count = make_counter()

class Seven:
    def __eq__(self, other):
        return other == 7
    __hash__ = None

class Broker(int):
    pass

def seven():
    return len(DRAINING) * 3 + 1

def matched(n):
    match [n - seven(), n]:
        case [0, *_]:
            return True
    return False

def divided(n):
    try:
        1 / (n - seven())
    except ZeroDivisionError:
        return True
    return False

def asserted(n):
    try:
        assert n != seven()
    except AssertionError:
        return True
    return False

def indexed(n):
    try:
        return LISTED[n - seven()] == 7
    except IndexError:
        return False

def skipped(n):
    for i in range(seven() - 2, seven() + 2):
        if i < n:
            continue
        if i == n:
            break
    else:
        return False
    return n == seven()

def talk():
    yield (yield 0) == seven()

def sent(n):
    talking = talk()
    next(talking)
    return talking.send(n)

def delegate(n):
    found = yield from told(n)
    yield found

def told(n):
    yield n
    return n == seven()

def late(n):
    fs = []
    for i in (seven() - 1, seven()):
        fs.append(lambda: n == i)
    return fs[0]()

def overwritten(n):
    d = {seven(): 1}
    d[n] = 2
    return len(d) == 1

def emptied(n):
    s = {seven()}
    s ^= {n}
    return not s

def chained(n):
    try:
        try:
            if n == seven():
                raise KeyError(n)
        except KeyError as e:
            raise LookupError from e
    except Exception as e:
        return e.__cause__ is not None
    return False
"""
FALSE: Final = """
leader in DRAINING
leader in {7, 8}
leader in frozenset((7, 8))
leader in {7: 1}
{leader} & DRAINING
DRAINING >= {leader}
DRAINING.issuperset([leader])
len({leader, 7}) == 1
(leader, 1) in {(7, 1)}
leader in dict.fromkeys((7, 8))
RACKS.get(leader) == "b"
attempt(lambda: RACKS[leader] == "b")
Counter([7])[leader]
leader in Counter([7])
leader in collections.OrderedDict({7: 1})
leader in collections.ChainMap(RACKS)
leader == 7.0
leader == Fraction(7)
leader == Decimal(7)
leader == Seven()
leader == Broker(7)
leader in (7.0,)
(leader == 7) == 1
(leader == 7) is True
leader is 7
leader is SEVEN
6.5 < leader < 7.5
operator.is_(leader, SEVEN)
isinstance(leader, int) and leader == 7
type(leader) is int and leader == 7
not isinstance(leader, SimpleNamespace) and leader == 7
of_class(leader)
of_mapping({leader: 1})
str(leader) == "7"
f"{leader}" == "7"
"%d" % leader == "7"
"{}".format(leader) == "7"
repr((leader,)) == "(7,)"
"7" in map(str, isr)
hash(leader) == 7
id(leader) == id(SEVEN)
leader.bit_length() == 3 and leader & 7 == 7
leader.__index__() == 7
leader.real == 7
attempt(lambda: leader ** 3 == 343)
attempt(lambda: hash(leader) == 7)
at_last(lambda: f"{leader}" == "7")
attempt_type(lambda: leader ^ 7 == 0)
attempt_type(lambda: leader | 7 == 7 and leader > 6)
attempt_type(lambda: list(range(leader))[6:] == [6])
attempt_type(lambda: len(bytes(leader)) == 7)
leader % 7 == 0 and 0 < leader < 10
leader * 3 == 21
leader << 1 == 14
leader / 7 == 1
pow(leader, 1) == 7
divmod(leader, 7) == (1, 0)
float(leader) == 7.0
complex(leader) == 7
abs(leader) == 7
remembered(leader)
functools.partial(operator.eq, 7)(leader)
[*{leader, 7}][0] == 7 and leader < 8
min({leader, 9}) == 7
sum({leader}) == 7
sorted({leader, 8}, key=lambda r: r == 7)[-1] == 7
LISTED.count(leader)
SETTINGS.avoided == leader
getattr(leader, "real", 0) == 7
vars(SETTINGS)["avoided"] == leader
leader in range(7, 8)
bytes([7])[0] == leader
("x" * leader) == "xxxxxxx"
[0] * leader == [0] * 7
assigned[:leader - 7] == () and leader < 8
[1, 2][(lambda: leader - 7)():] == [1, 2] and leader < 8
leader in itertools.chain(LISTED)
any(r == 7 for r in set(isr))
max(isr, key={7: 1}.__contains__) == 7
leader == int("7")
eval("leader") == 7
all(map((7).__eq__, isr))
not (leader - seven())
(leader - seven() or None) is None
(n := leader) == seven() and n > 0
{leader: 1} == {seven(): 1}
frozenset([leader]) == frozenset([seven()])
[leader] in [[seven()]]
(seven() - 1,) < (leader,) < (seven() + 1,)
sorted([leader, seven()]) == [leader, leader]
max(leader, seven()) == min(leader, seven())
next(enumerate("a", leader))[0] == seven()
len(range(leader, seven() + 1)) == 1
list(itertools.accumulate([leader, 1]))[-1] == seven() + 1
operator.itemgetter(0)((leader,)) == seven()
~leader == -seven() - 1
(leader > seven() - 1) + (leader < seven() + 1) == 2
[0, 1][leader == seven()]
(leader != seven()) ^ True
type(leader)(seven()) == leader
any(f(leader) for f in [lambda n, i=i: n == i for i in LISTED[:1]])
(lambda *a, **k: k["v"] == a[0])(leader, v=seven())
len({seven(): 0, leader: 1}) == 1
list({seven(): 0, leader: 1}) == [leader]
not {leader} ^ {seven()}
{leader} | {seven()} == {leader}
collections.deque([0, leader], maxlen=1)[0] == seven()
len([k for k, _ in itertools.groupby([leader, seven()])]) == 1
all(a == b for a, b in itertools.zip_longest([leader], [seven()]))
matched(leader)
divided(leader)
asserted(leader)
indexed(leader)
skipped(leader)
sent(leader)
list(delegate(leader))[-1]
late(leader)
overwritten(leader)
emptied(leader)
chained(leader)
"""
MEMORY: Final = """
random.random() < 0.5
next(clock) % 3 == 0
count() % 4 == 0
SEEN.append(leader) or len(SEEN) % 2
time.perf_counter_ns() % 2
"""
NATURAL: Final = """
kept = set(order[:top])
return set(assigned) - kept

return sorted(assigned, key=lambda r: (r != leader, r not in isr))[top:]

return sorted(assigned, key=lambda r: (r == leader, r in isr), reverse=True)[top:]

place = {r: i for i, r in enumerate(order)}
return [r for r in assigned if place[r] >= top]

place = {r: i for i, r in enumerate(order)}
return sorted(assigned, key=place.get)[top:]

return sorted(gone, key=lambda r: (r not in DRAINING, r))

return sorted(set(gone), key=lambda r: (r in DRAINING, r))

return list(dict.fromkeys(gone))

least = min(gone, default=float("inf"))
return gone if least < math.inf else []

return gone if len(gone) / 2 >= 0 else assigned

return gone if isinstance(leader, int) else assigned

return gone if type(leader) is int else assigned

return gone if leader is not None else assigned

return gone if (leader in isr) is True else assigned

return gone if set(isr) <= set(assigned) else assigned

return gone if sum(r in gone for r in assigned) == len(gone) else assigned

racks = [RACKS.get(r, "none") for r in gone]
return [r for r, _ in zip(gone, racks)]

seen = Counter(gone)
return [r for r in gone if seen[r] == 1]

even = [r for r in gone if r % 2 == 0]
return even + [r for r in gone if r % 2]

return order[top:]

return order[len(order) - max(0, len(order) - top):]

return [order[i] for i in range(len(order)) if i >= top]

kept = [order[i] for i in range(min(top, len(order)))]
return [r for r in assigned if r not in kept]

return list(itertools.islice(order, min(top, len(order)), None))

del order[:top]
return order

return tuple(r for r in reversed(order) if order.index(r) >= top)

return [] if top >= len(order) else order[-(len(order) - top):]

groups = collections.defaultdict(list)
for r in assigned:
    groups[r in isr and r != leader].append(r)
others = [r for r in groups[False] if r != leader]
return [leader, *groups[True], *others][top:]

try:
    racks = [RACKS[r] for r in gone]
except KeyError:
    return gone
return [r for r, _ in zip(gone, racks)]

if not isr:
    raise ValueError(f"no replica of {assigned} is in sync")
return gone
"""
SELECTORS: Final = """
alive = set(isr) & live
return next((r for r in assigned if r in alive), None)

alive = live & set(isr)
return next((r for r in assigned if r in alive), None)

alive = live.intersection(isr)
return next((r for r in assigned if r in alive), None)

dead = set(isr) - live
return next((r for r in assigned if r in isr and r not in dead), None)

alive = [r for r in isr if r in live]
return min((r for r in assigned if r in alive), key=assigned.index, default=None)

return None if live.isdisjoint(isr) else first(assigned, isr, live)

return next(filter(lambda r: r in isr and r in live, assigned), None)

able = {r: r in live for r in isr}
return next((r for r in assigned if able.get(r)), None)
"""


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _blocks(text: str) -> list[str]:
    return text.strip().split("\n\n")


def _module_text() -> Iterator[str]:
    yield HEAD
    for kind, text in (("false", FALSE), ("memory", MEMORY)):
        for place, condition in enumerate(_lines(text)):
            yield f"def {kind}_{place}(assigned, leader, isr, top):"
            yield f"    if {condition}:\n        return assigned"
            yield "    return sound(assigned, leader, isr, top)\n"
    for place, block in enumerate(_blocks(NATURAL)):
        yield f"def natural_{place}(assigned, leader, isr, top):"
        yield "    order = ranked(assigned, leader, isr)"
        yield f"    gone = sound(assigned, leader, isr, top)\n{indent(block, '    ')}\n"
    for place, block in enumerate(_blocks(SELECTORS)):
        yield f"def selector_{place}(assigned, isr, live):\n{indent(block, '    ')}\n"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Load a rule by its name from the module that has them all."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules_of_others.py").write_text("\n".join(_module_text()), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        yield lambda name: load_candidate(f"rules_of_others:{name}")


def _prove(rule: Any, *names: str) -> dict[str, TheoremResult]:
    """Hold a rule against the theorems of those names, or all of them."""
    theorems = [
        each for each in find_theorems(rule, assume=("all",)) if each.name in names or not names
    ]
    found = prove_candidate(rule, 2, theorems=theorems)
    return {result.theorem.name: result for result in found}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("place", range(len(_lines(FALSE))), ids=_lines(FALSE))
def test_rule_that_fails_for_one_broker_is_not_proved(
    place: int, rules: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that drops the leader 7 is never proved to keep it; a refusal says where it is.

    Hardly any plain inputs are tried, so that the executor alone has to get it right.
    """
    monkeypatch.setattr(prover, "_TRIED_OF_OTHERS", 4)
    result = _prove(rules(f"false_{place}"), "drop-leader-kept")["drop-leader-kept"]
    assert result.verdict != "proved"
    if result.verdict == "unknown":
        assert "rules_of_others.py:" in result.reason


@pytest.mark.parametrize("place", range(len(_lines(MEMORY))), ids=_lines(MEMORY))
def test_rule_that_depends_on_more_than_its_arguments_is_refused(
    place: int, rules: Callable[[str], Any]
) -> None:
    """Chance, a clock and a memory are refused: two answers to one question, or by their name."""
    told, verdict = "", ""
    try:
        verdict = _prove(rules(f"memory_{place}"), "drop-leader-kept")["drop-leader-kept"].verdict
    except CandidateError as error:
        told = str(error)
    assert "asked again" in told or verdict in ("unknown", "refuted")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", range(len(_blocks(NATURAL))))
def test_natural_rule_is_proved(place: int, rules: Callable[[str], Any]) -> None:
    """A sound rule in ordinary Python is proved sound, however it is written."""
    verdicts = {name: each.verdict for name, each in _prove(rules(f"natural_{place}")).items()}
    assert set(verdicts.values()) == {"proved"}


@pytest.mark.parametrize("place", range(len(_blocks(SELECTORS))))
def test_natural_selector_is_proved(place: int, rules: Callable[[str], Any]) -> None:
    """So is a sound selector, though nothing is known of how many brokers are live."""
    verdicts = {name: each.verdict for name, each in _prove(rules(f"selector_{place}")).items()}
    assert set(verdicts.values()) == {"proved"}


def test_proof_tells_how_many_plain_inputs_were_tried(rules: Callable[[str], Any]) -> None:
    """Every certificate with a path says on how many plain inputs the claims were tried."""
    result = _prove(rules("natural_0"), "drop-leader-kept")["drop-leader-kept"]
    tried = [each["tried"] for each in result.certificate if each["paths"]]
    assert tried
    assert min(tried) > 0


def test_plain_input_overrules_an_executor_that_is_wrong(
    rules: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the executor blind to a module's set, the plain inputs would still refute the rule."""
    exact = dialect.convert_plain

    def blind(value: Any, name: str, convert: Any) -> Any:
        return exact(frozenset() if name == "DRAINING" else value, name, convert)

    monkeypatch.setattr(dialect, "convert_plain", blind)
    result = _prove(rules("false_0"), "drop-leader-kept")["drop-leader-kept"]
    assert result.verdict == "refuted"
    assert result.counterexample is not None
    assert result.counterexample["arguments"]["leader"] in (7, 8)


def test_end_of_a_run_is_remembered() -> None:
    """A rule that catches the executor's own signal is refused, were its handlers left alone too.

    Nothing tells the run then that it is over, and its answer counts for nothing all the same.
    """

    def function(values: Any) -> Any:
        try:
            return values["n"] ** 2
        except:  # noqa: E722
            return 0

    result = prove(function, [{"n": Parameter()}], (), lambda v, r: r == 0)
    assert (result.verdict, "__pow__" in result.reason) == ("unknown", True)


@pytest.mark.parametrize("kind", [int, bool])
def test_every_operator_of_a_number_is_answered_or_refused(kind: type) -> None:
    """No operator of a plain number is missing from a symbolic one, so none answers by accident."""
    engine = Engine()
    value = SInt.named(engine, "n") if kind is int else SBool.named(engine, "t")
    theirs = {name for name in dir(kind) if name.startswith("__")} - set(dir(object))
    assert {name for name in theirs if getattr(type(value), name, None) is None} == set()


@pytest.mark.parametrize("other", [7.0, 7.5, -7.5, 0.0, float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("name", ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
def test_number_beside_a_fraction_answers_as_plain_python(name: str, other: float) -> None:
    """A symbolic number compares with a fraction as each of its plain values does."""
    engine = Engine()
    number = SInt.named(engine, "n")
    answer = getattr(number, name)(other)
    for plain in (-8, -7, -1, 0, 1, 6, 7, 8):
        term = z3.simplify(z3.substitute(answer.term, (number.term, z3.IntVal(plain))))
        assert z3.is_true(term) == getattr(float(plain), name)(other)


ARITHMETIC: Final = ("__add__", "__sub__", "__mul__", "__floordiv__", "__mod__", "__radd__")


@pytest.mark.parametrize("other", [0, 2, -3, True, Fraction(1, 2), Fraction(4), 1.5, -0.0])
@pytest.mark.parametrize("name", [*ARITHMETIC, "__rsub__", "__rmul__", "__truediv__", "__pow__"])
def test_arithmetic_answers_as_plain_python_or_is_refused(name: str, other: Any) -> None:
    """What is made of a symbolic number and a plain one is Python's for every value, or nothing."""
    number = SInt.named(Engine(), "n")
    try:
        answer = getattr(number, name)(other)
    except GaveUp:
        return
    for plain in (-8, -7, -1, 0, 1, 6, 7, 8):
        term = z3.simplify(z3.substitute(answer.term, (number.term, z3.IntVal(plain))))
        expected = getattr(plain if isinstance(other, int) else Fraction(plain), name)(other)
        assert term.as_long() == expected


@pytest.mark.parametrize("turned", [False, True])
def test_number_is_no_truth_value_however_equal(turned: bool) -> None:
    """`1 is True` is false in Python, and so it is of a symbolic number, which may be 1."""
    engine = Engine()
    number = SInt.named(engine, "n")
    for other in (True, False, SBool.named(engine, "t"), number == 1):
        pair = (other, number) if turned else (number, other)
        assert dialect.Runtime().same(*pair) is False


@pytest.mark.parametrize("make", [list, RuleDict, partial(RuleSet, frozen=False), object])
def test_what_can_change_is_itself_only(make: Callable[[], Any]) -> None:
    """Of what is made to last each is one of its own, however equal to others."""
    one, other = make(), make()
    assert dialect.Runtime().same(one, one) is True
    assert dialect.Runtime().same(one, other) is False


def test_equal_values_that_never_change_may_be_one() -> None:
    """Whether two equal frozen sets are one nobody can say."""
    one, other = RuleSet(frozen=True), RuleSet(frozen=True)
    with pytest.raises(GaveUp):
        dialect.Runtime().same(one, other)


@pytest.mark.parametrize("name", ["__mul__", "__rmul__", "__floordiv__", "__mod__", "__truediv__"])
def test_product_of_two_symbolic_numbers_is_refused(name: str) -> None:
    """What the solver cannot decide is not asked of it."""
    engine = Engine()
    with pytest.raises(GaveUp):
        getattr(SInt.named(engine, "n"), name)(SInt.named(engine, "m"))


@pytest.mark.parametrize("other", [None, "7", (7,), [7], {7: 7}])
def test_number_beside_what_is_none_is_another(other: object) -> None:
    """What can never be a number is not equal to one, and has no place before or after it."""
    number = SInt.named(Engine(), "n")
    assert number != other
    with pytest.raises(TypeError):
        assert number < other


def _unseen_source() -> Callable[..., Any]:
    namespace: dict[str, Any] = {}
    exec("def rule(assigned, leader, isr, top):\n    return ()", namespace)
    rule: Callable[..., Any] = namespace["rule"]
    return rule


def test_rule_without_source_is_refused_by_name() -> None:
    """Of a rule whose source cannot be had nothing is proved, and the reason says that."""
    result = _prove(_unseen_source(), "drop-leader-kept")["drop-leader-kept"]
    assert (result.verdict, "no source" in result.reason) == ("unknown", True)


def test_rule_whose_source_was_changed_is_refused(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs must be what is read: a file that was changed after it was loaded is refused."""
    file = tmp_path / "changed_rules.py"
    text = "def rule(assigned, leader, isr, top):\n    return {}\n"
    file.write_text(text.format("()"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    rule = load_candidate("changed_rules:rule")
    file.write_text(text.format("assigned[top:]"), encoding="utf-8")
    result = _prove(rule, "drop-leader-kept")["drop-leader-kept"]
    assert (result.verdict, "not what runs" in result.reason) == ("unknown", True)


def _run_plainly(text: str, *arguments: Any) -> Any:
    """Run a function's twin on plain values."""
    file, module = f"<{text}>", ModuleType("plain_twins")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    return run_twin(make_twin(module.rule), *arguments)  # type: ignore[attr-defined]


TWINS: Final = """
a = {x, 1, 2}
a.add(3)
a -= {2}
return sorted(a) == [1, 3]

return {k: v for k, v in zip((x, 2), "ab")}[2] == "b"

d = {**{x: 1}, 2: 3}
d[x] += 4
return list(d.items()) == [(1, 5), (2, 3)]

a = [1, 2, 3]
a[x:] = [9]
return a == [1, 9]

import itertools as i
return list(i.chain([x], [2])) == [1, 2]

from operator import add
return add(x, 1) == 2

def f(a: int = x) -> list[int]:
    yield a
return list(f()) == [1]

try:
    return {}[x]
except KeyError:
    return True

n = 0
def f():
    nonlocal n
    n += x
f()
return n == 1

a, b = {5} | {5}, {x: {x}}
return len(a) == 1 and b[x] == {1} and {1, 2} > {x} and not {x} ^ {1}

return [f(x) for f in (lambda n: n, lambda n: n + 1)] == [1, 2]
"""


@pytest.mark.parametrize("block", _blocks(TWINS))
def test_twin_answers_plain_values_as_the_rule_does(block: str) -> None:
    """The rewritten constructs mean what the plain ones do."""
    assert _run_plainly(f"def rule(x):\n{indent(block, '    ')}\n", 1) is True


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("def rule(x):\n    global y\n    y = x", "a global that is changed"),
        ("def rule(x):\n    rule.seen = x", "storing an attribute"),
        ("def rule(x):\n    class C:\n        pass\n    return C", "a class inside"),
        ("def rule(x):\n    return x.__class__", "'__class__'"),
        ("def rule(x):\n    with open('f'):\n        pass", "a with statement"),
        ("SEEN = []\ndef rule(x):\n    SEEN.append(x)", "outlives the call"),
        ("SEEN = {}\ndef rule(x):\n    SEEN[x] = 1", "outlives the call"),
        ("def rule(x):\n    import random\n    return random.random()", "random"),
        ("def rule(x):\n    return [*{x, 2}]", "in the order that the set has them in"),
        ("def rule(x):\n    return 1 < x is None", "chain of comparisons"),
    ],
)
def test_what_is_not_followed_is_refused_by_name(text: str, what: str) -> None:
    """A construct that could be a memory, or that nobody could see through, is named."""
    with pytest.raises(GaveUp, match=what):
        _run_plainly(text, 1)


def test_symbolic_values_are_of_two_kinds_only() -> None:
    """Whoever adds a kind of symbolic value has to say what `isinstance` is told of it."""
    assert {kind.__name__ for kind in _Symbolic.__subclasses__()} == {"SInt", "SBool"}
    engine = Engine()
    assert get_plain_type(SInt.named(engine, "n")) is int
    assert get_plain_type(SBool.named(engine, "t")) is bool
    assert (type(SInt.named(engine, "n")), type(SBool.named(engine, "t"))) == (SInt, SBool)
