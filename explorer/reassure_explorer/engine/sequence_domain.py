"""The domain of sequences, and what reads their cells entry by entry."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Final

from reassure_explorer.engine.domains import (
    Cells,
    Domain,
    Int,
    LazyParts,
    OutOfRange,
    Reader,
    answer_plainly,
)
from reassure_explorer.engine.map_domain import MapOf
from reassure_explorer.engine.set_domain import SetOf


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

    def write_changes(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Write only what was added."""
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
class LazySequence(LazyParts):
    """A sequence of a state that is being traced. It answers as a tuple does.

    What was read is kept, so that rules which go over it again and again stay quick.
    """

    __slots__ = ("_length", "_read", "_stored", "tail")

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
