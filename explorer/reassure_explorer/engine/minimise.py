"""Traces with fewer faults: what is still broken when less may go wrong.

The shortest trace may use a fault where a longer one needs none. A model names the fields that
count its faults down; they are given less to begin with, the smallest sums first, until an
invariant is broken again.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.interface import DEADLOCK, Model, end_anywhere
from reassure_explorer.engine.result import Violation


def list_limits(model: Model) -> Iterator[dict[str, int]]:
    """Return every smaller choice of fault limits, the fewest faults first."""
    most = {name: max(state[name] for state in model.initial) for name in model.faults}
    choices = product(*(range(limit + 1) for limit in most.values()))
    for choice in sorted(choices, key=lambda c: (sum(c), c)):
        if sum(choice) < sum(most.values()):
            yield dict(zip(most, choice, strict=True))


def minimise_faults(model: Model, violation: Violation) -> Violation:
    """Return a violation of the same invariant whose trace uses the fewest faults.

    Among those it is a shortest one. The violation itself is the answer where fewer will not do.
    """
    terminal = model.terminal if violation.invariant == DEADLOCK else end_anywhere
    wanted = tuple(i for i in model.invariants if i.name == violation.invariant)
    for limits in list_limits(model):
        if sum(limits.values()) >= count_faults(model, violation):
            break
        initial: tuple[dict[str, Any], ...] = tuple({**s, **limits} for s in model.initial)
        smaller = replace(model, initial=initial, invariants=wanted, goals=(), terminal=terminal)
        found = explore_derived(smaller).violations
        if found:
            return found[0]
    return violation


def count_faults(model: Model, violation: Violation) -> int:
    """Return how many faults the trace of a violation uses."""
    first, last = violation.trace.initial, violation.trace.last
    return sum(getattr(first, name) - getattr(last, name) for name in model.faults)
