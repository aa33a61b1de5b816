"""What the pages say of the checks of a clause, the tests of the repository among them.

Source is parsed, never run. Places are dotted names of functions, not lines: a page that lists them
stays as it is when code above them changes.

A test is about a clause when its decorators say so: a `pytest.mark.clause`, or a table of cases,
written there or in a constant of the module. What merely stands in its body does not count.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from reassure_conformance.answers.clause_matrix import MANY, collect_sources, group
from reassure_spec.clauses import load_clauses
from reassure_spec.matrix import Places

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_MARK: Final = "pytest.mark.clause"


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield every text constant below a node."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def _constants(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Return the values that are assigned to names of the module."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            found.update(dict.fromkeys(names, node.value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
    return found


def _spread(node: ast.AST, constants: Mapping[str, ast.expr], seen: set[str]) -> Iterator[ast.AST]:
    """Yield the node and, once each, the constants of the module that it is made from."""
    yield node
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in constants and each.id not in seen:
            seen.add(each.id)
            yield from _spread(constants[each.id], constants, seen)


def _marked(node: ast.AST) -> Iterator[str]:
    """Yield the ids that a mark below a node has as plain text, known or not."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == _MARK:
            for argument in call.args:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value)


def find_tests_of(path: Path, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield clause id and test, as `file::function`, once each, for a file of tests.

    An id that a mark names is yielded even where no clause has it: that is a mistake to be found.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = _constants(tree)
    marks = [value for name, value in constants.items() if name == "pytestmark"]
    for node in ast.walk(tree):
        if not isinstance(node, Function) or not node.name.startswith("test_"):
            continue
        named: dict[str, None] = {}
        seen: set[str] = set()
        for decorator in (*node.decorator_list, *marks):
            for part in _spread(decorator, constants, seen):
                named.update(dict.fromkeys(text for text in _texts(part) if text in known))
                named.update(dict.fromkeys(_marked(part)))
        for clause_id in named:
            yield clause_id, f"{path.stem}::{node.name}"


def find_tests(folder: Path) -> Places:
    """Return the tests below a folder that are about each clause."""
    known = load_clauses()
    return group(
        pair for path in sorted(folder.rglob("test_*.py")) for pair in find_tests_of(path, known)
    )


def collect_checks(tests: Path) -> dict[str, Places]:
    """Return everything that names clauses, by column, the tests below a folder included."""
    return {**collect_sources(), "test": find_tests(tests)}


_LABELS: Final[Mapping[str, str]] = {
    "model": "model",
    "judge": "judge",
    "proof": "theorems",
    "exploration": "explorations",
    "scenario": "scenarios",
    "fault": "mutants",
    "test": "tests",
}


def format_places(column: str, places: Sequence[str]) -> str:
    """Return the places of one column in a few words of Markdown: listed, or counted where many."""
    names = ", ".join(f"`{name}`" for name in places)
    if len(places) > MANY:
        names = f"{len(places)}, among them `{places[0]}`"
    return f"{_LABELS[column]} {names}"


def format_checks(places: Mapping[str, Sequence[str]]) -> str:
    """Return one line of Markdown that says where a clause is carried out and checked."""
    parts = [format_places(column, found) for column, found in places.items() if found]
    return "; ".join(parts) or "none"
