"""The standard scopes: how much of the world is looked at, by name.

A scope is small enough to be explored to its end. What it leaves out was not looked at: a scope
that holds is no proof for a larger one. The counts of each scope under each profile stand in
`docs/explorer.md` and are pinned by tests where they take seconds only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from reassure_explorer.interface import Model
from reassure_explorer.logs import Logs, LogWorld
from reassure_explorer.reference import Limits, Reference, Target, World
from reassure_spec.readings import Readings


class UnknownScope(ValueError):
    """A scope name that there is not."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A named scope."""

    name: str
    summary: str
    """What it holds, in one sentence."""
    make: Callable[[str, Readings], Model]

    def make_model(self, readings: Readings) -> Model:
        """Return the model within this scope, under these readings."""
        return self.make(self.name, readings)


def _ask(*targets: tuple[int, ...]) -> tuple[Target, ...]:
    return tuple((target, False) for target in targets)


def _reference(name: str, summary: str, world: World) -> Scope:
    return Scope(name, summary, lambda n, readings: Reference(world, readings).make_model(n))


def _logs(name: str, summary: str, world: LogWorld) -> Scope:
    return Scope(name, summary, lambda n, readings: Logs(world, readings).make_model(n))


_ALL: Final = (
    _reference(
        "small",
        "three brokers, one partition on two of them; two requests, and one death, one lagging "
        "replica and one failover at any moment",
        World(3, ((1, 2),), _ask((2, 3), (1, 3), (1, 2)), Limits(2, 1, 1, 1)),
    ),
    _reference(
        "new",
        "a partition that is not yet online, with two requests, two deaths and one failover",
        World(3, ((1, 2),), _ask((2, 3), (1, 3)), Limits(2, 2, 0, 1), online=False),
    ),
    _reference(
        "routes",
        "requests by the new and by the legacy route, good ones and ones to refuse: an empty "
        "target, a replica twice, a broker that does not exist",
        World(
            3,
            ((1, 2),),
            (
                ((2, 3), False),
                ((1, 3), False),
                ((1, 3), True),
                ((), False),
                ((3, 3), False),
                ((2, 4), True),
            ),
            Limits(2, 2, 0, 1),
        ),
    ),
    _reference(
        "min-two",
        "as small, where two replicas have to be in sync and one target has one replica only",
        World(
            3,
            ((1, 2),),
            _ask((2, 3), (1, 3), (3,)),
            Limits(2, 1, 1, 1),
            min_insync_replicas=2,
        ),
    ),
    _reference(
        "two-partitions",
        "two partitions that share brokers and controller: two requests, two deaths, one failover",
        World(3, ((1, 2), (2, 3)), _ask((2, 3), (1, 2)), Limits(2, 2, 0, 1)),
    ),
    _reference(
        "medium",
        "four brokers, a partition on two; three requests, two deaths, one lag, one failover",
        World(4, ((1, 2),), _ask((2, 3), (3, 4), (1, 2)), Limits(3, 2, 1, 1)),
    ),
    _reference(
        "large",
        "four brokers, a partition on two; five requests, four deaths, three lags, three failovers",
        World(4, ((1, 2),), _ask((2, 3), (3, 4), (1, 2)), Limits(5, 4, 3, 3)),
    ),
    _reference(
        "restless",
        "three brokers, one partition; two requests, and failovers without end: for liveness",
        World(3, ((1, 2),), _ask((1, 3), (2, 3)), Limits(2, 1, 1, None, term=2)),
    ),
    _logs(
        "logs",
        "two brokers that keep logs of at most two records; one election, one lag, one removal",
        LogWorld(2, records=2, elections=1, lags=1, removals=1),
    ),
    _logs(
        "logs-three",
        "three brokers that keep logs of at most two records; one election, three lags, three "
        "removals",
        LogWorld(3, records=2, elections=1, lags=3, removals=3),
    ),
    _logs(
        "logs-elections",
        "three brokers that keep logs of at most two records; two elections, one lag, one removal",
        LogWorld(3, records=2, elections=2, lags=1, removals=1),
    ),
)

SCOPES: Final[Mapping[str, Scope]] = MappingProxyType({scope.name: scope for scope in _ALL})
"""The standard scopes by name."""


def get_scope(name: str) -> Scope:
    """Return a scope. Raises UnknownScope; the message lists those there are."""
    try:
        return SCOPES[name]
    except KeyError:
        known = ", ".join(SCOPES)
        raise UnknownScope(f"there is no scope {name!r}; the scopes are: {known}") from None
