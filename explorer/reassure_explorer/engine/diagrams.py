"""Decision diagrams that are learned path by path, in arrays that a compiled kernel can walk.

One diagram (root) for each action instance and each check. A node asks for one cell and has a child
for each value of it. A child is a node, `MISSING` where no path has gone yet, or a leaf, which is
`LEAF - n`. A node is one number that says all a kernel needs: the place of its first child, and the
word, shift and width of its cell; so one look in memory leads from a node to the next. Leaf `NO`
says that an action is not possible or a check false, leaf `YES` that a check is true; every other
leaf says which bits of the state to clear and which to set. Where an action may end in several ways
its leaf is the first of a chain, in which each leaf is one way and names the next.

A path can only be learned if it agrees with the paths before it: where two runs read the same
values they must next read the same cell and end the same way. A model for which that is not so is
not a deterministic function of what it reads, and is refused.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine.interface import ModelError
from reassure_explorer.engine.packing import Layout, Words
from reassure_explorer.engine.tracing import Recording, Step

MISSING: Final = -1
LEAF: Final = -2
NO: Final = 0
YES: Final = 1
_FIRST: Final = 32
"""The bit of a node's number where the place of its first child begins."""
_PLACE: Final = (1 << _FIRST) - 1

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class NotDeterministic(ModelError):
    """A function of the model whose answer depends on more than the fields it reads."""


def grow(array: npt.NDArray[Any], size: int, fill: int) -> npt.NDArray[Any]:
    """Return an array with room for `size` entries at least, those that are new filled."""
    if size <= len(array):
        return array
    grown = np.full((max(size, 2 * len(array)), *array.shape[1:]), fill, dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@dataclass(frozen=True, slots=True)
class Arrays:
    """The diagrams at one instant, as a kernel takes them; later learning does not change them."""

    paths: int
    """Paths learned so far."""
    roots: I64
    children: I64
    clear: U64
    put: U64
    more: I64
    widest: int
    """Leaves of the longest chain."""


class Diagrams:
    """The diagrams of a model's action instances and checks.

    `names` describes each root, for messages; the first `actions` roots are action instances, the
    others checks.
    """

    def __init__(self, layout: Layout, names: Sequence[str], actions: int) -> None:
        self.layout, self.names, self.actions = layout, tuple(names), actions
        self.roots: I64 = np.full(len(self.names), MISSING, dtype=np.int64)
        self.children: I64 = np.full(8192, MISSING, dtype=np.int64)
        """Nodes, as first child << 32 | word << 16 | shift << 8 | width of the cell, and leaves."""
        self.clear: U64 = np.zeros((256, layout.words), dtype=np.uint64)
        self.put: U64 = np.zeros((256, layout.words), dtype=np.uint64)
        self.more: I64 = np.zeros(256, dtype=np.int64)
        """For each leaf the next of its chain, 0 where there is none."""
        self.widest = 1
        self.leaves: list[tuple[int, tuple[str, ...]]] = [(-1, ()), (-1, ())]
        """For each leaf: the root it belongs to and the notes of the step."""
        self._written: list[tuple[Words, Words]] = [((), ()), ((), ())]
        """For each leaf the bits to clear and to set, as Python has them."""
        self.paths = 0
        self._places = [cell.word << 16 | cell.shift << 8 | cell.width for cell in layout.cells]
        """The lower half of a node's number, by the cell that it asks for."""
        self._used = 0
        self._known_leaves: dict[tuple[Any, ...], int] = {}

    def freeze(self) -> Arrays:
        """Return the diagrams as they are now.

        Roots and children are changed in place when a path is learned, so they are copied: a kernel
        in another thread would come to nodes and leaves that its other arrays do not have. These
        only ever grow, and what is there stays.
        """
        children = self.children[: self._used].copy()
        roots = self.roots.copy()
        return Arrays(self.paths, roots, children, self.clear, self.put, self.more, self.widest)

    def keep(self) -> dict[str, Any]:
        """Return all that was learned, as arrays that can be written and read again."""
        owners, notes = zip(*self.leaves, strict=True)
        count = len(owners)
        return {
            "roots": self.roots,
            "children": self.children[: self._used],
            "clear": self.clear[:count],
            "put": self.put[:count],
            "more": self.more[:count],
            "owners": np.array(owners, dtype=np.int64),
            "notes": json.dumps(notes),
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Take over what diagrams of the same roots and the same layout learned."""
        self.roots, self.children = kept["roots"], kept["children"]
        self._used = len(self.children)
        self.clear, self.put, self.more = kept["clear"], kept["put"], kept["more"]
        notes = map(tuple, json.loads(str(kept["notes"])))
        self.leaves = list(zip(kept["owners"].tolist(), notes, strict=True))
        clear, put = (map(tuple, bits.tolist()) for bits in (self.clear, self.put))
        self._written = list(zip(clear, put, strict=True))
        self._known_leaves = {
            (root, (*self._written[leaf], notes), self.more.item(leaf)): leaf
            for leaf, (root, notes) in enumerate(self.leaves)
            if root >= 0
        }
        chains = (self.list_chain(LEAF - leaf) for leaf in range(len(self.leaves)))
        self.widest = max(1, *map(len, chains))

    def walk(self, root: int, words: Words) -> int:
        """Return the leaf (`LEAF - n`) that a state comes to, or MISSING."""
        at, children = self.roots.item(root), self.children
        while at >= 0:
            value = words[at >> 16 & 65535] >> (at >> 8 & 255) & (1 << (at & 255)) - 1
            at = children.item((at >> _FIRST) + value)
        return at

    def list_cells(self, root: int, words: Words) -> set[int]:
        """Return the cells that are asked for on the way of a state."""
        cells: set[int] = set()
        at = self.roots.item(root)
        while at >= 0:
            cell = self._places.index(at & _PLACE)
            cells.add(cell)
            at = self.children.item((at >> _FIRST) + self.layout.read_cell(words, cell))
        return cells

    def learn(self, root: int, path: Recording) -> int:
        """Add a path and return its leaf. Raises NotDeterministic where it contradicts another."""
        self.paths += 1
        slot, places, children = -1, self._places, self.children
        at = self.roots.item(root)
        for cell, value in path.reads:
            if at == MISSING:
                at = self._add_node(cell)
                self._link(root, slot, at)
                children = self.children
            if at < 0 or at & _PLACE != places[cell]:
                raise self._contradiction(root, path)
            slot = (at >> _FIRST) + value
            at = children.item(slot)
        leaf = self._find_leaf(root, path)
        if at == MISSING:
            self._link(root, slot, leaf)
        elif at != leaf:
            raise self._contradiction(root, path)
        return leaf

    def _contradiction(self, root: int, path: Recording) -> NotDeterministic:
        return NotDeterministic(
            f"model {self.layout.model.name}: {self.names[root]} read the same values twice and "
            f"then did not do the same (cells {[cell for cell, _ in path.reads]}): it depends on "
            "more than the fields of the state. Look for globals, random numbers, clocks, or a "
            "value that is kept between calls"
        )

    def _link(self, root: int, slot: int, child: int) -> None:
        if slot < 0:
            self.roots[root] = child
        else:
            self.children[slot] = child

    def _add_node(self, cell: int) -> int:
        place = self._places[cell]
        first, self._used = self._used, self._used + (1 << (place & 255))
        self.children = grow(self.children, self._used, MISSING)
        return first << _FIRST | place

    def _find_leaf(self, root: int, path: Recording) -> int:
        if not path.steps:
            return LEAF - NO
        if root >= self.actions:
            return LEAF - YES
        self.widest = max(self.widest, len(path.steps))
        known = 0
        # In an order of their own: what a model goes over, a set, may come in any.
        for key in sorted(self._make_key(step) for step in path.steps):
            known = self._add_leaf(root, key, known)
        return LEAF - known

    def _make_key(self, step: Step) -> tuple[Words, Words, tuple[str, ...]]:
        """Return the bits to clear and to set, and the notes."""
        clear, put = [0] * self.layout.words, [0] * self.layout.words
        for number, value in step[0].items():
            cell = self.layout.cells[number]
            clear[cell.word] |= (1 << cell.width) - 1 << cell.shift
            put[cell.word] |= value << cell.shift
        return tuple(clear), tuple(put), step[1]

    def _add_leaf(self, root: int, key: tuple[Words, Words, tuple[str, ...]], after: int) -> int:
        """Return the number of the leaf that is followed by another one, 0 for none."""
        known = self._known_leaves.get((root, key, after))
        if known is None:
            known = self._known_leaves[root, key, after] = len(self.leaves)
            clear, put, notes = key
            self.clear = grow(self.clear, known + 1, 0)
            self.put = grow(self.put, known + 1, 0)
            self.more = grow(self.more, known + 1, 0)
            self.clear[known] = np.array(clear, dtype=np.uint64)
            self.put[known] = np.array(put, dtype=np.uint64)
            self.more[known] = after
            self.leaves.append((root, notes))
            self._written.append((clear, put))
        return known

    def list_chain(self, leaf: int) -> list[int]:
        """Return the numbers of the leaves of the chain that begins with a leaf (`LEAF - n`)."""
        chain = [LEAF - leaf] if leaf < LEAF - NO else []
        while chain and (after := self.more.item(chain[-1])):
            chain.append(after)
        return chain

    def count_widths(self) -> list[int]:
        """Return for each action instance the leaves of its longest chain, at least one."""
        widths = [1] * self.actions
        for number, (root, _) in enumerate(self.leaves):
            if root >= 0:
                widths[root] = max(widths[root], len(self.list_chain(LEAF - number)))
        return widths

    def apply(self, number: int, words: Words) -> Words:
        """Return the packed state after the step that a leaf of this number stands for."""
        clear, put = self._written[number]
        return tuple([word & ~c | p for word, c, p in zip(words, clear, put, strict=True)])
