"""The tables of `docs/explorer.md`: the scopes with their counts, the findings with their stories.

    python -m reassure_explorer.scopes.tables docs/explorer.md

writes them anew, each between its two marks. They come from `scopes`, `counts` and `sweep`.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from reassure_explorer.scopes.catalogue import SCOPES
from reassure_explorer.scopes.counts import COUNTS
from reassure_explorer.scopes.sweep import INSTANCES, Instance

AMENDED: Final = "kip-236-amended"


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(columns)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _format_counts(scope: str, profile: str) -> str:
    counts = COUNTS.get((scope, profile))
    return "not run to its end" if counts is None else " · ".join(f"{n:,}" for n in counts)


def render_scopes() -> str:
    """Return the table of scopes: what each holds, and its counts under its profile and amended."""
    rows = (
        [
            f"`{scope.name}`",
            scope.summary,
            scope.profile,
            _format_counts(scope.name, scope.profile),
            _format_counts(scope.name, AMENDED),
        ]
        for scope in SCOPES.values()
    )
    return _table(["scope", "what it holds", "profile", "counts", "counts as amended"], rows)


def _format_rules(instance: Instance) -> str:
    readings = [f"{name}={value}" for name, value in instance.readings.items()]
    return ", ".join([instance.chosen_profile, *readings])


def render_findings() -> str:
    """Return the table of findings with the length of the shortest story."""
    rows = (
        [
            instance.finding,
            f"`{instance.scope}`",
            _format_rules(instance),
            f"`{instance.invariant}`",
            str(instance.steps),
        ]
        for instance in INSTANCES
    )
    columns = ["finding", "scope", "profile and readings", "breaks", "steps"]
    return _table(columns, rows)


TABLES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"scopes": render_scopes, "findings": render_findings}
)
"""By the name that stands in the marks."""


def put_tables(text: str) -> str:
    """Return a document with its tables written anew. Raises ValueError where a mark is missing."""
    for name, render in TABLES.items():
        first, last = f"<!-- {name}: written by `make docs` -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
        if pattern.search(text) is None:
            raise ValueError(f"the document lacks {first!r}, and {last!r} after it")
        table = f"{first}\n{render()}\n{last}"
        text = pattern.sub(table.replace("\\", r"\\"), text)
    return text


if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        place.write_text(put_tables(place.read_text(encoding="utf-8")), encoding="utf-8")
