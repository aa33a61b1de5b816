"""How many different values each field takes among the states reached: coverage of the ranges."""

from typing import Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.packing import Layout
from reassure_explorer.runs import Run, as_rows

_TABLE_BITS: Final = 20


class FieldValues:
    """Collects the values of every field."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._tables: dict[str, npt.NDArray[np.bool_]] = {}
        self._sets: dict[str, set[tuple[int, ...]]] = {}

    def add(self, run: Run) -> None:
        """Take note of the values in these states."""
        rows = as_rows(run)
        for name, domain in self._layout.model.fields.items():
            first = self._layout.first[name]
            cells = self._layout.cells[first : first + len(domain.widths)]
            bits = sum(cell.width for cell in cells)
            if len({cell.word for cell in cells}) <= 1 and bits <= _TABLE_BITS:
                table = self._tables.setdefault(name, np.zeros(1 << bits, dtype=np.bool_))
                if cells:
                    column = rows[:, cells[0].word] >> np.uint64(cells[0].shift)
                    table[column & np.uint64((1 << bits) - 1)] = True
                else:
                    table[0] = True
                continue
            masks = np.zeros(self._layout.words, dtype=np.uint64)
            for cell in cells:
                masks[cell.word] |= np.uint64((1 << cell.width) - 1 << cell.shift)
            found = np.unique(rows & masks, axis=0).tolist()
            self._sets.setdefault(name, set()).update(map(tuple, found))

    def count(self) -> dict[str, int]:
        """Return the number of different values by field."""
        counts = {name: int(table.sum()) for name, table in self._tables.items()}
        counts |= {name: len(values) for name, values in self._sets.items()}
        return {name: counts[name] for name in self._layout.model.fields}
