"""The Python of a reviewer's rule, rewritten so that nothing happens to a symbolic value unseen.

A rule is an ordinary function. Run as it is on symbolic integers it would mislead wherever Python
answers without asking them: a plain number in a set, `is`, `type`, a handler that catches
everything. Therefore its source is taken, every construct that could do so is made a call of the
`Runtime` below, and what results, the *twin*, is run in its place. What the twin finds outside of
its arguments is converted by `engine.library`. All that is not known is refused, where it
is met, by name; the place is in the traceback, as twins keep the lines of what they were made of.

Plain inputs are always run through the rule itself, never through its twin.
"""

import ast
import builtins
import dis
import functools
import importlib
import linecache
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from types import BuiltinFunctionType, CellType, CodeType, FunctionType
from typing import Any, Final

from reassure_proofs.engine.containers import Order, RuleDict, RuleSet, unordered
from reassure_proofs.engine.library import (
    Known,
    Unknown,
    convert_plain,
    get_attribute,
    get_plain_type,
)
from reassure_proofs.engine.symex import GaveUp, SBool, Signal, SInt, bound_beyond

_RUNTIME: Final = "__reassure__"
_FORGETS_ORDER: Final = frozenset(("any", "all", "sum", "set", "frozenset", "sorted", "min", "max"))
"""Of what these are given the order does not matter, where that is all that they are given."""
_CHANGES_NOTHING: Final = _FORGETS_ORDER | {
    *("len", "abs", "int", "bool", "isinstance", "tuple", "list", "range", "enumerate", "zip"),
    *("get", "index", "count", "copy", "keys", "values", "items", "union", "intersection"),
    *("difference", "issubset", "issuperset", "isdisjoint"),
}
"""Functions and methods that leave no trace of the order in which they are called."""
_CACHED: Final = type(functools.cache(len))
_REFUSED: Final[dict[type[ast.AST], str]] = {
    ast.ClassDef: "a class inside of a rule",
    ast.AsyncFunctionDef: "a coroutine",
    ast.AsyncFor: "a coroutine",
    ast.AsyncWith: "a coroutine",
    ast.With: "a with statement",
    ast.Global: "a global that is changed, which would be a memory,",
    ast.TryStar: "an except* clause",
}


class Unfollowed(Exception):
    """A function whose source cannot be had, so that it has no twin."""


class Runtime:
    """What the rewritten constructs call."""

    set = RuleSet
    slice = slice

    def __init__(self) -> None:
        self.unordered = unordered

    def each(self, values: Any, *called: Any) -> Iterator[Any]:
        """Return the members of what a comprehension goes through, that calls these by name."""
        if not all(isinstance(function, Known) for function in called):
            return iter(values)
        if isinstance(values, RuleSet) and not values.ordered:
            Order.taken = Order.taken or len(values) > 1
        return unordered(values)

    def dict(self, pairs: Iterable[Any]) -> RuleDict:
        """Make a dict of pairs."""
        return RuleDict(pairs)

    def items(self, mapping: Any) -> Any:
        """Return the pairs of what a dict display takes in with `**`."""
        if not isinstance(mapping, RuleDict):
            raise GaveUp("** is applied to what is no plain dict")
        return mapping.items()

    def same(self, first: Any, second: Any) -> bool:
        """Return whether two values are one, where plain Python leaves no doubt about that."""
        for one, other in ((first, second), (second, first)):
            if other is None or other is ...:
                return one is other
            if type(one) is SBool and isinstance(other, SBool | bool):
                return bool(one == other)
        if isinstance(first, bool | Known) and isinstance(second, bool | Known):
            return first is second
        for value in (first, second):
            lasting = isinstance(value, list | RuleDict) or type(value) is object
            if lasting or (isinstance(value, RuleSet) and not value.frozen):
                return first is second
        if {type(first), type(second)} in ({SInt, bool}, {SInt, SBool}):
            return False
        raise GaveUp("`is` between values of which equal ones may or may not be one")

    def attribute(self, value: Any, name: str) -> Any:
        """Return an attribute."""
        return get_attribute(value, name, convert)

    def module(self, name: str, attribute: str = "") -> Any:
        """Return what an import inside of a rule gives."""
        module = importlib.import_module(name)
        return convert(getattr(module, attribute) if attribute else module, f"{name}.{attribute}")

    def item(self, value: Any, key: Any) -> Any:
        """Return an element or a slice."""
        return value[self.key(value, key)]

    def key(self, value: Any, key: Any) -> Any:
        """Return a subscript with plain bounds, one path for each that makes a difference."""
        if not isinstance(value, list | tuple | str | range):
            return key
        if isinstance(key, slice):
            beyond = bound_beyond(len(value), forwards=key.step is None)
            start, stop = (_plain_bound(end, beyond) for end in (key.start, key.stop))
            return slice(start, stop, key.step)
        return _plain_bound(key, bound_beyond(len(value), forwards=False))

    def handled(self) -> None:
        """Go on with a run that is over, where its end was caught; called first in handlers."""
        if Signal.latest is not None:
            raise Signal.latest
        error = sys.exc_info()[1]
        if isinstance(error, RecursionError):
            raise GaveUp("a call without end is caught")
        if error is not None and Order.taken:
            raise GaveUp("whether an error is raised may depend on the order of a set")

    def refuse(self, what: str) -> None:
        """Refuse by name."""
        raise GaveUp(f"{what} is not followed")


def _plain_bound(value: Any, beyond: int) -> Any:
    if isinstance(value, SBool):
        return int(bool(value))
    return value.choose_bound(beyond) if isinstance(value, SInt) else value


class _Rewriter(ast.NodeTransformer):
    """Makes calls of the runtime of the constructs that would not ask a symbolic value."""

    def visit(self, node: ast.AST) -> Any:
        what = _REFUSED.get(type(node))
        if what is not None and not (isinstance(node, ast.ClassDef) and self.depth == 0):
            return self._refusal(node, what)
        deeper = isinstance(node, ast.FunctionDef | ast.Lambda)
        self.depth += deeper
        try:
            return super().visit(node)
        finally:
            self.depth -= deeper

    def __init__(self) -> None:
        self.depth = 0

    def _call(self, node: ast.AST, name: str, *arguments: ast.expr) -> ast.Call:
        runtime = ast.Name(_RUNTIME, ast.Load())
        call = ast.Call(ast.Attribute(runtime, name, ast.Load()), list(arguments), [])
        placed: ast.Call = _placed(call, node)
        return placed

    def _refusal(self, node: ast.AST, what: str) -> Any:
        call = self._call(node, "refuse", ast.Constant(what))
        return _placed(ast.Expr(call), node) if isinstance(node, ast.stmt) else call

    def _elements(self, elements: list[ast.expr], node: ast.AST) -> Any:
        """Return a list of what a set display has, in which starred sets may lose their order."""
        for element in elements:
            if isinstance(element, ast.Starred):
                element.value = self._call(node, "unordered", element.value)
        return _placed(ast.List(elements, ast.Load()), node)

    def _forget_order(self, node: Any, *user: ast.expr) -> None:
        """Let a comprehension go through sets in any order, where nothing in it shows which."""
        names = {each.id for each in user if isinstance(each, ast.Name)}
        for part in ast.walk(node):
            called = part.func if isinstance(part, ast.Call) else None
            name = getattr(called, "id", "") or _attribute_name(called)
            if isinstance(part, ast.NamedExpr | ast.Yield | ast.YieldFrom) or (
                called is not None and name not in _CHANGES_NOTHING
            ):
                return
            names |= {called.id} if isinstance(called, ast.Name) else set()
        bound = (part for each in node.generators for part in ast.walk(each.target))
        if names & {part.id for part in bound if isinstance(part, ast.Name)}:
            return
        for each in node.generators:
            # Whether they are Python's own is seen when they are at hand.
            called_names = (ast.Name(name, ast.Load()) for name in sorted(names))
            each.iter = self._call(each.iter, "each", each.iter, *called_names)

    def visit_Set(self, node: ast.Set) -> Any:
        self.generic_visit(node)
        return self._call(node, "set", self._elements(node.elts, node))

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        self.generic_visit(node)
        self._forget_order(node)
        return self._call(node, "set", _placed(ast.ListComp(node.elt, node.generators), node))

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        pairs: list[ast.expr] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                pairs.append(ast.Starred(self._call(node, "items", value), ast.Load()))
            else:
                pairs.append(ast.Tuple([key, value], ast.Load()))
        return self._call(node, "dict", _placed(ast.List(pairs, ast.Load()), node))

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        self.generic_visit(node)
        pair = ast.Tuple([node.key, node.value], ast.Load())
        return self._call(node, "dict", _placed(ast.ListComp(pair, node.generators), node))

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if not any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
            return node
        if len(node.ops) > 1:
            return self._refusal(node, "`is` in a chain of comparisons")
        same = self._call(node, "same", node.left, node.comparators[0])
        if isinstance(node.ops[0], ast.Is):
            return same
        return _placed(ast.UnaryOp(ast.Not(), same), node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _FORGETS_ORDER and len(node.args) == 1 and not node.keywords:
            (argument,) = node.args
            if isinstance(argument, ast.GeneratorExp | ast.ListComp):
                self._forget_order(argument, _placed(ast.Name(name, ast.Load()), node))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        # What is said of types is made when an inner function is, and means nothing here.
        node.returns = None
        for part in ast.walk(node.args):
            if isinstance(part, ast.arg):
                part.annotation = None
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            # The first thing that storing does is asking for what to store in.
            node.value = self._refusal(node.value, "storing an attribute, which would be a memory,")
            return node
        return self._call(node, "attribute", node.value, ast.Constant(node.attr))

    def visit_Slice(self, node: ast.Slice) -> Any:
        self.generic_visit(node)
        ends = (node.lower, node.upper, node.step)
        given = (end if end is not None else ast.Constant(None) for end in ends)
        return self._call(node, "slice", *given)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return self._call(node, "item", node.value, node.slice)
        if isinstance(node.value, ast.Name):
            again = _placed(ast.Name(node.value.id, ast.Load()), node)
            node.slice = self._call(node, "key", again, node.slice)
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        if self.depth == 0:
            return node
        found = []
        for each in node.names:
            top = each.name if each.asname else each.name.split(".")[0]
            found.append(self._bind(node, each.asname or top, ast.Constant(top)))
        return found

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if self.depth == 0:
            return node
        if node.level or node.module is None:
            return self._refusal(node, "a relative import inside of a rule")
        module = node.module
        return [
            self._bind(
                node, each.asname or each.name, ast.Constant(module), ast.Constant(each.name)
            )
            for each in node.names
        ]

    def _bind(self, node: ast.stmt, name: str, *what: ast.expr) -> Any:
        target = ast.Name(name, ast.Store())
        return _placed(ast.Assign([target], self._call(node, "module", *what)), node)

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        handled = _placed(ast.Expr(self._call(node, "handled")), node)
        for handler in node.handlers:
            handler.body.insert(0, handled)
        if node.finalbody:
            node.finalbody.insert(0, handled)
        return node

    def visit_Match(self, node: ast.Match) -> Any:
        for part in ast.walk(node):
            if isinstance(part, ast.MatchClass | ast.MatchMapping):
                return self._refusal(node, "a pattern of a class or a mapping")
            if isinstance(part, ast.MatchSingleton) and part.value is not None:
                return self._refusal(node, "a pattern of True or False")
        return self.generic_visit(node)


def _attribute_name(called: Any) -> str:
    """Return the name of the method or of the runtime's function that is called, "" for none."""
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute):
        # A method was made a call of `Runtime.attribute` already.
        name = called.args[-1]
        return str(name.value) if isinstance(name, ast.Constant) else ""
    runtime = isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == _RUNTIME
    return "len" if runtime else ""


def _placed(node: Any, where: ast.AST) -> Any:
    """Return a new node with the place of the one that it stands for."""
    return ast.fix_missing_locations(ast.copy_location(node, where))


@dataclass(slots=True)
class _File:
    """The functions of one source file, as they are and as rewritten, by name and line."""

    plain: dict[tuple[str, int], list[CodeType]] = field(default_factory=dict)
    rewritten: dict[tuple[str, int], list[CodeType]] = field(default_factory=dict)


@functools.lru_cache(maxsize=64)
def _read_file(name: str, source: str) -> _File:
    found = _File()
    with warnings.catch_warnings():
        # Whoever loaded the file was warned then.
        warnings.simplefilter("ignore")
        tree = ast.parse(source, name)
        _collect(compile(source, name, "exec", dont_inherit=True), found.plain)
        rewritten = ast.fix_missing_locations(_Rewriter().visit(tree))
        _collect(compile(rewritten, name, "exec", dont_inherit=True), found.rewritten)
    return found


def _collect(code: CodeType, into: dict[tuple[str, int], list[CodeType]]) -> None:
    for inner in _inner_codes(code):
        into.setdefault((inner.co_qualname, inner.co_firstlineno), []).append(inner)
        _collect(inner, into)


def _inner_codes(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _rewrite(function: FunctionType) -> CodeType:
    """Return the rewritten code of a function. Raises Unfollowed where its source is not at hand.

    The source is compiled as it is too, to see that it is what runs.
    """
    code = function.__code__
    where = f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not source:
        raise Unfollowed(f"{where}, of which there is no source,")
    try:
        file = _read_file(code.co_filename, source)
    except SyntaxError as error:
        raise Unfollowed(f"{where}, whose source cannot be read ({error}),") from error
    key = (code.co_qualname, code.co_firstlineno)
    plain, rewritten = file.plain.get(key, []), file.rewritten.get(key, [])
    # Functions of one name on one line stand in the same order in both; their columns tell which.
    columns = list(code.co_positions())
    places = [i for i, each in enumerate(plain) if list(each.co_positions()) == columns]
    if len(places) != 1 or len(plain) != len(rewritten) or not _is_same(plain[places[0]], code):
        raise Unfollowed(f"{where}, of which the source is not what runs,")
    return rewritten[places[0]]


def _is_same(first: CodeType, second: CodeType) -> bool:
    """Return whether two codes do the same, whatever file they are told to be of."""
    if (first.co_code, first.co_names, first.co_varnames, first.co_freevars) != (
        second.co_code,
        second.co_names,
        second.co_varnames,
        second.co_freevars,
    ):
        return False
    pairs = list(zip(first.co_consts, second.co_consts, strict=False))
    return len(first.co_consts) == len(second.co_consts) and all(
        _is_same(one, other)
        if isinstance(one, CodeType) and isinstance(other, CodeType)
        else type(one) is type(other) and repr(one) == repr(other)
        for one, other in pairs
    )


_twins: Final[dict[int, tuple[Any, Any]]] = {}
"""Functions and their twins, by the identity of the function."""


def make_twin(function: Any) -> Any:
    """Return the twin of a function, or an Unknown that says why there is none."""
    known = _twins.get(id(function))
    if known is not None and known[0] is function:
        return known[1]
    if not isinstance(function, FunctionType):
        name = getattr(function, "__qualname__", type(function).__name__)
        return Unknown(f"{name} (a {type(function).__name__})")
    try:
        code = _rewrite(function)
    except Unfollowed as error:
        return Unknown(str(error))
    kept = _find_memory(code)
    if kept:
        return Unknown(f"{function.__qualname__}, which changes {kept!r} of its environment,")
    cells = {name: CellType() for name in code.co_freevars}
    names: dict[str, Any] = {"__builtins__": {}, "__name__": function.__module__}
    twin = FunctionType(code, names, function.__name__, None, tuple(cells.values()))
    # A function may call itself; what it finds outside is filled in once it can be found itself.
    _twins[id(function)] = (function, twin)
    own = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in own:
        if name in cells:
            cells[name].cell_contents = convert(cell.cell_contents, name)
    defaults = function.__defaults__ or ()
    twin.__defaults__ = tuple(convert(value, function.__name__) for value in defaults)
    named = function.__kwdefaults__ or {}
    twin.__kwdefaults__ = {name: convert(value, name) for name, value in named.items()}
    names[_RUNTIME] = Runtime()
    for name in _names(code) - {_RUNTIME}:
        if name in function.__globals__:
            names[name] = convert(function.__globals__[name], name)
        elif hasattr(builtins, name):
            names[name] = convert(getattr(builtins, name), name)
    return twin


def _find_memory(code: CodeType) -> str:
    """Return what a function changes that outlives its calls, "" for nothing."""
    outer = set(code.co_freevars)
    for each in _all_codes(code):
        for step in dis.get_instructions(each):
            stores = step.opname in ("STORE_DEREF", "DELETE_DEREF")
            # A variable of its own that goes by the same name is no free one there.
            if stores and step.argval in outer and step.argval in each.co_freevars:
                return str(step.argval)
    return ""


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in _inner_codes(code):
        yield from _all_codes(inner)


def _names(code: CodeType) -> set[str]:
    return {name for each in _all_codes(code) for name in each.co_names}


def convert(value: Any, name: str) -> Any:
    """Return a value that is found outside of the call as the twin of a rule may use it."""
    if isinstance(value, FunctionType):
        return make_twin(value)
    if type(value) is _CACHED:
        return _remember(make_twin(value.__wrapped__), name)
    if type(value) is functools.partial:
        named = {key: convert(part, name) for key, part in value.keywords.items()}
        given = (convert(part, name) for part in value.args)
        return functools.partial(convert(value.func, name), *given, **named)
    if isinstance(value, BuiltinFunctionType) and value.__module__:
        name = f"{value.__module__}.{value.__name__}"
    return convert_plain(value, name, convert)


def _remember(twin: Any, name: str) -> Any:
    """Return what stands for a cached function: what it remembers it would compute again.

    That is so only of values that cannot be changed; and a cache takes equal keys of different
    types for one.
    """

    def call(*arguments: Any, **named: Any) -> Any:
        _refuse_unless(_REMEMBERED_FOR, (*arguments, *named.values()), f"{name} is called with")
        answer = twin(*arguments, **named)
        _refuse_unless(_REMEMBERED, (answer,), f"{name} remembers")
        return answer

    return Known(name, call)


_REMEMBERED_FOR: Final = (SInt, int, str, type(None))
_REMEMBERED: Final = (*_REMEMBERED_FOR, SBool, bool, float, Fraction)


def _refuse_unless(kinds: tuple[type, ...], values: Iterable[Any], what: str) -> None:
    for value in values:
        if type(value) is tuple:
            _refuse_unless(kinds, value, what)
        elif type(value) not in kinds:
            told = get_plain_type(value).__name__
            raise GaveUp(f"the cached function {what} a {told}, which is not followed")


def run_twin(twin: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a twin answers. An error that may depend on the order of a set is refused."""
    Order.taken = False
    try:
        return twin(*arguments)
    except Exception as error:
        if Order.taken:
            raise GaveUp("whether an error is raised may depend on the order of a set") from error
        raise


def find_place(signal: BaseException) -> str:
    """Return the file and the line of a rule at which its run was ended, "" if not in a rule."""
    place, step = "", signal.__traceback__
    while step is not None:
        if _RUNTIME in step.tb_frame.f_globals:
            place = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    cause = signal.__cause__
    return find_place(cause) if not place and cause is not None else place
