"""What a reviewer's rule may use of Python beside its own code, as it is on symbolic values.

Every value that a rule finds outside of its arguments (a global, a default, a closure's cell, a
module's attribute) passes through `Library.convert`: plain values as they are, containers as those
of `engine.containers`, functions as their twins of `engine.dialect`, and of
Python's own functions those that are known here. Anything else becomes an `Unknown`, which refuses
by its name whatever is done with it.
"""

import builtins
import collections
import functools
import inspect
import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, Final, NoReturn

from reassure_proofs.engine.containers import (
    DictView,
    Order,
    RuleDict,
    RuleSet,
    as_set,
    find_kind,
    unordered,
)
from reassure_proofs.engine.symbols import SBool, SInt, SSet, refuse_the_rest
from reassure_proofs.engine.symex import GaveUp

_PLAIN: Final = (type(None), bool, int, float, str, bytes, Fraction, type(...), object, range)
_DUNDERS: Final = (
    {name for kind in (int, float, str, list, dict, frozenset) for name in dir(kind)}
    | {"__bool__", "__call__", "__next__", "__enter__", "__exit__", "__index__", "__int__"}
) - set(dir(object))


class RuleList(list[Any]):
    """A list that outlives the call: it can be read and not changed."""

    __slots__ = ()

    def _change(self, *_: object, **__: object) -> NoReturn:
        raise GaveUp("a list that outlives the call is changed")

    append = extend = insert = remove = pop = clear = sort = reverse = _change
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _change


class Unknown:
    """Stands for something that is not followed; whatever is done with it ends the proof."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse, by name."""
        raise GaveUp(f"{self.name} is not followed")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __repr__ = __str__ = __format__ = refuse


for _name in sorted(_DUNDERS):
    setattr(Unknown, _name, Unknown.refuse)


class Known(Unknown):
    """A function or a type of Python's own, with what it does on symbolic values."""

    def __init__(
        self, name: str, call: Callable[..., Any], kind: type | None = None, **attributes: Any
    ) -> None:
        super().__init__(name)
        self.call = call
        self.kind = kind
        """The type that it is, None where it is a function."""
        self.attributes = attributes
        own = getattr(call, "__module__", None) in (__name__, RuleSet.__module__)
        self.signature = inspect.signature(call) if own else None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Do what the function does; refuse to be called as what stands for it cannot be."""
        if self.signature is not None:
            try:
                self.signature.bind(*arguments, **named)
            except TypeError as error:
                raise GaveUp(f"{self.name} called like that is not followed ({error})") from None
        return self.call(*arguments, **named)


class Module(Unknown):
    """A module; its attributes are converted one by one."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(f"module {module.__name__}")
        self.module = module


def _sorted(values: Iterable[Any], *, key: Any = None, reverse: Any = False) -> list[Any]:
    members = list(unordered(values))
    of_set = isinstance(values, RuleSet) and not values.ordered
    if of_set or (key is None and Order.taken):
        keys = sorted(_check_ranked(members if key is None else [key(m) for m in members]))
        if key is not None and any(bool(a == b) for a, b in itertools.pairwise(keys)):
            raise GaveUp("members of a set are sorted by a key in which two of them are alike")
    return sorted(members, key=key, reverse=reverse)


def _check_ranked(values: list[Any]) -> list[Any]:
    """Refuse values of which order or sum may depend on the order that they come in."""
    if len(values) > 1:
        if not all(map(_is_ranked, values)):
            raise GaveUp("members of a set are ranked or summed up that have no order of their own")
        if len({find_kind(value) for value in values}) > 1:
            raise GaveUp("members of a set are ranked or summed up that are of several types")
    return values


def _is_ranked(value: Any) -> bool:
    """Return whether of any two different values of this kind one comes first."""
    if type(value) is tuple:
        return all(map(_is_ranked, value))
    return type(value) in (SInt, SBool, int, bool, str, bytes, Fraction)


def _extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    def function(*values: Any, key: Any = None, **named: Any) -> Any:
        if len(values) == 1 and isinstance(values[0], RuleSet) and len(values[0]) > 0:
            ranked = _sorted(values[0], key=key)
            return ranked[0] if pick is min else ranked[-1]
        if len(values) == 1 and key is None and Order.taken:
            values = (_check_ranked(list(values[0])),)
        return pick(*values, key=key, **named)

    return function


def _until(end: bool) -> Callable[..., Any]:
    """Return what `any` (`end` is True) or `all` does.

    Where it goes through a set it does not end early: in another order it would go on, and may meet
    what raises an error there.
    """

    def function(values: Iterable[Any]) -> bool:
        found = not end
        for value in unordered(values):
            if bool(value) is end:
                found = end
                if not Order.taken:
                    break
        return found

    return function


def _sum(values: Iterable[Any], *start: Any, **named: Any) -> Any:
    # Only the sum of lists shows an order, and they need a list to begin with.
    if start or named:
        return sum(values, *start, **named)
    of_set = isinstance(values, RuleSet) and not values.ordered
    members = list(unordered(values))
    return sum(_check_ranked(members) if of_set or Order.taken else members)


def _int(value: Any = 0, *more: Any) -> Any:
    if isinstance(value, SInt):
        return value
    return value.number() if isinstance(value, SBool) else int(value, *more)


def _range(*bounds: Any) -> range:
    # A stop below 0 is as good as 0 where the start is.
    if len(bounds) == 1 and isinstance(bounds[0], SInt) and bounds[0] < 0:
        return range(0)
    return range(*bounds)


def _make_set(*, frozen: bool) -> Callable[..., Any]:
    return lambda values=(): values if isinstance(values, SSet) else RuleSet(values, frozen=frozen)


def _islice(values: Iterable[Any], *bounds: Any) -> Any:
    if not any(isinstance(bound, SInt) for bound in bounds):
        return itertools.islice(values, *bounds)
    known = list(values)
    plain = [_islice_bound(bound, len(known)) for bound in bounds]
    return itertools.islice(iter(known), *plain)


def _islice_bound(bound: Any, beyond: int) -> Any:
    # Below 0, and beyond what a machine's word holds, it raises whatever the number is.
    if not isinstance(bound, SInt):
        return bound
    return -1 if bound < 0 or bound > sys.maxsize else bound.choose_bound(beyond)


def _round(value: Any, *digits: Any) -> Any:
    return +value if isinstance(value, SInt | SBool) and not digits else round(value, *digits)


def _divmod(value: Any, by: Any) -> Any:
    return (value // by, value % by)


def _getattr(value: Any, name: str, *default: Any) -> Any:
    try:
        return get_attribute(value, name, _no_module)
    except AttributeError:
        if default:
            return default[0]
        raise


def _hasattr(value: Any, name: str) -> bool:
    nothing = object()
    return _getattr(value, name, nothing) is not nothing


def _no_module(_: Any, name: str) -> NoReturn:
    raise GaveUp(f"{name} by getattr is not followed")


def _kinds(kind: Any) -> tuple[type, ...]:
    if isinstance(kind, tuple):
        return tuple(each for part in kind for each in _kinds(part))
    if isinstance(kind, Known) and kind.kind is not None:
        return (kind.kind,)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        return (kind,)
    raise GaveUp(f"isinstance is asked with {getattr(kind, 'name', type(kind).__name__)}")


def _isinstance(value: Any, kind: Any) -> bool:
    if isinstance(value, Unknown | FunctionType | DictView):
        raise GaveUp("isinstance is asked of a value that is not followed")
    return issubclass(get_plain_type(value), _kinds(kind))


def get_plain_type(value: Any) -> type:
    """Return the type that a value has in plain Python."""
    if isinstance(value, RuleSet):
        return frozenset if value.frozen else set
    by_kind: dict[type, type] = {
        SInt: int,
        SBool: bool,
        SSet: frozenset,
        RuleDict: dict,
        RuleCounter: collections.Counter,
        RuleDefaultDict: collections.defaultdict,
        RuleList: list,
    }
    return by_kind.get(type(value), type(value))


def _type(value: Any) -> Any:
    kind = get_plain_type(value)
    return _KNOWN.get(id(kind), Unknown(f"the type {kind.__name__}"))


def _fraction(*numbers: Any) -> Fraction:
    if any(isinstance(number, SInt | SBool) for number in numbers):
        raise GaveUp("a fraction is made of a symbolic value")
    return Fraction(*numbers)


class RuleCounter(RuleDict):
    """A Counter, so far as that is a dict in which what is not there counts 0."""

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        if isinstance(values, RuleDict | RuleSet):
            raise GaveUp("a Counter is made of a set or a dict")
        for value in values:
            self[value] = self[value] + 1

    def missing(self, key: object) -> Any:
        """Answer 0."""
        return 0

    def update(self, pairs: Any = (), **named: Any) -> None:
        """Refuse; that of a Counter adds up."""
        if pairs or named:
            raise GaveUp("a Counter is updated")

    def __eq__(self, other: object) -> Any:
        raise GaveUp("a Counter is compared")

    __ne__ = __or__ = __ior__ = __eq__


refuse_the_rest(RuleCounter, collections.Counter)


class RuleDefaultDict(RuleDict):
    """A defaultdict."""

    def __init__(self, default: Any = None, *pairs: Any) -> None:
        super().__init__(*pairs)
        self._default = default

    def missing(self, key: object) -> Any:
        """Put in what the default gives."""
        if self._default is None:
            raise KeyError(key)
        self[key] = self._default()
        return self[key]


def _from_keys(keys: Iterable[Any], value: Any = None) -> RuleDict:
    return RuleDict([(key, value) for key in keys])


_SAME: Final = "len list tuple enumerate zip map filter reversed iter next abs bool float slice"
_KNOWN: Final[dict[int, Known]] = {
    id(getattr(builtins, name)): Known(name, getattr(builtins, name), kind)
    for name in _SAME.split()
    for kind in (getattr(builtins, name) if name in ("list", "tuple", "bool", "float") else None,)
}


def _know(native: Any, call: Callable[..., Any], kind: type | None = None, **more: Any) -> None:
    _KNOWN[id(native)] = Known(native.__name__, call, kind, **more)


_know(sorted, _sorted)
_know(min, _extreme(min))
_know(max, _extreme(max))
_know(any, _until(True))
_know(all, _until(False))
_know(sum, _sum)
_know(int, _int, int)
_know(str, Unknown("str").refuse, str)
_know(range, _range, range)
_know(set, _make_set(frozen=False), set)
_know(frozenset, _make_set(frozen=True), frozenset)
_know(dict, RuleDict, dict, fromkeys=_from_keys)
_know(object, object)
_know(isinstance, _isinstance)
_know(type, _type, type)
_know(round, _round)
_know(divmod, _divmod)
_know(getattr, _getattr)
_know(hasattr, _hasattr)
_know(Fraction, _fraction, Fraction)
_know(collections.Counter, RuleCounter, collections.Counter)
_know(collections.defaultdict, RuleDefaultDict, collections.defaultdict)
_know(functools.reduce, functools.reduce)
_know(functools.partial, functools.partial)
_know(functools.cmp_to_key, functools.cmp_to_key)
_know(itertools.chain, itertools.chain, from_iterable=itertools.chain.from_iterable)
_know(itertools.islice, _islice)
for _tool in (
    *("accumulate", "combinations", "compress", "count", "dropwhile", "filterfalse", "pairwise"),
    *("permutations", "product", "repeat", "starmap", "takewhile", "zip_longest"),
):
    _know(getattr(itertools, _tool), getattr(itertools, _tool))
for _tool in (
    *("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "mod", "floordiv", "neg", "pos"),
    *("abs", "invert", "and_", "or_", "xor", "not_", "truth", "contains", "itemgetter"),
):
    _know(getattr(operator, _tool), getattr(operator, _tool))
for _tool in ("floor", "ceil", "trunc"):
    _know(getattr(math, _tool), getattr(math, _tool))

_METHODS: Final[dict[type, frozenset[str]]] = {
    list: frozenset(name for name in dir(list) if not name.startswith("_")),
    tuple: frozenset(("index", "count")),
    str: frozenset(name for name in dir(str) if not name.startswith("_")),
    RuleSet: frozenset(name for name in dir(RuleSet) if hasattr(set, name)),
    RuleDict: frozenset(name for name in dir(RuleDict) if hasattr(dict, name)),
}
_PLAINLY: Final[dict[type, type]] = {
    RuleList: list,
    RuleCounter: RuleDict,
    RuleDefaultDict: RuleDict,
}
"""What has the methods of something plainer."""
_OF_A_NUMBER: Final[dict[str, Callable[[Any], Any]]] = {
    "real": lambda number: +number,
    "numerator": lambda number: +number,
    "imag": lambda _: 0,
    "denominator": lambda _: 1,
}
_OF_ANY_SIZE: Final[dict[str, Callable[[SSet, Any], Any]]] = {
    "intersection": lambda members, other: as_set(other) & members,
    "issuperset": lambda members, other: as_set(other) <= members,
    "isdisjoint": lambda members, other: not as_set(other) & members,
}


def get_attribute(value: Any, name: str, convert: Callable[[Any, str], Any]) -> Any:
    """Return an attribute as plain Python would, or refuse it by name."""
    kind = type(value)
    if isinstance(value, Module):
        return convert(getattr(value.module, name), f"{value.module.__name__}.{name}")
    if isinstance(value, Known) and name in value.attributes:
        return value.attributes[name]
    if isinstance(value, SSet) and name in _OF_ANY_SIZE:
        return functools.partial(_OF_ANY_SIZE[name], value)
    if isinstance(value, SInt | SBool) and name in _OF_A_NUMBER:
        return _OF_A_NUMBER[name](value)
    methods = _METHODS.get(_PLAINLY.get(kind, kind))
    if methods is not None and not name.startswith("_") and name in methods:
        return getattr(value, name)
    if kind in (bool, int, float, Fraction) and not name.startswith("_"):
        return getattr(value, name)
    plain = get_plain_type(value)
    followed = plain in (bool, int, float, list, tuple, str, set, frozenset, dict, type(None))
    if followed and not hasattr(plain, name):
        raise AttributeError(f"{plain.__name__!r} object has no attribute {name!r}")
    told = value.name if isinstance(value, Unknown) else f"a {plain.__name__}"
    raise GaveUp(f"the attribute {name!r} of {told} is not followed")


def convert_plain(value: Any, name: str, convert: Callable[[Any, str], Any]) -> Any:
    """Return a value that is found outside of the call, but for functions, as a rule may use it."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, SInt | SBool | SSet | RuleSet | RuleDict | Unknown):
        return value
    if kind is tuple:
        return tuple(convert(part, name) for part in value)
    if kind is list:
        return RuleList(convert(part, name) for part in value)
    if kind in (set, frozenset):
        members = [convert(part, name) for part in value]
        return RuleSet(members, frozen=kind is frozenset, ordered=True, shared=True)
    if kind in (dict, MappingProxyType):
        pairs = [(convert(key, name), convert(part, name)) for key, part in value.items()]
        return RuleDict(pairs, shared=True)
    if kind is ModuleType:
        return Module(value)
    if id(value) in _KNOWN:
        return _KNOWN[id(value)]
    if isinstance(value, type) and issubclass(value, Exception) and _is_plain_error(value):
        return value
    return Unknown(f"{name} (a {kind.__name__})")


_OF_EVERY_CLASS: Final = frozenset(("__module__", "__doc__", "__qualname__", "__weakref__"))


def _is_plain_error(kind: type) -> bool:
    """Return whether errors of this kind have nothing of their own, so that they run no code."""
    own = (step for step in kind.__mro__ if step.__module__ != "builtins")
    return type(kind) is type and all(set(vars(step)) <= _OF_EVERY_CLASS for step in own)
