"""A failing story as a space-time diagram in text: time runs down, one lane for each actor."""

from collections.abc import Iterator, Mapping
from string import ascii_letters
from typing import Any, Final

from reassure_conformance.report.display import hang, show_text, show_zxid

_GIST: Final = 36
"""How many characters what was written gets before lanes are cut down to letters."""


def draw_timeline(timeline: Mapping[str, Any], width: int | None = None) -> Iterator[str]:
    """Yield the lines of the diagram of a result's `timeline`, for lines of a width if given.

    A row is a transaction: its zxid, a mark in the lane of whoever wrote it (x in a lane whose
    registration went with it), and what it wrote. Where a clause was broken it says so below, with
    what the model had a controller write. Where lanes have no room they are letters, named above.
    """
    *lanes, server = timeline["lanes"]
    names = [lane.replace("controller ", "ctl ").replace("broker ", "brk ") for lane in lanes]
    lane_width = max(len(name) for name in names) + 2
    if width is not None and len(_MARGIN) + lane_width * len(lanes) + _GIST > width:
        legend = (f"{letter} {name}" for letter, name in zip(ascii_letters, names, strict=False))
        yield from hang(_MARGIN, ", ".join(legend), width)
        names, lane_width = list(ascii_letters[: len(lanes)]), 2

    def mark(signs: Mapping[str, str]) -> str:
        return "".join(signs[lane].ljust(lane_width) for lane in lanes)

    yield f"{'zxid':>8}  {mark(dict(zip(lanes, names, strict=True)))}{server}"
    idle = dict.fromkeys(lanes, "|")
    for row in timeline["rows"]:
        if "step" in row:
            yield from hang(f"{_MARGIN[2:]}> ", show_step(row), width)
            continue
        if "zxid" in row:
            signs = {**idle, row["lane"]: "*"} | dict.fromkeys(row["ended"], "x")
            start = f"{show_zxid(row['zxid']):>8}  {mark(signs)}"
            yield from hang(start, show_text(row["gist"]), width, f"{_MARGIN}{mark(idle)}")
        if row["broken"]:
            told = f"{', '.join(row['broken'])}; the model's next write: {show_due(row)}"
            yield from hang(f"{_MARGIN[2:]}! ", told, width)


_MARGIN: Final = " " * 10
"""What stands where there is no zxid."""


def show_due(row: Mapping[str, Any]) -> str:
    """Return what the model had a controller write next, of each partition."""
    return "; ".join(f"{name}: {words}" for name, words in row["due"].items()) or "none"


def show_step(row: Mapping[str, Any]) -> str:
    """Return a step of a timeline, with what became of it unless it was carried out."""
    return str(row["step"]) + ("" if row["result"] == "ok" else f"  ({row['result']})")
