"""Rules of others: what Python decides without asking is seen or refused, the natural is proved.

Each rule is a sound drop rule, or a sound selector, in which something is done to the number of a
broker. They are written to a module and loaded from there, as `reassure prove --code` does.
"""

import linecache
import tomllib
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any, Final

import pytest
import z3
from claim_proofs import prove

from reassure_proofs.engine import dialect, shape_exploration
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
from reassure_proofs.engine.symex import GaveUp, PathExplorer

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")
RULES: Final = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _blocks(text: str) -> list[str]:
    return text.strip().split("\n\n")


FALSE, MEMORY = (_lines(RULES[name]) for name in ("false", "memory"))
NATURAL, SELECTORS = (_blocks(RULES[name]) for name in ("natural", "selectors"))
WRONG, RIGHT = (_blocks(RULES[name]) for name in ("wrong", "right"))


def _module_text() -> Iterator[str]:
    yield RULES["head"]
    for kind, text in (("false", FALSE), ("memory", MEMORY)):
        for place, condition in enumerate(text):
            yield f"def {kind}_{place}(assigned, leader, isr, top):"
            yield f"    if {condition}:\n        return assigned"
            yield "    return sound(assigned, leader, isr, top)\n"
    for place, block in enumerate(NATURAL):
        yield f"def natural_{place}(assigned, leader, isr, top):"
        yield "    order = ranked(assigned, leader, isr)"
        yield f"    gone = sound(assigned, leader, isr, top)\n{indent(block, '    ')}\n"
    for kind, blocks in (("wrong", WRONG), ("right", RIGHT)):
        for place, block in enumerate(blocks):
            yield f"def {kind}_{place}(assigned, leader, isr, top):\n{indent(block, '    ')}\n"
    for place, block in enumerate(SELECTORS):
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


@pytest.mark.parametrize("place", range(len(FALSE)), ids=FALSE)
def test_rule_that_fails_for_one_broker_is_not_proved(
    place: int, rules: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that drops the leader 7 is never proved to keep it; a refusal says where it is.

    Hardly any plain inputs are tried, so that the executor alone has to get it right.
    """
    monkeypatch.setattr(shape_exploration, "_TRIED_OF_OTHERS", 4)
    result = _prove(rules(f"false_{place}"), "drop-leader-kept")["drop-leader-kept"]
    assert result.verdict != "proved"
    if result.verdict == "unknown":
        assert "rules_of_others.py:" in result.reason


@pytest.mark.parametrize("place", range(len(MEMORY)), ids=MEMORY)
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
@pytest.mark.parametrize("place", range(len(NATURAL)))
def test_natural_rule_is_proved(place: int, rules: Callable[[str], Any]) -> None:
    """A sound rule in ordinary Python is proved sound, however it is written."""
    verdicts = {name: each.verdict for name, each in _prove(rules(f"natural_{place}")).items()}
    assert set(verdicts.values()) == {"proved"}


@pytest.mark.parametrize("place", range(len(SELECTORS)))
def test_natural_selector_is_proved(place: int, rules: Callable[[str], Any]) -> None:
    """So is a sound selector, though nothing is known of how many brokers are live."""
    verdicts = {name: each.verdict for name, each in _prove(rules(f"selector_{place}")).items()}
    assert set(verdicts.values()) == {"proved"}


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_rule_that_was_once_proved_falsely_is_not(
    place: int, rules: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor alone, with no plain input tried, refutes it, or refuses it with the line."""
    monkeypatch.setattr(shape_exploration.ShapeExploration, "try_out", lambda _: (1, {}))
    result = _prove(rules(f"wrong_{place}"), "drop-leader-kept")["drop-leader-kept"]
    assert result.verdict in ("refuted", "unknown")
    assert result.verdict == "refuted" or "rules_of_others.py:" in result.reason


@pytest.mark.parametrize("place", range(len(RIGHT)))
def test_rule_that_looks_alike_and_is_right_is_proved(
    place: int, rules: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks like the former and is right is proved by the executor alone."""
    monkeypatch.setattr(shape_exploration.ShapeExploration, "try_out", lambda _: (1, {}))
    result = _prove(rules(f"right_{place}"), "drop-leader-kept")["drop-leader-kept"]
    assert (result.verdict, result.reason) == ("proved", "")


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
    engine = PathExplorer()
    value = SInt.named(engine, "n") if kind is int else SBool.named(engine, "t")
    theirs = {name for name in dir(kind) if name.startswith("__")} - set(dir(object))
    assert {name for name in theirs if getattr(type(value), name, None) is None} == set()


@pytest.mark.parametrize("other", [7.0, 7.5, -7.5, 0.0, float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("name", ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
def test_number_beside_a_fraction_answers_as_plain_python(name: str, other: float) -> None:
    """A symbolic number compares with a fraction as each of its plain values does."""
    engine = PathExplorer()
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
    number = SInt.named(PathExplorer(), "n")
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
    engine = PathExplorer()
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
    engine = PathExplorer()
    with pytest.raises(GaveUp):
        getattr(SInt.named(engine, "n"), name)(SInt.named(engine, "m"))


@pytest.mark.parametrize("other", [None, "7", (7,), [7], {7: 7}])
def test_number_beside_what_is_none_is_another(other: object) -> None:
    """What can never be a number is not equal to one, and has no place before or after it."""
    number = SInt.named(PathExplorer(), "n")
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


@pytest.mark.parametrize("block", _blocks(RULES["twins"]))
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
    engine = PathExplorer()
    assert get_plain_type(SInt.named(engine, "n")) is int
    assert get_plain_type(SBool.named(engine, "t")) is bool
    assert (type(SInt.named(engine, "n")), type(SBool.named(engine, "t"))) == (SInt, SBool)
