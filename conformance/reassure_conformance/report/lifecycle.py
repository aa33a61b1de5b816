"""What a protocol is about as a picture: the stages of its life, and how far each move was tested.

Stages and moves are the tables that were explored (`find_lives`). A move is put to clauses; the
picture says of how many of them the result tells that they were exercised, and whether one was
violated.
"""

import re
from collections.abc import Mapping
from enum import Enum
from html import escape
from typing import Any, Final, NamedTuple

from reassure_conformance.report.cases import Result
from reassure_explorer.lifecycle import Lifecycle, find_lives
from reassure_spec.profiles import PROTOCOLS

_ROW: Final = 76
_BOX: Final = (172, 38)
_SPREAD: Final = 34
"""How much further out a way is drawn for each stage that it passes."""
_MARGIN: Final = 40
"""What is left beside the way that is furthest out, for its number."""

_NARROWEST: Final = 560
"""How wide a picture is at least: a page makes all equally wide, with words as large in each."""


class Way(NamedTuple):
    """What leads from one stage to another, maybe by several kinds of writes."""

    before: Enum
    after: Enum
    writes: tuple[str, ...]
    clauses: tuple[str, ...]

    @property
    def words(self) -> str:
        """The way in words."""
        return f"{name_stage(self.before)} → {name_stage(self.after)}: {', '.join(self.writes)}"


class Drawing(NamedTuple):
    """A life as it was tested."""

    of: str
    """What goes through it."""
    protocol: str
    svg: str
    """Inline SVG; its colours are those of the page."""


def name_stage(stage: Enum) -> str:
    """Return the name of a stage as words.

    >>> name_stage(Enum("Stage", "AT_REST").AT_REST)
    'at rest'
    """
    return stage.name.lower().replace("_", " ")


def name_write(by: type) -> str:
    """Return the name of a write as words.

    >>> name_write(type("WriteLeader", (), {}))
    'write leader'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", " ", by.__name__).lower()


def list_ways(life: Lifecycle[Any]) -> tuple[Way, ...]:
    """Return the moves of the table, those between the same two stages as one."""
    order = list(life.stages)
    found: dict[tuple[Enum, Enum], Way] = {}
    for (before, by), move in life.moves.items():
        for after in sorted(move.to, key=order.index):
            way = found.get((before, after), Way(before, after, (), ()))
            clauses = tuple(dict.fromkeys((*way.clauses, *move.clauses)))
            writes = (*way.writes, name_write(by))
            found[before, after] = Way(before, after, writes, clauses)
    return tuple(found.values())


def list_drawings(result: Result) -> list[Drawing]:
    """Return a drawing for each protocol under the result's profile that it has clauses of."""
    rows = {clause["id"]: clause for clause in result.get("clauses", ())}
    drawings = []
    for protocol in PROTOCOLS.get(result["profile"] or "", ()):
        life = find_lives().get(protocol)
        if life is not None and any(
            clause in rows for w in list_ways(life) for clause in w.clauses
        ):
            drawings.append(Drawing(life.of, protocol, draw_lifecycle(protocol, life, rows)))
    return drawings


def draw_lifecycle(
    protocol: str, life: Lifecycle[Any], rows: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return the picture as inline SVG, for a result's clauses by id."""
    ways, order = list_ways(life), list(life.stages)
    longest = max(abs(order.index(way.before) - order.index(way.after)) for way in ways)
    width = 2 * round(_BOX[0] / 2 + 0.75 * (18 + _SPREAD * longest) + _MARGIN)
    width = max(width, _NARROWEST)
    height = _ROW * len(order)
    name = escape(f"The life of {life.of}")
    tip = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    parts = [
        f'<svg class="life" viewBox="0 0 {width} {height}" role="img" aria-label="{name}"><defs>',
        f'<marker id="tip-{protocol}" {tip} orient="auto-start-reverse">',
        '<path d="M0 0 8 4 0 8z" fill="context-stroke"/></marker></defs>',
    ]
    for way in ways:
        places = order.index(way.before), order.index(way.after)
        asked = [rows[clause] for clause in way.clauses if clause in rows]
        lines = [
            way.words,
            *(f"{row['id']}: {row['verdict']}, {row['exercised']}" for row in asked),
        ]
        path, at = _lead(places, width / 2)
        said = f"{sum(bool(row['exercised']) for row in asked)}/{len(asked)}" if asked else ""
        parts += (
            f'<g class="way {_find_kind(asked)}"><title>{escape(chr(10).join(lines))}</title>',
            f'<path d="{path}" marker-end="url(#tip-{protocol})"/>',
            f'<text x="{at[0]:.0f}" y="{at[1]:.0f}">{said}</text></g>',
        )
    for number, stage in enumerate(order):
        top = _ROW * number + (_ROW - _BOX[1]) / 2
        parts.append(
            f'<g><title>{escape(stage.value)}</title><rect class="stage" '
            f'x="{(width - _BOX[0]) / 2}" y="{top}" width="{_BOX[0]}" height="{_BOX[1]}" rx="9"/>'
            f'<text class="stage" x="{width / 2}" y="{top + 24}">{name_stage(stage)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def _find_kind(asked: list[Mapping[str, Any]]) -> str:
    """Return the kind of a way by the clauses that it was put to."""
    if not asked:
        return "free"
    if any(row["verdict"] == "violated" for row in asked):
        return "bad"
    tested = sum(bool(row["exercised"]) for row in asked)
    return "ok" if tested == len(asked) else "part" if tested else "none"


def _lead(places: tuple[int, int], middle: float) -> tuple[str, tuple[float, float]]:
    """Return the path of a way between the places of two stages, and where its number stands."""
    before, after = places
    forward, passed = after > before, abs(after - before)
    start, end = ((_ROW * (place + 0.5)) for place in places)
    if forward and passed == 1:
        edge = _BOX[1] / 2
        return f"M{middle} {start + edge}V{end - edge}", (middle + 8.0, (start + end) / 2 + 4)
    side = 1 if forward else -1
    edge = middle + side * _BOX[0] / 2
    out = edge + side * (18 + _SPREAD * passed)
    start, end = start + 5 * side, end - 5 * side
    at = (edge + 0.75 * (out - edge) - (12 if not forward else -2), (start + end) / 2 + 4)
    return f"M{edge} {start}C{out} {start} {out} {end} {edge} {end}", at
