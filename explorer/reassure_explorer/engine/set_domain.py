"""The domain of sets, and what reads their cells member by member."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Final

from reassure_explorer.engine.domains import (
    Cells,
    Domain,
    LazyParts,
    OutOfRange,
    Reader,
    answer_plainly,
)


@dataclass(frozen=True)
class SetOf(Domain):
    """Sets of some of these members, one bit each."""

    members: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if len(set(self.members)) != len(self.members):
            raise ValueError(f"the members of a set differ from each other: {self.members}")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """One cell of one bit for each member."""
        return (1,) * len(self.members)

    @cached_property
    def places(self) -> Mapping[Hashable, int]:
        """Number of the cell of each member."""
        return {member: place for place, member in enumerate(self.members)}

    def normalise(self, value: Any) -> frozenset[Any]:
        """Return a set, or what a list or tuple holds, as a frozenset of the members."""
        if not isinstance(value, Set | tuple | list):
            raise OutOfRange(f"{value!r} is no set; give a frozenset")
        strangers = [member for member in value if member not in self.places]
        if strangers:
            raise OutOfRange(f"{strangers[0]!r} is none of {list(self.members)}")
        return frozenset(member for member in self.members if member in value)

    def encode(self, value: Any) -> tuple[int, ...]:
        """Encode a set."""
        return tuple(int(member in value) for member in self.members)

    def draw(self, chance: Random) -> frozenset[Any]:
        """Return any set of members."""
        return frozenset([member for member in self.members if chance.random() < 1 / 2])

    def draw_unread(self, reader: Reader, first: int, read: Set[int], chance: Random) -> Cells:
        """Draw each member that was not asked for."""
        cells = range(first, first + len(self.members))
        return {cell: chance.getrandbits(1) for cell in cells if cell not in read}

    def read(self, reader: Reader, first: int) -> "LazySet":
        """Return a set that reads a member's bit when it is asked for."""
        return LazySet(self, reader, first, {})

    def write_changes(self, reader: Reader, first: int, value: Any) -> Mapping[int, int]:
        """Write the members that differ."""
        strangers = [m for m, v in value.changed.items() if v and m not in self.places]
        if strangers:
            raise OutOfRange(f"{strangers[0]!r} is none of {list(self.members)}")
        changed = value.changed.items()
        return {first + self.places[m]: int(v) for m, v in changed if m in self.places}


_PLAIN_OF_SETS: Final = (
    *("__eq__", "__lt__", "__gt__", "__len__", "__iter__", "__hash__", "__repr__", "__str__"),
    *("__format__", "__reduce_ex__", "__ror__", "__rand__", "__rxor__", "__rsub__"),
)


@answer_plainly(*_PLAIN_OF_SETS)
class LazySet(LazyParts):
    """A set of a state that is being traced. It answers as a frozenset does.

    Adding and taking away members reads nothing; asking for one reads its bit.
    """

    __slots__ = ("_settled", "changed")

    def __init__(
        self, domain: SetOf, reader: Reader, first: int, changed: Mapping[Any, bool]
    ) -> None:
        self.domain, self.reader, self.first, self.changed = domain, reader, first, changed
        self._settled: frozenset[Any] | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return frozenset

    def settle(self) -> frozenset[Any]:
        """Return the plain set, which reads the bits of all members."""
        if self._settled is None:
            self._settled = frozenset([m for m in self._list_candidates() if m in self])
        return self._settled

    def _list_candidates(self) -> Iterator[Any]:
        """Return all that may be in the set; in no order that an answer depends on."""
        places = self.domain.places
        yield from places
        yield from (m for m, present in self.changed.items() if present and m not in places)

    def __contains__(self, member: object) -> bool:
        if member in self.changed:
            return self.changed[member]
        place = self.domain.places.get(member)
        return place is not None and bool(self.reader.read(self.first + place))

    def __bool__(self) -> bool:
        return any(member in self for member in self._list_candidates())

    def _changing(self, changes: Mapping[Any, bool]) -> "LazySet":
        return LazySet(self.domain, self.reader, self.first, {**self.changed, **changes})

    def union(self, *others: Iterable[Any]) -> "LazySet":
        """Return the set with the members of others."""
        return self._changing({member: True for other in others for member in other})

    def difference(self, *others: Iterable[Any]) -> "LazySet":
        """Return the set without the members of others."""
        return self._changing({member: False for other in others for member in other})

    def intersection(self, *others: Iterable[Any]) -> "LazySet":
        """Return the set without what one of the others lacks."""
        sets = [other if isinstance(other, Set) else frozenset(other) for other in others]
        lacking = {m: False for m in self._list_candidates() if any(m not in o for o in sets)}
        return self._changing(lacking)

    def symmetric_difference(self, other: Iterable[Any]) -> "LazySet":
        """Return the set of what is in one of the two only."""
        members = frozenset(other)
        return self._changing({member: member not in self for member in members})

    def __or__(self, other: Any) -> Any:
        return self.union(other) if _is_set(other) else self.settle() | other

    def __sub__(self, other: Any) -> Any:
        return self.difference(other) if _is_set(other) else self.settle() - other

    def __and__(self, other: Any) -> Any:
        return self.intersection(other) if _is_set(other) else self.settle() & other

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(other) if _is_set(other) else self.settle() ^ other

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether all members are among the other's."""
        members = other if isinstance(other, Set) else frozenset(other)
        return not any(m in self for m in self._list_candidates() if m not in members)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether the other's members are all here."""
        return all(member in self for member in frozenset(other))

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Whether the two have no member in common."""
        return not any(member in self for member in frozenset(other))

    def __le__(self, other: Any) -> Any:
        return self.issubset(other) if _is_set(other) else self.settle() <= other

    def __ge__(self, other: Any) -> Any:
        return self.issuperset(other) if _is_set(other) else self.settle() >= other


Set.register(LazySet)


def _is_set(value: object) -> bool:
    return isinstance(value, frozenset | set)
