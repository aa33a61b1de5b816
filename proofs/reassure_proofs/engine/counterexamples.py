"""Counterexamples as scenarios.

A finding about a function is derived: a theorem that states the promise is refuted, and the
smallest counterexample is told as a scenario (`reassure_spec.scenarios`, area `counterexamples`)
where a world has the commands for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from reassure_proofs.engine.statement import Theorem

AREA: Final = "counterexamples"
WIDTH: Final = 98


def restore_arguments(theorem: Theorem, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a report as the code under test takes them."""
    kinds = {name: item.kind for shape in theorem.shapes(1) for name, item in shape.items()}
    return {
        name: frozenset(value)
        if kinds.get(name) == "set"
        else tuple(value)
        if isinstance(value, list)
        else value
        for name, value in arguments.items()
    }


def render_scenario(theorem: Theorem, arguments: Mapping[str, Any]) -> str:
    """Return a counterexample as the text of a scenario whose answers are still to be filled in.

    Raises ValueError for a theorem whose subject no world has the commands for.
    """
    tell = theorem.subject.tell
    if tell is None:
        raise ValueError(f"{theorem.name}: no world has the commands for {theorem.subject.words}")
    readings = (*theorem.subject.changes, *theorem.subject.told_under)
    commands = tell(restore_arguments(theorem, arguments))
    return "\n".join(_lines(theorem, commands, readings)) + "\n"


def _lines(theorem: Theorem, commands: Sequence[str], readings: Sequence[str]) -> Iterator[str]:
    told = f"Theorem {theorem.name}, finding {theorem.finding}. Refuted: {theorem.statement}"
    yield from (f"# {line}" for line in wrap(told, WIDTH))
    yield f"# clauses: {theorem.clause}"
    under = f"     readings: {','.join(readings)}" if readings else ""
    yield f"# profile: {theorem.profile}{under}"
    for command in commands:
        yield from (command, "----", "ok", "")
