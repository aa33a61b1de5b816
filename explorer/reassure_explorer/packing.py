"""Packing: where each cell of each field lies in the words of a packed state.

A packed state is one or more words of 64 bits, never a hash: it can always be unpacked again. Cells
are laid down in the order of the fields; none crosses from one word to the next.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

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
    cells: tuple[Cell, ...] = field(init=False)
    first: dict[str, int] = field(init=False)
    """Number of the first cell of each field."""

    def __post_init__(self) -> None:
        cells: list[Cell] = []
        first: dict[str, int] = {}
        word = shift = 0
        for name, domain in self.model.fields.items():
            first[name] = len(cells)
            for width in domain.widths:
                if shift + width > WORD_BITS:
                    word, shift = word + 1, 0
                cells.append(Cell(word, shift, width))
                shift += width
        object.__setattr__(self, "cells", tuple(cells))
        object.__setattr__(self, "first", first)

    @cached_property
    def words(self) -> int:
        """Number of words of a packed state, at least one."""
        return 1 + max((cell.word for cell in self.cells), default=0)

    @cached_property
    def bits(self) -> int:
        """Number of bits in use."""
        return sum(cell.width for cell in self.cells)

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
        cell = self.cells[number]
        return words[cell.word] >> cell.shift & (1 << cell.width) - 1

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
