"""A broker's number does not matter: the model's text never looks at what number it is.

The proofs about replication use brokers 0 and 1 and so stand for all only if that is so. In the
rules of the reassignment the numbers are symbolic, any integers at all; there the text is looked at
as well, since a proof goes up to a number of replicas and the text to its end.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

MODULES: Final = (
    "protocols.kafka_4485.replication",
    "acts",
    "protocols.kip_236",
    "protocols.kip_236.live_leaders",
    "protocols.kafka_4485",
    "protocols.kip_236.rules",
    "protocols.kip_236.assignment_rules",
    "protocols.kip_236.record_rules",
    "selectors",
    "partition",
    "protocols.kip_236.system",
    "writes",
)
"""What the theorems about steps, plans and replication run."""
KNOWN: Final = {
    "protocols.kip_236: find_refusal: r < 0": "a negative number is refused",
    "protocols.kip_236.assignment_rules: _choices: 0 < size": "how many come first, no broker",
}
"""Comparisons with a plain number that are not about which broker it is, each with the reason."""


def find_numbers(text: str) -> list[str]:
    """Return where a function compares something with a plain number, or looks it up among such.

    Lengths, epochs and places in a list are no brokers.
    """
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            found += [f"{function.name}: {told}" for told in _looks(node)]
    return found


def _looks(node: ast.AST) -> Iterator[str]:
    """Yield the comparisons of a node in which a plain number stands."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if not (_is_count(left) or _is_count(right)) and (_holds(left) or _holds(right)):
                yield ast.unparse(ast.Compare(left, [operator], [right]))
    modulo = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
    if (modulo or isinstance(node, ast.MatchValue | ast.Set)) and _holds(node):
        yield ast.unparse(node)


def _is_count(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "len"
    return isinstance(node, ast.Attribute) and node.attr.endswith("_epoch")


def _holds(node: ast.AST) -> bool:
    """Return whether a plain number stands in it, but as a place in a list."""
    if isinstance(node, ast.Subscript):
        return _holds(node.value)
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    return any(_holds(child) for child in ast.iter_child_nodes(node))


@pytest.mark.parametrize("module", MODULES)
def test_model_looks_at_no_number(module: str) -> None:
    """No function of the rules or of replication compares a broker with a plain number."""
    file = import_module(f"reassure_model.{module}").__file__
    assert file is not None
    found = {f"{module}: {told}" for told in find_numbers(Path(file).read_text(encoding="utf-8"))}
    assert found == {told for told in KNOWN if told.startswith(f"{module}: ")}


@pytest.mark.parametrize(
    "planted",
    [
        "broker == 2",
        "broker in {2, 3}",
        "broker in (2,)",
        "broker % 2",
        "broker > 1",
        "0 < broker < len(state)",
    ],
)
def test_look_at_a_number_is_found(planted: str) -> None:
    """A rule that exempts a broker by its number is found, however it says so."""
    assert find_numbers(f"def _join(state, broker):\n    return {planted}\n")
