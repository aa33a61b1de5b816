"""Formulas that mean the same on plain values and on symbolic ones.

Hypotheses and claims are written once and used twice: on symbolic integers they build a formula
without taking a decision, so that they add no path to an exploration; on plain integers they give
a bool, so that a counterexample can be replayed. That works because only operators are used that
both kinds define: comparison, `&`, `|`, `^` and `+` (a truth value counts as 0 or 1).

`and`, `or`, `not`, `in`, `any` and `all` would ask a symbolic truth value for a decision; the
functions here take their place. Nothing here needs the solver.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, TypeAlias

Truth: TypeAlias = Any
"""A bool, or a symbolic truth value."""
Number: TypeAlias = Any
"""An int, or a symbolic integer."""


def negate(truth: Truth) -> Truth:
    """Return the opposite; `~` would turn the plain True into the number -2.

    >>> negate(True)
    False
    """
    return True ^ truth


def implies(premise: Truth, conclusion: Truth) -> Truth:
    """Return whether the conclusion holds wherever the premise does.

    >>> implies(True, False)
    False
    """
    return negate(premise) | conclusion


def choose(truth: Truth, yes: Number, no: Number) -> Number:
    """Return `yes` where the condition holds, `no` where it does not.

    >>> choose(True, 1, 2)
    1
    """
    chosen = getattr(truth, "choose", None)
    if chosen is None:
        return yes if truth else no
    return chosen(yes, no)


def all_of(truths: Iterable[Truth]) -> Truth:
    """Return whether every one of them holds; of none, True.

    >>> all_of([])
    True
    """
    result: Truth = True
    for truth in truths:
        result = result & truth
    return result


def any_of(truths: Iterable[Truth]) -> Truth:
    """Return whether at least one of them holds; of none, False.

    >>> any_of([])
    False
    """
    result: Truth = False
    for truth in truths:
        result = result | truth
    return result


def count(truths: Iterable[Truth]) -> Number:
    """Return how many of them hold.

    >>> count([True, False, True])
    2
    """
    return sum(truths)


def member(value: Number, values: Iterable[Number]) -> Truth:
    """Return whether `value` is equal to one of `values`.

    >>> member(2, (1, 2))
    True
    """
    return any_of(value == other for other in values)


def absent(value: Number, values: Iterable[Number]) -> Truth:
    """Return whether `value` is equal to none of `values`."""
    return negate(member(value, values))


def inside(value: Number, members: Any) -> Truth:
    """Return whether `value` is in a set of any size, plain or symbolic.

    >>> inside(2, frozenset({1, 2}))
    True
    """
    holds = getattr(members, "holds", None)
    return value in members if holds is None else holds(value)


def subset(smaller: Iterable[Number], larger: Sequence[Number]) -> Truth:
    """Return whether every one of `smaller` is equal to one of `larger`.

    >>> subset((1, 3), (1, 2))
    False
    """
    return all_of(member(value, larger) for value in smaller)


def alike(first: Sequence[Number], second: Sequence[Number]) -> Truth:
    """Return whether two lists have the same members, in whatever order.

    >>> alike((1, 2), (2, 1)), alike((1, 2), (1, 1))
    (True, False)
    """
    return subset(first, second) & subset(second, first)


def same(first: Sequence[Number], second: Sequence[Number]) -> Truth:
    """Return whether two lists are the same, in order.

    >>> same((1, 2), (1, 2)), same((1, 2), (2, 1)), same((1,), (1, 2))
    (True, False, False)
    """
    if len(first) != len(second):
        return False
    return all_of(mine == other for mine, other in zip(first, second, strict=True))


def distinct(values: Iterable[Number]) -> Truth:
    """Return whether no two of them are equal.

    >>> distinct((1, 2, 1))
    False
    """
    return all_of(first != second for first, second in combinations(values, 2))


def comes_first(value: Number, values: Sequence[Number], holds: Callable[[Number], Truth]) -> Truth:
    """Return whether `value` is one of `values`, and something holds of none before it.

    >>> comes_first(2, (1, 2), lambda number: number > 1)
    True
    """
    return any_of(
        (each == value) & all_of(negate(holds(other)) for other in values[:place])
        for place, each in enumerate(values)
    )


def remaining(values: Sequence[Number], removed: Sequence[Number]) -> Number:
    """Return how many different members of `values` are not among `removed`.

    >>> remaining((1, 1, 2), (2,))
    1
    """
    return count(
        negate(member(value, removed)) & negate(member(value, values[:place]))
        for place, value in enumerate(values)
    )
