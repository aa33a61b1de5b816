"""A broker's number does not matter: the model's text never looks at what number it is.

The proofs about replication use brokers 0 and 1 and so stand for all only if that is so. The rules
of the reassignment need no such check: there the numbers are symbolic.
"""

import ast
from pathlib import Path

import pytest

from reassure_model import replication


def find_numbers(text: str) -> list[str]:
    """Return where a function compares something with a plain number, or looks it up among such."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            parts: list[ast.AST] = []
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
            elif isinstance(node, ast.MatchValue | ast.Set | ast.BinOp):
                modulo = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
                parts = [] if isinstance(node, ast.BinOp) and not modulo else [node]
            inner = (each for part in parts for each in ast.walk(part))
            if any(isinstance(e, ast.Constant) and type(e.value) is int for e in inner):
                found.append(f"{function.name}: {ast.unparse(node)}")
    return found


def test_replication_looks_at_no_number() -> None:
    """No function of the replication model compares anything with a plain number."""
    assert replication.__file__ is not None
    found = find_numbers(Path(replication.__file__).read_text(encoding="utf-8"))
    assert found == []


@pytest.mark.parametrize(
    "planted", ["broker == 2", "broker in {2, 3}", "broker in (2,)", "broker % 2", "broker > 1"]
)
def test_look_at_a_number_is_found(planted: str) -> None:
    """A rule that exempts a broker by its number is found, however it says so."""
    assert find_numbers(f"def _join(state, broker):\n    return {planted}\n")
