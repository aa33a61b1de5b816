"""How many different values each field takes among the states reached: coverage of the ranges."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import kernels
from reassure_explorer.engine.packing import Cell, Layout
from reassure_explorer.engine.runs import Run, as_rows

_TABLE_BITS: Final = 20


class FieldValues:
    """Collects the values of every field."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._firsts: dict[str, int] = {}
        self._masks: dict[str, npt.NDArray[np.uint64]] = {}
        """For fields that are too wide for a table the bits of each word."""
        self._sets: dict[str, set[tuple[int, ...]]] = {}
        places: list[tuple[int, int, int, int]] = []
        size = 0
        for name, domain in layout.model.fields.items():
            first = layout.first[name]
            cells = layout.cells[first : first + len(domain.widths)]
            bits = sum(cell.width for cell in cells)
            if len({cell.word for cell in cells}) == 1 and bits <= _TABLE_BITS:
                places.append((cells[0].word, cells[-1].shift, (1 << bits) - 1, size))
                self._firsts[name], size = size, size + (1 << bits)
            else:
                self._masks[name] = _make_masks(cells, layout.words)
                self._sets[name] = set()
        columns = list(zip(*places, strict=True)) or [(), (), (), ()]
        kinds = (np.int64, np.uint64, np.uint64, np.int64)
        self._places = [np.array(c, dtype=kind) for c, kind in zip(columns, kinds, strict=True)]
        self._seen = np.zeros(size, dtype=np.bool_)

    def add(self, run: Run) -> None:
        """Take note of the values in these states."""
        words, shifts, masks, firsts = self._places
        kernels.count_values(run, words, shifts, masks, firsts, self._seen)
        rows = as_rows(run)
        for name, masks in self._masks.items():
            found = np.unique(rows & masks, axis=0).tolist()
            self._sets[name].update(map(tuple, found))

    def count(self) -> dict[str, int]:
        """Return the number of different values by field."""
        ends = [*list(self._firsts.values())[1:], len(self._seen)]
        counts = {
            name: int(self._seen[first:end].sum())
            for (name, first), end in zip(self._firsts.items(), ends, strict=bool(self._firsts))
        }
        counts |= {name: len(values) for name, values in self._sets.items()}
        return {name: counts[name] for name in self._layout.model.fields}


def _make_masks(cells: Sequence[Cell], words: int) -> npt.NDArray[np.uint64]:
    masks = np.zeros(words, dtype=np.uint64)
    for cell in cells:
        masks[cell.word] |= np.uint64((1 << cell.width) - 1 << cell.shift)
    return masks
