"""Domains: the finite ranges of a model's fields, cut into cells of a few bits.

A *cell* is the smallest thing that is read or written: at most `CELL_BITS` bits of one word. A
domain says how many cells its values take, turns a value into cell values (`encode`) and back
(`decode`), and reads a value through a reader that notes which cells were looked at (`read`). Sets
and sequences are read lazily, one member or entry at a time, so that a rule that asks whether
broker 3 is alive depends on that one bit and on nothing else.

A value outside its domain is an OutOfRange error; nothing ever wraps around. Every value has
exactly one plain form (`normalise`) and one encoding: cells that a short sequence or an absent
option leaves over are zero.

Values that are read lazily answer as the plain ones do. Either an answer follows from the cells
that were read for it, or all of them were read and the plain value gave it (`unlazy`).
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
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
from typing import Any, Final, Protocol

CELL_BITS: Final = 4
"""A node of a decision diagram has one child for each value of a cell, so cells stay narrow."""


Cells = Mapping[int, int]
"""Values of cells by their number."""


class OutOfRange(ValueError):
    """A value that its domain does not have."""


class Reader(Protocol):
    """Whoever can tell the value of a cell, and may take note that it was asked."""

    def read(self, cell: int) -> int:
        """Return the value of the cell with this number."""


class Domain(ABC):
    """The finite range of a field."""

    @cached_property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """Width in bits of each cell of a value."""

    @abstractmethod
    def normalise(self, value: Any) -> Any:
        """Return the plain form of a value. Raises OutOfRange where the domain has no such."""

    @abstractmethod
    def encode(self, value: Any) -> tuple[int, ...]:
        """Return the cell values of a value in plain form."""

    @abstractmethod
    def draw(self, chance: Random) -> Any:
        """Return any value, in plain form."""

    def draw_unread(self, reader: Reader, first: int, read: Set[int], chance: Random) -> Cells:
        """Return any values for cells that were not read, such that the whole is still a value."""
        cells = range(first, first + len(self.widths))
        if not read.isdisjoint(cells):
            return {}
        return dict(zip(cells, self.encode(self.draw(chance)), strict=True))

    @abstractmethod
    def read(self, reader: Reader, first: int) -> Any:
        """Return the value whose first cell is `first`, looking at as little as will do."""

    def decode(self, cells: Sequence[int]) -> Any:
        """Return the value, plain and complete, that has these cell values."""
        return unlazy(self.read(_Cells(cells), 0))

    def write(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Return the cells to write, by number, so that the field holds the value.

        `reader` reads the state that is changed.
        """
        cells = self.encode(self.normalise(unlazy(value)))
        return {first + at: cell for at, cell in enumerate(cells)}


class Lazy:
    """What is read when it is asked for, and stands for a plain value."""

    __slots__ = ()

    def settle(self) -> Any:
        """Return the plain value; all of it is read."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self.settle(), name)


def unlazy(value: Any) -> Any:
    """Return the plain value that a value read lazily stands for; any other value as it is."""
    return value.settle() if isinstance(value, Lazy) else value


def _delegate(name: str) -> Callable[..., Any]:
    """Return a method that reads all of a value and lets the plain one answer."""
    operators = vars(operator)
    if name.startswith("__r") and f"__{name[3:]}" in operators:
        reflected = operators[f"__{name[3:]}"]
        return lambda self, other: reflected(unlazy(other), self.settle())
    if name in operators:
        binary = operators[name]
        return lambda self, *others: binary(self.settle(), *map(unlazy, others))
    return lambda self, *others: getattr(self.settle(), name)(*map(unlazy, others))


def answer_plainly(*names: str) -> Callable[[type], Any]:
    """Return a decorator: the class answers these methods by reading all of a value."""

    def complete(cls: type) -> type:
        for name in names:
            setattr(cls, name, _delegate(name))
        return cls

    return complete


@dataclass(frozen=True, slots=True)
class _Cells:
    values: Sequence[int]

    def read(self, cell: int) -> int:
        return self.values[cell]


def _split(width: int) -> tuple[int, ...]:
    """Cut a number of bits into cells, the highest bits first."""
    whole, rest = divmod(width, CELL_BITS)
    return ((rest,) if rest else ()) + (CELL_BITS,) * whole


def _cut(number: int, widths: Sequence[int]) -> tuple[int, ...]:
    cells: list[int] = []
    for width in reversed(widths):
        cells.append(number & ((1 << width) - 1))
        number >>= width
    return tuple(reversed(cells))


def _join(reader: Reader, first: int, widths: Sequence[int]) -> int:
    number = 0
    for at, width in enumerate(widths):
        number = number << width | reader.read(first + at)
    return number


@dataclass(frozen=True)
class Int(Domain):
    """Whole numbers from `low` to `high`, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"Int({self.low}, {self.high}) has no value: low is above high")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells of the distance from `low`, highest first; none where there is one value."""
        return _split((self.high - self.low).bit_length())

    def normalise(self, value: Any) -> int:
        """Return a number of the range as an int, no bool and no member of an enum."""
        if not isinstance(value, int) or not self.low <= value <= self.high:
            raise OutOfRange(f"{value!r} is not a whole number from {self.low} to {self.high}")
        return value if type(value) is int else int(value)

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode a number of the range."""
        return _cut(value - self.low, self.widths)

    def draw(self, chance: Random) -> int:
        """Return any number of the range."""
        return chance.randint(self.low, self.high)

    def read(self, reader: Reader, first: int) -> int:
        """Read the number."""
        if self._is_narrow:
            return self.low + reader.read(first)
        return self.low + _join(reader, first, self.widths)

    @cached_property
    def _is_narrow(self) -> bool:
        return len(self.widths) == 1


@dataclass(frozen=True)
class Choice(Domain):
    """One of a few values of any hashable kind: enum members, names, tuples, None."""

    values: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values or len(set(self.values)) != len(self.values):
            raise ValueError(f"a choice needs different values, and at least one: {self.values}")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells of the place of the value among the values."""
        return _split((len(self.values) - 1).bit_length())

    @cached_property
    def places(self) -> Mapping[Hashable, int]:
        """Place of each value among the values."""
        return {value: place for place, value in enumerate(self.values)}

    def normalise(self, value: Any) -> Any:
        """Return the one of the values that is equal."""
        if value not in self.values:
            raise OutOfRange(f"{value!r} is none of {list(self.values)}")
        return self.values[self.places[value]]

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode one of the values."""
        return _cut(self.places[value], self.widths)

    def draw(self, chance: Random) -> Any:
        """Return any of the values."""
        return chance.choice(self.values)

    def read(self, reader: Reader, first: int) -> Any:
        """Read the value."""
        if self._is_narrow:
            return self.values[reader.read(first)]
        return self.values[_join(reader, first, self.widths)]

    @cached_property
    def _is_narrow(self) -> bool:
        return len(self.widths) == 1


def Flag() -> Choice:  # noqa: N802  (stands among the domains, which are classes)
    """Return the domain of True and False."""
    return Choice((False, True))


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
