"""Other text in modules of the controller for a while: the code of functions is exchanged in place.

Whoever has imported a function holds the function itself, so it is the code of it that is exchanged
and put back afterwards; nothing is imported anew. What a patch defines in addition is put into the
module, or the class, and taken out again.
"""

import ast
import importlib
import inspect
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from reassure_spec.errors import BadConfiguration, BadUsage

PACKAGE: Final = "reassure_controller"


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one module's text."""

    module: str
    """Its name in the package, as `replication.serving`."""
    old: str = ""
    """The text that goes; it stands there exactly once. "" where `new` is put behind all."""
    new: str = ""


class StalePatch(BadConfiguration):
    """A patch that does not fit the text of its module any more."""


class PatchesOverlap(BadUsage):
    """Patches that change the same place, so that they cannot be there together."""


class AlreadyPlanted(BadUsage):
    """Patches are there already."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What is to be done to one module."""

    codes: tuple[tuple[FunctionType, CodeType], ...]
    """Functions, each with its other code."""
    methods: tuple[tuple[Any, str, CodeType], ...]
    """Functions in addition: where, by which name."""
    imports: str
    """What the module imports besides."""


def find_root() -> Path:
    """Return the folder of the controller's modules, which are not loaded by that."""
    found = find_spec(PACKAGE)
    assert found is not None and found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0])


def read_source(module: str) -> str:
    """Return the text of a module of the controller."""
    return (find_root() / f"{module}.py").read_text(encoding="utf-8")


def read_held(derived: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what the mutants that a module beside this one derives are held against."""
    file = resources.files("reassure_conformance.mutants") / f"{derived}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _narrow(begin: int, patch: Patch) -> tuple[int, int, str]:
    """Return which lines a patch really changes: begin, end, and what stands there instead."""
    old, new = patch.old.splitlines(keepends=True), patch.new.splitlines(keepends=True)
    while old and new and old[0] == new[0]:
        begin += len(old.pop(0))
        del new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return begin, begin + len("".join(old)), "".join(new)


def _apply(name: str, text: str, patches: Sequence[Patch]) -> str:
    """Return the text of a module with all patches. Raises StalePatch, PatchesOverlap."""
    places: list[tuple[int, int, str]] = []
    for patch in patches:
        count = text.count(patch.old) if patch.old else 1
        if count != 1:
            raise StalePatch(
                f"{PACKAGE}.{name} has {count} times and not once: {patch.old!r}; write the patch "
                "of the mutant anew, or take the mutant out of the catalogue"
            )
        place = (len(text), len(text), f"\n\n{patch.new}")
        if patch.old:
            place = _narrow(text.index(patch.old), patch)
        if place not in places:  # mutants may bring the same definitions
            places.append(place)
    end = len(text)
    for begin, behind, new in sorted(places, reverse=True):
        if behind > end:
            raise PatchesOverlap(
                f"{PACKAGE}.{name}: two mutants change {text[begin:behind]!r}: plant one alone"
            )
        text, end = text[:begin] + new + text[behind:], begin
    return text


def _list_parts(
    body: Sequence[ast.stmt], lines: Sequence[str], within: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield functions and methods by qualified name with their text; imports by their text."""
    for one in body:
        first = min([one.lineno, *(each.lineno for each in getattr(one, "decorator_list", []))])
        text = "\n".join(lines[first - 1 : one.end_lineno])
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + one.name, text
        elif isinstance(one, ast.ClassDef):
            yield from _list_parts(one.body, lines, f"{within}{one.name}.")
        elif isinstance(one, ast.Import | ast.ImportFrom):
            yield text, ""


@cache
def _read_parts(name: str) -> tuple[str, dict[str, str]]:
    """Return the text of a module as it is, and its parts."""
    module = importlib.import_module(f"{PACKAGE}.{name}")
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    return text, dict(_list_parts(ast.parse(text).body, text.splitlines()))


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of every function within, those of classes included."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _list_codes(part)


def _find_owner(module: ModuleType, path: str) -> tuple[Any, str]:
    *classes, name = path.split(".")
    owner: Any = module
    for each in classes:
        owner = vars(owner)[each]
    return owner, name


def _find_function(module: ModuleType, path: str) -> FunctionType:
    """Return a function as it was written, without what decorates it."""
    owner, name = _find_owner(module, path)
    found = vars(owner)[name]
    if isinstance(found, property):
        found = found.fget
    function = inspect.unwrap(getattr(found, "__func__", found))
    assert isinstance(function, FunctionType)
    return function


@cache
def _prepare(name: str, patches: tuple[Patch, ...]) -> _Change:
    """Return what patches come to in their module. Raises StalePatch, PatchesOverlap."""
    module = importlib.import_module(f"{PACKAGE}.{name}")
    assert module.__file__ is not None
    text, old = _read_parts(name)
    changed = _apply(name, text, patches)
    new = dict(_list_parts(ast.parse(changed).body, changed.splitlines()))
    whole = compile(changed, module.__file__, "exec")
    codes = {code.co_qualname: code for code in _list_codes(whole)}
    more = [path for path in new if path not in old]
    change = _Change(
        tuple(
            (_find_function(module, path), codes[path])
            for path in new
            if path in codes and path in old and old[path] != new[path]
        ),
        tuple((*_find_owner(module, path), codes[path]) for path in more if path in codes),
        "\n".join(path for path in more if path not in codes),
    )
    if not any((change.codes, change.methods, change.imports)):
        raise StalePatch(f"{PACKAGE}.{name}: these patches change no function: {patches}")
    return change


def prepare(patches: Sequence[Patch]) -> dict[str, _Change]:
    """Return what patches come to, by module. Raises StalePatch, PatchesOverlap."""
    names = dict.fromkeys(patch.module for patch in patches)
    return {
        name: _prepare(name, tuple(patch for patch in patches if patch.module == name))
        for name in names
    }


_standing: list[Sequence[Patch]] = []
"""The patches that are there."""


@contextmanager
def exchanged(patches: Sequence[Patch]) -> Iterator[None]:
    """Have patches in the controller for a while, in this process; none do nothing.

    Raises StalePatch, PatchesOverlap, AlreadyPlanted.
    """
    if not patches:
        yield
        return
    if _standing:
        raise AlreadyPlanted("mutants are planted already: end that first, or plant all at once")
    changes = prepare(patches)
    before: list[tuple[FunctionType, CodeType]] = []
    added: list[tuple[Any, str]] = []
    _standing.append(patches)
    try:
        for name, change in changes.items():
            module = importlib.import_module(f"{PACKAGE}.{name}")
            known = set(vars(module))
            exec(change.imports, vars(module))
            added += [(module, one) for one in vars(module).keys() - known]
            for owner, one, code in change.methods:
                setattr(owner, one, FunctionType(code, vars(module), one))
                added.append((owner, one))
            for function, code in change.codes:
                before.append((function, function.__code__))
                function.__code__ = code
        yield
    finally:
        for function, code in before:
            function.__code__ = code
        for owner, one in added:
            delattr(owner, one)
        _standing.clear()
