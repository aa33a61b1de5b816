"""Each document has a table beside its model: its headings, in order, and the functions of each."""

import re
from importlib import import_module
from types import ModuleType
from typing import Final

import pytest

DOCUMENTS: Final = ("kafka_42", "kafka_4485", "kip_236", "kip_46")
"""The protocols that a document describes, by the folder whose docstring has the table."""
PLACES: Final = ("{package}", "reassure_model.protocols", "reassure_model")
"""Where a name of a table may stand, the protocol's own folder first."""
ROWS: Final = 8
"""So many headings each document has at least."""


def read_table(module: ModuleType) -> list[tuple[str, list[str]]]:
    """Return the rows of a docstring's table: a heading of the document, and names."""
    lines = (line.strip() for line in (module.__doc__ or "").splitlines())
    cells = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    return [(heading.strip(), re.findall(r"`([^`]+)`", names)) for heading, names in cells[1:]]


def find_named(package: str, name: str) -> object | None:
    """Return what a name of a table stands for, None where there is no such thing."""
    *parts, last = name.split(".")
    for place in PLACES:
        module = ".".join((place.format(package=package), *parts))
        try:
            found = import_module(module)
        except ModuleNotFoundError:
            continue
        if hasattr(found, last):
            thing: object = getattr(found, last)
            return thing
    return None


def find_missing(module: ModuleType) -> list[str]:
    """Return the headings that name nothing, and the names that stand for nothing."""
    table = read_table(module)
    empty = [heading for heading, names in table if not names]
    names = (name for _, found in table for name in found)
    return empty + [name for name in names if find_named(module.__name__, name) is None]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_function_of_a_table_is_there(document: str) -> None:
    """Each heading of a document names functions of the model, and every one of them exists."""
    module = import_module(f"reassure_model.protocols.{document}")
    assert len(read_table(module)) >= ROWS
    assert find_missing(module) == []


def test_a_function_that_is_not_there_is_found() -> None:
    """A table that names a function, a module or nothing that there is does not pass."""
    module = ModuleType("reassure_model.protocols.kip_236")
    rows = ("1 | `drop.compute_drop`", "2 | `drop.gone`", "3 | `gone.compute_drop`", "4 |")
    module.__doc__ = "\n".join(
        ("| the document | here |", "|---|---|", *(f"| {r} |" for r in rows))
    )
    assert find_missing(module) == ["4", "drop.gone", "gone.compute_drop"]


def test_the_first_reassignment_follows_its_document() -> None:
    """The functions of KAFKA-42 stand in its module in the order of the document's headings."""
    module = import_module("reassure_model.protocols.kafka_42")
    own = [name for _, names in read_table(module) for name in names if "." not in name]
    lines = [getattr(module, name).__code__.co_firstlineno for name in own if name != "Stall"]
    assert lines == sorted(lines)
