"""Operators change a function in one place, and leave alone what is none of theirs."""

import ast
from typing import Final

import pytest

from reassure_mutation.operators import OPERATORS, Mutation, iterate_mutations

EXAMPLES: Final = {
    "condition": ("if a:\n        b()", "if not a:\n        b()", "while a:\n        b()"),
    "quantifier": ("return all(a)", "return any(a)", "return sum(a)"),
    "operand": ("return a and b", "return a", "return not a"),
    "connective": ("return a and b", "return a or b", "return a & b"),
    "comparison": ("return a < b", "return a <= b", "return a + b"),
    "arithmetic": ("return a | b", "return a & b", "return a ^ b"),
    "constant": ("return 1", "return 2", "return '1'"),
    "bound": ("return a[:b]", "return a[:b + 1]", "return a[b]"),
    "order": ("return (a, b)", "return (b, a)", "return f(a, b)"),
    "element": ("return (*a, b)", "return (b,)", "return (a, b)"),
    "field": ("return replace(a, b=c)", "return replace(a)", "return change(a, b=c)"),
    "statement": ("a = b\n    return a", "pass\n    return a", "assert a\n    return True"),
}
"""By operator: what it changes, what comes of that among others, and what it leaves."""


def mutate(body: str, operator: str = "") -> list[Mutation]:
    """Return the mutations of a function that has this body, all of them or an operator's."""
    function = ast.parse(f"def f(a, b, c):\n    {body}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    return [each for each in iterate_mutations(function) if each.name.startswith(operator)]


@pytest.mark.parametrize("operator", EXAMPLES)
def test_operator_changes_its_own_only(operator: str) -> None:
    """Of each operator one example is changed as expected, and one is left as it is."""
    before, after, left = EXAMPLES[operator]
    texts = [ast.unparse(each.tree) for each in mutate(before, f"{operator}: ")]
    assert f"def f(a, b, c):\n    {after}" in texts
    assert mutate(left, f"{operator}: ") == []


def test_every_operator_has_an_example() -> None:
    """An operator that nobody tries is none."""
    assert EXAMPLES.keys() == OPERATORS.keys()


def test_mutations_differ_from_the_function_and_from_each_other() -> None:
    """No two do the same by their text, each name is one mutation's, and none is in place."""
    body = "a = b and b and c\n    return all(x for x in a if x > 0 or c) or (*a, 1)"
    function = ast.parse(f"def f(a, b, c):\n    {body}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    before = ast.dump(function)
    found = list(iterate_mutations(function))
    texts = {ast.unparse(each.tree) for each in found}
    assert ast.dump(function) == before
    assert len(found) == len(texts) == len({each.name for each in found}) > 20
    assert ast.unparse(function) not in texts


@pytest.mark.parametrize(
    ("body", "name", "sentence"),
    [
        ("return a and b", "operand: without b", "`b` is left out"),
        ("return a - b", "order: a <-> b", "`a` and `b` change places"),
        ("return a[b]", "statement: a[b] -> None", "nothing is answered where it is `a[b]`"),
        ("a = b\n    return 0", "statement: a = b -> pass", "`a = b` is skipped"),
        ("return a < b", "comparison: a < b -> a <= b", "`a < b` becomes `a <= b`"),
    ],
)
def test_mutation_says_what_is_different(body: str, name: str, sentence: str) -> None:
    """Name and sentence say the operator and the text, for a table and for people."""
    assert {each.name: each.sentence for each in mutate(body)}[name] == sentence
