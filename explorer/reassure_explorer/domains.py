"""Domains: the finite ranges of a model's fields, cut into cells of a few bits.

A *cell* is the smallest thing that is read or written: at most `CELL_BITS` bits of one word. A
domain says how many cells its values take, turns a value into cell values (`encode`) and back
(`decode`), and reads a value through a reader that notes which cells were looked at (`read`). Sets
and sequences are read lazily, one member or entry at a time, so that a rule that asks whether
broker 3 is alive depends on that one bit and on nothing else.

A value outside its domain is an OutOfRange error; nothing ever wraps around. Every value has
exactly one encoding: cells that a short sequence or an absent option leaves over are zero.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

CELL_BITS: Final = 4
"""A node of a decision diagram has one child for each value of a cell, so cells stay narrow."""


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
    def encode(self, value: Any) -> tuple[int, ...]:
        """Return the cell values of a value. Raises OutOfRange where the domain has no such."""

    @abstractmethod
    def read(self, reader: Reader, first: int) -> Any:
        """Return the value whose first cell is `first`, looking at as little as will do."""

    def decode(self, cells: Sequence[int]) -> Any:
        """Return the value, plain and complete, that has these cell values."""
        return self.settle(self.read(_Cells(cells), 0))

    def settle(self, value: Any) -> Any:
        """Return a value read lazily as the plain value it stands for."""
        return value

    def write(self, first: int, value: Any) -> Mapping[int, int]:
        """Return the cells to write, by number, so that the field holds the value."""
        return {first + at: cell for at, cell in enumerate(self.encode(value))}


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
    if len(widths) == 1:
        return reader.read(first)
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

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode a number of the range."""
        if not isinstance(value, int) or not self.low <= value <= self.high:
            raise OutOfRange(f"{value!r} is not a whole number from {self.low} to {self.high}")
        return _cut(value - self.low, self.widths)

    def read(self, reader: Reader, first: int) -> int:
        """Read the number."""
        return self.low + _join(reader, first, self.widths)


@dataclass(frozen=True)
class Choice(Domain):
    """One of a few values of any hashable kind: enum members, names, tuples, None."""

    values: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise ValueError(f"a choice needs different values, and at least one: {self.values}")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells of the place of the value among the values."""
        return _split((len(self.values) - 1).bit_length())

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode one of the values."""
        if value not in self.values:
            raise OutOfRange(f"{value!r} is none of {list(self.values)}")
        return _cut(self.values.index(value), self.widths)

    def read(self, reader: Reader, first: int) -> Any:
        """Read the value."""
        return self.values[_join(reader, first, self.widths)]


def Flag() -> Choice:  # noqa: N802  (stands among the domains, which are classes)
    """Return the domain of True and False."""
    return Choice((False, True))


@dataclass(frozen=True)
class SetOf(Domain):
    """Sets of some of these members, one bit each."""

    members: tuple[Hashable, ...]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """One cell of one bit for each member."""
        return (1,) * len(self.members)

    @cached_property
    def places(self) -> Mapping[Hashable, int]:
        """Number of the cell of each member."""
        return {member: place for place, member in enumerate(self.members)}

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode a set."""
        strangers = [member for member in value if member not in self.members]
        if strangers:
            raise OutOfRange(f"{strangers[0]!r} is none of {list(self.members)}")
        return tuple(int(member in value) for member in self.members)

    def read(self, reader: Reader, first: int) -> "LazySet":
        """Return a set that reads a member's bit when it is asked for."""
        return LazySet(self, reader, first, {})

    def settle(self, value: Any) -> frozenset[Any]:
        """Return the plain set."""
        return frozenset(value)

    def write(self, first: int, value: Any) -> Mapping[int, int]:
        """Write the members that differ where the set was made from this very field."""
        if isinstance(value, LazySet) and value.first == first and value.domain == self:
            strangers = [m for m, v in value.changed.items() if v and m not in self.places]
            if strangers:
                raise OutOfRange(f"{strangers[0]!r} is none of {list(self.members)}")
            changed = value.changed.items()
            return {first + self.places[m]: int(v) for m, v in changed if m in self.places}
        return Domain.write(self, first, value)


class LazySet:
    """A set of a state that is being traced. It answers as a frozenset does.

    Adding and taking away members reads nothing; asking for one reads its bit.
    """

    __slots__ = ("changed", "domain", "first", "reader")

    def __init__(
        self, domain: SetOf, reader: Reader, first: int, changed: Mapping[Any, bool]
    ) -> None:
        self.domain, self.reader, self.first, self.changed = domain, reader, first, changed

    def __contains__(self, member: object) -> bool:
        if member in self.changed:
            return self.changed[member]
        place = self.domain.places.get(member)
        return place is not None and bool(self.reader.read(self.first + place))

    def __iter__(self) -> Iterator[Any]:
        strangers = [m for m, v in self.changed.items() if v and m not in self.domain.members]
        return (m for m in (*self.domain.members, *strangers) if m in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LazySet | frozenset | set):
            return NotImplemented
        return frozenset(self) == frozenset(other)

    def _changing(self, members: Iterable[Any], present: bool) -> "LazySet":
        changed = {**self.changed, **dict.fromkeys(members, present)}
        return LazySet(self.domain, self.reader, self.first, changed)

    def __or__(self, other: Iterable[Any]) -> "LazySet":
        return self._changing(other, True)

    def __sub__(self, other: Iterable[Any]) -> "LazySet":
        return self._changing(other, False)

    def __and__(self, other: Any) -> "LazySet":
        return self._changing([m for m in self.domain.members if m not in other], False)

    def __ror__(self, other: Iterable[Any]) -> "LazySet":
        return self._changing(other, True)

    def __rand__(self, other: Any) -> "LazySet":
        return self.__and__(other)

    def __rsub__(self, other: Iterable[Any]) -> frozenset[Any]:
        return frozenset(member for member in other if member not in self)

    def __le__(self, other: Any) -> bool:
        return all(member in other for member in self)

    def __ge__(self, other: Iterable[Any]) -> bool:
        return all(member in self for member in other)

    issubset = __le__
    issuperset = __ge__

    def __repr__(self) -> str:
        return repr(frozenset(self))


@dataclass(frozen=True)
class SequenceOf(Domain):
    """Sequences (tuples) of at most `longest` values of one domain of numbers or choices."""

    element: Domain
    longest: int

    def __post_init__(self) -> None:
        if isinstance(self.element, SetOf | SequenceOf) or self.longest < 1:
            raise ValueError("a sequence has at least one place, for numbers, choices or options")

    @cached_property
    def _length(self) -> Int:
        return Int(0, self.longest)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells of the length, then of each place."""
        return (*self._length.widths, *self.element.widths * self.longest)

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode a sequence; places that it does not use are zero."""
        entries = tuple(value)
        if len(entries) > self.longest:
            raise OutOfRange(f"{entries!r} is longer than {self.longest}")
        cells = [*self._length.encode(len(entries))]
        for entry in entries:
            cells += self.element.encode(entry)
        return (*cells, *(0,) * (len(self.widths) - len(cells)))

    def read(self, reader: Reader, first: int) -> "LazySequence":
        """Return a sequence that reads its length and its entries when they are asked for."""
        return LazySequence(self, reader, first, ())

    @cached_property
    def _places(self) -> tuple[int, int]:
        """Number of the first cell of the first place, and cells of a place."""
        return len(self._length.widths), len(self.element.widths)

    def read_length(self, reader: Reader, first: int) -> int:
        """Return the length of the sequence whose first cell is `first`."""
        return self._length.read(reader, first)

    def find_place(self, first: int, place: int) -> int:
        """Return the first cell of a place."""
        start, stride = self._places
        return first + start + place * stride

    def settle(self, value: Any) -> tuple[Any, ...]:
        """Return the plain tuple."""
        return tuple(value)

    def write(self, first: int, value: Any) -> Mapping[int, int]:
        """Write only what was added where the sequence was made from this very field."""
        if not isinstance(value, LazySequence) or value.first != first or value.domain != self:
            return Domain.write(self, first, value)
        if not value.tail:
            return {}
        before = self.read_length(value.reader, first)
        after = before + len(value.tail)
        if after > self.longest:
            raise OutOfRange(f"{tuple(value)!r} is longer than {self.longest}")
        cells = {first + at: cell for at, cell in enumerate(self._length.encode(after))}
        for place, entry in enumerate(value.tail, before):
            cells |= self.element.write(self.find_place(first, place), entry)
        return cells


class LazySequence(Sequence[Any]):
    """A sequence of a state that is being traced. It answers as a tuple does.

    What was read is kept, so that rules which go over it again and again stay quick.
    """

    __slots__ = ("_read", "_stored", "domain", "first", "reader", "tail")

    def __init__(
        self, domain: SequenceOf, reader: Reader, first: int, tail: tuple[Any, ...]
    ) -> None:
        self.domain, self.reader, self.first, self.tail = domain, reader, first, tail
        self._read: list[Any] = []
        """The entries from the start that were read, in the end with the tail."""
        self._stored = -1

    def _count_stored(self) -> int:
        if self._stored < 0:
            self._stored = self.domain.read_length(self.reader, self.first)
        return self._stored

    def __len__(self) -> int:
        return self._count_stored() + len(self.tail)

    def _entry(self, place: int) -> Any:
        return self.domain.element.read(self.reader, self.domain.find_place(self.first, place))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        stored, length = self._count_stored(), len(self)
        place = index + length if index < 0 else index
        if not 0 <= place < length:
            raise IndexError(f"index {index} of a sequence of {length}")
        if place < len(self._read):
            return self._read[place]
        return self._entry(place) if place < stored else self.tail[place - stored]

    def __iter__(self) -> Iterator[Any]:
        stored, length = self._count_stored(), len(self)
        if len(self._read) == length:
            return iter(self._read)
        return self._iterate(stored, length)

    def _iterate(self, stored: int, length: int) -> Iterator[Any]:
        read = self._read
        for place in range(length):
            if place == len(read):
                read.append(self._entry(place) if place < stored else self.tail[place - stored])
            yield read[place]

    def __contains__(self, value: object) -> bool:
        if value in self._read:
            return True
        return len(self._read) < len(self) and any(entry == value for entry in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LazySequence | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: Iterable[Any]) -> "LazySequence":
        return LazySequence(self.domain, self.reader, self.first, (*self.tail, *other))

    def __radd__(self, other: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*other, *self)

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(frozen=True)
class Option(Domain):
    """None, or a value of another domain."""

    inner: Domain

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """One cell that says whether there is a value, then the value's."""
        return (1, *self.inner.widths)

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode None as zeros throughout."""
        if value is None:
            return (0,) * len(self.widths)
        return (1, *self.inner.encode(value))

    def read(self, reader: Reader, first: int) -> Any:
        """Read whether there is a value, and then the value."""
        return self.inner.read(reader, first + 1) if reader.read(first) else None

    def settle(self, value: Any) -> Any:
        """Return None or the plain value."""
        return None if value is None else self.inner.settle(value)

    def write(self, first: int, value: Any) -> Mapping[int, int]:
        """Write the mark and the value, or zeros."""
        if value is None:
            return Domain.write(self, first, value)
        return {first: 1, **self.inner.write(first + 1, value)}
