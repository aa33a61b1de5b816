"""How many different values each field takes among the states reached: coverage of the ranges."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from reassure_explorer.engine.packing import Layout
from reassure_explorer.engine.runs import Run, as_rows

_TABLE_BITS: Final = 20


def count_values(layout: Layout, levels: Iterable[Run]) -> dict[str, int]:
    """Return the number of different values by field, among the states of some levels."""
    seen: dict[str, set[Any]] = {name: set() for name in layout.masks}
    for level in levels:
        for name, masks in layout.masks.items():
            seen[name].update(_find_values(as_rows(level), masks))
    return {name: len(values) for name, values in seen.items()}


def _find_values(rows: Run, masks: dict[int, int]) -> list[Any]:
    """Return the values that some bits of rows have; `masks` says which, by word."""
    if len(masks) == 1:
        ((word, mask),) = masks.items()
        shift = (mask & -mask).bit_length() - 1
        if mask >> shift < 1 << _TABLE_BITS:
            values = (rows[:, word] & np.uint64(mask)) >> np.uint64(shift)
            found: list[int] = np.flatnonzero(np.bincount(values.astype(np.int64))).tolist()
            return found
    bits = rows[:, list(masks)] & np.array(list(masks.values()), dtype=np.uint64)
    return list(set(map(tuple, bits.tolist())))
