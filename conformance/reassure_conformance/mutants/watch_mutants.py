"""Mutants of watches, derived: each place that asks ZooKeeper for one, without it.

The places are those of the bundled controller's text: each call that is given a watch, and each
path that is watched with all that is below it. What they are held against stands in the TOML file
beside this one.
"""

import ast
from collections.abc import Iterator
from typing import Final

from reassure_conformance.mutants.exchange import Patch, find_root, read_held, read_source
from reassure_spec import znodes

_ALL: Final = "watch_all"
"""The method that asks for the watches on all that is below paths."""
_BELOW: Final = "watched_below"
_SEAM: Final = "for root in self._watched_below"


def _list_modules() -> Iterator[tuple[str, str]]:
    for folder in ("", "protocols/"):
        for file in sorted((find_root() / folder).glob("*.py")):
            yield f"{folder.replace('/', '.')}{file.stem}", read_source(folder + file.stem)


def _find_unwatched(call: ast.Call) -> str | None:
    """Return what asks the same without a watch, None where none is asked for."""
    name = ast.unparse(call.func)
    if name.endswith(_ALL):
        return "()"
    if not name.endswith("_async") or all(each.arg != "watch" for each in call.keywords):
        return None
    return f"{name}({', '.join(map(ast.unparse, call.args))})"


def list_places() -> Iterator[tuple[str, str, Patch]]:
    """Yield each place by name, with what is not watched, and the patch by which it is not."""
    for module, text in _list_modules():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                yield from _list_calls(module, text, node)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(_BELOW):
                yield from _list_roots(node.value)


def _list_calls(
    module: str, text: str, function: ast.FunctionDef
) -> Iterator[tuple[str, str, Patch]]:
    for call in (each for each in ast.walk(function) if isinstance(each, ast.Call)):
        new = _find_unwatched(call)
        if new is not None:
            whole, old = (ast.get_source_segment(text, each) or "" for each in (function, call))
            name = f"{function.name}.{ast.unparse(call.func).rpartition('.')[2]}"
            yield name, f"what {name} asks for", Patch(module, whole, whole.replace(old, new))


def _list_roots(roots: ast.expr) -> Iterator[tuple[str, str, Patch]]:
    for name in ast.unparse(roots).strip("()").replace(",", "").split():
        path = getattr(znodes, name, None)  # what else stands there is given by others
        if path is not None:
            yield (
                name,
                f"what is below {path}",
                Patch("reader", _SEAM, f"{_SEAM} if root != {path!r}"),
            )


def derive() -> Iterator[tuple[str, str, str, tuple[str, ...], tuple[Patch, ...]]]:
    """Yield name, sentence, profile, clauses and patches of every mutant that can be told."""
    held = read_held("watch_mutants")
    for place, what, patch in list_places():
        if place not in held["untold"]:
            said, profile = f"There is no watch on {what}.", held["profiles"].get(place, "")
            yield f"watch.{place}", said, profile, tuple(held["clauses"][place]), (patch,)
