"""Packing: where each cell of each field lies in the words of a packed state.

A packed state is one or more words of 64 bits, never a hash: it can always be unpacked again. Cells
are laid down in the order of the fields, from the most significant bit of the first word on; none
crosses from one word to the next. So neighbours in a sorted run mostly agree in the first fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

from reassure_explorer.domains import Reader
from reassure_explorer.interface import Model

WORD_BITS: Final = 64
Words = tuple[int, ...]
"""A packed state."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Place of one cell."""

    word: int
    shift: int
    width: int


@dataclass(frozen=True)
class Layout:
    """The places of a model's cells."""

    model: Model
    order: tuple[str, ...] = ()
    """Fields in the order in which they are laid down; the model's own where it is not given."""
    cells: tuple[Cell, ...] = field(init=False)
    """Cells by number; the cells of a field are numbered one after the other."""
    first: dict[str, int] = field(init=False)
    """Number of the first cell of each field."""

    def __post_init__(self) -> None:
        words: list[list[tuple[str, int]]] = [[]]
        room = WORD_BITS
        for name in self.order or self.model.fields:
            for width in self.model.fields[name].widths:
                if width > room:
                    words.append([])
                    room = WORD_BITS
                words[-1].append((name, width))
                room -= width
        placed: dict[str, list[Cell]] = {name: [] for name in self.model.fields}
        for word, cells in enumerate(words):
            shift = sum(width for _, width in cells)
            for name, width in cells:
                shift -= width
                placed[name].append(Cell(word, shift, width))
        numbered = tuple(cell for cells in placed.values() for cell in cells)
        ends = list(accumulate(map(len, placed.values()), initial=0))
        object.__setattr__(self, "cells", numbered)
        object.__setattr__(self, "first", dict(zip(placed, ends, strict=False)))

    @cached_property
    def words(self) -> int:
        """Number of words of a packed state, at least one."""
        return 1 + max((cell.word for cell in self.cells), default=0)

    @cached_property
    def bits(self) -> int:
        """Number of bits in use."""
        return sum(cell.width for cell in self.cells)

    @cached_property
    def places(self) -> tuple[tuple[int, int, int], ...]:
        """Word, shift and mask of each cell."""
        return tuple((cell.word, cell.shift, (1 << cell.width) - 1) for cell in self.cells)

    @cached_property
    def readers(self) -> dict[str, tuple[Callable[[Reader, int], Any], int]]:
        """For each field how it is read, and the number of its first cell."""
        fields = self.model.fields
        return {name: (domain.read, self.first[name]) for name, domain in fields.items()}

    def pack(self, state: Any, whence: str = "a state") -> Words:
        """Return the packed form of a plain state. Raises RangeError."""
        self.model.check_range(state, whence)
        words = [0] * self.words
        for name, domain in self.model.fields.items():
            for at, value in enumerate(domain.encode(getattr(state, name)), self.first[name]):
                cell = self.cells[at]
                words[cell.word] |= value << cell.shift
        return tuple(words)

    def read_cell(self, words: Words, number: int) -> int:
        """Return the value of one cell."""
        word, shift, mask = self.places[number]
        return words[word] >> shift & mask

    def write(self, words: Words, values: Mapping[int, int]) -> Words:
        """Return a packed state with other values in some cells."""
        changed = list(words)
        for number, value in values.items():
            cell = self.cells[number]
            changed[cell.word] &= ~((1 << cell.width) - 1 << cell.shift)
            changed[cell.word] |= value << cell.shift
        return tuple(changed)

    def unpack(self, words: Words) -> Any:
        """Return the plain state that was packed."""
        values = [self.read_cell(words, number) for number in range(len(self.cells))]
        fields = self.model.fields
        return self.model.state_type(
            **{
                name: domain.decode(
                    values[self.first[name] : self.first[name] + len(domain.widths)]
                )
                for name, domain in fields.items()
            }
        )
