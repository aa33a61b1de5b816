"""What a model's functions are made of: their code, and the data that they look at besides a state.

`take_stock` follows every function of a model to the functions, classes and data that it names, and
keeps a digest of each. Two stocks of one model differ where code or data changed: on disk since
paths were learned, or while the model ran. Digests are the same in every process.

`read_code` reads the code for what no traced state can answer as a plain one does: the type
or identity of a value, and names outside of the function that it changes.
"""

import builtins
import contextlib
import dataclasses
import dis
import enum
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

from reassure_explorer.engine.interface import Model, ModelError

OWN: Final = frozenset(
    f"{__package__}.{name}"
    for name in (
        *("domains", "interface", "map_domain", "sequence_domain", "set_domain"),
        *("tracing", "views"),
    )
)
"""Modules that the engine itself consists of: the same for every model, and made for tracing."""
_ADVICE: Final[Mapping[str, str]] = {
    "type": "ask `isinstance`, or for `__class__`",
    "id": "compare with `==`",
    "vars": "name the fields",
    "locals": "name the values",
    "globals": "name the values",
    "eval": "write the code out",
    "exec": "write the code out",
}
_CAUGHT: Final = (TypeError, AttributeError, ValueError, LookupError, ModelError)
"""What an operation may raise that takes a real tuple and nothing that answers as one."""


_READS_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_LIBRARY: Final = sysconfig.get_path("stdlib")
_LIBRARY_FILES: Final = frozenset({dataclasses.__file__, enum.__file__})
"""Files whose functions turn up in classes of a model."""


class NotTraceable(ModelError):
    """A function that uses what a traced state cannot answer as a plain one does."""


@dataclass(slots=True)
class Stock:
    """Code and data that the functions of a model reach."""

    digests: dict[str, str] = field(default_factory=dict)
    """By what names it, in words."""
    functions: list[tuple[str, FunctionType]] = field(default_factory=list)
    """Functions of the model with the action or check that led there."""

    def compute_digest(self) -> str:
        """Return a digest of everything."""
        return _hash(repr(sorted(self.digests.items())))

    def find_difference(self, other: "Stock") -> str | None:
        """Return the name of something that another stock of the same model has otherwise."""
        names = {**self.digests, **other.digests}
        changed = (n for n in names if self.digests.get(n) != other.digests.get(n))
        return next(changed, None)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def list_functions(model: Model) -> list[tuple[str, Any]]:
    """Return what a model consists of with its name in words."""
    steps: list[tuple[str, Any]] = [(f"action {a.name}", a.step) for a in model.actions]
    steps += [(f"the parameters of {a.name}", a.parameters) for a in model.actions]
    steps += [(f"invariant {invariant.name}", invariant.find) for invariant in model.invariants]
    steps += [(f"goal {goal.name}", goal.reached) for goal in model.goals]
    others = (("`terminal`", model.terminal), ("the constraint", model.constraint))
    return steps + [(name, function) for name, function in others if function is not None]


def take_stock(model: Model) -> Stock:
    """Follow a model's functions to all that they are made of."""
    walk = _Walk(Stock())
    for name, value in list_functions(model):
        walk.root = name
        walk.note(name, value)
    walk.stock.digests["fields"] = _hash(walk.describe(dict(model.fields)))
    walk.stock.digests["order of fields"] = _hash(repr(list(model.fields)))
    walk.stock.digests["initial states"] = _hash(walk.describe(model.initial))
    return walk.stock


class _Walk:
    """Describes values in words that are the same for equal ones; functions it follows once."""

    def __init__(self, stock: Stock) -> None:
        self.stock, self.root = stock, ""
        self._known: dict[int, tuple[Any, str]] = {}
        """Functions and classes described before; kept, so that no id is used again."""
        self._open: set[int] = set()

    def note(self, name: str, value: Any) -> None:
        self.stock.digests[name] = _hash(self.describe(value))

    def describe(self, value: Any) -> str:
        if isinstance(value, bool | int | float | complex | str | bytes | range | None):
            return f"{type(value).__qualname__} {value!r}"
        if id(value) in self._known:
            return self._known[id(value)][1]
        if id(value) in self._open:
            return f"again {type(value).__qualname__}"
        self._open.add(id(value))
        try:
            return self._describe_made(value)
        finally:
            self._open.discard(id(value))

    def _describe_made(self, value: Any) -> str:
        if isinstance(value, Enum):
            return f"{_name(type(value))}.{value.name} {self.describe(value.value)}"
        if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
            return f"{type(value).__qualname__}({', '.join(map(self.describe, value))})"
        if isinstance(value, Set):
            return f"{type(value).__qualname__}({', '.join(sorted(map(self.describe, value)))})"
        if isinstance(value, Mapping):
            items = (f"{self.describe(k)}: {self.describe(v)}" for k, v in value.items())
            return f"{type(value).__qualname__}({', '.join(sorted(items))})"
        if isinstance(value, FunctionType):
            return self._follow(value, self._follow_function)
        if isinstance(value, type):
            return self._follow(value, self._follow_class)
        return self._describe_parts(value)

    def _describe_parts(self, value: Any) -> str:
        parts: list[Any]
        match value:
            case functools.partial():
                parts = [value.func, value.args, value.keywords]
            case MethodType():
                parts = [value.__func__, value.__self__]
            case property():
                parts = [value.fget]
            case functools.cached_property():
                parts = [value.func]
            case classmethod() | staticmethod():
                parts = [value.__func__]
            case ModuleType() | BuiltinFunctionType():
                return _name(value)
            case _ if hasattr(value, "__wrapped__"):
                parts = [value.__wrapped__]
            case _:
                parts = [_list_attributes(value)]
                if not _is_library(type(value).__module__):
                    parts.append(type(value))
        return f"{_name(type(value))}({', '.join(map(self.describe, parts))})"

    def _follow(self, value: Any, how: Callable[[Any], None]) -> str:
        name = _name(value)
        self._known[id(value)] = value, name
        if not _is_library(value.__module__):
            how(value)
        return name

    def _follow_class(self, kind: type) -> None:
        for base in kind.__mro__[1:]:
            self.describe(base)
        for name, value in vars(kind).items():
            if not name.startswith("__") or isinstance(value, FunctionType):
                self.note(f"{name} of {_name(kind)}", value)

    def _follow_function(self, function: FunctionType) -> None:
        # Not the whole path: the same code may lie elsewhere for another process.
        place = Path(_locate(function.__code__)).name
        name = f"{_name(function)} (in {self.root}, {place})"
        if not _is_generated(function):
            self.stock.functions.append((self.root, function))
        codes = list(_list_codes(function.__code__))
        self.stock.digests[f"the code of {name}"] = _hash(
            repr([(c.co_code, c.co_names, c.co_exceptiontable) for c in codes])
            + repr(
                [
                    self.describe(tuple(k for k in c.co_consts if not isinstance(k, CodeType)))
                    for c in codes
                ]
            )
        )
        self.note(f"the defaults of {name}", (function.__defaults__, function.__kwdefaults__))
        named = {n for code in codes for n in code.co_names}
        # Not each name that a global has as well: most are names of attributes.
        read = {n for code in codes for n in _list_globals(code)}
        for word in sorted(read & set(function.__globals__)):
            value = function.__globals__[word]
            self.note(f"{word!r}, named by {name}", value)
            if isinstance(value, ModuleType) and not _is_library(value.__name__):
                for attribute in sorted(named & set(vars(value))):
                    self.note(f"'{word}.{attribute}', named by {name}", vars(value)[attribute])
        for word, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            with contextlib.suppress(ValueError):  # not bound yet
                self.note(f"{word!r}, named by {name}", cell.cell_contents)


def _name(value: Any) -> str:
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
    return f"{module}.{name}" if name else str(getattr(value, "__name__", module))


def _is_library(module: str | None) -> bool:
    """Whether a module belongs to Python or to an installed library."""
    place = getattr(sys.modules.get(module or ""), "__file__", None)
    if module is None or module in OWN or place is None:
        return module is None or module in OWN or module in sys.stdlib_module_names
    return "site-packages" in place or place.startswith(_LIBRARY)


def _is_generated(function: FunctionType) -> bool:
    """Whether the library wrote the function, as it does for data classes."""
    place = function.__code__.co_filename
    return (place == "<string>" and function.__name__.startswith("__")) or place in _LIBRARY_FILES


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_codes(constant)


@functools.cache
def _list_globals(code: CodeType) -> frozenset[str]:
    """Return the names that code looks for in its module."""
    steps = dis.get_instructions(code)
    return frozenset(step.argval for step in steps if step.opname in _READS_GLOBAL)


def _list_attributes(value: Any) -> dict[str, Any] | str:
    """Return what an object holds, less what it keeps only to be quick; or its text."""
    kinds = type(value).__mro__
    slots = [s for kind in kinds for s in getattr(kind, "__slots__", ()) if hasattr(value, s)]
    held = {**{slot: getattr(value, slot) for slot in slots}, **getattr(value, "__dict__", {})}
    quick = {
        n
        for kind in kinds
        for n, v in vars(kind).items()
        if isinstance(v, functools.cached_property)
    }
    if held:
        return {name: part for name, part in held.items() if name not in quick}
    if hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    return "" if " at 0x" in repr(value) else repr(value)


def _locate(code: CodeType, line: int | None = None) -> str:
    return f"{code.co_filename}:{code.co_firstlineno if line is None else line}"


# Reading code ------------------------------------------------------------------------------------


def read_code(stock: Stock) -> tuple[list[str], bool]:
    """Return what a traced state cannot answer, and whether something hides that it could not.

    That is where a function goes on after errors such as a traced value may raise where a plain one
    does not.
    """
    refusals: list[str] = []
    swallows = False
    for root, function in stock.functions:
        for code in _list_codes(function.__code__):
            reader = _CodeReader(function, code)
            refusals += [f"{root} {what}" for what in reader.find_refusals()]
            swallows = swallows or reader.swallows()
    return refusals, swallows


_UNKNOWN: Final = object()


class _CodeReader:
    """Reads the instructions of one function, or of one within it."""

    def __init__(self, function: FunctionType, code: CodeType) -> None:
        self.function, self.code = function, code
        self.steps = list(dis.get_instructions(code))

    def _find_value(self, at: int) -> Any:
        """Return what an instruction loads where that is always the same; otherwise _UNKNOWN."""
        step = self.steps[at]
        if step.opname == "LOAD_CONST":
            return step.argval
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            known = {**vars(builtins), **self.function.__globals__}
            return known.get(step.argval, _UNKNOWN)
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if step.argval == "__class__":
                return type
            owner = self._find_value(at - 1)
            return _UNKNOWN if owner is _UNKNOWN else getattr(owner, step.argval, _UNKNOWN)
        return _UNKNOWN

    def _is_harmless(self, at: int) -> bool:
        """Whether the value that is compared by identity is never a set, tuple or state."""
        step = self.steps[at]
        value = self._find_value(at)
        if value is not _UNKNOWN:
            return not isinstance(value, tuple | frozenset)
        declared = self.function.__annotations__.get(step.argval)
        is_outermost = self.code is self.function.__code__
        if step.opname == "LOAD_FAST" and declared is not None and is_outermost:
            text = declared if isinstance(declared, str) else getattr(declared, "__name__", "Any")
            vague = ("any", "object", "tuple", "set", "state", "sequence", "iterable", "collection")
            return not any(word in text.lower() for word in vague)
        return False

    def _find_start(self, at: int) -> int:
        """Return where the value that the instruction leaves begins to be made."""
        while self.steps[at].opname in ("LOAD_ATTR", "LOAD_METHOD"):
            at -= 1
        return at

    def find_refusals(self) -> Iterator[str]:
        """Return what is refused: the line, why, and what to write instead."""
        line = self.code.co_firstlineno
        for at, step in enumerate(self.steps):
            line = step.starts_line or line
            where = _locate(self.code, line)
            match step.opname:
                case "STORE_GLOBAL" | "DELETE_GLOBAL":
                    yield f"changes the global {step.argval!r} ({where}): keep it in a field"
                case "STORE_DEREF" | "DELETE_DEREF" if (
                    step.argval in self.function.__code__.co_freevars
                ):
                    yield (
                        f"changes {step.argval!r} of the function around it ({where}): "
                        "keep it in a field"
                    )
                case "LOAD_GLOBAL" | "LOAD_NAME" if step.argval in _ADVICE:
                    if self._find_value(at) is getattr(builtins, step.argval):
                        yield f"uses `{step.argval}` ({where}): {_ADVICE[step.argval]}"
                case "IS_OP":
                    right = at - 1
                    left = self._find_start(right) - 1
                    if not self._is_harmless(right) and not self._is_harmless(left):
                        yield (
                            f"compares by identity ({where}): compare with `==`; `is` is for None, "
                            "True, False and constants"
                        )

    def swallows(self) -> bool:
        """Whether an error such as a TypeError is caught here."""
        caught: list[Any] = []
        for at, (step, after) in enumerate(pairwise(self.steps)):
            if step.opname == "PUSH_EXC_INFO":
                caught = []
                if after.opname == "POP_TOP":
                    return True
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR"):
                value = self._find_value(at)
                if value is contextlib.suppress:
                    return True
                caught.append(value)
            if step.opname in ("LOAD_FAST", "LOAD_DEREF"):
                caught.append(_UNKNOWN)
            if step.opname == "CHECK_EXC_MATCH" and any(map(_catches, caught)):
                return True
        return False


def _catches(kind: Any) -> bool:
    if kind is _UNKNOWN:
        return True
    kinds = kind if isinstance(kind, tuple) else (kind,)
    classes = [k for k in kinds if isinstance(k, type)]
    return any(issubclass(error, k) for error in _CAUGHT for k in classes)
