"""Conditions made up operator by operator, of typed expressions over the arguments of a rule."""

import re
from random import Random
from typing import Final

HEAD: Final = """
import functools, itertools, operator

NEAR = {7, 8}
RACKS = {1: "a", 7: "b", 8: ""}

@functools.cache
def halved(n):
    return n // 2

@functools.cache
def gathered(n):
    return [n]

class Plain(Exception):
    pass

class Odd(Exception):
    def __eq__(self, other):
        return isinstance(other, int) and other > 6
    def __len__(self):
        return 1

def sought(compute):
    try:
        return bool(compute())
    except (KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, Plain):
        return True

def failed(n):
    if n == 7:
        raise Plain
    return n
"""

INTEGERS: Final = (
    "({i} + {i})",
    "({i} - {i})",
    "(-{i})",
    "abs({i})",
    "({i} * 2)",
    "({i} // 2)",
    "({i} % 3)",
    "divmod({i}, 3)[1]",
    "(~{i})",
    "min({i}, {i})",
    "max({i}, {i})",
    "min({s}, default=7)",
    "max({z} | {{7}})",
    "min({z} | {{7}})",
    "len({s})",
    "len({z})",
    "sum({s})",
    "sum({z})",
    "{s}[{i}]",
    "{s}[-1]",
    "{s}.count({i})",
    "{s}.index({i})",
    "next(iter({s}), 7)",
    "int({b})",
    "({i} if {b} else {i})",
    "sorted({s})[0]",
    "sorted({z} | {{7}})[0]",
    "sorted({z} | {{7}}, reverse=True)[0]",
    "functools.reduce(operator.sub, {s}, 7)",
    "halved({i})",
    "failed({i})",
    "len(sorted([{z}, {z}])[0])",
    "{{{i}: 7}}.get({i}, 1)",
    "dict.fromkeys({s}, 1).get({i}, 7)",
    "list(enumerate({s}, 1))[0][0]",
    "len(range({i}))",
)
SEQUENCES: Final = (
    "assigned",
    "isr",
    "{s}[{i}:]",
    "{s}[:{i}]",
    "{s}[{i}:{i}]",
    "{s}[::-1]",
    "{s}[{i}::-1]",
    "{s}[:{i}:-1]",
    "{s}[{i}:{i}:-2]",
    "{s}[{i}:{i}:2]",
    "tuple(sorted({s}))",
    "tuple(sorted({z}))",
    "tuple(sorted({s}, key=lambda {v}: {vb}))",
    "tuple(reversed({s}))",
    "tuple(itertools.islice({s}, {i}))",
    "tuple(itertools.islice({s}, {i}, {i}))",
    "tuple(itertools.takewhile(lambda {v}: {vb}, {s}))",
    "tuple({v} for {v} in {s} if {vb})",
    "tuple(map(abs, {s}))",
    "(*{s}, {i})",
    "tuple(dict.fromkeys({s}))",
    "tuple(range({i}))",
    "tuple({s} * {i})",
)
SETS: Final = (
    "set({s})",
    "set({s})",
    "{{{i}, {i}}}",
    "{{7, {i}}}",
    "{{{i}}}",
    "NEAR",
    "frozenset({s})",
    "({z} | {z})",
    "({z} & {z})",
    "({z} - {z})",
    "({z} ^ {z})",
    "{{{v} for {v} in {z} if {vb}}}",
    "set({v} for {v} in {s} if {vb})",
    "{z}.union({s})",
    "{z}.difference({s})",
)
TRUTHS: Final = (
    "({i} < {i})",
    "({i} <= {i})",
    "({i} == {i})",
    "({i} != {i})",
    "({i} > 7)",
    "({i} in {s})",
    "({i} in {z})",
    "({i} not in {s})",
    "({s} == {s})",
    "({s} < {s})",
    "({z} <= {z})",
    "({z} < {z})",
    "({z} == {z})",
    "{z}.isdisjoint({s})",
    "(not {b})",
    "({b} and {b})",
    "({b} or {b})",
    "({b} == {b})",
    "({i} < {i} < {i})",
    "any({vb} for {v} in {s})",
    "all({vb} for {v} in {s})",
    "any({vb} for {v} in {z})",
    "all({vb} for {v} in {z})",
    "any([{vb} for {v} in {z}])",
    "any(RACKS[{v}] == 'b' for {v} in {z})",
    "all(7 % {v} for {v} in {z})",
    "sought(lambda: RACKS[{i}])",
    "sought(lambda: {s}[{i}])",
    "sought(lambda: failed({i}))",
    "sought(lambda: any(RACKS[{v}] for {v} in {z}))",
    "bool({s})",
    "isinstance({i}, int)",
    "({i} is None)",
    "(sorted([{z}, {z}])[0] == {z})",
    "any({{{v}}} < {z} for {v} in {s})",
)
UNFOLLOWED: Final = (
    "(len(gathered({i})) < {i})",
    "(Odd() == {i})",
    "bool(Odd())",
    "(sorted({{frozenset({s}), frozenset({{7}})}})[0] == {z})",
)
"""What is refused by name; no more may be said of rules with these."""
LEAVES: Final = {
    "i": ("leader", "leader", "top", "assigned[0]", "isr[0]", "0", "1", "-1", "7", "2 ** 63"),
    "s": ("assigned", "isr"),
    "z": ("NEAR", "set(assigned)", "{7, leader}"),
    "b": ("(leader == 7)", "(top > 1)", "(leader in NEAR)"),
}
SHAPES: Final = {"i": INTEGERS, "s": SEQUENCES, "z": SETS, "b": TRUTHS}
_HOLE: Final = re.compile(r"(?<!{){(i|s|z|b|v|vb)}|{{|}}")


def make_expression(kind: str, depth: int, chance: Random, bound: tuple[str, ...] = ()) -> str:
    """Return the text of an integer `i`, a sequence `s`, a set `z` or a truth `b`.

    `depth` is how many operators are nested; `bound` are the integers that loops have bound.
    """
    if kind == "i" and bound and chance.random() < 0.5:
        return bound[-1]
    if depth == 0:
        return chance.choice(LEAVES[kind])
    return fill(chance.choice(SHAPES[kind]), depth - 1, chance, bound)


def fill(template: str, depth: int, chance: Random, bound: tuple[str, ...] = ()) -> str:
    """Return the text of a template with expressions of a depth in its holes."""
    own = f"v{len(bound)}"

    def put(match: "re.Match[str]") -> str:
        hole = match[1]
        if hole is None or hole == "v":
            return own if hole else match[0][0]
        if hole == "vb":
            return make_expression("b", depth, chance, (*bound, own))
        return make_expression(hole, depth, chance, bound)

    return _HOLE.sub(put, template)


def make_rule(name: str, chance: Random) -> str:
    """Return the text of a drop rule that does wrong, or takes another way, on a condition."""
    condition = make_expression("b", chance.choice((1, 2, 2, 3)), chance)
    if chance.random() < 0.04:
        condition = f"{fill(chance.choice(UNFOLLOWED), 0, chance)} or {condition}"
    caught = f"sought(lambda: {condition})" if chance.random() < 0.3 else condition
    return f"""def {name}(assigned, leader, isr, top):
    ranked = [leader]
    ranked += [r for r in isr if r != leader]
    ranked += [r for r in assigned if r not in ranked]
    gone = [r for r in assigned if r not in ranked[:top]]
    if {caught}:
        {chance.choice(WAYS)}
    return gone
"""


WAYS: Final = ("return assigned", "return list(gone)", "gone = gone[:]")
"""What is done on the condition: one way in three is wrong."""
