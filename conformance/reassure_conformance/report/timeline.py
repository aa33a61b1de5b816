"""A failing story as a space-time diagram in text: time runs down, one lane for each actor."""

from collections.abc import Iterator, Mapping
from typing import Any

from reassure_conformance.report.display import show_text, show_zxid


def draw_timeline(timeline: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the diagram of a result's `timeline`.

    A row is a transaction: its zxid, a mark in the lane of whoever wrote it (x in a lane whose
    registration went with it), and what it wrote. Where a clause was broken it says so below, with
    what the model had a controller write.
    """
    *lanes, server = timeline["lanes"]
    short = [lane.replace("controller ", "ctl ").replace("broker ", "brk ") for lane in lanes]
    width = max(len(lane) for lane in short) + 2
    yield f"{'zxid':>8}  " + "".join(lane.ljust(width) for lane in short) + server
    for row in timeline["rows"]:
        if "step" in row:
            yield f"{'':8}  > {show_step(row)}"
            continue
        if "zxid" in row:
            signs = {**dict.fromkeys(lanes, "|"), row["lane"]: "*"}
            signs |= dict.fromkeys(row["ended"], "x")
            marks = "".join(signs[lane].ljust(width) for lane in lanes)
            yield f"{show_zxid(row['zxid']):>8}  {marks}{show_text(row['gist'])}"
        if row["broken"]:
            yield f"{'':8}  ! {', '.join(row['broken'])}; the model's next write: {show_due(row)}"


def show_due(row: Mapping[str, Any]) -> str:
    """Return what the model had a controller write next, of each partition."""
    return "; ".join(f"{name}: {words}" for name, words in row["due"].items()) or "none"


def show_step(row: Mapping[str, Any]) -> str:
    """Return a step of a timeline, with what became of it unless it was carried out."""
    return str(row["step"]) + ("" if row["result"] == "ok" else f"  ({row['result']})")
