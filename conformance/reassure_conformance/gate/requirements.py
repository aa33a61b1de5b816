"""What clauses need of an implementation before the gate can put them to the test.

Those of a protocol stand in its folder, `protocols/NAME/requirements.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from reassure_conformance.adapter import (
    CAPABILITIES,
    EXAMPLE,
    LOG,
    MESSAGES,
    ROUTES,
    WATCHES,
)
from reassure_spec.profiles import PROTOCOLS
from reassure_spec.protocols import import_parts
from reassure_spec.readings import BUILT_ON

ALL_ABILITIES: Final = frozenset((*CAPABILITIES, *ROUTES, EXAMPLE, LOG, WATCHES))
COMMON: Final = "common"
"""The folder of what the clauses of every profile need."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the clauses of a protocol need."""

    clauses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By clause the capabilities and routes that it takes, each of them, or `either` of some."""
    told: Mapping[str, str] = field(default_factory=dict)
    """Clauses that take a field which records of messages may leave out, each with the field."""
    not_claimed: Mapping[str, str] = field(default_factory=dict)
    """Clauses that the gate cannot test under any circumstances, each with the reason."""
    unseen: frozenset[str] = frozenset()
    """Clauses about offsets and lags, which ZooKeeper never sees: brokers with logs observe
    them."""


_OR: Final = " or "


def either(*abilities: str) -> str:
    """Return what stands in `Needs` for any one of several capabilities and routes."""
    return _OR.join(abilities)


@cache
def load_needs() -> Mapping[str, Needs]:
    """Return the needs of each protocol's clauses."""
    parts = import_parts("reassure_conformance", "requirements")
    return {protocol: part.NEEDS for protocol, part in parts.items()}


@cache
def list_unseen() -> frozenset[str]:
    """Return the clauses about what ZooKeeper never sees."""
    return frozenset().union(*(each.unseen for each in load_needs().values()))


@cache
def _list_needs(profile: str) -> tuple[Needs, ...]:
    """Return the needs of a profile's clauses: of its protocols, and of those it stands on."""
    stands_on = (profile, BUILT_ON.get(profile, profile))
    own = {COMMON, *(name for each in stands_on for name in PROTOCOLS[each])}
    return tuple(each for protocol, each in load_needs().items() if protocol in own)


def find_not_claimed(profile: str) -> dict[str, str]:
    """Return the clauses that the gate cannot test under this profile, each with the reason."""
    own = _list_needs(profile)
    return {clause: reason for each in own for clause, reason in each.not_claimed.items()}


def list_needing(ability: str) -> list[str]:
    """Return the clauses that take this capability or route, or for which it is enough."""
    every = (item for each in load_needs().values() for item in each.clauses.items())
    return [clause for clause, needs in every if any(ability in n.split(_OR) for n in needs)]


def find_undeclared(clause: str, able: frozenset[str], profile: str) -> tuple[str, ...]:
    """Return what a clause takes under a profile, of which nothing is among these abilities."""
    own = (need for each in _list_needs(profile) for need in each.clauses.get(clause, ()))
    return tuple(need for need in own if able.isdisjoint(need.split(_OR)))


def find_lacking(
    clauses: Iterable[str], able: frozenset[str], profile: str
) -> dict[str, tuple[str, ...]]:
    """Return those of these clauses that nobody can test who is able to do this, and why."""
    told = {clause: name for each in _list_needs(profile) for clause, name in each.told.items()}
    lacking = {}
    for clause in clauses:
        needs = find_undeclared(clause, able, profile)
        if clause in told:
            needed = f"{MESSAGES} with {told[clause]}" if MESSAGES in able else MESSAGES
            needs += () if needed in able else (needed,)
        lacking[clause] = needs if LOG in able else (*needs, LOG)
    return {clause: needs for clause, needs in lacking.items() if needs}


def join_needs(needs: tuple[str, ...]) -> str:
    """Return in words what a clause needs.

    >>> join_needs(("brokers or isr", "log")), join_needs(("brokers or isr",))
    ('(brokers or isr) and log', 'brokers or isr')
    """
    several = len(needs) > 1
    return " and ".join(f"({need})" if several and _OR in need else need for need in needs)
