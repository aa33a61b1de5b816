"""What can happen around every protocol: brokers die and return, replicas join, controllers change.

These are the actions that all machines have in common. What each of them does to a protocol's state
is for its own `step` to say.
"""

from dataclasses import dataclass
from typing import Any

from reassure_spec.znodes import PartitionKey


@dataclass(frozen=True, slots=True)
class Join:
    """The leader takes a replica that has caught up into the in-sync set."""

    replica: int


@dataclass(frozen=True, slots=True)
class Leave:
    """The leader takes a replica that lags out of the in-sync set."""

    replica: int


@dataclass(frozen=True, slots=True)
class Die:
    """A broker loses its registration."""

    broker: int


@dataclass(frozen=True, slots=True)
class Return:
    """A broker registers (again)."""

    broker: int


@dataclass(frozen=True, slots=True)
class Failover:
    """Another controller takes over; what the old one had in memory is gone."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The acting controller carries out the next effect that it owes."""


@dataclass(frozen=True, slots=True)
class On:
    """Something happens to one of several partitions."""

    key: PartitionKey
    action: Any


class NotPossible(ValueError):
    """An action that cannot be taken in this state, whatever the rules say."""
