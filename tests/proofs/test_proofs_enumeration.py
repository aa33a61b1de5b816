"""A third opinion: the theorems on every small argument, in plain Python, without a solver.

Names of brokers do not matter and numbers are compared only, so that a handful of each will do to
find what there is to find: where the solver has a smallest counterexample within the handful, going
through all of it finds one too; where it proves, there is none.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations, islice, product
from math import prod
from typing import Any

import pytest

from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.engine.statement import Parameter, Shape, Theorem

NUMBERS = (0, 1, 2)
"""What the numbers of a list are tried as."""
SINGLE = (-1, 0, 1, 2)
"""What a single number is tried as."""
SETS = tuple(frozenset(some) for n in range(3) for some in combinations((1, 2), n))
MOST = 2_000
"""Cases of one shape; larger shapes are left to the solvers."""


def choices(parameter: Parameter) -> tuple[Any, ...]:
    """Return what an argument is tried as."""
    if parameter.kind == "word":
        return (parameter.word,)
    if parameter.kind == "set":
        return SETS
    kinds = {"truth": (False, True), "integer": SINGLE, "natural": NUMBERS}
    one = kinds.get(parameter.kind, ())
    if parameter.length is None:
        return one
    return tuple(product(NUMBERS if one is SINGLE else one, repeat=parameter.length))


def cases(shape: Shape) -> Iterator[dict[str, Any]]:
    """Yield every case of a shape, none where there are too many."""
    lists = {name: choices(parameter) for name, parameter in shape.items()}
    if prod(map(len, lists.values())) <= MOST:
        for values in product(*lists.values()):
            yield dict(zip(lists, values, strict=True))


def breaks(theorem: Theorem, values: Mapping[str, Any]) -> bool:
    """Return whether the plain code breaks the claim on arguments that are assumed."""
    try:
        if not all(item.holds(values) for item in theorem.assumptions):
            return False
    except (IndexError, ValueError):
        # A hypothesis that makes no sense of the arguments does not hold of them.
        return False
    try:
        return not theorem.claim(values, theorem.subject.function(values))
    except Exception:
        # Code that raises keeps no promise.
        return True


@cache
def small_shapes(theorem: Theorem) -> tuple[Shape, ...]:
    """Return the shapes that can be gone through."""
    shapes = theorem.within_bounds().shapes(2)
    return tuple(shape for shape in shapes if any(True for _ in islice(cases(shape), 1)))


COVERED = [t for t in get_theorems() if small_shapes(t)]
PROVED = [t for t in COVERED if t.expected == "proved"]
REFUTED = [t for t in COVERED if t.expected == "refuted"]


def test_enough_theorems_are_small() -> None:
    """What is gone through is a good part of all theorems."""
    assert len(PROVED) >= 30
    assert len(REFUTED) >= 20


@pytest.mark.sampled(4)
@pytest.mark.parametrize("theorem", PROVED, ids=lambda theorem: theorem.name)
def test_proved_theorem_has_no_small_counterexample(theorem: Theorem) -> None:
    """No case breaks a theorem that is proved, and some cases satisfy what it assumes."""
    broken = [v for shape in small_shapes(theorem) for v in cases(shape) if breaks(theorem, v)]
    assert broken == []


def is_within(values: Mapping[str, Any]) -> bool:
    """Return whether a counterexample consists of what is tried."""
    for value in values.values():
        numbers = value if isinstance(value, list | tuple) else ()
        if not set(numbers) <= {0, 1, 2} or (isinstance(value, int) and value not in SINGLE):
            return False
    return True


def test_refuted_theorems_have_small_counterexamples() -> None:
    """Where the solver's smallest counterexample is small, going through all finds one as well."""
    results = prove_all([theorem.name for theorem in REFUTED], 2, processes=1)
    agreed = 0
    for result in results:
        if result.counterexample is None:
            continue  # it takes longer lists than are gone through
        arguments = result.counterexample["arguments"]
        lengths = {n: len(v) for n, v in arguments.items() if isinstance(v, list)}
        shapes = [
            shape
            for shape in small_shapes(result.theorem)
            if all(p.length == lengths.get(n) for n, p in shape.items() if p.length is not None)
        ]
        if shapes and is_within(arguments):
            found = any(breaks(result.theorem, v) for shape in shapes for v in cases(shape))
            assert found, result.theorem.name
            agreed += 1
    assert agreed >= 15


def test_planted_fault_is_found() -> None:
    """A claim that is made too strong is broken by a small case."""
    (theorem,) = get_theorems(["drop-isr-at-least-min"])
    strong = {"assigned": (1, 2), "isr": (2,), "leader": 1, "top": 1, "minimum": 1}
    assert not breaks(theorem, strong)  # the hypotheses exclude it
    loose = Theorem(
        theorem.name, theorem.clause, "", theorem.subject, (), theorem.claim, theorem.profile
    )
    assert breaks(loose, strong)
