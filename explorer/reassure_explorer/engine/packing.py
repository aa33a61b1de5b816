"""Packing: where each cell of each field lies in the words of a packed state.

A packed state is one or more words of 64 bits, never a hash: it can always be unpacked again. Cells
are laid down in the order of the fields, from the most significant bit of the first word on; none
crosses from one word to the next. So neighbours in a sorted run mostly agree in the first fields.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, compress
from operator import is_not
from random import Random
from typing import Any, Final

from reassure_explorer.engine.domains import OutOfRange, Reader
from reassure_explorer.engine.interface import Model, ModelError, make_range_error
from reassure_spec.errors import ReassureError


class EngineError(ReassureError):
    """The derived engine contradicts the plain model, or itself."""


WORD_BITS: Final = 64
MOST_WORDS: Final = 1 << 16
"""A node of a decision diagram has so many bits for the number of a word."""
MOST_KEPT: Final = 1 << 16
"""Values of a field that are remembered with their bits."""
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
        if len(words) > MOST_WORDS:
            raise ModelError(
                f"model {self.model.name}: a state takes {len(words):,} words of {WORD_BITS} bits, "
                f"and the derived engine has room for {MOST_WORDS:,}; take fewer or narrower "
                "fields, or the plain engine"
            )
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
    def masks(self) -> dict[str, dict[int, int]]:
        """For each field the bits that it takes, by word."""
        found: dict[str, dict[int, int]] = {}
        for name, domain in self.model.fields.items():
            masks = found[name] = {}
            for cell in self.cells[self.first[name] : self.first[name] + len(domain.widths)]:
                masks[cell.word] = masks.get(cell.word, 0) | (1 << cell.width) - 1 << cell.shift
        return found

    @cached_property
    def readers(self) -> dict[str, tuple[Callable[[Reader, int], Any], int]]:
        """For each field how it is read, and the number of its first cell."""
        fields = self.model.fields
        return {name: (domain.read, self.first[name]) for name, domain in fields.items()}

    @cached_property
    def _slots(self) -> "tuple[_Slot, ...]":
        return tuple(_Slot(self, name) for name in self.model.fields)

    def pack(self, state: Any) -> Words:
        """Return the packed form of a plain state. Raises RangeError."""
        words = [0] * self.words
        for slot, value in zip(self._slots, state, strict=True):
            try:
                bits = slot.pack(value)
            except OutOfRange as problem:
                name = self.model.name
                raise make_range_error(name, slot.name, problem, "a state", state) from None
            for word, put in bits:
                words[word] |= put
        return tuple(words)

    @cached_property
    def _encoded(self) -> dict[str, dict[Any, Mapping[int, int]]]:
        return {name: {} for name in self.model.fields}

    def encode(self, name: str, value: Any) -> Mapping[int, int]:
        """Return the cells of a field that holds a value, by number. Raises OutOfRange."""
        domain, known = self.model.fields[name], self._encoded[name]
        plain = domain.normalise(value)
        cells = known.get(plain)
        if cells is None:
            cells = _keep(known, plain, dict(enumerate(domain.encode(plain), self.first[name])))
        return cells

    def repack(self, words: Words, before: Any, after: Any, whence: Callable[[], str]) -> Words:
        """Return the packed form of what an action answered in a plain state with this one.

        Values that are the same objects in both are not looked at again. `whence` says in words
        which action it was. Raises RangeError.
        """
        changed = list(words)
        for slot, new in compress(zip(self._slots, after, strict=True), map(is_not, after, before)):
            try:
                slot.change(changed, slot.domain.normalise(new))
            except OutOfRange as problem:
                name = self.model.name
                raise make_range_error(name, slot.name, problem, whence(), after) from None
        return tuple(changed)

    def draw_unread(self, words: Words, read: Set[int], chance: Random) -> Words:
        """Return a packed state that has the same values in the cells read, and any in others."""
        reader, drawn = _PackedCells(self, words), dict[int, int]()
        for name, domain in self.model.fields.items():
            drawn |= domain.draw_unread(reader, self.first[name], read, chance)
        return self.write(words, drawn)

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
        try:
            # Nearly always each field lies in one word, and its value was unpacked before.
            values = [known[words[word] & mask] for known, word, mask in self._unpacked]
        except KeyError:
            values = []
        return self.model.state_type._make(values or [slot.unpack(words) for slot in self._slots])

    @cached_property
    def _unpacked(self) -> tuple[tuple[dict[Any, Any], int, int], ...]:
        """For each field the values by their bits, with the word and the mask of these.

        Nothing at all where the bits of some field lie in several words.
        """
        if not all(slot.is_alone for slot in self._slots):
            return ()
        return tuple((slot.unpacked, slot.word, slot.mask) for slot in self._slots)


_Bits = tuple[tuple[int, int], ...]
"""Bits of one field, shifted to their place, with the word that they are in."""


@dataclass(frozen=True, slots=True)
class _PackedCells:
    """Reads cells of a packed state."""

    layout: Layout
    words: Words

    def read(self, cell: int) -> int:
        return self.layout.read_cell(self.words, cell)


class _Slot:
    """One field in packed states. Values are remembered; a new one has to come back the same."""

    def __init__(self, layout: Layout, name: str) -> None:
        self.name, self.domain = name, layout.model.fields[name]
        first = layout.first[name]
        self._cells = layout.cells[first : first + len(self.domain.widths)]
        self._masks = tuple(layout.masks[name].items())
        self.is_alone = len(self._masks) < 2
        """Whether no two words hold its bits."""
        self.word, self.mask = self._masks[0] if len(self._masks) == 1 else (0, 0)
        self._packed: dict[Any, _Bits] = {}
        self.unpacked: dict[Any, Any] = {}

    def pack(self, value: Any) -> _Bits:
        """Return the bits of a value. Raises OutOfRange."""
        known = self._packed.get(value)
        if known is None:
            words = {word: 0 for word, _ in self._masks}
            cells = self.domain.encode(self.domain.normalise(value))
            for cell, number in zip(self._cells, cells, strict=True):
                words[cell.word] |= number << cell.shift
            again = self.domain.decode(cells)
            if again != value:
                raise EngineError(f"field {self.name}: {value!r} is packed, and is then {again!r}")
            known = _keep(self._packed, value, tuple(words.items()))
        return known

    def change(self, words: list[int], value: Any) -> None:
        """Write another value into the words of a state. Raises OutOfRange."""
        for (word, put), (_, mask) in zip(self.pack(value), self._masks, strict=True):
            words[word] = words[word] & ~mask | put

    def unpack(self, words: Words) -> Any:
        """Return the value in a packed state."""
        bits: Any = words[self.word] & self.mask
        if not self.is_alone:
            bits = tuple([words[word] & mask for word, mask in self._masks])
        try:
            return self.unpacked[bits]
        except KeyError:
            cells = [words[cell.word] >> cell.shift & (1 << cell.width) - 1 for cell in self._cells]
            return _keep(self.unpacked, bits, self.domain.decode(cells))


def _keep(known: dict[Any, Any], key: Any, value: Any) -> Any:
    """Remember a value that was worked out, and answer it."""
    if len(known) >= MOST_KEPT:
        known.clear()
    known[key] = value
    return value
