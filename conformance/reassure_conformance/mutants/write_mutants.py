"""Mutants of conditional writes, derived: each kind of write without a condition that it has.

The kinds are those of the bundled controller's effects; what they are held against stands in the
TOML file beside this one. Conditions are taken away where it hands the operations of a write over
to ZooKeeper's client. That the epoch znode is checked for any version is no mutant: the server
records the version found, so that its log looks as it should.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from reassure_conformance.mutants.exchange import Patch, read_held, read_source

EPOCH_UNCHECKED: Final = "epoch-unchecked"
ANY_VERSION: Final = "any-version"
OPERATORS: Final[Mapping[str, str]] = {
    EPOCH_UNCHECKED: "operations[1:]",
    ANY_VERSION: "[operations[0], *map(_ignore_version, operations[1:])]",
}
"""By name what is left of the operations, of which the first checks the epoch."""
FENCED: Final = ("controller.write.epoch-checked",)
_SEAM: Final = '        operations = [("check", (CONTROLLER_EPOCH, version)), *operations]\n'
_WRONG: Final = """
        if isinstance(effect, {kind}):
            operations = {operations}
"""
_HELPER: Final = Patch(
    "engine",
    new="""
def _ignore_version(operation):
    name, parts = operation
    return operation if name == "create" else (name, (*parts[:-1], -1))
""",
)


def list_writes() -> Iterator[tuple[str, bool]]:
    """Yield each kind of write, and whether it is conditional on a version."""
    unions: dict[str, list[str]] = {}
    versioned = set()
    for node in ast.parse(read_source("effects")).body:
        if isinstance(node, ast.ClassDef):
            fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
            if "version" in map(ast.unparse, fields):
                versioned.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            parts = [one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)]
            unions[ast.unparse(node.targets[0])] = parts
    for name in unions["Write"]:
        yield from ((kind, kind in versioned) for kind in unions.get(name, [name]))


def derive() -> Iterator[tuple[str, str, str, tuple[str, ...], tuple[Patch, ...]]]:
    """Yield name, sentence, profile, clauses and patches of every mutant that can be told."""
    held = read_held("write_mutants")
    for kind, versioned in list_writes():
        told = versioned and kind not in held["untold"]
        for operator in (EPOCH_UNCHECKED, ANY_VERSION) if told else (EPOCH_UNCHECKED,):
            wrong = _WRONG.format(kind=kind, operations=OPERATORS[operator])
            sentence, clauses = f"{kind} does not check the epoch znode.", FENCED
            if operator == ANY_VERSION:
                sentence = f"{kind} is written whatever version it meets."
                clauses = tuple(held["clauses"][kind])
            patches = (Patch("engine", _SEAM, _SEAM + wrong), _HELPER)
            profile = held["profiles"].get(kind, "")
            yield f"{kind}.{operator}", sentence, profile, clauses, patches
