"""Every obligation as SMT-LIB 2 text, so that another solver can be asked.

Two kinds of files. `<theorem>--<shape>.smt2` asks for an input that breaks the claim: a theorem is
proved if all of its files are unsatisfiable. `<first theorem>--<shape>--coverage.smt2` asks for an
input that takes none of the paths explored for it and the theorems that share its exploration:
always to be unsatisfiable. Shapes are written as the lengths of their sequences.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import z3

from reassure_proofs.engine.prover import explore_shape
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.results import ShapeResult
from reassure_proofs.engine.statement import Shape, Theorem
from reassure_proofs.engine.symex import PathLimits, Term
from reassure_proofs.engine.tasks import group_theorems, make_goals


@dataclass(frozen=True, slots=True)
class Script:
    """One SMT-LIB 2 file."""

    name: str
    """File name."""
    text: str
    """The script: it ends by asking whether what it asserts can be satisfied."""
    status: str
    """What was answered here: `unsat`, `sat` or `unknown`."""


def make_scripts(
    names: Sequence[str] | None = None,
    replication_factor: int = 4,
    timeout_s: float = 60.0,
    tier: str = "full",
) -> Iterator[Script]:
    """Yield the scripts of the named theorems, of all of the tier without names.

    A shape that no input fits gives no script of a theorem, only one for its coverage; an
    exploration that was given up gives none at all. Raises UnknownTheoremError and
    ProofFaultError as `prove_all` does.
    """
    for group in group_theorems(get_theorems(None if names is None else list(names), tier)):
        shared, goals = make_goals(group)
        for shape in group[0].shapes(replication_factor):
            explored = explore_shape(
                group[0].subject.function,
                shape,
                shared,
                goals,
                PathLimits(seconds=timeout_s),
                group[0].subject.hashable,
            )
            yield from _scripts_of(group, shape, explored)


def _scripts_of(group: Sequence[Theorem], shape: Shape, explored: ShapeResult) -> Iterator[Script]:
    if explored.certificate is None:
        return
    lengths = "-".join(
        parameter.word or f"{name}{parameter.any_length or parameter.length}"
        for name, parameter in shape.items()
        if parameter.word or parameter.any_length or parameter.length is not None
    )
    clauses = {theorem.name: theorem.clause for theorem in group}
    for obligation in explored.obligations:
        goal = obligation.goal
        status = "sat" if goal in explored.counterexamples else "unsat"
        terms = (*obligation.assumptions, obligation.violation)
        text = _script(f"theorem {goal}, clause {clauses[goal]}", terms, status)
        yield Script(f"{goal}--{lengths}.smt2", text, status)
    status = explored.certificate.gap
    # The group's first theorem tells apart the groups of one subject.
    name = f"{group[0].name}--{lengths}--coverage.smt2"
    title = f"coverage of {group[0].subject.name}"
    yield Script(name, _script(title, (explored.gap,), status), status)


def _script(title: str, terms: Sequence[Term], status: str) -> str:
    solver = z3.Solver()
    solver.add(*terms)
    body = "\n".join(
        line
        for line in solver.to_smt2().splitlines()
        if not line.startswith((";", "(set-info :status"))
    )
    return f"; {title}\n(set-logic ALL)\n(set-info :status {status})\n{body}\n"
