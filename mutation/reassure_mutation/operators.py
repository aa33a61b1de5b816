"""Mutation operators: each changes a function in one place, by its syntax tree.

An operator looks at a node and yields edits. An edit is the nodes that it puts in place of others,
so that nothing is changed in place and the original stays what it is.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

Edit = tuple[tuple[ast.AST, ast.AST], ...]
"""Pairs of a node, and what stands in its place."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A function that is changed in one place."""

    name: str
    """Operator and text; unique and stable within the function."""
    sentence: str
    """What is different, for people."""
    tree: ast.FunctionDef
    """What is not changed is shared with the others; new nodes have no place in the text."""


_OPPOSITES: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_LIKE: Final = (ast.Attribute, ast.Subscript)
"""Arguments of a call that may be taken for each other; names seldom are of the same type."""
_QUANTIFIERS: Final = {"all": "any", "any": "all", "min": "max", "max": "min"}


def _name(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Load())


def _negate(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _swap(first: ast.AST, second: ast.AST) -> Edit:
    return (first, second), (second, first)


def _without(values: list[Any], place: int) -> list[Any]:
    return values[:place] + values[place + 1 :]


def _find_condition(node: ast.AST) -> Iterator[Edit]:
    """Negate a condition, or take it for always or never true."""
    tests = []
    if isinstance(node, ast.If | ast.IfExp):
        tests = [node.test]
    elif isinstance(node, ast.comprehension):
        tests = node.ifs
    for test in tests:
        yield ((test, _negate(test)),)
        yield ((test, ast.Constant(True)),)
        yield ((test, ast.Constant(False)),)


def _find_quantifier(node: ast.AST) -> Iterator[Edit]:
    """Take any for all, the greatest for the least."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        other = _QUANTIFIERS.get(node.func.id)
        if other is not None:
            yield ((node.func, _name(other)),)


def _find_operand(node: ast.AST) -> Iterator[Edit]:
    """Leave out a part of a condition, of a sum or of an alternative."""
    if isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            left = _without(node.values, place)
            yield ((node, left[0] if len(left) == 1 else ast.BoolOp(node.op, left)),)
    elif isinstance(node, ast.BinOp):
        yield ((node, node.left),)
        yield ((node, node.right),)


def _find_connective(node: ast.AST) -> Iterator[Edit]:
    """Take or for and."""
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ((node, ast.BoolOp(other, node.values)),)


def _find_comparison(node: ast.AST) -> Iterator[Edit]:
    """Turn a comparison into its opposite, or let it include its bound."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPPOSITES:
        ops = [_OPPOSITES[type(node.ops[0])](), *node.ops[1:]]
        yield ((node, ast.Compare(node.left, ops, node.comparators)),)


def _find_arithmetic(node: ast.AST) -> Iterator[Edit]:
    """Take minus for plus; of sets, what both have for all that one has."""
    others: Mapping[type[ast.operator], type[ast.operator]] = {
        ast.Add: ast.Sub,
        ast.Sub: ast.Add,
        ast.BitOr: ast.BitAnd,
        ast.BitAnd: ast.BitOr,
    }
    if isinstance(node, ast.BinOp) and type(node.op) in others:
        yield ((node, ast.BinOp(node.left, others[type(node.op)](), node.right)),)


def _find_constant(node: ast.AST) -> Iterator[Edit]:
    """Let a number be off by one, a truth value be the other one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ((node, ast.Constant(not node.value)),)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ((node, ast.Constant(node.value + 1)),)
        yield ((node, ast.Constant(node.value - 1)),)


def _find_bound(node: ast.AST) -> Iterator[Edit]:
    """Begin or end a slice one element off."""
    if isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                yield ((bound, ast.BinOp(bound, ast.Add(), ast.Constant(1))),)
                yield ((bound, ast.BinOp(bound, ast.Sub(), ast.Constant(1))),)


def _find_order(node: ast.AST) -> Iterator[Edit]:
    """Put two neighbours the other way round."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        pairs = list(zip(node.values, node.values[1:], strict=False))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        pairs = [(node.left, node.right)]
    elif isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        pairs = list(zip(node.elts, node.elts[1:], strict=False))
    elif isinstance(node, ast.Call):
        near = zip(node.args, node.args[1:], strict=False)
        pairs = [(a, b) for a, b in near if isinstance(a, _LIKE) and type(a) is type(b)]
    for first, second in pairs:
        yield _swap(first, second)


def _find_element(node: ast.AST) -> Iterator[Edit]:
    """Leave out an element of a list that has others spread into it."""
    if not isinstance(node, ast.Tuple | ast.List) or not isinstance(node.ctx, ast.Load):
        return
    if any(isinstance(each, ast.Starred) for each in node.elts):
        for place in range(len(node.elts)):
            yield ((node, ast.Tuple(_without(node.elts, place), ast.Load())),)


def _find_field(node: ast.AST) -> Iterator[Edit]:
    """Let a field of a record stay as it was."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "replace":
        for place in range(len(node.keywords)):
            yield ((node, ast.Call(node.func, node.args, _without(node.keywords, place))),)


def _find_statement(node: ast.AST) -> Iterator[Edit]:
    """Skip a statement, take two decisions the other way round, or answer nothing."""
    for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if not isinstance(body, list):
            continue
        for place, statement in enumerate(body):
            if _is_text(statement) or isinstance(statement, ast.Assert | ast.Pass):
                continue
            if isinstance(statement, ast.Return):
                if statement.value is not None and not isinstance(statement.value, ast.Constant):
                    yield ((statement.value, ast.Constant(None)),)
                continue
            yield ((statement, ast.Pass()),)
            after = body[place + 1] if place + 1 < len(body) else None
            if isinstance(statement, ast.If) and isinstance(after, ast.If):
                yield _swap(statement, after)


def _is_text(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


OPERATORS: Final[Mapping[str, Callable[[ast.AST], Iterator[Edit]]]] = {
    "condition": _find_condition,
    "quantifier": _find_quantifier,
    "operand": _find_operand,
    "connective": _find_connective,
    "comparison": _find_comparison,
    "arithmetic": _find_arithmetic,
    "constant": _find_constant,
    "bound": _find_bound,
    "order": _find_order,
    "element": _find_element,
    "field": _find_field,
    "statement": _find_statement,
}
"""The operators by name; each says in its own text what it does."""


def _rebuild(value: Any, places: Mapping[int, ast.AST], above: Set[int]) -> Any:
    """Return a node with others in some places; what none of them stands below is shared."""
    if id(value) in places:
        return places[id(value)]
    if isinstance(value, list):
        return [_rebuild(each, places, above) for each in value]
    if id(value) not in above:
        return value
    fields = {name: _rebuild(each, places, above) for name, each in ast.iter_fields(value)}
    return ast.copy_location(type(value)(**fields), value)


def _list_above(node: ast.AST, parents: Mapping[int, ast.AST]) -> Iterator[int]:
    while (parent := parents.get(id(node))) is not None:
        yield id(parent)
        node = parent


def strip(function: ast.FunctionDef) -> ast.FunctionDef:
    """Return what of a function is carried out: no decorators, annotations, texts and checks."""
    bare = copy.deepcopy(function)
    bare.decorator_list, bare.returns = [], None
    for node in ast.walk(bare):
        if isinstance(node, ast.arg):
            node.annotation = None
    bare.body = [each for each in bare.body if not _is_text(each)] or [ast.Pass()]
    return bare


def _shorten(node: ast.AST) -> str:
    """Return the text of a node; of a statement with a body only its head."""
    return " ".join(ast.unparse(node).split("\n")[0].split())


def _find_left_out(before: ast.AST, after: ast.AST) -> ast.AST | None:
    """Return the operand or element that an edit leaves out, None where it does something else."""
    if isinstance(before, ast.BinOp) and after in (before.left, before.right):
        return before.right if after is before.left else before.left
    kept = getattr(after, "values", None) or getattr(after, "elts", None) or [after]
    for parts in (getattr(before, "values", []), getattr(before, "elts", [])):
        gone: list[ast.AST] = [each for each in parts if each not in kept]
        if len(gone) == 1 and len(kept) == len(parts) - 1:
            return gone[0]
    return None


def _describe(edit: Edit) -> tuple[str, str]:
    """Return the text of an edit, and the sentence that says what it does."""
    (before, after), *others = edit
    old, new = _shorten(before), _shorten(after)
    gone = _find_left_out(before, after)
    if others:
        return f"{old} <-> {new}", f"`{old}` and `{new}` change places"
    if isinstance(after, ast.Pass):
        return f"{old} -> pass", f"`{old}` is skipped"
    if gone is not None:
        return f"without {_shorten(gone)}", f"`{_shorten(gone)}` is left out"
    if isinstance(after, ast.Constant) and after.value is None:
        return f"{old} -> None", f"nothing is answered where it is `{old}`"
    return f"{old} -> {new}", f"`{old}` becomes `{new}`"


def iterate_mutations(function: ast.FunctionDef) -> Iterator[Mutation]:
    """Yield every change that an operator makes to a function, each once."""
    bare = strip(function)
    seen = {ast.dump(bare)}
    names: Counter[str] = Counter()
    parents = {id(each): node for node in ast.walk(bare) for each in ast.iter_child_nodes(node)}
    asserted = {
        id(each)
        for node in ast.walk(bare)
        if isinstance(node, ast.Assert)
        for each in ast.walk(node)
    }
    for node in ast.walk(bare):
        if id(node) in asserted:
            continue
        for operator, find in OPERATORS.items():
            for edit in find(node):
                places = {id(before): after for before, after in edit}
                above = {each for before, _ in edit for each in _list_above(before, parents)}
                tree: ast.FunctionDef = _rebuild(bare, places, above)
                content = ast.dump(tree)
                if content in seen:
                    continue
                seen.add(content)
                text, sentence = _describe(edit)
                name = f"{operator}: {text}"
                names[name] += 1
                if names[name] > 1:
                    name = f"{name} ({names[name]})"
                yield Mutation(name, sentence, tree)
