"""Which protocols run together under a profile.

A profile is a list of protocols and a choice of readings (`reassure_spec.readings.PROFILES`). The
protocols share one cluster: healing submits ordinary reassignments, the old znode is translated
into requests, a topic may be deleted under a move. The manifests of the protocols say which.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from reassure_spec.protocols import list_folders, read_profiles

PROTOCOLS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {name: tuple(said["protocols"]) for name, said in read_profiles()}
)
"""By profile, the one that it is named for first."""
DEFAULT_PROFILE: Final = next(name for name, said in read_profiles() if said.get("default"))
"""The profile where none is named."""
AMENDED_PROFILE: Final = next(name for name, said in read_profiles() if said.get("amended"))
"""The profile in which what the documents get wrong is put right."""
FIRST_STATES: Final = frozenset(n for n, said in read_profiles() if said.get("first-states"))
"""The profiles in which replicas have Kafka's first states, and none for a deletion by steps."""


def has_protocol(profile: str, *protocols: str) -> bool:
    """Whether one of these protocols runs under a profile."""
    return not set(protocols).isdisjoint(PROTOCOLS[profile])


def list_readers(path: str) -> tuple[str, ...]:
    """Return the protocols whose controllers look at a path that not every controller reads."""
    return tuple(each.name for each in list_folders() if path in each.manifest.get("reads", ()))


@cache
def reads(profile: str, path: str) -> bool:
    """Whether controllers look at such a path under a profile."""
    return has_protocol(profile, *list_readers(path))


def list_profiles(protocol: str) -> tuple[str, ...]:
    """Return the profiles under which a protocol runs."""
    return tuple(profile for profile, names in PROTOCOLS.items() if protocol in names)
