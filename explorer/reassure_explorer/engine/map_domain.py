"""The domain of maps, their values, and what reads their cells key by key."""

from collections.abc import (
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Set,
    ValuesView,
)
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Final

from reassure_explorer.engine.domains import (
    Cells,
    Domain,
    LazyParts,
    OutOfRange,
    Reader,
    answer_plainly,
    unlazy,
)


class FrozenMap(Mapping[Any, Any]):
    """A map that never changes: what a field of domain `MapOf` holds.

    It is read as a dict is. `map | {key: value}` is a new one with other values for some keys.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        self._values = dict(values)

    def __getitem__(self, key: Any) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        return FrozenMap({**self, **other})

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        return FrozenMap({**other, **self})

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True)
class MapOf(Domain):
    """Maps that have for each of these keys a value of one domain (`FrozenMap`)."""

    keys: tuple[Hashable, ...]
    value: Domain

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        if not self.keys or len(set(self.keys)) != len(self.keys):
            raise ValueError(f"a map needs different keys, and at least one: {self.keys}")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells of the value of each key."""
        return self.value.widths * len(self.keys)

    @cached_property
    def places(self) -> Mapping[Hashable, int]:
        """Number of the first cell of each key's value."""
        return {key: at * len(self.value.widths) for at, key in enumerate(self.keys)}

    def normalise(self, value: Any) -> FrozenMap:
        """Return a map with exactly these keys, in their order."""
        if not isinstance(value, Mapping):
            raise OutOfRange(f"{value!r} is no map; give a dict, or `map | {{key: value}}`")
        strangers = [key for key in value if key not in self.places]
        if strangers:
            raise OutOfRange(f"{strangers[0]!r} is none of the keys {list(self.keys)}")
        missing = [key for key in self.keys if key not in value]
        if missing:
            raise OutOfRange(f"key {missing[0]!r} has no value; give one to each key")
        return FrozenMap({key: self.value.normalise(value[key]) for key in self.keys})

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode the values, in the order of the keys."""
        return tuple([cell for key in self.keys for cell in self.value.encode(value[key])])

    def draw(self, chance: Random) -> FrozenMap:
        """Return any map."""
        return FrozenMap({key: self.value.draw(chance) for key in self.keys})

    def draw_unread(self, reader: Reader, first: int, read: Set[int], chance: Random) -> Cells:
        """Draw in the value of each key what was not read of it."""
        drawn: dict[int, int] = {}
        for place in self.places.values():
            drawn |= self.value.draw_unread(reader, first + place, read, chance)
        return drawn

    def read(self, reader: Reader, first: int) -> "LazyMap":
        """Return a map that reads the value of a key when it is asked for."""
        return LazyMap(self, reader, first, {})

    def write_changes(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Write the values of the keys that differ."""
        strangers = [key for key in value.changed if key not in self.places]
        if strangers:
            raise OutOfRange(f"{strangers[0]!r} is none of the keys {list(self.keys)}")
        cells: dict[int, int] = {}
        for key, entry in value.changed.items():
            cells |= self.value.write(reader, first + self.places[key], entry)
        return cells


_PLAIN_OF_MAPS: Final = (
    *("__eq__", "__hash__", "__repr__", "__str__", "__format__", "__reduce_ex__", "__ror__"),
    "__reversed__",
)


@answer_plainly(*_PLAIN_OF_MAPS)
class LazyMap(LazyParts):
    """A map of a state that is being traced. It answers as a `FrozenMap` does.

    Giving keys other values reads nothing, and which keys there are is known; asking for a value
    reads it.
    """

    __slots__ = ("_read", "changed")

    def __init__(
        self, domain: MapOf, reader: Reader, first: int, changed: Mapping[Any, Any]
    ) -> None:
        self.domain, self.reader, self.first, self.changed = domain, reader, first, changed
        self._read: dict[Any, Any] = dict(changed)
        """The values that are known."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return FrozenMap

    def settle(self) -> FrozenMap:
        """Return the plain map, which reads all values."""
        return FrozenMap({key: unlazy(self[key]) for key in self})

    def __getitem__(self, key: Any) -> Any:
        if key not in self._read:
            place = self.first + self.domain.places[key]
            self._read[key] = self.domain.value.read(self.reader, place)
        return self._read[key]

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or what to take where there is no such key."""
        if key not in self:
            return default
        return self[key]

    def __contains__(self, key: object) -> bool:
        return key in self.domain.places or key in self.changed

    def __iter__(self) -> Iterator[Any]:
        yield from self.domain.keys
        yield from (key for key in self.changed if key not in self.domain.places)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys(self) -> KeysView[Any]:
        """Return the keys."""
        return KeysView(self)

    def items(self) -> ItemsView[Any, Any]:
        """Return keys with their values, which are read one after the other."""
        return ItemsView(self)

    def values(self) -> ValuesView[Any]:
        """Return the values, which are read one after the other."""
        return ValuesView(self)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return self.settle() | other
        return LazyMap(self.domain, self.reader, self.first, {**self.changed, **other})


Mapping.register(LazyMap)
