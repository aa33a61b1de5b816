"""What builtin functions and the words of theorems mean where brokers are of any number.

Each contract stands for a function when it is given brokers of any number; given anything else,
the function itself is called.
"""

import builtins
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final, NoReturn

from reassure_proofs.any_size.broker_numbers import NumberColumn, Numbers, OwnNumber, find_extreme
from reassure_proofs.any_size.opaque_brokers import (
    AnyMember,
    Broker,
    Brokers,
    MemberPlace,
    join,
    join_masks,
    make_set,
    refuse_all,
    select,
    tell_apart,
)
from reassure_proofs.engine import formula
from reassure_proofs.engine.formula import Truth, choose, implies, negate
from reassure_proofs.engine.statement import REORDERINGS
from reassure_proofs.engine.symbols import SBool
from reassure_proofs.engine.symex import GaveUp

Meaning = Callable[..., Any]
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Part:
    """What a generator goes through: brokers of which something holds, and what it makes of each.

    Whoever is given it as an ordinary iterable is refused.
    """

    brokers: Brokers
    make: Callable[[AnyMember], Any] | None
    """None where it makes nothing else of them."""

    def __iter__(self) -> Any:
        raise GaveUp("a generator over any number of brokers is used in a way that is not followed")

    def answers(self) -> list[tuple[int, Any]]:
        """Return what is made of the members of each region."""
        make = self.make or (lambda member: member)
        return list(tell_apart(self.brokers.regions, self.brokers.mask, make))


class AnyOf:
    """A collection of which one member is at hand, which may be any of them.

    Asked once whether something is in it, or is true of any or all, it answers what some member
    would have it answer. A second answer might be another one's.
    """

    def __init__(self, members: Iterable[Any]) -> None:
        self._members: tuple[Any, ...] | None = tuple(members)

    def take(self) -> tuple[Any, ...]:
        """Return what is at hand, once."""
        members, self._members = self._members, None
        if members is None:
            raise GaveUp("a collection of which one member stands for any is asked twice")
        return members

    def __contains__(self, value: object) -> bool:
        return any(value == each for each in self.take())

    def __getattr__(self, name: str) -> NoReturn:
        raise GaveUp(f"{name} of a collection of which one member stands for any")


refuse_all(
    AnyOf,
    "a collection of which one member stands for any",
    "iter len bool hash eq lt le gt ge add getitem and or sub xor reversed",
)


def _truth(value: Any) -> Truth:
    return value if isinstance(value, SBool | bool) else bool(value)


def _all_of(part: Part) -> Truth:
    found: Truth = True
    for region, truth in part.answers():
        found = found & implies(part.brokers.regions.has_any(region), _truth(truth))
    return found


def _any_of(part: Part) -> Truth:
    found: Truth = False
    for region, truth in part.answers():
        found = found | (part.brokers.regions.has_any(region) & _truth(truth))
    return found


def _count(part: Part) -> Any:
    found: Any = 0
    for region, truth in part.answers():
        own = part.brokers.narrow(partial(_is_in, region)).count()
        found = found + choose(_truth(truth), own, 0)
    return found


def _is_in(mask: int, member: AnyMember) -> Truth:
    return member.is_in(mask)


def _zip(brokers: Any, *columns: Any, strict: bool = False) -> Part:
    known = all(isinstance(each, NumberColumn) and each.brokers is brokers for each in columns)
    if not (known and strict):
        raise GaveUp("brokers are paired with other numbers than one for each of them")
    return Part(brokers, lambda member: (member, *(OwnNumber(each, member) for each in columns)))


def _enumerate(brokers: Brokers) -> Part:
    return Part(brokers, lambda member: (MemberPlace(brokers), member))


def _as_list(value: Any = ()) -> Any:
    if isinstance(value, Part):
        made = [answer for _, answer in value.answers()]
        columns = {each.column for each in made if isinstance(each, OwnNumber)}
        if made and all(isinstance(each, OwnNumber) for each in made) and len(columns) == 1:
            return Numbers(columns.pop(), value.brokers.mask)
        if not all(isinstance(each, AnyMember) for each in made):
            return value
        value = value.brokers
    if isinstance(value, Brokers) and value.is_set:
        raise GaveUp("a list is made of a set, which has no order")
    return value


def _as_set(value: Any) -> Any:
    brokers = value.brokers if isinstance(value, Part) else value
    if isinstance(value, Part) and value.make is not None:
        raise GaveUp("a set is made of something else than the brokers that are gone through")
    return make_set(brokers.regions, brokers.mask)


def _as_mapping(pairs: Part) -> NumberColumn:
    """Return the numbers of brokers by broker, of brokers that are paired with one each."""
    for _, item in pairs.answers():
        if isinstance(item, tuple) and len(item) == _PAIR and isinstance(item[1], OwnNumber):
            return item[1].column
    raise GaveUp("a mapping is made of something else than brokers with a number each")


def _reorder(brokers: Any, *_: Any) -> AnyOf:
    """Return what the theorems say of functions that list orders: same members, no more of them."""
    return AnyOf([brokers.reorder()])


def _ask_any(function: Any, values: AnyOf) -> Any:
    if function in (set, frozenset):
        return values
    if function in (any, all):
        return function(values.take())
    raise GaveUp(f"{function.__name__} of a collection of which one member stands for any")


def _count_all(values: Any) -> Any:
    return values.brokers.count() if isinstance(values, Part | NumberColumn) else values.count()


def _mask_of(values: Any) -> int:
    """Return who is in a list, which may be a plain one of named brokers."""
    if isinstance(values, Brokers):
        return values.mask
    if not all(isinstance(each, Broker) for each in values):
        raise GaveUp("something else than brokers stands in a list of them")
    return join_masks(each.mask for each in values)


def _regions(*values: Any) -> Any:
    return next(each.regions for each in values if isinstance(each, Brokers))


def _member(broker: Any, values: Brokers) -> Truth:
    return values.holds(broker)


def _subset(smaller: Any, larger: Any) -> Truth:
    return _regions(smaller, larger).has_none(_mask_of(smaller) & ~_mask_of(larger))


def _alike(first: Any, second: Any) -> Truth:
    return _regions(first, second).has_none(_mask_of(first) ^ _mask_of(second))


def _same(first: Any, second: Any) -> Truth:
    if isinstance(first, Brokers) and isinstance(second, Brokers):
        return first.is_same_list(second)
    listed, other = (first, second) if isinstance(first, Brokers) else (second, first)
    if len(other) > 0:
        raise GaveUp("a list of any number of brokers is compared with one that names some")
    return listed.count() == 0


def _remaining(values: Any, removed: Any) -> Any:
    return _regions(values, removed).size(_mask_of(values) & ~_mask_of(removed))


def _comes_first(broker: Any, values: Brokers, holds: Callable[[Any], Any]) -> Truth:
    found = select(values.regions, values.mask, holds)
    if not values.regions.has_any(found):
        return False
    return values.first(found) == broker


MEANINGS: Final[Mapping[Any, Meaning]] = {
    builtins.len: _count_all,
    builtins.dict: _as_mapping,
    builtins.min: partial(find_extreme, least=True),
    builtins.max: partial(find_extreme, least=False),
    builtins.zip: _zip,
    builtins.enumerate: _enumerate,
    builtins.tuple: _as_list,
    builtins.list: _as_list,
    builtins.set: _as_set,
    builtins.frozenset: _as_set,
    builtins.all: _all_of,
    builtins.any: _any_of,
    formula.all_of: _all_of,
    formula.any_of: _any_of,
    formula.count: _count,
    formula.member: _member,
    formula.inside: _member,
    formula.absent: lambda broker, values: negate(_member(broker, values)),
    formula.subset: _subset,
    formula.alike: _alike,
    formula.same: _same,
    formula.distinct: lambda values: values.is_distinct(),
    formula.remaining: _remaining,
    formula.comes_first: _comes_first,
}
"""Functions, and what they mean of brokers of any number."""


_REFUSED: Final = frozenset((isinstance, type, id, str, repr))
"""What Python answers without asking a broker or a list of them."""


def give_meaning(function: Any) -> Meaning | None:
    """Return a function that has its meaning of brokers of any number too, None for no such."""
    # A record is no function, and hashing it would look at all that it has.
    if not isinstance(function, FunctionType | BuiltinFunctionType | type):
        return None
    meaning = _reorder if function in REORDERINGS else MEANINGS.get(function)
    if meaning is None and function not in _REFUSED:
        return None

    def call(*given: Any, **named: Any) -> Any:
        if function is isinstance:
            # A type stands for itself there.
            given = (given[0], getattr(given[1], "stands_for", given[1]))
        kinds = {type(each) for each in given}
        if function in _REFUSED and kinds & {Brokers, Part, Broker, AnyMember}:
            raise GaveUp(f"{function.__name__} of brokers, which are opaque, or of a list of them")
        if AnyOf in kinds:
            return _ask_any(function, *given)
        own = kinds & {Brokers, Part, Numbers, NumberColumn}
        return (meaning if meaning and own else function)(*given, **named)

    call.stands_for = function  # type: ignore[attr-defined]
    return call


def build_set(parts: list[Any]) -> Any:
    """Return a set of these."""
    named = [each for each in parts if isinstance(each, Broker)]
    if not named:
        return set(parts)
    return make_set(named[0].regions, _mask_of(parts))


def build(parts: list[Any], starred: tuple[bool, ...]) -> Any:
    """Return a tuple with starred lists in it."""
    if any(isinstance(each, Brokers) for each in parts):
        flat: list[Any] = []
        for each, spread in zip(parts, starred, strict=True):
            flat += each if spread and not isinstance(each, Brokers) else [each]
        return join(_regions(*parts), flat)
    return tuple(
        member
        for each, spread in zip(parts, starred, strict=True)
        for member in (each if spread else (each,))
    )
