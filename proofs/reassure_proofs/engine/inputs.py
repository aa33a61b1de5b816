"""Plain inputs on which a claim is tried out after it was proved.

An input that the executor misjudges is nearly always one that holds a number of the code's own: a
constant, a member of a set at module level, one beside such a number. Inputs are made of those and
of small numbers, at random but alike in every run.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from math import floor, isfinite
from random import Random
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from reassure_proofs.engine.codes import find_names, read_closure
from reassure_proofs.engine.statement import Parameter, Shape, Values

_SMALL: Final = (0, 1, 2, 3, 4, -1)
_OBJECTS: Final = 3_000
"""So many objects are looked at in search of constants."""
_FOREIGN: Final = frozenset({"ctypes", "_ctypes", "z3", "cvc5"})
"""Packages whose objects hold addresses, which are no constants of anybody's code."""
_CONSTANTS: Final = 120
"""So many numbers are taken from the code."""


class TooLargeError(Exception):
    """Plain values that would not fit into memory: nothing is tried with them."""


@lru_cache(maxsize=256)
def find_constants(function: Any) -> tuple[int, ...]:
    """Return the numbers that a function speaks of, each with both its neighbours, nearest first.

    Constants of the code and of the functions that it names, defaults, closures and globals, with
    all that containers hold. Fractions count as the whole numbers around them.
    """
    found: dict[int, None] = {}
    queue: list[object] = [function]
    seen: set[int] = set()
    for value in queue:
        if len(seen) > _OBJECTS or len(found) > _CONSTANTS:
            break
        if id(value) not in seen:
            seen.add(id(value))
            found.update(dict.fromkeys(_whole(value)))
            queue.extend(_parts(value))
    near = (number + step for number in found for step in (0, 1, -1))
    return tuple(dict.fromkeys(near))


def _whole(value: object) -> tuple[int, ...]:
    if isinstance(value, bool):
        return ()
    if isinstance(value, int):
        return (int(value),)
    if isinstance(value, Fraction) or (isinstance(value, float) and isfinite(value)):
        return (floor(value), -floor(-value))
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
        return (int(value),)
    return ()


def _parts(value: object) -> Iterator[object]:
    """Yield what a value holds or speaks of."""
    if isinstance(value, CodeType):
        yield from value.co_consts
    elif isinstance(value, FunctionType):
        yield value.__code__
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
        yield from read_closure(value)
        yield from _named(value)
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, Mapping):
        yield from (*value.keys(), *value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, type):
        if issubclass(value, enum.Enum):
            yield from (member.value for member in value)
    elif not isinstance(value, ModuleType) and _find_origin(value) not in _FOREIGN:
        yield getattr(value, "__wrapped__", None)
        yield getattr(value, "func", None)
        yield from getattr(value, "__dict__", {}).values()


def _find_origin(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _named(function: FunctionType) -> Iterator[object]:
    """Yield the globals that a function and those within it name, and attributes of modules."""
    names = find_names(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        yield value
        if isinstance(value, ModuleType):
            yield from (vars(value).get(other) for other in names)


def draw(shape: Shape, constants: tuple[int, ...], chance: Random) -> dict[str, Any]:
    """Return arguments of a shape: few different numbers, and lists that have members in common."""
    hand = chance.sample(_SMALL, 4)
    if constants:
        many = chance.randrange(4)
        hand[:many] = chance.choices(constants, k=many)
    drawn: dict[str, Any] = {}
    lists: list[tuple[int, ...]] = []
    for name, parameter in shape.items():
        drawn[name] = _draw_one(parameter, [*hand], lists, constants, chance)
        if parameter.length is not None and parameter.kind in ("integer", "natural"):
            lists.append(drawn[name])
    return drawn


def _draw_one(
    parameter: Parameter,
    hand: list[int],
    lists: list[tuple[int, ...]],
    constants: tuple[int, ...],
    chance: Random,
) -> Any:
    if parameter.kind == "word":
        return parameter.word
    if parameter.kind == "set":
        known = sorted({number for each in lists for number in each} | set(hand))
        return frozenset(number for number in known if chance.random() < 0.6)
    if parameter.kind == "truth":
        truths = tuple(chance.random() < 0.5 for _ in range(parameter.length or 1))
        return truths[0] if parameter.length is None else truths
    if parameter.kind == "natural":
        hand = [abs(number) for number in hand]
    if parameter.length is None:
        listed = [number for each in lists for number in each]
        return chance.choice([*hand, *chance.choices(listed or hand, k=4), *_SMALL])
    # Lists are mostly without repetition, and mostly of members of one before.
    for source in (*([list(dict.fromkeys(lists[0]))] if lists else []), list(dict.fromkeys(hand))):
        if len(source) >= parameter.length and chance.random() < 0.8:
            return tuple(chance.sample(source, parameter.length))
    return tuple(chance.choices(hand, k=parameter.length))


def rename(arguments: Values, constants: Iterable[int], chance: Random) -> dict[str, Any]:
    """Return the arguments with one of their numbers replaced by a constant, wherever it stands.

    What holds of which numbers are equal still does, mostly.
    """
    numbers = sorted({number for value in arguments.values() for number in find_numbers(value)})
    pool = tuple(constants) or _SMALL
    if not numbers:
        return dict(arguments)
    old, new = chance.choice(numbers), chance.choice(pool)
    return {name: _replaced(value, old, new) for name, value in arguments.items()}


def find_numbers(value: object) -> Iterator[int]:
    """Yield the integers in an argument."""
    if isinstance(value, tuple | frozenset):
        for part in value:
            yield from find_numbers(part)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


def _replaced(value: Any, old: int, new: int) -> Any:
    """Return a value with two numbers in each other's place."""
    if isinstance(value, tuple | frozenset):
        return type(value)(_replaced(part, old, new) for part in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return {old: new, new: old}.get(value, value)
    return value
