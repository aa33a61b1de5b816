"""Who is in which set: a Venn diagram whose regions have sizes.

An *atom* is a set that code was given or made, or a single named broker. A *mask* is a set put
together of atoms, as its truth table: a bit for each way of being in the atoms or not. The diagram
is divided no further than questions made necessary; each part has a term for its size. Sets of any
size with their sizes are so a matter of linear arithmetic, which the solver decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import z3

from reassure_proofs.engine.formula import Truth
from reassure_proofs.engine.symbols import SInt, plain
from reassure_proofs.engine.symex import GaveUp, PathExplorer, Term

ATOMS_MAX: Final = 14
"""Sets and named brokers on one path; a mask has two to the power of that many bits."""
EVERYWHERE: Final = (1 << (1 << ATOMS_MAX)) - 1


def _make_atom(place: int) -> int:
    """Return the truth table of one atom: in blocks that double with its place."""
    block = ((1 << (1 << place)) - 1) << (1 << place)
    width = 2 << place
    while width < 1 << ATOMS_MAX:
        block |= block << width
        width *= 2
    return block


_MASKS: Final = tuple(_make_atom(place) for place in range(ATOMS_MAX))


@dataclass(slots=True)
class Regions:
    """The diagram of one exploration, as it stands on the path that is run."""

    engine: PathExplorer
    emit: Callable[[Term], None]
    """Takes what is true of sizes by their making."""
    names: tuple[str, ...] = ()
    """The atoms."""
    empty: int = 0
    """What has no members by its making."""
    parts: tuple[tuple[int, Term], ...] = ((EVERYWHERE, z3.Int("brokers")),)
    """Masks that are disjoint and make up everywhere, with their sizes."""
    count: int = 0
    """Numbers made so far, which tells new ones apart."""
    known: dict[object, Any] = field(default_factory=dict)
    """What was made before, by how: asked again, it is the same."""
    fronts: tuple[tuple[object, int, int], ...] = ()
    """Of a list: of those here (a mask) those there (a mask) come first."""

    def save(self) -> "Regions":
        """Return the diagram as it stands."""
        return replace(self, known=dict(self.known))

    def restore(self, saved: "Regions") -> None:
        """Go back to where it stood."""
        for name in ("names", "empty", "parts", "count", "fronts"):
            setattr(self, name, getattr(saved, name))
        self.known = dict(saved.known)

    def make_atom(self, name: str, within: int = EVERYWHERE) -> int:
        """Return a new set, which has members among these only."""
        if len(self.names) == ATOMS_MAX:
            raise GaveUp(f"more than {ATOMS_MAX} sets and named brokers on one path")
        mask = _MASKS[len(self.names)]
        self.names += (name,)
        self.empty |= mask & ~within
        return mask & within

    def make_number(self, name: str) -> SInt:
        """Return a new number."""
        self.count += 1
        return SInt.named(self.engine, f"{name}!{self.count}")

    def clear(self, mask: int) -> int:
        """Return a set without what has no members by its making."""
        return mask & ~self.empty & EVERYWHERE

    def size(self, mask: int) -> SInt:
        """Return how many are in a set."""
        mask = self.clear(mask)
        parts: list[tuple[int, Term]] = []
        for region, size in self.parts:
            inside = region & mask
            outside = self.clear(region & ~mask) if inside else 0
            if outside:
                new = self.make_number("size").term
                self.emit(z3.And(new >= 0, new <= size))
                parts += [(inside, new), (outside, size - new)]
            else:
                parts.append((region, size))
        self.parts = tuple(parts)
        sizes = [size for region, size in parts if region & mask]
        if len(sizes) > 1:
            # A sum of one is printed as what other solvers refuse.
            sizes = [z3.Sum(sizes)]
        return SInt(self.engine, sizes[0]) if sizes else plain(self.engine, 0)

    def has_any(self, mask: int) -> Truth:
        """Return whether anybody is in a set."""
        return self.size(mask) > 0 if self.clear(mask) else False

    def has_none(self, mask: int) -> Truth:
        """Return whether nobody is in a set."""
        return self.size(mask) == 0 if self.clear(mask) else True

    def assume(self, *truths: Truth) -> None:
        """Take as given what is true of something new by its making."""
        for truth in truths:
            if truth is not True:
                self.emit(z3.BoolVal(False) if truth is False else truth.term)
