"""What clauses need of an implementation before the gate can put them to the test.

Those of a protocol stand in its folder, `protocols/NAME/requirements.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from reassure_conformance.adapter import CAPABILITIES, LOG, MESSAGES, ROUTES, WATCHES
from reassure_spec.profiles import has_protocol
from reassure_spec.protocols import import_parts

ALL_ABILITIES: Final = frozenset((*CAPABILITIES, *ROUTES, LOG, WATCHES))


@dataclass(frozen=True, slots=True)
class Needs:
    """What the clauses of a protocol need."""

    any_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Clauses of which any one of these capabilities lets the gate put them to the test."""
    each_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same of clauses for which each of these capabilities and routes is needed."""
    told: Mapping[str, str] = field(default_factory=dict)
    """Clauses that take a field which records of messages may leave out, each with the field."""
    not_claimed: Mapping[str, str] = field(default_factory=dict)
    """Clauses that the gate cannot test under any circumstances, each with the reason."""
    unseen: frozenset[str] = frozenset()
    """Clauses about offsets and lags, which ZooKeeper never sees: brokers with logs observe
    them."""


@cache
def load_needs() -> Mapping[str, Needs]:
    """Return the needs of each protocol's clauses."""
    parts = import_parts("reassure_conformance", "requirements")
    return {protocol: part.NEEDS for protocol, part in parts.items()}


@cache
def merge_needs() -> Needs:
    """Return the needs of all clauses."""
    every = load_needs().values()
    return Needs(
        {clause: needs for each in every for clause, needs in each.any_of.items()},
        {clause: needs for each in every for clause, needs in each.each_of.items()},
        {clause: name for each in every for clause, name in each.told.items()},
        unseen=frozenset().union(*(each.unseen for each in every)),
    )


def find_not_claimed(profile: str) -> dict[str, str]:
    """Return the clauses that the gate cannot test under this profile, each with the reason."""
    own = (each for protocol, each in load_needs().items() if has_protocol(profile, protocol))
    return {clause: reason for each in own for clause, reason in each.not_claimed.items()}


def find_lacking(clauses: Iterable[str], able: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return those of these clauses that nobody can test who is able to do this, and why."""
    asked, every = frozenset(clauses), merge_needs()
    lacking = {c: needs for c, needs in every.any_of.items() if able.isdisjoint(needs)}
    for clause, needs in every.each_of.items():
        lacking[clause] = tuple(need for need in needs if need not in able)
    for clause, name in every.told.items():
        needed = f"{MESSAGES} with {name}" if MESSAGES in able else MESSAGES
        lacking[clause] = () if needed in able else (needed,)
    if LOG not in able:
        lacking |= {clause: (*lacking.get(clause, ()), LOG) for clause in asked}
    return {clause: needs for clause, needs in lacking.items() if clause in asked and needs}


def join_needs(clause: str, needs: tuple[str, ...]) -> str:
    """Return in words what a clause needs: each of these, or any one; a log besides.

    >>> join_needs("election.live", ("brokers", "isr", "log"))
    '(brokers or isr) and log'
    """
    if clause in merge_needs().each_of:
        return " and ".join(needs)
    *any_of, last = needs if LOG in needs else (*needs, "")
    said = " or ".join(any_of)
    if not (said and last):
        return said or last
    return f"({said}) and {last}" if len(any_of) > 1 else f"{said} and {last}"
