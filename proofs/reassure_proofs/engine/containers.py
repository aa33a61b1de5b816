"""Sets and dicts that compare instead of hashing, so that symbolic values may stand in them.

A plain set finds a member by its hash first; a symbolic integer has none that would agree with the
plain number it is equal to on some inputs only. Here members are compared one after the other, each
comparison a decision of the path, so that plain and symbolic numbers may stand together. What a
plain set leaves to chance, the order of its members, is refused where it would show.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, ClassVar, Final, NoReturn

from reassure_proofs.engine.symbols import SBool, SInt, SSet, refuse_the_rest
from reassure_proofs.engine.symex import GaveUp

_ATOMS: Final = (SInt, SBool, int, bool, str, bytes, type(None), Fraction, object)


class Order:
    """Whether code of the rule's was run for the members of a set in an order that may differ."""

    taken: ClassVar[bool] = False


def check_key(key: object) -> None:
    """Raise as a plain set does for a member that it does not take; refuse what is not known."""
    kind = type(key)
    if kind is tuple:
        for part in key:  # type: ignore[attr-defined]
            check_key(part)
    elif kind in (RuleSet, RuleDict, list) and not getattr(key, "frozen", False):
        raise TypeError("unhashable type")
    elif (kind is float and key == key) or kind is RuleSet or kind in _ATOMS:
        return
    else:
        raise GaveUp(f"a {kind.__name__} is put in a set or a dict")


def _equal(first: Any, second: Any) -> bool:
    return first is second or bool(first == second)


def _is_one_of(member: Any, others: Any) -> bool:
    """Return whether a member is in another set, for a result that has one of the two.

    Plain Python takes it now from the one side, now from the other.
    """
    check_key(member)
    if isinstance(others, RuleSet):
        equal = (other for other in others.members if _equal(member, other))
        return any(is_alike(member, other) for other in equal)
    return member in others and is_alike(member, 0)


def find_kind(value: Any) -> Any:
    """Return the type that a member has in plain Python; of a tuple, those of its parts."""
    if type(value) is tuple:
        return tuple(find_kind(part) for part in value)
    if isinstance(value, RuleSet):
        return frozenset(find_kind(part) for part in value.members)
    return {SInt: int, SBool: bool}.get(type(value), type(value))


def is_alike(first: Any, second: Any) -> bool:
    """Return True for two equal values of one type, and refuse others, such as True and 1.

    Which of the two a set keeps may depend on its order.
    """
    if find_kind(first) != find_kind(second):
        raise GaveUp("equal values of different types meet in a set")
    return True


def unordered(values: Iterable[Any]) -> Iterator[Any]:
    """Return the members of a set for a use that does not depend on their order."""
    if isinstance(values, RuleSet) and not values.ordered:
        return iter(list(values.members))
    return iter(values)


def _with_each(apply: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the method that does to a set what an operator does, with one other after another."""

    def method(self: "RuleSet", *others: Any) -> "RuleSet":
        found = self.copy()
        for other in others:
            found = apply(found, as_set(other))
        return found

    return method


def _in_place(apply: Callable[..., Any], *, answers: bool = True) -> Callable[..., Any]:
    """Return the method that puts what comes of an operation in the place of a set's members."""

    def method(self: "RuleSet", *others: Any) -> Any:
        found = self.replace(apply(self, *others))
        return found if answers else None

    return method


def _differs(one: Any, other: object) -> bool:
    same: bool = one == other
    return not same


class RuleSet:
    """A set or, where `frozen`, a frozenset."""

    __slots__ = ("frozen", "members", "ordered", "shared")
    __hash__ = None  # type: ignore[assignment]
    __ne__: Any = _differs

    def __init__(
        self,
        members: Iterable[Any] = (),
        *,
        frozen: bool = False,
        ordered: bool = False,
        shared: bool = False,
    ) -> None:
        self.members: list[Any] = []
        self.frozen = frozen
        self.ordered = ordered
        """Whether the order of the members is that of the plain set."""
        self.shared = shared
        """Whether it lives longer than a call, so that changing it would be a memory."""
        for member in unordered(members):
            self._insert(member)

    def _insert(self, member: object) -> None:
        if not _is_one_of(member, self):
            self.members.append(member)

    def _new(self, members: Iterable[Any]) -> "RuleSet":
        return RuleSet(members, frozen=self.frozen)

    def _change(self) -> None:
        if self.frozen:
            raise AttributeError("'frozenset' object cannot be changed")
        if self.shared:
            raise GaveUp("a set that outlives the call is changed")

    def __contains__(self, member: object) -> bool:
        check_key(member)
        return any(_equal(member, other) for other in self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Any]:
        if len(self.members) > 1 and not self.ordered:
            raise GaveUp("the members of a set are taken in the order that the set has them in")
        count = len(self.members)
        for member in list(self.members):
            yield member
            if len(self.members) != count:
                raise RuntimeError("Set changed size during iteration")

    def __and__(self, other: object) -> Any:
        if not isinstance(other, RuleSet | SSet):
            return NotImplemented
        return self._new(m for m in self.members if _is_one_of(m, other))

    def __sub__(self, other: object) -> Any:
        if not isinstance(other, RuleSet | SSet):
            return NotImplemented
        return self._new(m for m in self.members if m not in other)

    def __or__(self, other: object) -> Any:
        if not isinstance(other, RuleSet):
            return NotImplemented
        return self._new([*self.members, *other.members])

    def __xor__(self, other: object) -> Any:
        if not isinstance(other, RuleSet):
            return NotImplemented
        return self._new([*(self - other).members, *(other - self).members])

    def __rand__(self, other: object) -> Any:
        if not isinstance(other, SSet):
            return NotImplemented
        return RuleSet((m for m in self.members if _is_one_of(m, other)), frozen=True)

    def __rsub__(self, other: object) -> NoReturn:
        raise GaveUp("a set is taken from one of any size")

    def replace(self, found: "RuleSet") -> "RuleSet":
        """Take the members of another set; of a frozen one, return that."""
        if self.frozen:
            return found
        self._change()
        self.members = list(found.members)
        return self

    __iand__, __ior__ = _in_place(operator.and_), _in_place(operator.or_)
    __isub__, __ixor__ = _in_place(operator.sub), _in_place(operator.xor)

    def __le__(self, other: object) -> Any:
        if not isinstance(other, RuleSet | SSet):
            return NotImplemented
        return all(m in other for m in self.members)

    def __ge__(self, other: object) -> Any:
        return other <= self if isinstance(other, RuleSet) else NotImplemented

    def __lt__(self, other: object) -> Any:
        if not isinstance(other, RuleSet):
            return NotImplemented
        return len(self) < len(other) and self <= other

    def __gt__(self, other: object) -> Any:
        return other < self if isinstance(other, RuleSet) else NotImplemented

    def __eq__(self, other: object) -> Any:
        if isinstance(other, SSet):
            raise GaveUp("a set is compared with one of any size")
        if not isinstance(other, RuleSet):
            return NotImplemented
        return len(self) == len(other) and self <= other

    def __repr__(self) -> str:
        raise GaveUp("text is made of a set")

    def __format__(self, _: str) -> str:
        return repr(self)

    union, intersection = _with_each(operator.or_), _with_each(operator.and_)
    difference = _with_each(operator.sub)
    update = _in_place(union, answers=False)
    intersection_update = _in_place(intersection, answers=False)
    difference_update = _in_place(difference, answers=False)

    def symmetric_difference(self, other: Any) -> "RuleSet":
        """As that of a plain set."""
        return self._new((self ^ RuleSet(other)).members)

    def issubset(self, other: Any) -> bool:
        """As that of a plain set."""
        return bool(self <= as_set(other))

    def issuperset(self, other: Any) -> bool:
        """As that of a plain set."""
        return bool(RuleSet(other) <= self)

    def isdisjoint(self, other: Any) -> bool:
        """As that of a plain set."""
        return not self & as_set(other)

    def copy(self) -> "RuleSet":
        """As that of a plain set."""
        return self._new(self.members)

    def add(self, member: object) -> None:
        """As that of a plain set."""
        self._change()
        self._insert(member)

    def discard(self, member: object) -> None:
        """As that of a plain set."""
        self._change()
        check_key(member)
        self.members = [other for other in self.members if not _equal(member, other)]

    def remove(self, member: object) -> None:
        """As that of a plain set."""
        if member not in self:
            raise KeyError(member)
        self.discard(member)

    def pop(self) -> Any:
        """As that of a plain set, where it holds no more than one."""
        self._change()
        if not self.members:
            raise KeyError("pop from an empty set")
        (member,) = self
        self.members = []
        return member

    def clear(self) -> None:
        """As that of a plain set."""
        self._change()
        self.members = []

    def concretise(self, plain: Callable[[Any], Any]) -> Any:
        """Return the plain set that this is in a model."""
        members = {plain(member) for member in self.members}
        return frozenset(members) if self.frozen else members


def as_set(values: Any) -> Any:
    """Return values as a set, of any size if they are one."""
    return values if isinstance(values, RuleSet | SSet) else RuleSet(values)


class DictView:
    """What `values()` and `items()` of a dict give."""

    __slots__ = ("_get",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, get: Callable[[], list[Any]]) -> None:
        self._get = get

    def __iter__(self) -> Iterator[Any]:
        count = len(self._get())
        for value in list(self._get()):
            yield value
            if len(self._get()) != count:
                raise RuntimeError("dictionary changed size during iteration")

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __len__(self) -> int:
        return len(self._get())

    def __contains__(self, value: object) -> bool:
        return any(_equal(value, other) for other in self._get())

    def _refuse(self, *_: object) -> NoReturn:
        raise GaveUp("more is done with what a dict holds than going through it")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __repr__ = __format__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __sub__ = __rsub__ = __xor__ = __rxor__ = _refuse


class RuleDict:
    """A dict, in the order in which its keys were put in."""

    __slots__ = ("_keys", "_values", "shared")
    __hash__ = None  # type: ignore[assignment]
    __ne__: Any = _differs

    def __init__(self, pairs: Any = (), *, shared: bool = False, **named: Any) -> None:
        self.shared = False
        """Whether it lives longer than a call, so that changing it would be a memory."""
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self.update(pairs, **named)
        self.shared = shared

    def _place(self, key: object) -> int | None:
        check_key(key)
        places = (place for place, other in enumerate(self._keys) if _equal(key, other))
        return next(places, None)

    def _change(self) -> None:
        if self.shared:
            raise GaveUp("a dict that outlives the call is changed")

    def __getitem__(self, key: object) -> Any:
        place = self._place(key)
        return self.missing(key) if place is None else self._values[place]

    def missing(self, key: object) -> Any:
        """Answer for a key that is not there."""
        raise KeyError(key)

    def __setitem__(self, key: object, value: object) -> None:
        self._change()
        place = self._place(key)
        if place is None:
            self._keys.append(key)
            self._values.append(value)
        else:
            self._values[place] = value

    def __delitem__(self, key: object) -> None:
        self._change()
        place = self._place(key)
        if place is None:
            raise KeyError(key)
        del self._keys[place], self._values[place]

    def __contains__(self, key: object) -> bool:
        return self._place(key) is not None

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(DictView(lambda: self._keys))

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, RuleDict):
            return NotImplemented
        same = len(self) == len(other) and all(key in other for key in self._keys)
        return same and all(_equal(value, other[key]) for key, value in self.items())

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, RuleDict):
            return NotImplemented
        found = self.copy()
        found.update(other)
        return found

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __repr__(self) -> str:
        raise GaveUp("text is made of a dict")

    def __format__(self, _: str) -> str:
        return repr(self)

    def get(self, key: object, default: Any = None) -> Any:
        """As that of a plain dict."""
        place = self._place(key)
        return default if place is None else self._values[place]

    def setdefault(self, key: object, default: Any = None) -> Any:
        """As that of a plain dict."""
        if key not in self:
            self[key] = default
        return self.get(key)

    def pop(self, key: object, *default: Any) -> Any:
        """As that of a plain dict, which looks at no key where it is empty."""
        self._change()
        place = self._place(key) if self._keys else None
        if place is None and default:
            return default[0]
        if place is None:
            raise KeyError(key)
        del self._keys[place]
        return self._values.pop(place)

    def popitem(self) -> tuple[Any, Any]:
        """As that of a plain dict."""
        self._change()
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        return self._keys.pop(), self._values.pop()

    def update(self, pairs: Any = (), **named: Any) -> None:
        """As that of a plain dict."""
        self._change()
        given = pairs.items() if isinstance(pairs, RuleDict) else pairs
        for key, value in (*given, *named.items()):
            self[key] = value

    def clear(self) -> None:
        """As that of a plain dict."""
        self._change()
        self._keys.clear()
        self._values.clear()

    def copy(self) -> "RuleDict":
        """As that of a plain dict."""
        if type(self) is not RuleDict:
            raise GaveUp("a dict with values of its own for what is not there is copied")
        return RuleDict(self)

    def keys(self) -> RuleSet:
        """As that of a plain dict."""
        found = RuleSet(ordered=True, shared=True)
        found.members = self._keys
        return found

    def values(self) -> DictView:
        """As that of a plain dict."""
        return DictView(lambda: self._values)

    def items(self) -> DictView:
        """As that of a plain dict."""
        return DictView(lambda: list(zip(self._keys, self._values, strict=True)))

    def concretise(self, plain: Callable[[Any], Any]) -> dict[Any, Any]:
        """Return the plain dict that this is in a model."""
        return {plain(key): plain(value) for key, value in self.items()}


refuse_the_rest(RuleSet, set)
refuse_the_rest(RuleDict, dict)
refuse_the_rest(DictView, type({}.values()))
