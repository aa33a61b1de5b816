"""Sets and dicts of the executor, held against Python's own with plain members."""

import operator
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

import pytest

from reassure_proofs.engine.containers import DictView, RuleDict, RuleSet
from reassure_proofs.engine.symex import GaveUp

MEMBERS: Final = ((), (1,), (1, 2), (2, 3), (1, (1, 2), "a"))
KEYS: Final[tuple[Callable[[], Any], ...]] = (
    lambda: 1,
    lambda: 3,
    lambda: (1, 2),
    lambda: "a",
    lambda: [1],
    lambda: (1, [2]),
)
"""What is looked for, put in or taken out; the last two stand in no set."""
OF_A_SET: Final = (
    *("__and__", "__sub__", "__or__", "__xor__", "__iand__", "__isub__", "__ior__", "__ixor__"),
    *("__le__", "__ge__", "__lt__", "__gt__", "__eq__", "__ne__"),
    *("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset"),
    *("isdisjoint", "update", "intersection_update", "difference_update"),
)
OF_A_MEMBER: Final = ("__contains__", "add", "discard", "remove")
ALONE: Final = ("copy", "clear", "__len__", "pop")
OF_A_KEY: Final = ("__contains__", "__getitem__", "__delitem__", "get", "setdefault", "pop")
OF_A_DICT: Final = ("__eq__", "__ne__", "__or__", "__ior__", "update")
OF_THE_DICT: Final = ("copy", "clear", "__len__", "keys", "values", "items", "popitem", "__iter__")


def show(value: Any) -> Any:
    """Return a value as the plain one that it stands for, its kind and order included."""
    if isinstance(value, RuleSet):
        return ("frozenset" if value.frozen else "set", frozenset(value.members))
    if isinstance(value, set | frozenset):
        return (type(value).__name__, frozenset(value))
    if isinstance(value, RuleDict | dict):
        return ("dict", tuple(value.items()))
    if isinstance(value, DictView) or type(value).__name__ in ("dict_values", "dict_items"):
        return ("view", tuple(value))
    if type(value).__name__ == "dict_keys":
        return ("set", frozenset(value))
    return ("iterator", tuple(value)) if isinstance(value, Iterator) else value


def try_out(holder: Any, name: str, *arguments: Any) -> Any:
    """Return what a method answers and leaves behind, or the kind of the exception."""
    try:
        answer = getattr(holder, name)(*arguments)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        return type(error).__name__, show(holder)
    return show(answer), show(holder)


def compare(rule: Any, plain: Any, name: str, ours: tuple[Any, ...], theirs: Any) -> None:
    """Hold one call against the plain one; what is refused by name is not held against it."""
    if not hasattr(plain, name):
        return
    try:
        found = try_out(rule, name, *ours)
    except GaveUp:
        return
    assert found == try_out(plain, name, *theirs)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("members", MEMBERS)
def test_set_answers_as_a_plain_one(members: tuple[Any, ...], frozen: bool) -> None:
    """Every method gives the same answer, the same set and the same exception as Python's."""
    kind = frozenset if frozen else set

    def make() -> RuleSet:
        return RuleSet(members, frozen=frozen)

    for name, other in product(OF_A_SET, MEMBERS):
        compare(make(), kind(members), name, (RuleSet(other),), (set(other),))
    for name, key in product(OF_A_MEMBER, KEYS):
        compare(make(), kind(members), name, (key(),), (key(),))
    for name in ALONE if len(members) < 2 else ALONE[:-1]:
        compare(make(), kind(members), name, (), ())


@pytest.mark.parametrize("keys", MEMBERS)
def test_dict_answers_as_a_plain_one(keys: tuple[Any, ...]) -> None:
    """Every method gives the same answer, the same dict, in order, and the same exception."""

    def pair(names: tuple[Any, ...]) -> list[tuple[Any, int]]:
        return [(name, place) for place, name in enumerate(names)]

    for name, key in product(OF_A_KEY, KEYS):
        compare(RuleDict(pair(keys)), dict(pair(keys)), name, (key(),), (key(),))
        if name in ("get", "setdefault", "pop"):
            compare(RuleDict(pair(keys)), dict(pair(keys)), name, (key(), 9), (key(), 9))
    for key in KEYS:
        arguments = (key(), 9)
        compare(RuleDict(pair(keys)), dict(pair(keys)), "__setitem__", arguments, arguments)
    for name, other in product(OF_A_DICT, MEMBERS):
        ours, theirs = (RuleDict(pair(other)),), (dict(pair(other)),)
        compare(RuleDict(pair(keys)), dict(pair(keys)), name, ours, theirs)
    for name in (*OF_THE_DICT, "__reversed__"):
        compare(RuleDict(pair(keys)), dict(pair(keys)), name, (), ())


@pytest.mark.parametrize("name", ["add", "discard", "remove", "clear", "pop", "update"])
def test_shared_set_is_not_changed(name: str) -> None:
    """What outlives the call can be read; whatever would change it is refused."""
    shared = RuleSet((1,), shared=True)
    arguments = {"add": (2,), "discard": (1,), "remove": (1,), "update": ((2,),)}.get(name, ())
    with pytest.raises(GaveUp, match="outlives the call"):
        getattr(shared, name)(*arguments)
    assert shared.members == [1]


@pytest.mark.parametrize("name", ["__setitem__", "__delitem__", "pop", "popitem", "clear"])
def test_shared_dict_is_not_changed(name: str) -> None:
    """The same holds of a dict."""
    shared = RuleDict([(1, 2)], shared=True)
    arguments = {"__setitem__": (1, 3), "__delitem__": (1,), "pop": (1,)}.get(name, ())
    with pytest.raises(GaveUp, match="outlives the call"):
        getattr(shared, name)(*arguments)
    assert show(shared) == ("dict", ((1, 2),))


def grow_set(holder: Any) -> None:
    """Add to a set while going through it."""
    for member in holder:
        holder.add(member + 1)


def grow_dict(holder: Any) -> None:
    """Add to a dict while going through its keys."""
    for key in holder:
        holder[key + 1] = 3


def grow_under_values(holder: Any) -> None:
    """Add to a dict while going through its values."""
    for value in holder.values():
        holder[value + 1] = value + 1


@pytest.mark.parametrize(
    ("grow", "holder"),
    [
        (grow_set, RuleSet((1,))),
        (grow_set, RuleSet((1, 5), ordered=True)),
        (grow_set, {1}),
        (grow_dict, RuleDict([(1, 2)])),
        (grow_dict, RuleDict([(1, 2), (5, 2)])),
        (grow_dict, {1: 2}),
        (grow_under_values, RuleDict([(1, 2)])),
        (grow_under_values, {1: 2}),
    ],
)
def test_change_under_way_is_an_error_as_in_a_plain_one(
    grow: Callable[[Any], None], holder: Any
) -> None:
    """Going on through what has grown meanwhile raises as in Python, past the last member too."""
    with pytest.raises(RuntimeError, match="changed size"):
        grow(holder)


@pytest.mark.parametrize("left", [[1], (1,), "1", 1])
@pytest.mark.parametrize("sign", [operator.and_, operator.or_, operator.sub, operator.xor])
def test_set_meets_only_sets(left: Any, sign: Callable[[Any, Any], Any]) -> None:
    """On the right of what is no set a set raises what Python's own raises, or is refused."""
    with pytest.raises(TypeError):
        sign(left, {1})
    with pytest.raises((TypeError, GaveUp)):
        sign(left, RuleSet((1,)))
