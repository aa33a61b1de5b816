"""What follows from the decisions of a path without asking the solver.

Most questions of a run have one possible answer only: two replicas were found equal, a third
differs from one of them, so it differs from the other. Equalities, orders against plain numbers and
membership in sets are closed under such steps here. What does not follow here may still follow for
the solver, which is then asked. Nothing rests on this: if it were wrong, the certificate, for which
a fresh solver is asked about all paths together, would show a gap.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import z3

Relation = tuple[str, Any, int]
"""`=`, `!=`, `<` or `<=` with the identities of two terms; `in` with the name of a set and one."""

_TURNED: Final = {">": "<", ">=": "<="}
_READ: Final = {
    z3.Z3_OP_EQ: "=",
    z3.Z3_OP_LT: "<",
    z3.Z3_OP_LE: "<=",
    z3.Z3_OP_GT: ">",
    z3.Z3_OP_GE: ">=",
}


def relate(name: str, left: int, right: int) -> Relation:
    """Return the relation that an operator states, with the smaller side first."""
    return (_TURNED[name], right, left) if name in _TURNED else (name, left, right)


@dataclass(slots=True)
class Facts:
    """Equal terms in classes, with what is known of each class."""

    numbers: dict[int, int] = field(default_factory=dict)
    """Plain numbers by the identity of their term."""
    parents: dict[int, int] = field(default_factory=dict)
    apart: list[tuple[int, int]] = field(default_factory=list)
    low: dict[int, int] = field(default_factory=dict)
    high: dict[int, int] = field(default_factory=dict)
    members: list[tuple[str, int, bool]] = field(default_factory=list)

    def copy(self) -> "Facts":
        """Return facts of their own that begin with these; the plain numbers are shared."""
        return replace(
            self,
            parents=dict(self.parents),
            apart=list(self.apart),
            low=dict(self.low),
            high=dict(self.high),
            members=list(self.members),
        )

    def find(self, term: int) -> int:
        """Return what stands for the class of a term."""
        while (parent := self.parents.get(term, term)) != term:
            term = parent
        return term

    def _low(self, root: int) -> int | None:
        return self.numbers.get(root, self.low.get(root))

    def _high(self, root: int) -> int | None:
        return self.numbers.get(root, self.high.get(root))

    def learn(self, relation: Relation, holds: bool) -> None:
        """Take in that a relation holds, or that it does not."""
        name, first, second = relation
        if name == "!=":
            self.learn(("=", first, second), not holds)
        elif name == "in":
            self.members.append((first, second, holds))
        elif name == "=":
            if holds:
                self._merge(self.find(first), self.find(second))
            else:
                self.apart.append((first, second))
        elif holds:
            self._order(self.find(first), self.find(second), 1 if name == "<" else 0)
        else:
            # Not below is the other way round, and the strictness with it.
            self._order(self.find(second), self.find(first), 0 if name == "<" else 1)

    def _merge(self, first: int, second: int) -> None:
        if first == second:
            return
        if first in self.numbers:
            first, second = second, first
        # A plain number always stands for its class.
        self.parents[first] = second
        low, high = self.low.get(first), self.high.get(first)
        if low is not None:
            self.low[second] = max(low, self.low.get(second, low))
        if high is not None:
            self.high[second] = min(high, self.high.get(second, high))

    def _order(self, first: int, second: int, gap: int) -> None:
        """Take in that the first is smaller than the second by `gap` at least."""
        high, low = self._high(second), self._low(first)
        if high is not None:
            self.high[first] = min(high - gap, self.high.get(first, high - gap))
        if low is not None:
            self.low[second] = max(low + gap, self.low.get(second, low + gap))

    def follows(self, relation: Relation) -> bool | None:
        """Return whether a relation holds, None where that does not follow."""
        name, first, second = relation
        if name == "in":
            root = self.find(second)
            known = (h for s, member, h in self.members if s == first and self.find(member) == root)
            return next(known, None)
        left, right = self.find(first), self.find(second)
        if name in ("=", "!="):
            equal = self._equal(left, right)
            return equal if equal is None or name == "=" else not equal
        return self._below(left, right, 1 if name == "<" else 0)

    def _equal(self, left: int, right: int) -> bool | None:
        if left == right:
            return True
        if self._below(left, right, 1) or self._below(right, left, 1):
            return False
        pair = {left, right}
        if any({self.find(a), self.find(b)} == pair for a, b in self.apart):
            return False
        return None

    def _below(self, left: int, right: int, gap: int) -> bool | None:
        if left == right:
            return gap == 0
        low, high = self._low(right), self._high(left)
        if low is not None and high is not None and high + gap <= low:
            return True
        low, high = self._low(left), self._high(right)
        if low is not None and high is not None and high < low + gap:
            return False
        return None

    def assume(self, term: Any) -> None:
        """Take in what a hypothesis states outright; the rest of it is left to the solver."""
        for relation, holds in _read(term, holds=True):
            self.learn(relation, holds)


def _read(term: Any, *, holds: bool) -> Iterator[tuple[Relation, bool]]:
    """Yield the relations that a term states as one of several that all hold."""
    kind = term.decl().kind()
    if kind == z3.Z3_OP_NOT:
        yield from _read(term.arg(0), holds=not holds)
    elif kind == z3.Z3_OP_AND and holds:
        for part in term.children():
            yield from _read(part, holds=True)
    elif kind == z3.Z3_OP_DISTINCT and term.num_args() == 2 and z3.is_int(term.arg(0)):
        yield relate("=", term.arg(0).get_id(), term.arg(1).get_id()), not holds
    elif kind in _READ and z3.is_int(term.arg(0)):
        yield relate(_READ[kind], term.arg(0).get_id(), term.arg(1).get_id()), holds
