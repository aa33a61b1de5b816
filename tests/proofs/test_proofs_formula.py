"""Formulas mean the same on plain and on symbolic values."""

import itertools

import pytest
import z3

from reassure_proofs.engine import formula
from reassure_proofs.engine.symbols import SBool, SInt
from reassure_proofs.engine.symex import PathExplorer


def _symbolic(values: tuple[int, ...]) -> tuple[SInt, ...]:
    engine = PathExplorer()
    return tuple(SInt(engine, z3.IntVal(value)) for value in values)


def _truth(value: object) -> bool:
    if isinstance(value, SBool):
        return bool(z3.is_true(z3.simplify(value.term)))
    return bool(value)


@pytest.mark.parametrize("values", list(itertools.product((1, 2), repeat=3)))
def test_formulas_on_both_kinds_agree(values: tuple[int, ...]) -> None:
    """Every formula gives the same truth for plain numbers and for symbolic constants."""
    for plain, symbolic in (
        (formula.distinct(values), formula.distinct(_symbolic(values))),
        (formula.member(values[0], values[1:]), formula.member(*_split(values))),
        (formula.remaining(values, (1,)) == 1, formula.remaining(_symbolic(values), (1,)) == 1),
        (formula.subset(values[:2], values[2:]), _subset(values)),
    ):
        assert _truth(plain) == _truth(symbolic)


def _split(values: tuple[int, ...]) -> tuple[SInt, tuple[SInt, ...]]:
    first, *rest = _symbolic(values)
    return first, tuple(rest)


def _subset(values: tuple[int, ...]) -> object:
    numbers = _symbolic(values)
    return formula.subset(numbers[:2], numbers[2:])


def test_remaining_counts_a_repeated_value_once() -> None:
    """A value that stands twice and is not removed counts once."""
    assert formula.remaining((1, 1, 2), (2,)) == 1


def test_formula_outside_of_a_run_asks_for_no_decision() -> None:
    """Building a formula over symbols takes no decision; turning it into a bool is refused."""
    from reassure_proofs.engine.symex import GaveUp

    engine = PathExplorer()
    truth = formula.distinct((SInt.named(engine, "a"), SInt.named(engine, "b")))
    with pytest.raises(GaveUp, match="formula"):
        bool(truth)
