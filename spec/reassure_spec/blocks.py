"""The format of the Markdown in which clauses and findings are written, a paragraph each.

A block begins with a line `LETTER[ID]`, goes on with its text, and ends with fields, `NAME: VALUE`.
Text and values may take several lines. A heading of the second level is a chapter.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reassure_spec.errors import ReassureError

_HEAD: Final = re.compile(r"^([a-z])\[([a-z0-9]+(?:[.-][a-z0-9]+)*)\]$")


class BadBlock(ReassureError):
    """A block that does not keep the format."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a file."""

    letter: str
    """What it is."""
    id: str
    text: str
    """What stands between its id and its fields, on one line."""
    fields: Mapping[str, str]
    chapter: str
    """The heading under which it stands."""


def _parse(lines: list[str], chapter: str, names: Collection[str], origin: str) -> Block:
    head = _HEAD.match(lines[0])
    if head is None:
        raise BadBlock(
            f"{origin}: {lines[0]!r} is not a clause id or a finding's; "
            "expected r[area.subject.rule] or f[area-1]"
        )
    text: list[str] = []
    values: dict[str, list[str]] = {}
    current = text
    for line in lines[1:]:
        name, colon, value = line.partition(": ")
        if colon and name in names:
            current = values.setdefault(name, [])
            current.append(value)
        else:
            current.append(line)
    fields = {name: " ".join(part) for name, part in values.items()}
    return Block(head[1], head[2], " ".join(text), fields, chapter)


def read_blocks(text: str, names: Collection[str], origin: str) -> Iterator[Block]:
    """Yield the blocks of a file whose fields have these names; `origin` names it in errors.

    Raises BadBlock for a paragraph that begins like a block and has no id.
    """
    chapter = ""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.rstrip() for line in paragraph.strip().splitlines()]
        if lines and lines[0].startswith("## "):
            chapter = lines[0][3:]
        elif lines and re.match(r"[a-z]\[", lines[0]):
            yield _parse(lines, chapter, names, origin)
