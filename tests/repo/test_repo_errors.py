"""Every class of error of ours knows its exit code, or is caught wherever it can arise."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from reassure_conformance.cli.failing import find_code
from reassure_spec.errors import BadConfiguration, BadData, BadUsage, ReassureError, Unavailable

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/reassure_*/__init__.py"))
BASES = (BadUsage, BadData, Unavailable, BadConfiguration)


def _import_all() -> Iterator[object]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                yield importlib.import_module(module.name)


@cache
def list_errors() -> tuple[type[BaseException], ...]:
    """Return every class of error that a module of ours defines."""
    found = {
        thing
        for module in _import_all()
        for thing in vars(module).values()
        if inspect.isclass(thing) and issubclass(thing, BaseException)
    }
    ours = (kind for kind in found if kind.__module__.partition(".")[0] in PACKAGES)
    return tuple(sorted(ours, key=lambda kind: (kind.__module__, kind.__name__)))


@cache
def _list_nodes() -> tuple[ast.ExceptHandler | ast.Call | ast.Raise, ...]:
    """Return what our sources catch, call and raise."""
    trees = (ast.parse(path.read_text("utf-8")) for path in ROOT.glob("*/reassure_*/**/*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return tuple(n for n in nodes if isinstance(n, ast.ExceptHandler | ast.Call | ast.Raise))


def _name_all(parts: Iterable[ast.expr | None]) -> Iterator[str]:
    for name in (node for part in parts if part is not None for node in ast.walk(part)):
        if isinstance(name, ast.Name | ast.Attribute):
            yield name.id if isinstance(name, ast.Name) else name.attr


@cache
def list_caught() -> frozenset[str]:
    """Return the names of classes that our code catches or suppresses somewhere."""
    found: set[str] = set()
    for node in _list_nodes():
        if isinstance(node, ast.ExceptHandler):
            found |= set(_name_all([node.type]))
        elif isinstance(node, ast.Call) and "suppress" in _name_all([node.func]):
            found |= set(_name_all(node.args))
    return frozenset(found)


@cache
def list_raised() -> frozenset[str]:
    """Return the names of classes that our code makes errors of."""
    calls = (node.func for node in _list_nodes() if isinstance(node, ast.Call))
    raised = (node.exc for node in _list_nodes() if isinstance(node, ast.Raise))
    return frozenset(
        name.id if isinstance(name, ast.Name) else name.attr
        for name in (*calls, *raised)
        if isinstance(name, ast.Name | ast.Attribute)
    )


def _only_groups(kind: type[BaseException]) -> bool:
    """Whether only the subclasses of a class are raised, and each of these is caught."""
    kinds = kind.__subclasses__()
    return bool(kinds) and kind.__name__ not in list_raised() and not any(map(find_flaw, kinds))


def find_flaw(kind: type[BaseException]) -> str:
    """Return why nobody can tell how a command ends with such an error, "" where one can."""
    if not issubclass(kind, ReassureError):
        named = {base.__name__ for base in kind.__mro__ if base.__module__ != "builtins"}
        return (
            ""
            if named & list_caught() or _only_groups(kind)
            else "it has no exit code, and nothing catches it"
        )
    bases = [base for base in BASES if issubclass(kind, base)]
    if len(bases) > 1:
        return f"it is a matter of {' and of '.join(base.__name__ for base in bases)}"
    expected = bases[0].exit_code if bases else ReassureError.exit_code
    renamed = type("Renamed", (kind,), {"__init__": lambda _: None})
    if not expected == kind.exit_code == find_code(renamed()):
        return f"its exit code is {kind.exit_code}, not that of its base, {expected}"
    return ""


def test_every_error_has_its_exit_code_or_is_caught() -> None:
    """An error that may reach the command line has the code of one base, whatever its name is."""
    kinds = list_errors()
    silent = {"reassure_mutation"}  # what it is asked is well-formed, or the caller's own mistake
    assert {kind.__module__.partition(".")[0] for kind in kinds} == set(PACKAGES) - silent
    flaws = {f"{k.__module__}.{k.__qualname__}": f for k in kinds if (f := find_flaw(k))}
    assert flaws == {}


class _Loose(ValueError):
    """An error that nothing catches."""


class _Torn(BadData, Unavailable):
    """An error of two minds."""


class _Stray(BadUsage):
    """An error with a code of its own."""

    exit_code = 3


@pytest.mark.parametrize(
    ("kind", "words"),
    [(_Loose, "nothing catches it"), (_Torn, "BadData and of Un"), (_Stray, "exit code is 3")],
)
def test_flaws_are_noticed(kind: type[BaseException], words: str) -> None:
    """A class without a code, with two or with one of its own is found."""
    assert words in find_flaw(kind)
