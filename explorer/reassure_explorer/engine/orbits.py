"""Tables from which a compiled kernel renames packed states, knowing nothing of the model.

The cells of a field are cut into blocks that can be renamed by themselves: each member of a set,
each entry of a sequence together with the length, a whole value otherwise. Blocks are put together
into chunks of few bits. For each value of a chunk a row of the table holds the bits that it becomes
under each permutation; the image of a state is all these put together.

`SymmetryCheck` holds packed states against their images: what was declared to be alike must be.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import kernels
from reassure_explorer.engine.diagrams import I32, LEAF, MISSING, NO
from reassure_explorer.engine.domains import OutOfRange
from reassure_explorer.engine.interface import ModelError
from reassure_explorer.engine.learner import Learner
from reassure_explorer.engine.packing import Layout
from reassure_explorer.engine.runs import Run
from reassure_explorer.engine.sequence_domain import SequenceOf
from reassure_explorer.engine.set_domain import SetOf
from reassure_explorer.engine.symmetry import (
    Group,
    NotSymmetric,
    Permutation,
    make_check_error,
    make_error,
)

CHUNK_BITS: Final = 10
BLOCK_BITS: Final = 16

Bits = npt.NDArray[np.uint64]


class Tables(NamedTuple):
    """What the kernels take. Arrays without entries stand for a group that changes nothing."""

    starts: npt.NDArray[np.int64]
    """First slice of each chunk, and the number of slices."""
    slices: npt.NDArray[np.int64]
    """For each slice of a chunk: word, shift, width, and the place in the chunk's value."""
    firsts: npt.NDArray[np.int64]
    """First row of each chunk."""
    images: Bits
    """By row, word and permutation the bits that the value becomes."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Cells that are renamed together; `kept` says which of them the images are cut down to."""

    field: str
    cells: tuple[int, ...]
    kept: frozenset[int]
    """Cells, counted from the field's first, that this block decides; all where it is empty."""
    renamed: bool = True
    """Whether values change, not just the field they are in."""


def make_tables(group: Group | None, layout: Layout) -> Tables:
    """Return the tables of a group; empty ones for none, or for one that changes nothing.

    Raises ModelError for a field that is too wide to be renamed.
    """
    if group is None or len(group.permutations) == 1:
        none = np.zeros(1, dtype=np.int64)
        return Tables(none, np.zeros((0, 4), np.int64), none[:0], np.zeros((0, 1, 0), np.uint64))
    starts, slices, firsts, images = [0], [], [0], []
    for chunk in _merge(layout, _list_blocks(group, layout)):
        cells = sorted({cell for block in chunk for cell in block.cells})
        places = {}
        width = 0
        for cell in cells:
            where = layout.cells[cell]
            places[cell] = width
            slices.append((where.word, where.shift, where.width, width))
            width += where.width
        starts.append(len(slices))
        images.append(_make_images(group, layout, chunk, places, width))
        firsts.append(firsts[-1] + (1 << width))
    return Tables(
        np.array(starts, dtype=np.int64),
        np.array(slices, dtype=np.int64),
        np.array(firsts[:-1], dtype=np.int64),
        np.concatenate(images),
    )


def _list_blocks(group: Group, layout: Layout) -> Iterable[_Block]:
    renamed = {name for symmetry in group.model.symmetries for name in symmetry.values}
    for name, domain in group.model.fields.items():
        first, count = layout.first[name], len(domain.widths)
        cells = tuple(range(first, first + count))
        if name not in renamed or isinstance(domain, SetOf):
            changes = name in renamed
            yield from (_Block(name, (cell,), frozenset(), changes) for cell in cells)
        elif isinstance(domain, SequenceOf):
            places = [domain.find_place(0, place) for place in range(domain.longest + 1)]
            length = range(places[0])
            yield _Block(name, cells[: places[0]], frozenset(length))
            for start, end in pairwise(places):
                entry = range(start, end)
                yield _Block(name, tuple(cells[at] for at in (*length, *entry)), frozenset(entry))
        else:
            yield _Block(name, cells, frozenset())


def _merge(layout: Layout, blocks: Iterable[_Block]) -> Iterable[list[_Block]]:
    """Put blocks together, in order, while their cells have few bits."""
    chunk: list[_Block] = []
    cells: set[int] = set()
    for block in blocks:
        wider = cells | set(block.cells)
        if chunk and sum(layout.cells[cell].width for cell in wider) > CHUNK_BITS:
            yield chunk
            chunk, wider = [], set(block.cells)
        chunk, cells = [*chunk, block], wider
    yield chunk


def _make_images(
    group: Group, layout: Layout, chunk: list[_Block], places: dict[int, int], width: int
) -> Bits:
    """Return by value, word and permutation what a chunk becomes."""
    values = np.arange(1 << width, dtype=np.int64)
    shape = (len(values), layout.words, len(group.permutations))
    images: Bits = np.zeros(shape, dtype=np.uint64)
    for block in chunk:
        number = np.zeros(len(values), dtype=np.int64)
        bits = 0
        for cell in block.cells:
            part = layout.cells[cell].width
            number |= (values >> places[cell] & (1 << part) - 1) << bits
            bits += part
        if bits > BLOCK_BITS:
            raise ModelError(
                f"model {group.model.name}: field {block.field} takes {bits} bits, more than "
                f"{BLOCK_BITS}, and cannot be renamed; take a narrower range"
            )
        images |= _rename_block(group, layout, block, bits)[number]
    return images


def _rename_block(group: Group, layout: Layout, block: _Block, bits: int) -> Bits:
    shape = (1 << bits, layout.words, len(group.permutations))
    images: Bits = np.zeros(shape, dtype=np.uint64)
    for number in range(1 << bits):
        values: dict[int, int] = {}
        rest = number
        for cell in block.cells:
            part = layout.cells[cell].width
            values[cell] = rest & (1 << part) - 1
            rest >>= part
        for at, permutation in enumerate(group.permutations):
            for cell, value in _rename_cells(permutation, layout, block, values).items():
                place = layout.cells[cell]
                images[number, place.word, at] |= np.uint64(value << place.shift)
    return images


def _rename_cells(
    permutation: Permutation, layout: Layout, block: _Block, values: dict[int, int]
) -> dict[int, int]:
    """Return the cells that cell values become; none for values that no state has."""
    name, domain = block.field, layout.model.fields[block.field]
    first, target = layout.first[name], layout.first[permutation.find_place(name)]
    if not block.renamed:
        return {target + cell - first: value for cell, value in values.items()}
    cells = [values.get(first + at, 0) for at in range(len(domain.widths))]
    try:
        renamed = domain.encode(permutation.rename_value(name, domain.decode(cells)))
    except (OutOfRange, IndexError):
        return {}
    kept = block.kept or range(len(cells))
    return {target + at: renamed[at] for at in kept}


class SymmetryCheck:
    """Holds packed states against their images under the generators of a group."""

    def __init__(self, engine: Learner, group: Group, tables: Tables) -> None:
        self.engine, self.group, self.model, self.tables = engine, group, engine.model, tables
        self.actions = len(engine.instances)
        self.numbers = {
            (action.name, parameter): n for n, (action, parameter) in enumerate(engine.instances)
        }

    def compare(self, rows: Run) -> None:
        """Raise NotSymmetric where a step or a check differs, naming action, state and field."""
        tables = self.tables
        leaves = self._find_leaves(rows)
        ours = rows.copy()
        kernels.represent(ours, tables)
        for generator in self.group.generators:
            which = self.group.permutations.index(generator)
            images = kernels.permute(rows, tables, which)
            theirs = images.copy()
            kernels.represent(theirs, tables)
            if not np.array_equal(ours, theirs):
                raise NotSymmetric(
                    f"model {self.model.name}: what its symmetries do does not fit together: "
                    "renaming twice is not a renaming. Look at how values are renamed"
                )
            order = [self._get_number(generator, n) for n in range(self.actions)]
            order += range(self.actions, leaves.shape[1])
            renamed = self._find_leaves(images)[:, order]
            self._compare_checks(rows, generator, leaves, renamed)
            for root in range(self.actions):
                self._compare_steps(
                    (rows, images), generator, root, (leaves[:, root], renamed[:, root])
                )

    def _get_number(self, generator: Permutation, root: int) -> int:
        action, parameter = self.engine.instances[root]
        return self.numbers[action.name, generator.rename_parameter(action.name, parameter)]

    def _find_leaves(self, rows: Run) -> I32:
        d = self.engine.diagrams
        leaves: I32 = kernels.find_leaves(rows, d.roots, d.children)
        for i, root in np.argwhere(leaves == MISSING).tolist():
            leaves[i, root] = self.engine.find_leaf(root, tuple(rows[i].tolist()))
        return leaves

    def _compare_checks(
        self,
        rows: Run,
        generator: Permutation,
        leaves: I32,
        renamed: I32,
    ) -> None:
        differ = np.argwhere(leaves[:, self.actions :] != renamed[:, self.actions :])
        if len(differ):
            i, c = differ[0].tolist()
            state = self.engine.layout.unpack(tuple(rows[i].tolist()))
            name = self.engine.diagrams.names[self.actions + c].removeprefix("check ")
            raise make_check_error(generator, name, state)

    def _compare_steps(
        self,
        rows: tuple[Run, Run],
        generator: Permutation,
        root: int,
        leaves: tuple[I32, I32],
    ) -> None:
        which = self.group.permutations.index(generator)
        (ours, expected), (theirs, found) = map(self._list_steps, rows, leaves)
        expected = kernels.permute(expected, self.tables, which)
        lists = [
            Counter(zip(owners.tolist(), map(tuple, afters.tolist()), strict=True))
            for owners, afters in ((ours, expected), (theirs, found))
        ]
        if lists[0] == lists[1]:
            return
        lacking, beyond = lists[0] - lists[1], lists[1] - lists[0]
        i = min(owner for owner, _ in (*lacking, *beyond))
        layout, (action, parameter) = self.engine.layout, self.engine.instances[root]
        one, other = (
            next((layout.unpack(after) for owner, after in some if owner == i), None)
            for some in (lacking, beyond)
        )
        state = layout.unpack(tuple(rows[0][i].tolist()))
        there = action.describe(generator.rename_parameter(action.name, parameter))
        raise make_error(generator, f"{action.describe(parameter)} in {state}", there, one, other)

    def _list_steps(self, rows: Run, leaves: I32) -> tuple[npt.NDArray[np.int64], Run]:
        """Return all successors of rows by one root, and for each the number of its row."""
        d = self.engine.diagrams
        at = np.flatnonzero(leaves < LEAF - NO)
        numbers = LEAF - leaves[at].astype(np.int64)
        owners, afters = [at], [(rows[at] & ~d.clear[numbers]) | d.put[numbers]]
        while len(numbers := d.more[numbers]):
            at, numbers = at[numbers > 0], numbers[numbers > 0]
            owners.append(at)
            afters.append((rows[at] & ~d.clear[numbers]) | d.put[numbers])
        return np.concatenate(owners), np.concatenate(afters)
