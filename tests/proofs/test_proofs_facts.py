"""What follows from decisions, and that nothing rests on it."""

from itertools import product

import pytest
import z3
from proving import prove

from reassure_proofs.engine import facts as module
from reassure_proofs.engine.facts import Facts, relate
from reassure_proofs.engine.prover import ProofFaultError
from reassure_proofs.engine.statement import Parameter

A, B, C, THREE, FIVE = range(5)
NUMBERS = {THREE: 3, FIVE: 5}


def test_equality_is_closed_under_its_laws() -> None:
    """Equal to equals is equal, and what differs from one differs from the other."""
    facts = Facts(dict(NUMBERS))
    facts.learn(("=", A, B), True)
    facts.learn(("=", B, C), False)
    assert facts.follows(("=", B, A)) is True
    assert facts.follows(("=", A, C)) is False
    assert facts.follows(("!=", C, A)) is True
    assert facts.follows(("=", C, THREE)) is None
    facts.learn(("=", A, THREE), True)
    assert facts.follows(("=", C, THREE)) is False
    assert facts.follows(("=", B, FIVE)) is False


def test_orders_against_numbers_are_closed() -> None:
    """Bounds meet, also those of equal terms, and settle equality."""
    facts = Facts(dict(NUMBERS))
    facts.learn(relate(">", A, THREE), True)
    assert facts.follows(relate(">=", A, THREE)) is True
    assert facts.follows(relate("<", A, FIVE)) is None
    facts.learn(relate("<", A, FIVE), False)
    assert facts.follows(relate(">=", A, FIVE)) is True
    assert facts.follows(("=", A, THREE)) is False
    facts.learn(("=", A, B), True)
    assert facts.follows(relate("<=", B, THREE)) is False
    facts.learn(relate("<=", C, THREE), True)
    assert facts.follows(relate("<", C, B)) is True


def test_membership_is_that_of_equals() -> None:
    """What is equal to a member is one, in the same set only."""
    facts = Facts(dict(NUMBERS))
    facts.learn(("in", "live", A), True)
    facts.learn(("in", "known", B), False)
    facts.learn(("=", A, B), True)
    assert facts.follows(("in", "live", B)) is True
    assert facts.follows(("in", "known", A)) is False
    assert facts.follows(("in", "live", C)) is None


def test_copy_learns_for_itself() -> None:
    """What a path decides is not known to the next."""
    facts = Facts(dict(NUMBERS))
    other = facts.copy()
    other.learn(("=", A, B), True)
    other.learn(relate("<", C, THREE), True)
    assert facts.follows(("=", A, B)) is None
    assert facts.follows(relate("<", C, FIVE)) is None


def test_hypotheses_are_read_as_far_as_they_are_simple() -> None:
    """Conjunctions of comparisons and their opposites are taken in; alternatives are not."""
    x, y, three = z3.Int("x"), z3.Int("y"), z3.IntVal(3)
    facts = Facts({three.get_id(): 3})
    facts.assume(z3.And(x != y, z3.Not(x > three), z3.Or(y == 1, y == 2)))
    assert facts.follows(("=", x.get_id(), y.get_id())) is False
    assert facts.follows(relate("<=", x.get_id(), three.get_id())) is True
    assert facts.follows(relate("<=", y.get_id(), three.get_id())) is None


def test_what_follows_is_what_the_solver_says() -> None:
    """On every two facts about two terms and a number, no answer is other than the solver's."""
    x, y, three = z3.Int("x"), z3.Int("y"), z3.IntVal(3)
    terms = {"x": x, "y": y, "3": three}
    build = {"=": lambda a, b: a == b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b}
    relations = [(n, a, b) for n in build for a, b in (("x", "y"), ("y", "x"), ("x", "3"))]
    asked = 0
    for some in product(product(relations, (True, False)), repeat=2):
        facts, solver = Facts({three.get_id(): 3}), z3.Solver()
        for (name, a, b), holds in some:
            facts.learn((name, terms[a].get_id(), terms[b].get_id()), holds)
            term = build[name](terms[a], terms[b])
            solver.add(term if holds else z3.Not(term))
        if solver.check() != z3.sat:
            continue
        for name, a, b in relations:
            answer = facts.follows((name, terms[a].get_id(), terms[b].get_id()))
            if answer is not None:
                term = build[name](terms[a], terms[b])
                assert solver.check(z3.Not(term) if answer else term) == z3.unsat
                asked += 1
    assert asked > 300


def test_wrong_conclusion_is_caught_by_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a conclusion were wrong a branch would be lost, and the certificate would have a gap."""
    monkeypatch.setattr(module.Facts, "follows", lambda *_: True)
    with pytest.raises(ProofFaultError, match="none of the explored paths"):
        prove(
            lambda v: 1 if v["x"] == v["y"] else 2,
            [{"x": Parameter(), "y": Parameter()}],
            (),
            lambda _, result: result < 3,
        )
