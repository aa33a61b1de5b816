"""Mutants of the model while it is proved: the text of a function changed where it stands.

Every room that has imported a function of the model holds the function itself, so its code is
exchanged in place and put back afterwards; nothing is imported anew.
"""

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from reassure_proofs.engine.prover import begin
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.results import ProofGoal, Refutation
from reassure_proofs.engine.statement import Claim, Function, Hypothesis, Shape, Values
from reassure_proofs.engine.symex import GaveUp, PathLimits
from reassure_proofs.engine.tasks import group_theorems, make_goals
from reassure_proofs.protocols.kafka_4485.logs import load

LOADED_AGAIN = (
    "reassure_model.protocols.kafka_4485.replication",
    "reassure_model.protocols.kafka_4485.invariants",
)
"""Modules of which the proofs have a second copy (`reassure_proofs.protocols.kafka_4485.logs`)."""


CHECK: Final = 2
"""Parts of a check: the clause, and whether it is kept."""


class _WithoutRefusals(ast.NodeTransformer):
    """Takes out every check and statement that refuses something by one of the clauses, or any."""

    def __init__(self, clauses: tuple[str, ...], names: Mapping[str, Any]) -> None:
        self.clauses = clauses
        self.names = names
        self.taken = 0

    def _is_taken(self, clause: ast.expr) -> bool:
        """Return whether a clause, written out or by a name of the module, is one of those."""
        named = clause.value if isinstance(clause, ast.Constant) else None
        if isinstance(clause, ast.Name):
            named = self.names.get(clause.id)
        taken = not self.clauses or named in self.clauses
        self.taken += taken
        return taken

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        """Have a check, which is a clause and whether it is kept, always be kept."""
        self.generic_visit(node)
        first = node.elts[0] if len(node.elts) == CHECK else None
        checks = isinstance(first, ast.Constant | ast.Name) and isinstance(node.ctx, ast.Load)
        if checks and first is not None and self._is_clause(first) and self._is_taken(first):
            node.elts[1] = ast.copy_location(ast.Constant(value=True), node)
        return node

    def _is_clause(self, node: ast.expr) -> bool:
        word = node.value if isinstance(node, ast.Constant) else self.names.get(ast.unparse(node))
        return isinstance(word, str) and "." in word

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """Take out a statement that answers a refusal."""
        self.generic_visit(node)
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return node
        if call.func.id not in ("Rejected", "Refusal") or not self._is_taken(call.args[0]):
            return node
        return ast.copy_location(ast.Pass(), node)


def _absolute(module: str) -> str:
    return module if module.startswith("reassure_") else f"reassure_model.{module}"


def _text_of(module: ModuleType) -> str:
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8")


def _find_codes(code: CodeType) -> dict[str, CodeType]:
    """Return the code of every function of a module by name."""
    return {part.co_name: part for part in code.co_consts if isinstance(part, CodeType)}


@contextmanager
def _exchanged(name: str, codes: dict[str, CodeType]) -> Iterator[None]:
    """Exchange the code of a module's functions, in each copy that there is of it."""
    copies = [sys.modules[name], *([load(name)] if name in LOADED_AGAIN else [])]
    before: list[tuple[FunctionType, CodeType]] = []
    for copy in copies:
        before += [
            (function, function.__code__)
            for function in vars(copy).values()
            if _is_of(function, name) and function.__name__ in codes
        ]
    for function, _ in before:
        function.__code__ = codes[function.__name__]
    try:
        yield
    finally:
        for function, code in before:
            function.__code__ = code


def _is_of(function: Any, name: str) -> bool:
    return isinstance(function, FunctionType) and function.__module__ == name


@contextmanager
def planted(module: str, old: str, new: str) -> Iterator[None]:
    """Have one text of a module in place of another, which has to stand there once.

    A module without a package is one of `reassure_model`.
    """
    name = _absolute(module)
    text = _text_of(__import__(name, fromlist=["_"]))
    assert text.count(old) == 1, f"{name} has not exactly once: {old}"
    with _running(name, text.replace(old, new)):
        yield


@contextmanager
def _running(name: str, text: str) -> Iterator[None]:
    """Have the functions of a text in place of those of the same names in a module."""
    # The executor looks at the source of a slice, so what is planted has to have one.
    file = f"<planted in {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    with _exchanged(name, _find_codes(compile(text, file, "exec"))):
        yield


@contextmanager
def without_refusals(module: str, *clauses: str) -> Iterator[int]:
    """Have a module refuse nothing by these clauses, or nothing at all; say how many went."""
    name = _absolute(module)
    found = __import__(name, fromlist=["_"])
    walk = _WithoutRefusals(clauses, vars(found))
    tree = ast.fix_missing_locations(walk.visit(ast.parse(_text_of(found))))
    with _running(name, ast.unparse(tree)):
        yield walk.taken


@contextmanager
def replaced(module: str, text: str) -> Iterator[None]:
    """Have other functions of the same names in a module, written as they would stand there."""
    name = _absolute(module)
    __import__(name)
    with _running(name, text):
        yield


_BROKEN: Final = (AttributeError, TypeError, AssertionError, IndexError, KeyError)
"""What code raises that was left in pieces."""
_NO_VALUE: Final = "no value"
"""What such code answers."""


def find_refuted(
    names: Iterable[str], factor: int, writes: str = "", at: str = ""
) -> dict[str, str]:
    """Return the theorems that a value refutes as the model is now, each with its counterexample.

    Code that breaks down refuses, which refutes nothing. `writes` picks the shapes of one kind,
    `at` the one with these lengths, as `assigned=2 isr=1`.
    """
    refuted: dict[str, str] = {}
    for group in group_theorems(get_theorems(tuple(names))):
        subject = group[0].subject
        shared, whole = make_goals(group)
        goals = [replace(goal, claim=_unless_broken(goal.claim)) for goal in whole]
        for shape in group[0].shapes(factor):
            lengths = [f"{name}={each.length}" for name, each in shape.items() if each.length]
            kind = "write" not in shape or shape["write"].word == (writes or shape["write"].word)
            if not kind or (at and sorted(at.split()) != sorted(lengths)):
                continue
            function = partial(_refuse_if_broken, subject.function)
            found = find_violations(function, shape, shared, goals, hashable=subject.hashable)
            refuted |= {name: each.sentence() for name, each in found.items()}
            goals = [goal for goal in goals if goal.name not in refuted]
            if not goals:
                break
    return refuted


def find_violations(
    function: Function,
    shape: Shape,
    hypotheses: Sequence[Hypothesis],
    goals: Sequence[ProofGoal],
    *,
    hashable: bool = False,
) -> dict[str, Refutation]:
    """Take paths until each goal is violated on one, as plain code shows; then no more.

    What plain code does not show by the first such path, it is asked for behind the last.
    """
    work = begin(function, shape, hypotheses, goals, PathLimits(seconds=300.0), hashable)
    found: dict[str, Refutation] = {}
    for path in work.engine.explore(work.assumed, work.body):
        suspected = set(work.suspects)
        work.take(path)
        for goal in goals:
            if goal.name in work.suspects - suspected:
                with suppress(GaveUp):
                    found[goal.name] = work.minimise(goal)
        if len(found) == len(goals):
            return found
    left = [goal for goal in goals if goal.name in work.suspects - found.keys()]
    return found | {goal.name: work.minimise(goal) for goal in left}


def _refuse_if_broken(function: Function, values: Values) -> Any:
    try:
        return function(values)
    except _BROKEN:
        return _NO_VALUE


def _unless_broken(claim: Claim) -> Claim:
    return lambda values, result: result is _NO_VALUE or claim(values, result)
