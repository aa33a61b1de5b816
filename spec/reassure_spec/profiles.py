"""Which protocols run together under a profile.

A profile is a list of protocols and a choice of readings (`reassure_spec.readings.PROFILES`). The
protocols share one cluster: healing submits ordinary reassignments, the old znode is translated
into requests, a topic may be deleted under a move. Each is a folder of the model that is called
like it, with underscores for dashes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PROTOCOLS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "kafka-42": ("kafka-42",),
        "kafka-4485": ("kafka-4485",),
        "kip-236": ("kip-236", "topics"),
        "kip-236-amended": ("kip-236", "kafka-4485", "topics"),
        "kip-236-legacy": ("kip-236-legacy", "kip-236", "topics"),
        "kip-46": ("kip-46", "kip-236"),
        "kafka-zk": ("kafka-zk", "topics"),
    }
)
"""By profile, the one that it is named for first."""
DEFAULT_PROFILE: Final = "kip-236"
"""The profile where none is named."""


def has_protocol(profile: str, *protocols: str) -> bool:
    """Whether one of these protocols runs under a profile.

    >>> has_protocol("kip-236-legacy", "kip-236"), has_protocol("kafka-42", "kip-236", "kip-46")
    (True, False)
    """
    return not set(protocols).isdisjoint(PROTOCOLS[profile])


def list_profiles(protocol: str) -> tuple[str, ...]:
    """Return the profiles under which a protocol runs.

    >>> list_profiles("kip-236-legacy")
    ('kip-236-legacy',)
    """
    return tuple(profile for profile, names in PROTOCOLS.items() if protocol in names)
