"""The smallest input that a solver finds, as plain arguments."""

from itertools import product
from typing import Any

import z3

from reassure_proofs.engine.inputs import find_numbers
from reassure_proofs.engine.statement import Shape, Values
from reassure_proofs.engine.symbols import SSet, concretise
from reassure_proofs.engine.symex import EngineFault, GaveUp, Term


def _find_spoken(values: Values, model: Term) -> frozenset[int]:
    """Return the numbers that may be asked for in a set, as they are in a model."""
    asked = [tuple(value.asked) if isinstance(value, SSet) else value for value in values.values()]
    return frozenset(number for part in asked for number in find_numbers(concretise(part, model)))


def make_plain(values: Values, model: Term) -> dict[str, Any]:
    """Return the plain arguments of a model; of a set, the part that the others speak of."""
    spoken = _find_spoken(values, model)
    return {
        name: frozenset(
            number
            for number in spoken
            if z3.is_true(model.eval(value.function(number), model_completion=True))
        )
        if isinstance(value, SSet)
        else concretise(value, model)
        for name, value in values.items()
    }


def find_smallest(solver: Any, shape: Shape, values: Values) -> Term:
    """Return a model with the integers minimised one after the other, in the shape's order.

    A value from the parameter's floor upwards is preferred; where there is none, distance from
    zero counts. Raises GaveUp when the solver does not know.
    """
    measures: list[Term] = []
    for name, parameter in shape.items():
        if parameter.kind in ("set", "word"):
            continue
        numbers = values[name] if parameter.length is not None else (values[name],)
        for term in (number.term for number in numbers):
            if parameter.kind == "truth":
                measures.append(z3.If(term, z3.IntVal(1), z3.IntVal(0)))
            elif _ask(solver, term >= parameter.floor) is not None:
                solver.add(term >= parameter.floor)
                measures.append(term - parameter.floor)
            else:
                measures.append(z3.If(term >= 0, 2 * term, -2 * term - 1))
    for measure in measures:
        _minimise(solver, measure)
    model = _ask(solver)
    if model is None:
        raise EngineFault("a violated path has no input that violates it")
    return _thin_out(solver, values, model)


def _thin_out(solver: Any, values: Values, model: Term) -> Term:
    """Return a model in which no set has a member that it can do without, the smallest first.

    Of every number that the others speak of it is settled whether it is in, so that the answer does
    not turn on the model that the solver happened to find.
    """
    sets = {name: value for name, value in values.items() if isinstance(value, SSet)}
    if not sets:
        return model
    spoken = sorted(_find_spoken(values, model))
    for value, number in product(sets.values(), spoken):
        absent = z3.Not(value.function(number))
        fewer = _ask(solver, absent)
        solver.add(absent if fewer is not None else value.function(number))
        model = model if fewer is None else fewer
    return model


def _minimise(solver: Any, measure: Term) -> None:
    """Fix `measure`, which is never negative, at its smallest value: a search by halving."""
    model = _ask(solver)
    if model is None:
        raise EngineFault("a violated path has no input that violates it")
    low, high = 0, model.eval(measure, model_completion=True).as_long()
    while low < high:
        middle = (low + high) // 2
        better = _ask(solver, measure <= middle)
        if better is None:
            low = middle + 1
        else:
            high = better.eval(measure, model_completion=True).as_long()
    solver.add(measure == high)


def _ask(solver: Any, *assumptions: Term) -> Term | None:
    answer = solver.check(*assumptions)
    if answer == z3.unknown:
        raise GaveUp(f"the solver does not know: {solver.reason_unknown()}")
    return solver.model() if answer == z3.sat else None
