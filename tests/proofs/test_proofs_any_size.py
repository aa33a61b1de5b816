"""Brokers of any number: what is followed, what is refused by name, and that plain runs decide."""

from collections.abc import Callable
from typing import Any

import pytest
from planting import planted, replaced

from reassure_model.protocols.kip_236.assignment_rules import _choices
from reassure_proofs.any_size.exploration import AnySizeExploration
from reassure_proofs.any_size.opaque_brokers import Brokers
from reassure_proofs.engine.formula import distinct, implies, same, subset
from reassure_proofs.engine.prover import ProofFaultError, explore_shape
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.results import ProofGoal, ShapeResult
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.engine.statement import BROKER, LIST, REORDERINGS, SET, Parameter, Theorem
from reassure_proofs.engine.symex import PathLimits

SHAPE = {"listed": LIST, "live": SET, "leader": BROKER, "top": Parameter()}
ANY_SIZE = [theorem for theorem in get_theorems() if theorem.is_any_size]


def explore(function: Callable[[Any], Any], claim: Callable[[Any, Any], Any]) -> ShapeResult:
    """Return what comes of a claim about a function of any number of brokers."""
    return explore_shape(function, SHAPE, (), [ProofGoal("claim", claim)])


def prove_one(name: str) -> Any:
    """Return what comes of a theorem in this process."""
    (result,) = prove_all([name], 2, processes=1)
    return result


def work_on(name: str) -> tuple[Theorem, AnySizeExploration]:
    """Return a theorem and its exploration, done."""
    (theorem,) = get_theorems([name])
    goals = [ProofGoal(theorem.name, theorem.claim)]
    shape, assumed = theorem.shapes(1)[0], theorem.assumptions
    work = AnySizeExploration(theorem.subject.function, shape, assumed, goals, PathLimits(), False)
    work.run()
    return theorem, work


def test_theorem_says_whether_it_is_about_any_number() -> None:
    """A bound is any number of brokers, or says up to what; the drop rule has only the former."""
    names = {theorem.name for theorem in ANY_SIZE}
    assert {theorem.bound(4) for theorem in ANY_SIZE} == {
        "any number of brokers; all integers unbounded"
    }
    for theorem in get_theorems():
        if theorem.name.startswith(("drop-", "election-")) and theorem.expected == "proved":
            assert theorem.name in names
        assert theorem.is_any_size or "any number of brokers;" not in theorem.bound(4)


MUTANTS = [
    ("for replica in (leader, *isr, *others):", "for replica in (*isr, *others):"),
    ("return existing[:top]", "return existing[: top if len(existing) < 6 else top - 1]"),
]


@pytest.mark.parametrize(("old", "new"), MUTANTS, ids=["leader-last", "wrong-from-six-on"])
def test_mutant_of_the_drop_is_refuted_by_a_plain_run(old: str, new: str) -> None:
    """A mistake is refuted by plain arguments, however many brokers it takes."""
    with planted("protocols.kip_236", old, new):
        kept, left = prove_one("drop-leader-kept"), prove_one("drop-leaves-top")
        refuted = kept if "len" not in new else left
        assert refuted.verdict == "refuted"
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in refuted.counterexample["arguments"].items()
        }
        theorem = refuted.theorem
        assert all(item.holds(values) for item in theorem.assumptions)
        assert not theorem.claim(values, theorem.subject.function(values))
    assert len(values["assigned"]) >= (6 if "len" in new else 2)


def test_bound_hides_what_any_number_shows() -> None:
    """A rule that is wrong from six replicas on is proved within the bound of three."""
    (theorem,) = get_theorems(["drop-leaves-top"])
    bounded = theorem.within_bounds()
    goals = [ProofGoal(theorem.name, theorem.claim)]
    with planted("protocols.kip_236", *MUTANTS[1]):
        found = [
            explore_shape(theorem.subject.function, shape, theorem.assumptions, goals)
            for shape in bounded.shapes(2)
        ]
    assert all(each.certificate and not each.counterexamples for each in found)


def is_repeated(values: Any, found: Any) -> Any:
    """Say that somebody is found exactly where a list names somebody twice."""
    return (len(found) == 0) == distinct(values["listed"])


def is_empty(_: Any, found: Any) -> Any:
    """Say that nobody is found."""
    return len(found) == 0


def tell_by_match(values: Any) -> Any:
    """Tell a list by its class."""
    match values["listed"]:
        case tuple():
            return 1
    return 2


def is_order(values: Any) -> bool:
    """Say whether some order has the members of a set."""
    found = set()
    for order in _choices(values["listed"], values["top"]):
        found.add(frozenset(order))
    return values["live"] in found


def is_order_twice(values: Any) -> bool:
    """Ask that, and again."""
    found = set()
    for order in _choices(values["listed"], values["top"]):
        found.add(frozenset(order))
    return values["live"] in found and values["live"] in found


def count_orders(values: Any) -> int:
    """Count orders."""
    found = 0
    for _ in _choices(values["listed"], values["top"]):
        found = found + 1
    return found


def add_each(values: Any) -> Any:
    """Make a set of what is not the members themselves."""
    found = set()
    for replica in values["listed"]:
        found.add((replica, 1))
    return found


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("the literal 2", lambda v: tuple(r for r in v["listed"] if r != 2)),
    ("lt of a broker", lambda v: tuple(r for r in v["listed"] if r < v["leader"])),
    ("add of a broker", lambda v: v["leader"] + 1),
    ("hash of a broker", lambda v: {v["leader"]: 1}),
    ("index of a broker", lambda v: (1, 2)[v["leader"]]),
    ("indexed other than", lambda v: v["listed"][1]),
    ("iter of any number", lambda v: sorted(v["live"])),
    ("isinstance of brokers", lambda v: isinstance(v["listed"], tuple)),
    ("another member", lambda v: tuple(r for r in v["listed"] if any(r == s for s in v["listed"]))),
    ("a set, which has no order", lambda v: tuple(v["live"])),
    ("something else", lambda v: tuple((r, 1) for r in v["listed"])),
    ("compared with a tuple", lambda v: v["listed"] == (v["leader"],)),
    ("ge of one", lambda v: tuple(r for r in v["listed"] if r >= 1)),
    ("a match statement", tell_by_match),
    ("asked twice", is_order_twice),
    ("len of a collection", lambda v: len(_choices(v["listed"], 1))),
    ("eq of a collection", lambda v: [len(order) for order in _choices(v["listed"], 1)]),
    ("iter of a collection", count_orders),
    ("adds something of any number", add_each),
]


@pytest.mark.parametrize(("words", "function"), REFUSED, ids=[words for words, _ in REFUSED])
def test_what_looks_at_a_broker_is_refused_by_name(words: str, function: Any) -> None:
    """Order, arithmetic, literals, hashes and places of brokers are refused, and never proved."""
    result = explore(function, lambda _, __: True)
    assert words in result.reason
    assert result.certificate is None


FOLLOWED: list[tuple[Callable[[Any], Any], Callable[[Any, Any], Any], bool]] = [
    (lambda v: [r for i, r in enumerate(v["listed"]) if r in v["listed"][:i]], is_repeated, True),
    (lambda v: [r for i, r in enumerate(v["listed"]) if r in v["listed"][:i]], is_empty, False),
    (lambda v: [r for r in v["listed"] if r < 0], is_empty, False),
    (lambda v: v["listed"] == v["listed"][:1], lambda v, same: not same, False),
    (lambda v: v["listed"] == v["listed"][:1], lambda v, s: implies(len(v["listed"]) < 2, s), True),
    (
        is_order,
        lambda v, r: implies(r, subset(v["listed"], v["live"])),
        True,
    ),
    (is_order, lambda _, found: not found, False),
    (lambda v: (), lambda v, none: same(none, v["listed"]) == (len(v["listed"]) == 0), True),
]


@pytest.mark.parametrize(("function", "claim", "holds"), FOLLOWED)
def test_repeated_negative_and_same_are_followed(function: Any, claim: Any, holds: bool) -> None:
    """Who stands twice, who is no broker and whether two lists are the same is known."""
    result = explore(function, claim)
    assert (result.reason, bool(result.counterexamples)) == ("", not holds)


def loop_with_memory(values: Any) -> Any:
    """Go through a list in a way that no contract knows."""
    found: Any = ()
    for replica in values["listed"]:
        found = (replica, *found)
    return found


def test_loop_that_is_not_followed_is_refused() -> None:
    """A loop that puts members in front is refused, as its step adds to no end."""
    assert "in a way that is not followed" in explore(loop_with_memory, lambda _, __: True).reason


SHORTER = """
def _choices(replicas, places):
    return [replicas[1:]]
"""


def test_what_stands_for_a_function_is_a_theorem_about_it() -> None:
    """What is taken of a function in place of its code is proved of its code, not by itself."""
    ((function, name),) = REORDERINGS.items()
    (theorem,) = get_theorems([name])
    assert (prove_one(name).verdict, theorem.is_any_size) == ("proved", False)
    with replaced(function.__module__, SHORTER):
        assert prove_one(name).verdict == "refuted"


def test_violation_without_a_plain_run_is_unknown() -> None:
    """What only the abstraction breaks, which knows little of orders, is not called refuted."""

    def is_first(values: Any, first: Any) -> Any:
        return first is None or first == values["listed"][0]

    result = explore(lambda v: v["listed"][::-1][::-1][0] if v["listed"] else None, is_first)
    assert not result.counterexamples
    assert "no plain run" in result.reason


@pytest.mark.parametrize("name", ["drop-leaves-top", "election-offline-first-in-order"])
def test_plain_runs_fit_a_path(name: str) -> None:
    """Every plain run fits a path; with one member more or less in what it returns it does not."""
    theorem, work = work_on(name)
    tried = 0
    for arguments in work._inputs(40):
        result: Any = theorem.subject.function(arguments)
        assert any(work.fits(end, arguments, result) for end in work.ends)
        if name.startswith("drop"):
            others = (result[1:], (*result, 99)) if result else ((99,),)
        else:
            others = (None if result else replace_leader(99),)
        for wrong in others:
            assert not any(work.fits(end, arguments, wrong) for end in work.ends)
            tried += 1
    assert tried >= 20


def replace_leader(leader: int) -> Any:
    """Return an election of somebody."""
    from reassure_model.selectors import Elected

    return Elected(leader, (leader,))


def test_wrong_meaning_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If what a comprehension means were wrong, plain runs would fit no path."""
    monkeypatch.setattr(Brokers, "narrow", lambda self, _: self)
    with pytest.raises(ProofFaultError, match="fits no path"):
        prove_one("drop-names-assigned")


def test_comprehension_is_proved_and_refuted_by_its_members() -> None:
    """What a comprehension takes is proved to be that, and a claim that it takes nobody refuted."""

    def take(values: Any) -> Any:
        return tuple(replica for replica in values["listed"] if replica in values["live"])

    assert not explore(take, lambda v, taken: subset(taken, v["live"])).counterexamples
    refuted = explore(take, lambda _, taken: len(taken) == 0).counterexamples["claim"]
    assert set(refuted.arguments["listed"]) & refuted.arguments["live"]
