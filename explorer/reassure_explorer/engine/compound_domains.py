"""Domains of sets, sequences and maps, and what reads their cells one by one."""

from collections.abc import (
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
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
    Int,
    Lazy,
    OutOfRange,
    Reader,
    answer_plainly,
    unlazy,
)


@dataclass(frozen=True)
class SetOf(Domain):
    """Sets of some of these members, one bit each."""

    members: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if len(set(self.members)) != len(self.members):
            raise ValueError(f"the members of a set differ from each other: {self.members}")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """One cell of one bit for each member."""
        return (1,) * len(self.members)

    @cached_property
    def places(self) -> Mapping[Hashable, int]:
        """Number of the cell of each member."""
        return {member: place for place, member in enumerate(self.members)}

    def normalise(self, value: Any) -> frozenset[Any]:
        """Return a set, or what a list or tuple holds, as a frozenset of the members."""
        if not isinstance(value, Set | tuple | list):
            raise OutOfRange(f"{value!r} is no set; give a frozenset")
        strangers = [member for member in value if member not in self.places]
        if strangers:
            raise OutOfRange(f"{strangers[0]!r} is none of {list(self.members)}")
        return frozenset(member for member in self.members if member in value)

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode a set."""
        return tuple(int(member in value) for member in self.members)

    def draw(self, chance: Random) -> frozenset[Any]:
        """Return any set of members."""
        return frozenset([member for member in self.members if chance.random() < 1 / 2])

    def draw_unread(self, reader: Reader, first: int, read: Set[int], chance: Random) -> Cells:
        """Draw each member that was not asked for."""
        cells = range(first, first + len(self.members))
        return {cell: chance.getrandbits(1) for cell in cells if cell not in read}

    def read(self, reader: Reader, first: int) -> "LazySet":
        """Return a set that reads a member's bit when it is asked for."""
        return LazySet(self, reader, first, {})

    def write(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Write the members that differ where the set was made from this very field."""
        if not isinstance(value, LazySet) or not value.is_of(self, reader, first):
            return Domain.write(self, reader, first, value)
        strangers = [m for m, v in value.changed.items() if v and m not in self.places]
        if strangers:
            raise OutOfRange(f"{strangers[0]!r} is none of {list(self.members)}")
        changed = value.changed.items()
        return {first + self.places[m]: int(v) for m, v in changed if m in self.places}


_PLAIN_OF_SETS: Final = (
    *("__eq__", "__lt__", "__gt__", "__len__", "__iter__", "__hash__", "__repr__", "__str__"),
    *("__format__", "__reduce_ex__", "__ror__", "__rand__", "__rxor__", "__rsub__"),
)


@answer_plainly(*_PLAIN_OF_SETS)
class LazySet(Lazy):
    """A set of a state that is being traced. It answers as a frozenset does.

    Adding and taking away members reads nothing; asking for one reads its bit.
    """

    __slots__ = ("_settled", "changed", "domain", "first", "reader")

    def __init__(
        self, domain: SetOf, reader: Reader, first: int, changed: Mapping[Any, bool]
    ) -> None:
        self.domain, self.reader, self.first, self.changed = domain, reader, first, changed
        self._settled: frozenset[Any] | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return frozenset

    def settle(self) -> frozenset[Any]:
        """Return the plain set, which reads the bits of all members."""
        if self._settled is None:
            self._settled = frozenset([m for m in self._list_candidates() if m in self])
        return self._settled

    def _list_candidates(self) -> Iterator[Any]:
        """Return all that may be in the set; in no order that an answer depends on."""
        places = self.domain.places
        yield from places
        yield from (m for m, present in self.changed.items() if present and m not in places)

    def is_of(self, domain: SetOf, reader: Reader, first: int) -> bool:
        """Whether the set was made from this field of this state."""
        return self.first == first and self.reader is reader and self.domain == domain

    def __contains__(self, member: object) -> bool:
        if member in self.changed:
            return self.changed[member]
        place = self.domain.places.get(member)
        return place is not None and bool(self.reader.read(self.first + place))

    def __bool__(self) -> bool:
        return any(member in self for member in self._list_candidates())

    def _changing(self, changes: Mapping[Any, bool]) -> "LazySet":
        return LazySet(self.domain, self.reader, self.first, {**self.changed, **changes})

    def union(self, *others: Iterable[Any]) -> "LazySet":
        """Return the set with the members of others."""
        return self._changing({member: True for other in others for member in other})

    def difference(self, *others: Iterable[Any]) -> "LazySet":
        """Return the set without the members of others."""
        return self._changing({member: False for other in others for member in other})

    def intersection(self, *others: Iterable[Any]) -> "LazySet":
        """Return the set without what one of the others lacks."""
        sets = [other if isinstance(other, Set) else frozenset(other) for other in others]
        lacking = {m: False for m in self._list_candidates() if any(m not in o for o in sets)}
        return self._changing(lacking)

    def symmetric_difference(self, other: Iterable[Any]) -> "LazySet":
        """Return the set of what is in one of the two only."""
        members = frozenset(other)
        return self._changing({member: member not in self for member in members})

    def __or__(self, other: Any) -> Any:
        return self.union(other) if _is_set(other) else self.settle() | other

    def __sub__(self, other: Any) -> Any:
        return self.difference(other) if _is_set(other) else self.settle() - other

    def __and__(self, other: Any) -> Any:
        return self.intersection(other) if _is_set(other) else self.settle() & other

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(other) if _is_set(other) else self.settle() ^ other

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether all members are among the other's."""
        members = other if isinstance(other, Set) else frozenset(other)
        return not any(m in self for m in self._list_candidates() if m not in members)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether the other's members are all here."""
        return all(member in self for member in frozenset(other))

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Whether the two have no member in common."""
        return not any(member in self for member in frozenset(other))

    def __le__(self, other: Any) -> Any:
        return self.issubset(other) if _is_set(other) else self.settle() <= other

    def __ge__(self, other: Any) -> Any:
        return self.issuperset(other) if _is_set(other) else self.settle() >= other


Set.register(LazySet)


def _is_set(value: object) -> bool:
    return isinstance(value, frozenset | set)


@dataclass(frozen=True)
class SequenceOf(Domain):
    """Sequences (tuples) of at most `longest` values of one domain of numbers or choices."""

    element: Domain
    longest: int

    def __post_init__(self) -> None:
        if isinstance(self.element, SetOf | SequenceOf | MapOf) or self.longest < 1:
            raise ValueError("a sequence has at least one place, for numbers, choices or options")

    @cached_property
    def _length(self) -> Int:
        return Int(0, self.longest)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells of the length, then of each place."""
        return (*self._length.widths, *self.element.widths * self.longest)

    def normalise(self, value: Any) -> tuple[Any, ...]:
        """Return a tuple or list as a tuple."""
        if not isinstance(value, tuple | list):
            raise OutOfRange(f"{value!r} is no sequence; give a tuple")
        if len(value) > self.longest:
            raise OutOfRange(f"{value!r} is longer than {self.longest}")
        return tuple([self.element.normalise(entry) for entry in value])

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode a sequence; places that it does not use are zero."""
        cells = [*self._length.encode(len(value))]
        for entry in value:
            cells += self.element.encode(entry)
        return (*cells, *(0,) * (len(self.widths) - len(cells)))

    def draw(self, chance: Random) -> tuple[Any, ...]:
        """Return any sequence."""
        return tuple([self.element.draw(chance) for _ in range(chance.randint(0, self.longest))])

    def draw_unread(self, reader: Reader, first: int, read: Set[int], chance: Random) -> Cells:
        """Draw entries that were not read, where the length was."""
        if not all(cell in read for cell in range(first, self.find_place(first, 0))):
            return Domain.draw_unread(self, reader, first, read, chance)
        drawn: dict[int, int] = {}
        for place in range(self.read_length(reader, first)):
            at = self.find_place(first, place)
            drawn |= self.element.draw_unread(reader, at, read, chance)
        return drawn

    def read(self, reader: Reader, first: int) -> "LazySequence":
        """Return a sequence that reads its length and its entries when they are asked for."""
        return LazySequence(self, reader, first, ())

    @cached_property
    def places(self) -> tuple[int, int]:
        """Number of the first cell of the first place, and cells of a place."""
        return len(self._length.widths), len(self.element.widths)

    def read_length(self, reader: Reader, first: int) -> int:
        """Return the length of the sequence whose first cell is `first`."""
        return self._length.read(reader, first)

    def find_place(self, first: int, place: int) -> int:
        """Return the first cell of a place."""
        start, stride = self.places
        return first + start + place * stride

    def write(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Write only what was added where the sequence was made from this very field."""
        if not isinstance(value, LazySequence) or not value.is_of(self, reader, first):
            return Domain.write(self, reader, first, value)
        if not value.tail:
            return {}
        before = self.read_length(reader, first)
        after = before + len(value.tail)
        if after > self.longest:
            raise OutOfRange(f"{value!r} is longer than {self.longest}")
        cells = {first + at: cell for at, cell in enumerate(self._length.encode(after))}
        for place, entry in enumerate(value.tail, before):
            cells |= self.element.write(reader, self.find_place(first, place), entry)
        return cells


_PLAIN_OF_SEQUENCES: Final = (
    *("__lt__", "__le__", "__gt__", "__ge__", "__mul__", "__rmul__", "__radd__", "__hash__"),
    *("__repr__", "__str__", "__format__", "__reduce_ex__"),
)


@answer_plainly(*_PLAIN_OF_SEQUENCES)
class LazySequence(Lazy):
    """A sequence of a state that is being traced. It answers as a tuple does.

    What was read is kept, so that rules which go over it again and again stay quick.
    """

    __slots__ = ("_length", "_read", "_stored", "domain", "first", "reader", "tail")

    def __init__(
        self, domain: SequenceOf, reader: Reader, first: int, tail: tuple[Any, ...]
    ) -> None:
        self.domain, self.reader, self.first, self.tail = domain, reader, first, tail
        self._read: list[Any] = []
        """The entries from the start that were read, in the end with the tail."""
        self._stored = self._length = -1

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return tuple

    def settle(self) -> tuple[Any, ...]:
        """Return the plain tuple, which reads all entries."""
        return tuple(iter(self))

    def is_of(self, domain: SequenceOf, reader: Reader, first: int) -> bool:
        """Whether the sequence was made from this field of this state."""
        return self.first == first and self.reader is reader and self.domain == domain

    def _count_stored(self) -> int:
        if self._stored < 0:
            self._stored = self.domain.read_length(self.reader, self.first)
            self._length = self._stored + len(self.tail)
        return self._stored

    def __len__(self) -> int:
        if self._length < 0:
            self._count_stored()
        return self._length

    def _entry(self, place: int) -> Any:
        start, stride = self.domain.places
        return self.domain.element.read(self.reader, self.first + start + place * stride)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int):
            return self.settle()[index]
        stored, length = self._count_stored(), len(self)
        place = index + length if index < 0 else index
        if not 0 <= place < length:
            raise IndexError("tuple index out of range")
        if place < len(self._read):
            return self._read[place]
        return self._entry(place) if place < stored else self.tail[place - stored]

    def __iter__(self) -> Iterator[Any]:
        stored = self._count_stored()
        if len(self._read) == self._length:
            return iter(self._read)
        return self._iterate(stored, self._length)

    def _read_next(self, stored: int) -> Any:
        place = len(self._read)
        entry = self._entry(place) if place < stored else self.tail[place - stored]
        self._read.append(entry)
        return entry

    def _iterate(self, stored: int, length: int) -> Iterator[Any]:
        read = self._read
        for place in range(length):
            yield self._read_next(stored) if place == len(read) else read[place]

    def __contains__(self, value: object) -> bool:
        read = self._read
        if value in read:
            return True
        stored = self._count_stored()
        while len(read) < self._length:
            if self._read_next(stored) == value:
                return True
        return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return self.settle() + other
        tail = (*self.tail, *other)
        return LazySequence(self.domain, self.reader, self.first, tail)


Sequence.register(LazySequence)


@dataclass(frozen=True)
class Option(Domain):
    """None, or a value of another domain."""

    inner: Domain

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """One cell that says whether there is a value, then the value's."""
        return (1, *self.inner.widths)

    def normalise(self, value: Any) -> Any:
        """Return None, or the plain form of the value."""
        return None if value is None else self.inner.normalise(value)

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode None as zeros throughout."""
        if value is None:
            return (0,) * len(self.widths)
        return (1, *self.inner.encode(value))

    def draw(self, chance: Random) -> Any:
        """Return None or any value."""
        return None if chance.random() < 1 / 2 else self.inner.draw(chance)

    def draw_unread(self, reader: Reader, first: int, read: Set[int], chance: Random) -> Cells:
        """Draw the value where it was only read that there is one."""
        if first not in read:
            return Domain.draw_unread(self, reader, first, read, chance)
        return self.inner.draw_unread(reader, first + 1, read, chance) if reader.read(first) else {}

    def read(self, reader: Reader, first: int) -> Any:
        """Read whether there is a value, and then the value."""
        return self.inner.read(reader, first + 1) if reader.read(first) else None

    def write(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Write the mark and the value, or zeros."""
        if value is None:
            return Domain.write(self, reader, first, value)
        return {first: 1, **self.inner.write(reader, first + 1, value)}


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

    def write(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Write the values of the keys that differ where the map was made from this very field."""
        if not isinstance(value, LazyMap) or not value.is_of(self, reader, first):
            return Domain.write(self, reader, first, value)
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
class LazyMap(Lazy):
    """A map of a state that is being traced. It answers as a `FrozenMap` does.

    Giving keys other values reads nothing, and which keys there are is known; asking for a value
    reads it.
    """

    __slots__ = ("_read", "changed", "domain", "first", "reader")

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

    def is_of(self, domain: MapOf, reader: Reader, first: int) -> bool:
        """Whether the map was made from this field of this state."""
        return self.first == first and self.reader is reader and self.domain == domain

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
