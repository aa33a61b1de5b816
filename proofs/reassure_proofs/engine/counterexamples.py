"""Counterexamples as scenarios.

A finding about a function is derived: a theorem that states the promise is refuted, and the
smallest counterexample is told as a scenario (`reassure_spec.scenarios`, area `counterexamples`)
where a world has the commands for it.
"""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, Final

from reassure_proofs.engine.statement import Telling, Theorem

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


def tell(theorem: Theorem, arguments: Mapping[str, Any]) -> Telling:
    """Return the counterexample in the commands of a scenario.

    Raises ValueError for a theorem whose subject no world has the commands for.
    """
    if theorem.subject.tell is None:
        raise ValueError(f"{theorem.name}: no world has the commands for {theorem.subject.words}")
    return theorem.subject.tell(restore_arguments(theorem, arguments))


def render_scenario(theorem: Theorem, telling: Telling) -> str:
    """Return the text of a scenario in which the answers are still to be filled in."""
    return "\n".join(_lines(theorem, telling)) + "\n"


def _lines(theorem: Theorem, telling: Telling) -> Iterator[str]:
    told = f"Theorem {theorem.name}, finding {theorem.finding}. Refuted: {theorem.statement}"
    yield from (f"# {line}" for line in wrap(told, WIDTH))
    yield f"# clauses: {theorem.clause}"
    readings = f"     readings: {','.join(telling.readings)}" if telling.readings else ""
    yield f"# profile: {theorem.profile}{readings}"
    for command in telling.commands:
        yield from (command, "----", "ok", "")
