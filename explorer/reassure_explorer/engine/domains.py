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
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
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
        if isinstance(value, LazyParts) and value.is_of(self, reader, first):
            return self.write_changes(reader, first, value)
        cells = self.encode(self.normalise(unlazy(value)))
        return {first + at: cell for at, cell in enumerate(cells)}

    def write_changes(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Return the cells in which a value differs that was made from this very field."""
        raise NotImplementedError


class Lazy:
    """What is read when it is asked for, and stands for a plain value."""

    __slots__ = ()

    def settle(self) -> Any:
        """Return the plain value; all of it is read."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self.settle(), name)


class LazyParts(Lazy):
    """A value of several cells, some of which were read or are to be changed."""

    __slots__ = ("domain", "first", "reader")
    domain: Any
    reader: Reader
    first: int

    def is_of(self, domain: Domain, reader: Reader, first: int) -> bool:
        """Whether the value was made from this field of this state."""
        return self.first == first and self.reader is reader and self.domain == domain


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


def Flag() -> Choice:  # noqa: N802  (stands among the domains, which are classes)
    """Return the domain of True and False."""
    return Choice((False, True))
