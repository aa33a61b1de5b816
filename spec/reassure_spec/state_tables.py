"""The replica and partition state machines, as tables of valid previous states.

The first profiles have four replica states. In them a replica reaches NonExistent from Offline, and
nothing leads from Offline to Offline. The later profiles have the three deletion states as well and
allow Offline again from Offline, so that a broker's death after a failed attempt is legal.
Where Kafka's prose and its tables disagree, the tables are followed.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from reassure_spec.profiles import FIRST_STATES
from reassure_spec.readings import PROFILES


class ReplicaState(Enum):
    """State of a replica, with Kafka's own code."""

    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6
    NON_EXISTENT = 7


class PartitionState(Enum):
    """State of a partition, with Kafka's own code."""

    NEW = 0
    ONLINE = 1
    OFFLINE = 2
    NON_EXISTENT = 3


R = ReplicaState
P = PartitionState
_REPLICA_FIRST: Final = {
    R.NEW: frozenset({R.NON_EXISTENT}),
    R.ONLINE: frozenset({R.NEW, R.ONLINE, R.OFFLINE}),
    R.OFFLINE: frozenset({R.NEW, R.ONLINE}),
    R.NON_EXISTENT: frozenset({R.OFFLINE}),
}

_REPLICA_LATER: Final = {
    R.NEW: frozenset({R.NON_EXISTENT}),
    R.ONLINE: frozenset({R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE}),
    R.OFFLINE: frozenset({R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE}),
    R.DELETION_STARTED: frozenset({R.OFFLINE}),
    R.DELETION_SUCCESSFUL: frozenset({R.DELETION_STARTED}),
    R.DELETION_INELIGIBLE: frozenset({R.OFFLINE, R.DELETION_STARTED}),
    R.NON_EXISTENT: frozenset({R.DELETION_SUCCESSFUL}),
}

REPLICA_TABLES: Final[Mapping[str, Mapping[ReplicaState, frozenset[ReplicaState]]]] = {
    name: _REPLICA_FIRST if name in FIRST_STATES else _REPLICA_LATER for name in PROFILES
}
"""By profile: valid previous states by state. A state that is not a key does not exist there."""


_PARTITION_LATER: Final = {
    P.NEW: frozenset({P.NON_EXISTENT}),
    P.ONLINE: frozenset({P.NEW, P.ONLINE, P.OFFLINE}),
    P.OFFLINE: frozenset({P.NEW, P.ONLINE, P.OFFLINE}),
    P.NON_EXISTENT: frozenset({P.OFFLINE}),
}

_PARTITION_FIRST: Final = {**_PARTITION_LATER, P.OFFLINE: frozenset({P.NEW, P.ONLINE})}

PARTITION_TABLES: Final[Mapping[str, Mapping[PartitionState, frozenset[PartitionState]]]] = {
    name: _PARTITION_FIRST if name in FIRST_STATES else _PARTITION_LATER for name in PROFILES
}
"""By profile: valid previous states by state."""

DROP_PATH: Final = (R.OFFLINE, R.DELETION_STARTED, R.DELETION_SUCCESSFUL, R.NON_EXISTENT)
"""The states a dropped replica goes through, in order (KIP-236, end of the drop rule)."""
