"""The source of code under test, with what goes through brokers handed over.

Every function of this project that is reached is run by its *twin*: the same source, in which
comprehensions, loops and tuples with starred lists are calls of what stands below. What is plain is
done as before, so that of plain arguments a twin does what the function does.
"""

import ast
import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from types import CellType, FunctionType
from typing import Any, Final

from reassure_proofs.any_size.contracts import AnyOf, Part, build, build_set, give_meaning
from reassure_proofs.any_size.opaque_brokers import Brokers, Opaque, Segment, select, tell_apart
from reassure_proofs.engine.codes import find_names
from reassure_proofs.engine.rewriting import RUNTIME, Unfollowed, rewrite
from reassure_proofs.engine.symex import GaveUp

_OURS: Final = "reassure_"
_KINDS: Final = {ast.GeneratorExp: "part", ast.ListComp: "list", ast.SetComp: "set"}
_TELLS_CLASS: Final = (ast.MatchClass, ast.MatchAs, ast.MatchOr, ast.expr, ast.expr_context)
_TEXT: Final = "text"
"""What stands for all text that code makes."""


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    runtime = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
    return ast.Call(runtime, list(arguments), [])


def _arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _lambda(names: list[str], body: ast.expr, *, spread: bool) -> ast.Lambda:
    """Return a function of one item, or of the parts that it has."""
    inner = ast.Lambda(_arguments(*names), body)
    if not spread:
        return inner
    return ast.Lambda(
        _arguments("item"), ast.Call(inner, [ast.Starred(_load("item"), ast.Load())], [])
    )


class _HandOver(ast.NodeTransformer):
    """Makes calls of comprehensions, loops and tuples with starred lists."""

    def _comprehension(self, node: Any) -> Any:
        self.generic_visit(node)
        (first, *more) = node.generators
        spread = isinstance(first.target, ast.Tuple)
        targets = first.target.elts if spread else [first.target]
        names = [getattr(each, "id", "") for each in targets]
        if more or not all(names):
            return node
        given = ast.comprehension(first.target, _load("given"), first.ifs, 0)
        usual = ast.Lambda(_arguments("given"), type(node)(node.elt, [given]))
        always = ast.Constant(value=True)
        condition = ast.BoolOp(ast.And(), [always, always, *first.ifs])
        holds = _lambda(names, condition, spread=spread)
        same = isinstance(node.elt, ast.Name) and [node.elt.id] == names and not spread
        make = ast.Constant(None) if same else _lambda(names, node.elt, spread=spread)
        kind = ast.Constant(_KINDS[type(node)])
        return _placed(_call("go_through", kind, first.iter, holds, make, usual), node)

    visit_GeneratorExp = _comprehension  # noqa: N815 - so `ast` calls it
    visit_ListComp = _comprehension  # noqa: N815
    visit_SetComp = _comprehension  # noqa: N815

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        self.generic_visit(node)
        starred = [isinstance(each, ast.Starred) for each in node.elts]
        if not isinstance(node.ctx, ast.Load) or not any(starred):
            return node
        parts = [each.value if isinstance(each, ast.Starred) else each for each in node.elts]
        spread = ast.Tuple([ast.Constant(each) for each in starred], ast.Load())
        return _placed(_call("build", ast.List(parts, ast.Load()), spread), node)

    def visit_Set(self, node: ast.Set) -> Any:
        self.generic_visit(node)
        return _placed(_call("build_set", ast.List(node.elts, ast.Load())), node)

    def visit_For(self, node: ast.For) -> Any:
        """Hand over a loop that ends with the first that it looks for, or makes one list or set."""
        parts = [part for each in node.body for part in _walk(each)]
        stored = {p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
        added = _find_added(node.body)
        self.generic_visit(node)
        leaves = any(isinstance(part, ast.Break | ast.Continue | ast.Yield) for part in parts)
        returns = any(isinstance(part, ast.Return) for part in parts)
        if leaves or node.orelse or not isinstance(node.target, ast.Name):
            return node
        name = node.target.id
        if returns and not stored:
            go_on = ast.Attribute(ast.Name(RUNTIME, ast.Load()), "GO_ON", ast.Load())
            body = _function("reassure_body", (name,), [*node.body, ast.Return(go_on)])
            found = ast.Name("reassure_found", ast.Store())
            search = ast.Assign([found], _call("search", node.iter, _load("reassure_body")))
            ends = ast.Compare(_load("reassure_found"), [ast.IsNot()], [go_on])
            return [
                _placed(each, node)
                for each in (body, search, ast.If(ends, [ast.Return(_load("reassure_found"))], []))
            ]
        if not (added or len(stored) == 1) or returns:
            return node
        made = added or stored.pop()
        body = _function("reassure_body", (name, made), [*node.body, ast.Return(_load(made))])
        kind = "gather" if added else "fold"
        fold = _call(kind, node.iter, _load(made), _load("reassure_body"))
        assigned = ast.Assign([ast.Name(made, ast.Store())], fold)
        return [_placed(body, node), _placed(assigned, node)]

    def visit_Match(self, node: ast.Match) -> Any:
        """Let records be told apart by their class; every other pattern would look at brokers."""
        parts = [part for case in node.cases for part in ast.walk(case.pattern)]
        if all(isinstance(part, _TELLS_CLASS) for part in parts):
            self.generic_visit(node)
            node.subject = _placed(_call("record", node.subject), node.subject)
            return node
        return _placed(ast.Expr(_call("refuse", ast.Constant("a match statement"))), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) > 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        found = _placed(_call("contains", node.left, node.comparators[0]), node)
        absent = isinstance(node.ops[0], ast.NotIn)
        return _placed(ast.UnaryOp(ast.Not(), found), node) if absent else found

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """Make no text: what it says of brokers would take apart what need not be."""
        return _placed(ast.Constant(_TEXT), node)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those in it, without what has names of its own."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, (*_KINDS, ast.DictComp, ast.Lambda)):
            yield from _walk(part)


def _find_added(body: list[ast.stmt]) -> str:
    """Return the name of the set that statements add to, "" where they do or ask anything else."""
    parts = [part for each in body for part in ast.walk(each)]
    called = [part.func for part in parts if isinstance(part, ast.Call)]
    methods = [each for each in called if isinstance(each, ast.Attribute)]
    names = [part for part in parts if isinstance(part, ast.Name)]
    sets = {each.value.id for each in methods if isinstance(each.value, ast.Name)}
    used = [each for each in names if each.id in sets]
    only_adds = all(each.attr == "add" for each in methods) and len(used) == len(methods)
    follows = all(
        isinstance(part, ast.Assign | ast.For | ast.Expr)
        for part in parts
        if isinstance(part, ast.stmt)
    )
    stores = any(
        isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store)
        for part in parts
    )
    named = any(isinstance(each.ctx, ast.Store) for each in used)
    return sets.pop() if len(sets) == 1 and only_adds and follows and not (stores or named) else ""


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _function(name: str, arguments: tuple[str, ...], body: list[ast.stmt]) -> ast.FunctionDef:
    return ast.FunctionDef(name, _arguments(*arguments), body, [])


def _placed(node: Any, where: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, where))


class _Arbitrary:
    """Any list that a loop has made so far: whether it has the member at hand is given."""

    def __init__(self, member: Any, *, seen: bool) -> None:
        self.member = member
        self.seen = seen

    def __contains__(self, member: object) -> bool:
        if member is not self.member:
            raise GaveUp("a loop asks its list for another than its own member")
        return self.seen

    def __iter__(self) -> Any:
        raise GaveUp("a loop uses its list in a way that is not followed")


class _Grown:
    """Such a list with the member at hand added to its end."""


class HandedOver:
    """What the handed over constructs call."""

    GO_ON: Final = object()

    def build(self, parts: list[Any], starred: tuple[bool, ...]) -> Any:
        """Return a tuple with starred lists in it."""
        grows = isinstance(parts[0], _Arbitrary)
        if grows and starred == (True, False) and parts[1] is parts[0].member:
            return _Grown()
        return build(parts, starred)

    build_set = staticmethod(build_set)

    def refuse(self, what: str) -> None:
        """Refuse by name."""
        raise GaveUp(f"{what} is not followed")

    def contains(self, value: Any, values: Any) -> bool:
        """Return whether something is in a collection, of which an empty one does not ask."""
        return False if isinstance(values, frozenset) and not values else value in values

    def record(self, value: Any) -> Any:
        """Return what is told apart by its class, which has to be no broker."""
        if isinstance(value, Brokers | Opaque):
            self.refuse("a match statement")
        return value

    def go_through(
        self, kind: str, values: Any, holds: Any, make: Any, usual: Callable[[Any], Any]
    ) -> Any:
        """Return what a comprehension makes of values."""
        if isinstance(values, AnyOf):
            return AnyOf(usual(values.take()))
        if not isinstance(values, Brokers | Part):
            return usual(values)
        part = values if isinstance(values, Part) else Part(values, None)
        item, first = part.make, part.brokers
        if item is None:
            left = Part(first.narrow(holds), make)
        else:
            taken = first.narrow(lambda member: holds(item(member)))
            left = Part(taken, item if make is None else lambda member: make(item(member)))
        function = {"list": list, "set": set}.get(kind)
        return left if function is None else give_meaning(function)(left)  # type: ignore[misc]

    def search(self, values: Any, body: Callable[[Any], Any]) -> Any:
        """Return the first member that a loop returns, or something else that it returns of any."""
        if not isinstance(values, Brokers):
            answers = (body(each) for each in values)
            return next((each for each in answers if each is not self.GO_ON), self.GO_ON)
        regions, found, others = values.regions, 0, []
        for region, answer in tell_apart(regions, values.mask, lambda m: (m, body(m))):
            member, result = answer
            found |= 0 if result is self.GO_ON else region
            if result is not self.GO_ON:
                others.append(self.GO_ON if result is member else result)
        if not regions.has_any(found):
            return self.GO_ON
        if any(each is not others[0] for each in others):
            self.refuse("a loop that returns different things of brokers")
        return values.first(found) if others[0] is self.GO_ON else others[0]

    def gather(self, values: Any, made: Any, body: Callable[[Any, Any], Any]) -> Any:
        """Return a set with what a loop adds to it and does nothing else."""
        if isinstance(values, Brokers):
            self.refuse("a loop that adds something of any number of brokers to a set")
        some = isinstance(values, AnyOf)
        for each in values.take() if some else values:
            made = body(each, made)
        return AnyOf(made) if some and not isinstance(made, AnyOf) else made

    def fold(self, values: Any, made: Any, body: Callable[[Any, Any], Any]) -> Any:
        """Return what a loop makes, whose body adds a member to the end that is not there yet.

        The body is run on any list there may be, which has the member or has it not: that is the
        step of an induction over the loop.
        """
        if not isinstance(values, Brokers):
            for each in values:
                made = body(each, made)
            return made
        if values.is_set or not (isinstance(made, Brokers) or made == ()):
            self.refuse("a loop that makes a list of a set, or of something else than brokers,")
        added, again = (
            select(values.regions, values.mask, functools.partial(_step, body, seen))
            for seen in (False, True)
        )
        if again:
            self.refuse("a loop that adds to a list who is there already")
        segments = list(made.segments) if isinstance(made, Brokers) else []
        before = made.mask if isinstance(made, Brokers) else 0
        for each in values.segments:
            rest = each.mask & added & ~before
            before |= each.mask
            segments.append(Segment(each.origin, rest, values.regions.size(rest), distinct=True))
        return Brokers(values.regions, tuple(segments), is_set=False)


def _step(body: Callable[[Any, Any], Any], seen: bool, member: Any) -> bool:
    """Return whether the body of a loop adds the member to any list."""
    before = _Arbitrary(member, seen=seen)
    after = body(member, before)
    if after is before:
        return False
    if isinstance(after, _Grown):
        return True
    raise GaveUp("a loop makes a list of brokers in a way that is not followed")


class TwinMaker:
    """Makes the twins of functions, for one exploration."""

    def __init__(self) -> None:
        self._twins: dict[int, Any] = {}
        self._runtime = HandedOver()

    def follow(self, function: Any) -> Any:
        """Return what runs in place of a function. Raises GaveUp where its source is not had."""
        found = self._convert(function, root=True)
        if found is function:
            raise GaveUp(f"{function!r} is not followed")
        return found

    def _convert(self, value: Any, *, root: bool = False) -> Any:
        meaning = give_meaning(value)
        if meaning is not None:
            return meaning
        if type(value) is tuple:
            return tuple(map(self._convert, value))
        if type(value) is dict:
            return {key: self._convert(each) for key, each in value.items()}
        if isinstance(value, functools.partial):
            given = [self._convert(each) for each in value.args]
            named = {name: self._convert(each) for name, each in value.keywords.items()}
            return functools.partial(self._convert(value.func, root=root), *given, **named)
        ours = isinstance(value, FunctionType) and (root or value.__module__.startswith(_OURS))
        if ours and value.__annotations__.get("return") in (str, "str"):
            return lambda *_, **__: _TEXT
        return self._make_twin(value) if ours else value

    def _make_twin(self, function: FunctionType) -> Any:
        if id(function) in self._twins:
            return self._twins[id(function)]
        try:
            code = rewrite(function, _HandOver)
        except Unfollowed as error:
            raise GaveUp(f"{error} is not followed") from error
        cells = {name: CellType() for name in code.co_freevars}
        names: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
        twin = FunctionType(code, names, function.__name__, None, tuple(cells.values()))
        self._twins[id(function)] = twin
        own = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in own:
            if name in cells:
                cells[name].cell_contents = self._convert(cell.cell_contents)
        twin.__defaults__ = tuple(map(self._convert, function.__defaults__ or ()))
        defaults: Iterable[tuple[str, Any]] = (function.__kwdefaults__ or {}).items()
        twin.__kwdefaults__ = {name: self._convert(value) for name, value in defaults}
        for name in find_names(code).keys() - {RUNTIME}:
            if name in function.__globals__:
                names[name] = self._convert(function.__globals__[name])
            elif hasattr(builtins, name):
                names[name] = self._convert(getattr(builtins, name))
        names[RUNTIME] = self._runtime
        return twin
