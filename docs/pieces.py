"""What every generated page is made of."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_NOTE: Final = "<!-- Written by `make docs`. Do not edit. -->"


def make_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def make_page(title: str, *lines: str) -> str:
    """Return a page that says that it is generated."""
    return "\n".join((f"# {title}", "", _NOTE, "", *lines)) + "\n"


def make_anchor(heading: str) -> str:
    """Return what a link to a heading of a page ends in."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")
