"""Numbers that brokers have, one each: known by who has at least how much."""

from typing import Any

from reassure_proofs.any_size.opaque_brokers import Brokers, Opaque, refuse_all
from reassure_proofs.engine.formula import Truth, implies
from reassure_proofs.engine.symbols import SInt, plain
from reassure_proofs.engine.symex import GaveUp


class NumberColumn:
    """A number for each broker of a list that has nobody twice, in its order."""

    def __init__(self, name: str, brokers: Brokers) -> None:
        self.name = name
        self.brokers = brokers
        self.regions = brokers.regions

    def __getitem__(self, broker: Any) -> "OwnNumber":
        if broker not in self.brokers:
            raise KeyError("a broker that has no number")
        return OwnNumber(self, broker)

    def find_bounds(self) -> tuple[tuple[SInt, int], ...]:
        """Return the bounds that were asked for, with those who have at least so much."""
        found: tuple[tuple[SInt, int], ...] = self.regions.known.get(("column", self.name), ())
        return found

    def find_reaching(self, bound: SInt) -> int:
        """Return those who have at least so much."""
        regions, known = self.regions, self.find_bounds()
        found = next((mask for other, mask in known if other.id == bound.id), None)
        if found is None:
            found = regions.make_atom(f"{self.name} of at least a bound", self.brokers.mask)
            for other, mask in known:
                regions.assume(
                    implies(other <= bound, regions.has_none(found & ~mask)),
                    implies(bound <= other, regions.has_none(mask & ~found)),
                )
            regions.known["column", self.name] = (*known, (bound, found))
        return found


class OwnNumber(SInt):
    """The number of one broker; it is compared, and refuses arithmetic."""

    __slots__ = ("broker", "column")

    def __init__(self, column: NumberColumn, broker: Opaque) -> None:
        self.engine = column.regions.engine
        self.column = column
        self.broker = broker

    def _reaches(self, bound: Any, more: int = 0) -> Truth:
        if isinstance(bound, OwnNumber):
            raise GaveUp("the numbers of two brokers are compared")
        number = bound if isinstance(bound, SInt) else plain(self.engine, bound)
        return self.broker.is_in(self.column.find_reaching(number + more if more else number))

    def __ge__(self, other: Any) -> Truth:
        return self._reaches(other)

    def __gt__(self, other: Any) -> Truth:
        return self._reaches(other, 1)

    def __lt__(self, other: Any) -> Truth:
        return True ^ self._reaches(other)

    def __le__(self, other: Any) -> Truth:
        return True ^ self._reaches(other, 1)

    def __eq__(self, other: Any) -> Truth:
        return self._reaches(other) & (True ^ self._reaches(other, 1))

    def __ne__(self, other: Any) -> Truth:
        return True ^ (self == other)

    __hash__ = SInt.__hash__

    def __repr__(self) -> str:
        return f"<{self.column.name} of a broker>"

    def _refuse(self, *_: object) -> Any:
        raise GaveUp("arithmetic on the number of a broker is not followed")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __abs__ = _refuse
    __bool__ = __index__ = __floordiv__ = __mod__ = __invert__ = __pos__ = _refuse


class Numbers:
    """The numbers of those brokers of a list of whom something holds."""

    def __init__(self, column: NumberColumn, mask: int) -> None:
        self.column = column
        self.mask = mask


for _kind in (NumberColumn, Numbers):
    refuse_all(_kind, "numbers that brokers have", "iter len contains eq lt le gt ge add")


def find_extreme(values: NumberColumn | Numbers, *, least: bool) -> SInt:
    """Return the smallest or the greatest of some numbers, as `min` and `max` do.

    Raises ValueError where there are none.
    """
    column = values if isinstance(values, NumberColumn) else values.column
    mask = values.brokers.mask if isinstance(values, NumberColumn) else values.mask
    regions = column.regions
    if not regions.has_any(mask):
        raise ValueError("there is no number")
    found = regions.make_number("extreme")
    reaching, beyond = column.find_reaching(found), column.find_reaching(found + 1)
    outside = mask & ~reaching if least else mask & beyond
    regions.assume(regions.has_none(outside), regions.has_any(mask & reaching & ~beyond))
    return found
