"""The source of a reviewer's rule, rewritten: what would not ask a symbolic value becomes a call.

`engine.dialect` has what is called, and says why.
"""

import ast
import functools
import linecache
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, Final

from reassure_proofs.engine.codes import inner_codes

RUNTIME: Final = "__reassure__"
_FORGETS_ORDER: Final = frozenset(("any", "all", "sum", "set", "frozenset", "sorted", "min", "max"))
"""Of what these are given the order does not matter, where that is all that they are given."""
_CHANGES_NOTHING: Final = _FORGETS_ORDER | {
    *("len", "abs", "int", "bool", "isinstance", "tuple", "list", "range", "enumerate", "zip"),
    *("get", "index", "count", "copy", "keys", "values", "items", "union", "intersection"),
    *("difference", "issubset", "issuperset", "isdisjoint"),
}
"""Functions and methods that leave no trace of the order in which they are called."""
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
        runtime = ast.Name(RUNTIME, ast.Load())
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
    runtime = isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == RUNTIME
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
def _read_file(name: str, source: str, rewriter: Callable[[], ast.NodeTransformer]) -> _File:
    found = _File()
    with warnings.catch_warnings():
        # Whoever loaded the file was warned then.
        warnings.simplefilter("ignore")
        tree = ast.parse(source, name)
        _collect(compile(source, name, "exec", dont_inherit=True), found.plain)
        rewritten = ast.fix_missing_locations(rewriter().visit(tree))
        _collect(compile(rewritten, name, "exec", dont_inherit=True), found.rewritten)
    return found


def _collect(code: CodeType, into: dict[tuple[str, int], list[CodeType]]) -> None:
    for inner in inner_codes(code):
        into.setdefault((inner.co_qualname, inner.co_firstlineno), []).append(inner)
        _collect(inner, into)


def rewrite(
    function: FunctionType, rewriter: Callable[[], ast.NodeTransformer] = _Rewriter
) -> CodeType:
    """Return the rewritten code of a function. Raises Unfollowed where its source is not at hand.

    The source is compiled as it is too, to see that it is what runs.
    """
    code = function.__code__
    where = f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not source:
        raise Unfollowed(f"{where}, of which there is no source,")
    try:
        file = _read_file(code.co_filename, source, rewriter)
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
