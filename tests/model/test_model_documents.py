"""Each document has one file beside it: its headings in order, with what stands for each."""

import ast
import re
from importlib import import_module
from inspect import getsource
from typing import Final

import pytest

HEADINGS: Final = {
    "kafka_42": (
        "1. The admin command",
        "2. The controller's seven steps",
        "3. Failure cases",
        "4. The listener",
        "5. The leader selectors",
        "6. Replica states",
    ),
    "kafka_4485": ("The two problems", "Terminology", "Guarantees", "Implementation"),
    "kip_236": (
        "The idea",
        "The new znode protocol",
        "When a partition catches up",
        "On controller failover",
        "The change of a reassignment",
        "The drop rule, 1",
        "The drop rule, 2",
        "To drop",
    ),
    "kip_46": (
        "Motivation",
        "Changes",
        "Cancelling",
        "Deletion of the record",
        "Controller failure, 1",
        "Controller failure, 2",
        "Quotas",
    ),
}
"""How the sections begin, by protocol, as the headings stand in its document."""


def read_sections(text: str) -> list[tuple[str, int]]:
    """Return the sections of a file, each with the number of functions that stand in it."""
    starts = [(m[1], text[: m.start()].count("\n")) for m in re.finditer(r"(?m)^# (.+) -+$", text)]
    functions = [node.lineno for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    ends = [line for _, line in starts[1:]] + [text.count("\n")]
    return [
        (heading, sum(start < line <= end for line in functions))
        for (heading, start), end in zip(starts, ends, strict=True)
    ]


@pytest.mark.parametrize("document", HEADINGS)
def test_a_file_has_the_headings_of_its_document_in_order(document: str) -> None:
    """Each heading of a document has a section with functions, and they stand in its order."""
    sections = read_sections(getsource(import_module(f"reassure_model.protocols.{document}")))
    filled = [heading for heading, functions in sections if functions]
    places = [
        next((at for at, found in enumerate(filled) if found.startswith(heading)), None)
        for heading in HEADINGS[document]
    ]
    assert None not in places, (places, filled)
    assert places == sorted(place for place in places if place is not None)
