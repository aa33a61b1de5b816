"""Moments: in which states somebody acted, for whoever asks what others would have done there."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from reassure_model.partition import Environment

ACTS: Final = "acts"
"""A controller writes."""
RESTS: Final = "rests"
"""It has nothing left to do."""
SUCCEEDS: Final = "takes over"
"""Another controller acts from here on; what the one before had in mind is still in the states."""
DISTURBED: Final = "disturbed"
"""Anything else happens to the partition."""
Place = tuple[str, str, int]
"""Chroot, topic and partition."""

Key = TypeVar("Key")
Value_co = TypeVar("Value_co", covariant=True)


class Kept(Mapping[Key, Value_co]):
    """A mapping as it is at a moment, which can be told from another one and looked up by it."""

    def __init__(self, items: Mapping[Key, Value_co]) -> None:
        self._items = dict(items)
        self._hash = hash(frozenset(self._items.items()))

    def __getitem__(self, key: Key) -> Value_co:
        return self._items[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self._items)


class Witness(Protocol):
    """Who wants to know of such moments."""

    def note(self, kind: str, place: Place, states: tuple[Any, ...], around: Environment) -> None:
        """Take note of a moment, and of all states that the history leaves possible by then."""
