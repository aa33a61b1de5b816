"""A timeline as a space-time diagram for a page: lanes as inline SVG, rows as text beside them.

Rows have one height, so that picture and text agree, and come in sheets that a browser need not lay
out before they are looked at. What is shown of a row that is clicked stands in a list beside the
page's markup, as short as it can be (`pack_rows`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from reassure_conformance.report.display import show_zxid
from reassure_conformance.report.timeline import show_due, show_step

ROW: Final = 44
"""Height of a row, in pixels."""
LANE: Final = 46
"""Width of a lane."""
SHEET: Final = 100
"""How many rows come together."""
_PARTS: Final = ("assigned", "leader", "isr", "leader_epoch", "target", "requests")
"""What is shown of a partition, in order."""


class Row(NamedTuple):
    """A row of text."""

    number: int
    kind: str
    """`step`, `write`, `broken` or `ended`."""
    label: str
    text: str
    below: str
    """What the model had written next."""


class Sheet(NamedTuple):
    """Rows that are laid out together, with their picture."""

    svg: str
    rows: tuple[Row, ...]
    height: int


def draw_sheets(timeline: Mapping[str, Any]) -> Iterator[Sheet]:
    """Yield the sheets of a timeline."""
    rows, lanes = timeline["rows"], timeline["lanes"]
    dead: set[str] = set()
    for first in range(0, len(rows), SHEET):
        part = rows[first : first + SHEET]
        svg = _draw(part, lanes, dead)
        texts = tuple(_describe(number, row) for number, row in enumerate(part, start=first))
        yield Sheet(svg, texts, ROW * len(part))


def _describe(number: int, row: Mapping[str, Any]) -> Row:
    if "step" in row:
        return Row(number, "step", "asked", show_step(row), "")
    due = f"model: {show_due(row)}" if row["due"] else ""
    broken = f"breaks {', '.join(row['broken'])}" if row["broken"] else ""
    below = "; ".join(filter(None, (broken, due)))
    if "rest" in row:
        return Row(number, "broken", "rest", "the controller writes no more", below)
    kind = "broken" if broken else "ended" if row["ended"] else "write"
    return Row(number, kind, show_zxid(row["zxid"]), row["gist"], below)


def _draw(rows: Sequence[Mapping[str, Any]], lanes: Sequence[str], dead: set[str]) -> str:
    """Return the picture of some rows; `dead` are the lanes without a session, and kept."""
    width, height = LANE * len(lanes), ROW * len(rows)
    places = {lane: LANE * number + LANE // 2 for number, lane in enumerate(lanes)}
    since = {lane: (0, lane in dead) for lane in lanes}
    lines: list[str] = []
    marks: list[str] = []
    server = places[lanes[-1]]

    def draw_line(lane: str, until: int) -> None:
        start, was_dead = since[lane]
        if until > start:
            kind = ' class="off"' if was_dead else ""
            lines.append(f'<path{kind} d="M{places[lane]} {start}V{until}"/>')

    for number, row in enumerate(rows):
        y = ROW * number + ROW // 2
        if "zxid" not in row:
            marks.append(f'<path class="{"s" if "step" in row else "b"}" d="M0 {y}H{width}"/>')
            continue
        x, kind = places[row["lane"]], "b" if row["broken"] else "w"
        for lane in (row["lane"], *row["ended"]):
            draw_line(lane, y)
            since[lane] = (y, lane in row["ended"])
        dead.discard(row["lane"])
        dead.update(row["ended"])
        marks.append(f'<path class="{kind}" d="M{x} {y}H{server - 2}m-8-5l8 5-8 5"/>')
        if row["lane"] not in row["ended"]:
            marks.append(f'<path class="{kind} d" d="M{x} {y}h0"/>')
        marks += [
            f'<path class="x" d="M{places[lane] - 7} {y - 7}l14 14m0-14l-14 14"/>'
            for lane in row["ended"]
        ]
    for lane in lanes:
        draw_line(lane, height)
    shown = "".join((*lines, *marks))
    return f'<svg viewBox="0 0 {width} {height}" aria-hidden="true">{shown}</svg>'


def pack_rows(timeline: Mapping[str, Any]) -> list[list[Any]]:
    """Return for each row but steps: changes (path, content after), due, states, lane, broken."""
    return [
        []
        if "step" in row
        else [
            [[change["path"], change["after"]] for change in row.get("changes", ())],
            row["due"],
            {
                name: None if each is None else [each[part] for part in _PARTS]
                for name, each in row.get("state", {}).items()
            },
            row.get("lane", "nobody"),
            row["broken"],
        ]
        for row in timeline["rows"]
    ]
