"""The second opinion: another solver on the exported obligations."""

import pytest

from reassure_proofs.engine import opinion
from reassure_proofs.engine.opinion import NoSecondSolverError, Opinion, ask_again, ask_all, to_json
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.smt import Script, make_scripts

solver = pytest.mark.skipif(not opinion.has_second_solver(), reason="cvc5 is not installed")


@solver
@pytest.mark.parametrize(
    ("formula", "answer"), [("(< x x)", "unsat"), ("(< x 3)", "sat"), ("(= (* x x x) 7)", "unsat")]
)
def test_second_solver_answers(formula: str, answer: str) -> None:
    """The other solver reads a script and gives its own answer, or none at all."""
    text = f"(set-logic ALL)\n(declare-const x Int)\n(assert {formula})\n(check-sat)\n"
    assert ask_again(text, 5.0) in (answer, "unknown")
    assert ask_again(text, 5.0) == answer or "*" in formula


@solver
def test_wrong_answer_is_told() -> None:
    """A script whose recorded answer is wrong does not agree."""
    text = "(set-logic ALL)\n(declare-const x Int)\n(assert (< x 3))\n(check-sat)\n"
    (found,) = ask_all([Script("wrong.smt2", text, "unsat")])
    assert (found.first, found.second, found.verdict) == ("unsat", "sat", "differs")
    assert to_json([found])["second_opinion"]["differs"] == 1


def test_unknown_is_no_agreement() -> None:
    """Two solvers that do not know agree on nothing."""
    assert Opinion("a", "unknown", "unknown", 0.0).verdict == "unknown"


def test_absent_solver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the other solver is not installed the question is refused with advice."""
    monkeypatch.setattr(opinion, "SOLVER", "a_solver_that_nobody_has")
    with pytest.raises(NoSecondSolverError, match="extra `dev`"):
        ask_again("(check-sat)")


@solver
def test_second_solver_agrees_on_what_is_small() -> None:
    """On the obligations of a mark, a lag and a drop both solvers agree."""
    names = ["hw-within-leader", "lag-note-stays-sound", "drop-leader-kept"]
    names += ["drop-leaves-top", "protocol-starts-in-invariant", "election-offline-live-in-sync"]
    opinions = ask_all(make_scripts(names, replication_factor=1))
    assert len(opinions) > 10
    assert [item for item in opinions if item.verdict != "agrees"] == []


@solver
@pytest.mark.slow
def test_second_solver_agrees_on_whole_theorems() -> None:
    """On every obligation of every ninth theorem both solvers agree, coverage included.

    Of those about single steps it is every thirtieth: each has all the shapes of the others.
    """
    theorems = get_theorems()
    steps = [each for each in theorems if each.subject.name in ("step", "step-as-written")]
    names = [each.name for each in theorems if each not in steps][::9]
    names += [each.name for each in steps][::30]
    opinions = ask_all(make_scripts(names, replication_factor=2, timeout_s=300.0), 120.0)
    assert len(opinions) > 5 * len(names)
    assert [item for item in opinions if item.verdict != "agrees"] == []
