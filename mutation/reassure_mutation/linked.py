"""Copies of functions that call each other, and never the originals.

The judge asks the same functions of the model as the reference controller. A mutant of one of them
must not make both wrong in the same way, so it lives in a copy: every function that is reached from
where a controller begins, each with a copy of its module's names in which those functions stand.
Records are shared, so that what a copy answers can be compared with what the original does.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final

from reassure_mutation.operators import Mutation, iterate_mutations, strip

ROOMS: Final = ("reassure_model.", "reassure_judge.")
"""Where the functions of a reference controller stand."""


@cache
def _parse(module: str) -> Mapping[str, ast.FunctionDef]:
    """Return the functions of a module by their qualified names, methods included."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    bodies = [("", tree.body), *((f"{each.name}.", each.body) for each in classes)]
    return {
        f"{prefix}{node.name}": node
        for prefix, body in bodies
        for node in body
        if isinstance(node, ast.FunctionDef)
    }


def _list_names(code: CodeType) -> set[str]:
    """Return the names that a function looks up, those of the functions within it included."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_list_names, inner))


def _list_called(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions of the model that a function names, or finds in a table that it names."""
    for name in sorted(_list_names(function.__code__)):
        value = function.__globals__.get(name)
        for each in value.values() if isinstance(value, Mapping) else (value,):
            if isinstance(each, FunctionType) and each.__module__.startswith(ROOMS):
                yield each


def list_reached(*begin: FunctionType) -> tuple[FunctionType, ...]:
    """Return every function that is reached from these, themselves included, in a stable order."""
    found: dict[FunctionType, None] = {}
    waiting = list(begin)
    while waiting:
        function = waiting.pop(0)
        if function not in found:
            found[function] = None
            waiting += _list_called(function)
    return tuple(found)


def spell(function: FunctionType) -> str:
    """Return the name of a function with its module, without the room.

    >>> from reassure_model.selectors import select_new
    >>> spell(select_new)
    'selectors.select_new'
    """
    module = function.__module__.split(".", 1)[1].removeprefix("protocols.")
    return f"{module}.{function.__qualname__}"


def parse(function: FunctionType) -> ast.FunctionDef:
    """Return the syntax tree of a function of a module, or of a method of its classes."""
    return _parse(function.__module__)[function.__qualname__]


def list_defined(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions of a module and the methods of its classes, as its text has them."""
    owners = [
        vars(module),
        *(vars(each) for each in vars(module).values() if isinstance(each, type)),
    ]
    found = dict.fromkeys(
        function
        for owner in owners
        for each in owner.values()
        if isinstance(function := getattr(each, "fget", each), FunctionType)
        and function.__module__ == module.__name__
    )
    yield from (each for each in found if each.__qualname__ in _parse(module.__name__))


@dataclass(frozen=True, slots=True)
class Mutant:
    """A function with one mistake."""

    function: FunctionType
    mutation: Mutation

    @property
    def name(self) -> str:
        """Its stable name: function, operator and text."""
        return f"{spell(self.function)}: {self.mutation.name}"

    @property
    def sentence(self) -> str:
        """What is different, for people."""
        return f"in {spell(self.function)} {self.mutation.sentence}"


def list_mutants(functions: Iterable[FunctionType]) -> tuple[Mutant, ...]:
    """Return every mutant of some functions, in a stable order."""
    return tuple(
        Mutant(function, mutation)
        for function in functions
        for mutation in iterate_mutations(parse(function))
    )


def find_called(run: Callable[[], object]) -> frozenset[str]:
    """Return the files of the functions that run: a copy's is its name in angle brackets."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return frozenset(called)


def _compile(function: FunctionType, tree: ast.FunctionDef) -> CodeType:
    """Return the code of a text that stands in place of a function's; its file is the name."""
    module = ast.Module([ast.fix_missing_locations(tree)], type_ignores=[])
    return compile(module, f"<{spell(function)}>", "exec")


class Linked:
    """A linked copy of the functions that are reached from some."""

    def __init__(self, *begin: FunctionType) -> None:
        self.functions: Final = list_reached(*begin)
        modules = {each.__module__ for each in self.functions}
        self._names: Final = {each: dict(vars(sys.modules[each])) for each in modules}
        """By module, the names that the copies in it look up."""
        tables = self._list_tables()
        self._places: Final = {
            function: [
                (names, name)
                for names in tables
                for name, value in names.items()
                if value is function
            ]
            for function in self.functions
        }
        """Where a function is looked up."""
        self._copies: Final = {
            each: self.compile(each, strip(parse(each))) for each in self._places
        }
        for function, copy in self._copies.items():
            self._bind(function, copy)

    def _list_tables(self) -> list[dict[Any, Any]]:
        """Return the names of each module, and copies of the tables of functions among them."""
        found: list[dict[Any, Any]] = list(self._names.values())
        for names in self._names.values():
            for name, value in names.items():
                if isinstance(value, Mapping) and any(f in value.values() for f in self.functions):
                    names[name] = dict(value)
                    found.append(names[name])
        return found

    def compile(self, function: FunctionType, tree: ast.FunctionDef) -> FunctionType:
        """Return a function of this text, in place of that one, that calls the copies."""
        names = self._names[function.__module__]
        before = names[function.__name__]
        exec(_compile(function, tree), names)
        made: FunctionType = names[function.__name__]
        names[function.__name__] = before
        return made

    def _bind(self, function: FunctionType, copy: FunctionType) -> None:
        for names, name in self._places[function]:
            names[name] = copy

    def get(self, function: FunctionType) -> Callable[..., Any]:
        """Return what calls the copy of a function, whichever mutant is planted by then."""
        names, name = self._places[function][0]
        return lambda *arguments: names[name](*arguments)

    def find_called(self, run: Callable[[], object]) -> frozenset[str]:
        """Return the files of the copies that run."""
        return find_called(run)

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """Let the copies call a changed function, in place of the copy of one, until the end."""
        function = mutant.function
        self._bind(function, self.compile(function, mutant.mutation.tree))
        try:
            yield
        finally:
            self._bind(function, self._copies[function])


class InPlace:
    """Functions, methods among them, that are changed where they stand.

    For what nobody else asks meanwhile: what is right has to be known by then.
    """

    def __init__(self, functions: Iterable[FunctionType]) -> None:
        self.functions: Final = tuple(functions)

    def get(self, function: FunctionType) -> Callable[..., Any]:
        """Return the function itself."""
        return function

    def find_called(self, run: Callable[[], object]) -> frozenset[str]:
        """Return the functions that run, as the files of copies are called."""
        codes = {each: each.__code__ for each in self.functions}
        for function, code in codes.items():
            function.__code__ = code.replace(co_filename=f"<{spell(function)}>")
        try:
            return find_called(run)
        finally:
            for function, code in codes.items():
                function.__code__ = code

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """Let a function be a changed one until the end."""
        function, names = mutant.function, dict(mutant.function.__globals__)
        exec(_compile(function, mutant.mutation.tree), names)
        changed: FunctionType = names[function.__name__]
        kept = function.__code__, function.__defaults__, function.__kwdefaults__
        function.__code__ = changed.__code__
        function.__defaults__ = changed.__defaults__
        function.__kwdefaults__ = changed.__kwdefaults__
        try:
            yield
        finally:
            function.__code__, function.__defaults__, function.__kwdefaults__ = kept
