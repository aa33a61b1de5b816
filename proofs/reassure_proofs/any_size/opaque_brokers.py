"""Brokers, and lists and sets of any number of them, as code meets them in place of plain ones."""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NoReturn

import z3

from reassure_proofs.any_size.regions import EVERYWHERE, Regions
from reassure_proofs.engine.formula import Truth, implies, negate
from reassure_proofs.engine.symbols import SBool, SInt, plain
from reassure_proofs.engine.symex import GaveUp
from reassure_spec.znodes import NO_LEADER

# A broker -------------------------------------------------------------------------------------


class Opaque:
    """A broker: it can be compared with another one and looked for, and nothing else."""

    __slots__ = ("regions",)
    regions: Regions

    def is_in(self, mask: int) -> Truth:
        """Return whether it is in a set."""
        raise NotImplementedError

    def __eq__(self, other: object) -> Any:
        if other is None or other is self:
            return other is self
        if isinstance(other, int) and not isinstance(other, bool) and other == NO_LEADER:
            return self.is_in(find_nobody(self.regions).mask)
        if isinstance(other, Broker):
            return self.is_in(other.mask)
        if isinstance(other, AnyMember) and isinstance(self, Broker):
            return other.is_in(self.mask)
        raise GaveUp(f"a broker is compared with {_name(other)}; it is opaque")

    def __ne__(self, other: object) -> Any:
        return True ^ (self == other)

    def __lt__(self, other: object) -> Any:
        if type(other) is int and other == 0:
            return self.is_in(find_negative(self.regions))
        raise GaveUp("lt of a broker, which is opaque, with anything but 0, or ge of one")

    def __ge__(self, other: object) -> Any:
        return True ^ (self < other)


def _name(value: object) -> str:
    if isinstance(value, AnyMember):
        return "another member of a list that is gone through"
    return f"the literal {value}" if isinstance(value, int | str) else f"a {type(value).__name__}"


def _refuse(name: str, what: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise GaveUp(f"{name} of {what}")

    return refuse


def refuse_all(kind: type, what: str, names: str) -> None:
    """Refuse operators by name."""
    for name in names.split():
        setattr(kind, f"__{name}__", _refuse(name, what))


refuse_all(
    Opaque,
    "a broker, which is opaque: it has neither order, arithmetic, hash nor place",
    "le gt add radd sub rsub mul rmul mod rmod floordiv rfloordiv truediv rtruediv neg pos "
    "abs invert index int float bool hash and rand or ror xor rxor lshift rshift pow divmod",
)


class Broker(Opaque):
    """A broker with a name of its own."""

    __slots__ = ("mask",)

    def __init__(self, regions: Regions, mask: int) -> None:
        self.regions = regions
        self.mask = mask

    def is_in(self, mask: int) -> Truth:
        """Return whether it is in a set."""
        return self.regions.has_any(self.mask & mask)


def make_broker(regions: Regions, name: str, within: int = EVERYWHERE) -> Broker:
    """Return a new named broker, which is one of these."""
    broker = Broker(regions, regions.make_atom(name, within))
    regions.assume(regions.size(broker.mask) == 1)
    return broker


def find_nobody(regions: Regions) -> Broker:
    """Return what stands where there is no leader: a broker like any other, for all that is known.

    It has to be there before the paths divide.
    """
    found: Broker | None = regions.known.get(NO_LEADER)
    if found is None:
        found = regions.known[NO_LEADER] = make_broker(regions, "NO_LEADER")
    return found


def find_negative(regions: Regions) -> int:
    """Return those whose numbers are negative, which are no brokers; nobody is among them."""
    found: int | None = regions.known.get("negative")
    if found is None:
        found = regions.known["negative"] = regions.make_atom("negative numbers")
        regions.empty |= find_nobody(regions).mask & ~found
    return found


class AnyMember(Opaque):
    """Any one member of a set: it answers differently in different regions, all of which count."""

    __slots__ = ("_tree",)

    def __init__(self, regions: Regions, tree: "_Tree") -> None:
        self.regions = regions
        self._tree = tree

    def is_in(self, mask: int) -> bool:
        """Return whether it is in a set, in the region that is looked at."""
        return self._tree.ask(mask)


class _Tree:
    """The answers that a generic member has given, to visit all of them."""

    def __init__(self) -> None:
        self.here = 0
        self.cursor = 0
        self.trail: list[tuple[bool, bool]] = []
        """Answers, and whether the other one is still to be visited."""
        self.open = True

    def ask(self, mask: int) -> bool:
        if not self.open:
            raise GaveUp("a member of a list is used after the list was gone through")
        if not self.here & mask or not self.here & ~mask:
            return bool(self.here & mask)
        if self.cursor == len(self.trail):
            self.trail.append((True, True))
        answer = self.trail[self.cursor][0]
        self.cursor += 1
        self.here &= mask if answer else ~mask
        return answer

    def turn(self) -> bool:
        while self.trail and not self.trail[-1][1]:
            self.trail.pop()
        if self.trail:
            self.trail[-1] = (not self.trail[-1][0], False)
        self.open = bool(self.trail)
        return self.open


def tell_apart(
    regions: Regions, mask: int, ask: Callable[[AnyMember], Any]
) -> Iterator[tuple[int, Any]]:
    """Yield every region of a set that a question tells apart, with the answer there."""
    tree, mask = _Tree(), regions.clear(mask)
    while mask:
        tree.here, tree.cursor = mask, 0
        answer = ask(AnyMember(regions, tree))
        yield tree.here, answer
        if not tree.turn():
            return


def select(regions: Regions, mask: int, holds: Callable[[AnyMember], Any]) -> int:
    """Return those of a set of which something holds."""
    found = 0
    for region, answer in tell_apart(regions, mask, holds):
        found |= region if answer else 0
    return found


def join_masks(masks: Iterable[int]) -> int:
    """Return who is in any of some sets."""
    return reduce(operator.or_, masks, 0)


class MemberPlace:
    """Where a generic member of a list stands."""

    def __init__(self, brokers: "Brokers") -> None:
        self.brokers = brokers


class BeforeMember:
    """What stands before a generic member: that one too where it is there for a second time."""

    def __init__(self, brokers: "Brokers") -> None:
        self.brokers = brokers

    def __contains__(self, member: Any) -> bool:
        return bool(member.is_in(self.brokers.find_repeated()))


# Lists and sets ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a list in the order of a list that it was taken of."""

    origin: object
    """What tells that list from others."""
    mask: int
    """Who is in it."""
    length: SInt
    distinct: bool
    """Whether nobody is in it twice, by its making."""


class Brokers:
    """A set or a list of any number of brokers."""

    __slots__ = ("is_set", "regions", "segments")

    def __init__(self, regions: Regions, segments: tuple[Segment, ...], *, is_set: bool) -> None:
        self.regions = regions
        self.segments = segments
        self.is_set = is_set

    @property
    def mask(self) -> int:
        """Return who is in it."""
        return join_masks(each.mask for each in self.segments)

    def count(self) -> SInt:
        """Return its length."""
        if self.is_set:
            return self.regions.size(self.mask)
        found = plain(self.regions.engine, 0)
        for each in self.segments:
            found = found + each.length
        return found

    def holds(self, broker: Any) -> Truth:
        """Return whether a broker is in it."""
        if isinstance(broker, int) and not isinstance(broker, bool) and broker == NO_LEADER:
            broker = find_nobody(self.regions)
        if not isinstance(broker, Opaque):
            raise GaveUp(f"{_name(broker)} is looked for among brokers; they are opaque")
        return broker.is_in(self.mask)

    def is_distinct(self) -> Truth:
        """Return whether nobody is in it twice."""
        return self.count() == self.regions.size(self.mask)

    def find_repeated(self) -> int:
        """Return those who are in it more than once."""
        regions = self.regions
        key = ("repeated", *((each.origin, each.mask) for each in self.segments))
        if key not in regions.known:
            found = regions.known[key] = regions.make_atom("repeated", self.mask)
            regions.assume(regions.has_none(found) ^ negate(self.is_distinct()))
        return int(regions.known[key])

    def narrow(self, holds: Callable[[AnyMember], Any]) -> "Brokers":
        """Return those of which something holds, in their order."""
        left = (self._cut(each, select(self.regions, each.mask, holds)) for each in self.segments)
        return Brokers(self.regions, tuple(left), is_set=self.is_set)

    def _cut(self, whole: Segment, mask: int) -> Segment:
        regions = self.regions
        if mask == regions.clear(whole.mask):
            return whole
        size = regions.size(mask)
        if whole.distinct or self.is_set:
            return Segment(whole.origin, mask, size, distinct=True)
        length = regions.make_number("length")
        regions.assume(
            length >= size,
            length - size <= whole.length - regions.size(whole.mask),
            implies(size == 0, length == 0),
        )
        return Segment(whole.origin, mask, length, distinct=False)

    def first(self, mask: int) -> Broker:
        """Return the first of those in a set, of whom there are some."""
        if self.is_set:
            raise GaveUp("the first of a set is taken; a set has no order")
        *earlier, last = self.segments
        chosen = next((e for e in earlier if self.regions.has_any(e.mask & mask)), last)
        return self._first_of(chosen.origin, self.regions.clear(chosen.mask & mask))

    def _first_of(self, origin: object, among: int) -> Broker:
        regions, key = self.regions, ("first", origin, among)
        if key not in regions.known:
            broker = make_broker(regions, f"first of {origin}", among)
            for other, here, there in regions.fronts:
                if other == origin:
                    # Whoever comes first of all comes first of any of them.
                    mine = regions.has_any(there & among)
                    theirs = broker.is_in(here)
                    both = mine & theirs
                    regions.assume(implies(both, broker.is_in(there)))
            regions.fronts += ((origin, among, broker.mask),)
            regions.known[key] = broker
        found: Broker = regions.known[key]
        return found

    def __getitem__(self, place: object) -> Any:
        if isinstance(place, slice):
            if (place.start, place.stop, place.step) == (None, None, -1):
                return self._reverse()
            if isinstance(place.stop, MemberPlace) and place.stop.brokers is self:
                return BeforeMember(self)
            if place.start is None and place.step is None:
                return self._start(place.stop)
        elif isinstance(place, int) and place in (0, -1):
            if not self:
                raise IndexError("tuple index out of range")
            return (self if place == 0 else self._reverse()).first(self.mask)
        raise GaveUp("a list of any number of brokers is indexed other than at its ends")

    def _reverse(self) -> "Brokers":
        turned = (replace(each, origin=("reversed", each.origin)) for each in self.segments[::-1])
        return Brokers(self.regions, tuple(turned), is_set=self.is_set)

    def _start(self, stop: Any) -> "Brokers":
        """Return the first `stop` of a list, or all but the last ones."""
        regions, total = self.regions, self.count().term
        if isinstance(stop, int) and stop == 1:
            # Whatever code calls the first is the same broker.
            return join(regions, [self.first(self.mask)] if self else [])
        if not self.is_distinct():
            raise GaveUp("a list is cut in which somebody may be twice")
        front = regions.make_atom("first ones", self.mask)
        bound, zero = stop.term if isinstance(stop, SInt) else z3.IntVal(stop), z3.IntVal(0)
        from_end = z3.If(total + bound > 0, total + bound, zero)
        wanted = z3.If(bound >= 0, z3.If(bound < total, bound, total), from_end)
        regions.assume(regions.size(front) == SInt(regions.engine, wanted))
        before = 0
        for each in self.segments:
            some = regions.has_any(front & each.mask)
            regions.assume(implies(some, regions.has_none(before & ~front)))
            regions.fronts += ((each.origin, each.mask, front & each.mask),)
            before |= each.mask
        kept = ((each.origin, each.mask & front) for each in self.segments)
        segments = tuple(Segment(o, m, regions.size(m), distinct=True) for o, m in kept)
        return Brokers(regions, segments, is_set=False)

    def __contains__(self, broker: object) -> bool:
        return bool(self.holds(broker))

    def __bool__(self) -> bool:
        return bool(self.count() > 0)

    def __hash__(self) -> int:
        # All alike, so that a set of lists has to compare them.
        return hash(frozenset() if self.is_set else ())

    def __eq__(self, other: object) -> bool:
        if other is self or other is None:
            return other is self
        if self.is_set:
            return bool(self.regions.has_none(self.mask ^ self._find_other(other)))
        if not isinstance(other, Brokers) or other.is_set:
            raise GaveUp(f"any number of brokers are compared with {_name(other)}")
        return bool(self.is_same_list(other))

    def is_same_list(self, other: "Brokers") -> Truth:
        """Return whether two lists are the same; of their order, nothing is known.

        So it may be so where they have the same members and length, and need not unless one is all.
        """
        regions = self.regions
        if self is other:
            return True
        first, second = ([(e.origin, e.mask) for e in each.segments] for each in (self, other))
        key = ("same", frozenset((tuple(first), tuple(second))))
        if key not in regions.known:
            regions.count += 1
            found = regions.known[key] = SBool.named(regions.engine, f"same!{regions.count}")
            alike = regions.has_none(self.mask ^ other.mask) & (self.count() == other.count())
            regions.assume(implies(found, alike), implies(alike & (self.count() <= 1), found))
        return regions.known[key]

    def __or__(self, other: object) -> "Brokers":
        return make_set(self.regions, self.mask | self._find_other(other))

    def __and__(self, other: object) -> "Brokers":
        return make_set(self.regions, self.mask & self._find_other(other))

    def __sub__(self, other: object) -> "Brokers":
        return make_set(self.regions, self.mask & ~self._find_other(other))

    def __le__(self, other: object) -> Truth:
        return self.regions.has_none(self.mask & ~self._find_other(other))

    def _find_other(self, other: object) -> int:
        """Return who is in another set; both have to be sets."""
        if self.is_set and isinstance(other, frozenset) and not other:
            return 0
        if not (isinstance(other, Brokers) and self.is_set and other.is_set):
            raise GaveUp("a set of any number of brokers is held against what is none")
        return other.mask

    def reorder(self) -> "Brokers":
        """Return the same members in any order, those who are there several times less often."""
        regions, length = self.regions, self.count()
        distinct = len(self.segments) == 1 and self.segments[0].distinct
        regions.count += 1
        if not distinct:
            length = regions.make_number("length")
            regions.assume(length >= regions.size(self.mask), length <= self.count())
        whole = Segment(f"order!{regions.count}", self.mask, length, distinct=distinct)
        return Brokers(regions, (whole,), is_set=False)

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(tuple, name) or hasattr(set, name):
            raise GaveUp(f"{name} of any number of brokers is not followed")
        raise AttributeError(f"brokers have no attribute {name!r}")


refuse_all(
    Brokers,
    "any number of brokers, in a way that is not followed",
    "iter len lt gt ge add radd mul rmul mod ror rand rsub xor rxor index reversed",
)


def make_set(regions: Regions, mask: int) -> Brokers:
    """Return a set."""
    whole = Segment(None, mask, regions.size(mask), distinct=True)
    return Brokers(regions, (whole,), is_set=True)


def make_list(regions: Regions, name: str) -> Brokers:
    """Return a new list, in which anybody may be several times."""
    mask, length = regions.make_atom(name), SInt.named(regions.engine, f"length of {name}")
    size = regions.size(mask)
    regions.assume(length >= size, implies(size == 0, length == 0))
    return Brokers(regions, (Segment(name, mask, length, distinct=False),), is_set=False)


def join(regions: Regions, parts: list[Any]) -> Brokers:
    """Return one list of brokers and lists of them, in this order."""
    segments: list[Segment] = []
    one = plain(regions.engine, 1)
    for each in parts:
        if isinstance(each, Broker):
            segments.append(Segment(None, each.mask, one, distinct=True))
        elif isinstance(each, Brokers) and not each.is_set:
            segments += each.segments
        else:
            raise GaveUp(f"a list of brokers is made of a {type(each).__name__}")
    return Brokers(regions, tuple(segments), is_set=False)
