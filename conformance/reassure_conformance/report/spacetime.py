"""A timeline as data for the space-time diagram of a page, as short as it can be.

The page draws the rows that are looked at, and no others: a story may have thousands.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reassure_conformance.report.display import show_zxid
from reassure_conformance.report.timeline import show_step

_PARTS: Final = ("assigned", "leader", "isr", "leader_epoch", "target", "requests")
"""What is shown of a partition, in order."""
_NOBODY: Final = -1
"""The lane of a controller that rests."""


def pack_rows(timeline: Mapping[str, Any]) -> list[Any]:
    """Return for each step its text, for every other row a list.

    The list has label, gist, lane, lanes that ended, due, states, clauses broken, changes (path,
    content after). Lanes are numbers; a state is null where the partition is gone.
    """
    number = {lane: place for place, lane in enumerate(timeline["lanes"])}
    return [
        show_step(row) if "step" in row else list(_pack(row, number)) for row in timeline["rows"]
    ]


def _pack(row: Mapping[str, Any], number: Mapping[str, int]) -> Sequence[Any]:
    states = row.get("state", {}).items()
    return (
        show_zxid(row["zxid"]) if "zxid" in row else "rest",
        row.get("gist", "the controller writes no more"),
        number[row["lane"]] if "lane" in row else _NOBODY,
        [number[lane] for lane in row.get("ended", ())],
        row["due"],
        {name: None if one is None else [one[part] for part in _PARTS] for name, one in states},
        row["broken"],
        [[change["path"], change["after"]] for change in row.get("changes", ())],
    )
