"""Whether code looks at the number that a broker has.

Where a theorem gives its brokers plain numbers (the leader 0, whom else a step concerns 1), it
speaks of other brokers only so far as the code treats all numbers alike. A broker may be compared
with another one, looked for in a collection, be a member of a set or a key, and be the place of
what is its own. It may not be compared with a literal, put in an order, calculated with, or count
as true or false.

That is told from the text of every function of the model that the theorem's code reaches: what is
ordered, calculated or compared with a number has to be known to be no broker, by its name;
everything else is refused, with its line.
"""

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType, MappingProxyType
from typing import Any, Final

from reassure_proofs.engine.codes import all_codes, read_closure

_MODEL: Final = "reassure_model."
_NO_BROKER: Final = re.compile(
    r"(\w+_)?(ms|x|epochs?|ends?|versions?|offsets?|mark|watermark|lags?|max|shared|size|brokers"
    r"|start|election|now|at|len|count_common|sum|shown|before|positions?|log)"
)
"""Names of numbers that are no broker's; `brokers` is how many there are."""
_A_BROKER: Final = re.compile(r"(\w+_)?(brokers?|replica|leader|member|writer|r)")
_SETS: Final = re.compile(r"(\w+_)?(isr|members|live|truths)|frozenset|set")
"""Names of sets, which are joined and taken apart by operators of numbers."""
_RANKING: Final = ("min", "max", "sorted", "range", "sum", "abs", "hash", "divmod", "round", "int")
_RANKS: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_JOINS: Final = (ast.Sub, ast.BitOr, ast.BitAnd, ast.BitXor)


def find_looks(function: Any) -> list[str]:
    """Return where code that is reached looks at a broker's number, as `file:line: what`."""
    return [look for each in find_reached(function) for look in _find_in(each)]


def find_reached(function: Any) -> list[FunctionType]:
    """Return the functions of the model that a function reaches, in the order of their names."""
    found: dict[str, FunctionType] = {}
    seen: set[int] = set()
    queue = [function]
    while queue:
        value = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType) and value.__module__.startswith(_MODEL):
            found[f"{value.__module__}:{value.__qualname__}"] = value
        queue.extend(_parts(value))
    return [found[name] for name in sorted(found)]


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, FunctionType) and value.__module__.startswith("reassure_"):
        yield from (getattr(value, "__wrapped__", None), *(value.__defaults__ or ()))
        yield from read_closure(value)
        for code in all_codes(value.__code__):
            yield from (value.__globals__.get(name) for name in code.co_names)
            # A module of the model that is loaded by its name.
            named = [each for each in code.co_consts if str(each).startswith(_MODEL)]
            loaded = [import_module(each) for each in named]
            yield from (getattr(module, name, None) for module in loaded for name in code.co_names)
    elif isinstance(value, tuple | list | set | frozenset):
        yield from value
    elif isinstance(value, dict | MappingProxyType):
        yield from value.values()
    elif isinstance(value, type) and value.__module__.startswith(_MODEL):
        for own in vars(value).values():
            yield getattr(own, "fget", None) or getattr(own, "__func__", own)


def _find_in(function: FunctionType) -> Iterator[str]:
    code = function.__code__
    try:
        text = textwrap.dedent(inspect.getsource(code))
    except OSError:
        if code.co_filename != "<string>":
            yield f"{code.co_filename}:{code.co_firstlineno}: there is no source"
        return  # what a dataclass makes compares its fields and orders nothing
    for node in _walk(ast.parse(text)):
        for wrong in _judge(node, function.__globals__):
            line = code.co_firstlineno + getattr(wrong, "lineno", 1) - 1
            told = ast.unparse(wrong)
            yield f"{code.co_filename}:{line}: {told!r} may look at a broker's number"


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those in it, without texts, and without the place after a broker's own."""
    yield node
    for part in ast.iter_child_nodes(node):
        after = isinstance(node, ast.Slice) and ast.unparse(part).endswith(" + 1")
        if not isinstance(part, ast.JoinedStr) and not after:
            yield from _walk(part)


def _judge(node: ast.AST, names: dict[str, Any]) -> Iterator[ast.AST]:
    """Yield what of a node is not known to look at no broker's number."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        ranks = any(isinstance(each, _RANKS) for each in node.ops)
        literal = any(_has_number(side, names) for side in sides)
        numbers = all(_is_no_broker(side, names) for side in sides)
        if any(map(_is_text, sides)) or ((ranks or literal) and not numbers):
            yield node
    elif isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
        joins = isinstance(node.op, _JOINS) and any(map(_is_set, sides))
        if not (joins or _is_type(node) or all(_is_no_broker(side, names) for side in sides)):
            yield node
    elif isinstance(node, ast.Call) and _last(node.func) in _RANKING:
        if not all(_is_no_broker(each, names) for each in node.args):
            yield node
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield from filter(_is_broker, [node.test])
    elif isinstance(node, ast.BoolOp):
        yield from filter(_is_broker, node.values)
    elif isinstance(node, ast.UnaryOp):
        yield from filter(_is_broker, [node.operand])
    elif isinstance(node, ast.MatchValue) and _has_number(node.value, names):
        yield node
    elif isinstance(node, ast.Dict):
        yield from (key for key in node.keys if key is not None and _has_number(key, names))


def _last(node: ast.AST) -> str:
    """Return the name that a value goes by: its own, or that of what it is taken from."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    return _last(node.func) if isinstance(node, ast.Call) else ""


def _is_no_broker(node: ast.expr, names: dict[str, Any]) -> bool:
    """Return whether a value is a number that is no broker's, or a collection of such."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call) and _last(node.func) in _RANKING:
        return all(_is_no_broker(each, names) for each in node.args)
    if isinstance(node, ast.BinOp):
        return _is_no_broker(node.left, names) and _is_no_broker(node.right, names)
    if isinstance(node, ast.UnaryOp):
        return _is_no_broker(node.operand, names)
    if isinstance(node, ast.IfExp):
        return _is_no_broker(node.body, names) and _is_no_broker(node.orelse, names)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(_is_no_broker(each, names) for each in node.elts)
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return _is_no_broker(node.elt, names)
    return _NO_BROKER.fullmatch(_last(node)) is not None


def _has_number(node: ast.expr, names: dict[str, Any]) -> bool:
    """Return whether a number stands there: written out, a length, or by a name of the module."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_has_number(each, names) for each in node.elts)
    if isinstance(node, ast.BinOp):
        return _has_number(node.left, names) or _has_number(node.right, names)
    if isinstance(node, ast.Call):
        ranks = _last(node.func) in _RANKING and any(_has_number(e, names) for e in node.args)
        return ranks or _last(node.func) == "len"
    value = names.get(node.id) if isinstance(node, ast.Name) else None
    return isinstance(value, int) and not isinstance(value, bool)


def _is_broker(node: ast.AST) -> bool:
    named = isinstance(node, ast.Name | ast.Attribute)
    return named and _A_BROKER.fullmatch(_last(node)) is not None


def _is_text(node: ast.expr) -> bool:
    """Return whether a value is made text, of which nothing is seen here."""
    return isinstance(node, ast.JoinedStr) or _last(node) in ("str", "repr", "format")


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_set(node.left) or _is_set(node.right)
    return isinstance(node, ast.Set) or _SETS.fullmatch(_last(node)) is not None


def _is_type(node: ast.BinOp) -> bool:
    """Return whether an operator joins types, as `int | None` does."""
    parts = {_last(side)[:1] for side in (node.left, node.right)}
    none = any(isinstance(side, ast.Constant) and side.value is None for side in (node.right,))
    return isinstance(node.op, ast.BitOr) and (none or all(part.isupper() for part in parts))
