"""Counterexamples as scenarios, and the findings that no theorem can derive.

A finding about functions or steps is derived: a theorem that states the promise is refuted, and the
smallest counterexample is told as a scenario (`reassure_spec.scenarios`, area `counterexamples`)
where a world has the commands for it. `TEXT_ONLY` are the findings about sentences, about which
there is nothing to run.
"""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final

from reassure_proofs.statement import Telling, Theorem
from reassure_proofs.theorems import THEOREMS
from reassure_spec.findings import FINDINGS

TEXT_ONLY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "drop-13": "two sentences of one text contradict each other; no function follows either",
        "protocol-2": "the text shows a fragment of a format; ours is complete",
        "move-16": "the text announces two states and lists four; the table has the four",
        "legacy-4": "two sections of one text promise different things; legacy-3 derives the case",
        "heal-4": "the text has three names for one path",
    }
)
"""Findings that concern nothing but words, and why nothing can be derived."""

AREA: Final = "counterexamples"
WIDTH: Final = 98


def theorems_of(finding_id: str) -> tuple[Theorem, ...]:
    """Return the theorems whose refutation derives a finding."""
    return tuple(theorem for theorem in THEOREMS if theorem.finding == finding_id)


def find_underived() -> tuple[str, ...]:
    """Return the findings that neither a theorem derives nor `TEXT_ONLY` explains."""
    ids = (finding.id for finding in FINDINGS)
    return tuple(each for each in ids if each not in TEXT_ONLY and not theorems_of(each))


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
