"""The lifecycle of a reassignment as a picture: its stages, and how far each move was tested.

Stages and moves are the model's own table (`kip_236.stages`). A move is put to clauses; the picture
says of how many of them the result tells that they were exercised, and whether one was violated.
"""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final, NamedTuple

from reassure_conformance.report.cases import Result
from reassure_model.kip_236.stages import MOVES, Stage
from reassure_spec.systems import SYSTEMS

_ROW: Final = 76
_WIDTH: Final = 620
_MIDDLE: Final = _WIDTH // 2
_BOX: Final = (172, 38)
_SPREAD: Final = 34
"""How much further out a way is drawn for each stage that it passes."""


class Way(NamedTuple):
    """What leads from one stage to another, maybe by several kinds of writes."""

    before: Stage
    after: Stage
    writes: tuple[str, ...]
    clauses: tuple[str, ...]

    @property
    def words(self) -> str:
        """The way in words."""
        return f"{name_stage(self.before)} → {name_stage(self.after)}: {', '.join(self.writes)}"


def name_stage(stage: Stage) -> str:
    """Return the name of a stage as words.

    >>> name_stage(Stage.AT_REST)
    'at rest'
    """
    return stage.name.lower().replace("_", " ")


def list_ways() -> tuple[Way, ...]:
    """Return the moves of the table, those between the same two stages as one."""
    order = list(Stage).index
    found: dict[tuple[Stage, Stage], Way] = {}
    for (before, by), move in MOVES.items():
        for after in sorted(move.to, key=order):
            way = found.get((before, after), Way(before, after, (), ()))
            clauses = tuple(dict.fromkeys((*way.clauses, *move.clauses)))
            found[before, after] = Way(before, after, (*way.writes, by.__name__), clauses)
    return tuple(found.values())


def has_lifecycle(result: Result) -> bool:
    """Whether a result is about the protocol of the table."""
    described = [system for system in SYSTEMS if "kip_236.stages" in system.modules]
    return "clauses" in result and any(result["profile"] in each.profiles for each in described)


def draw_lifecycle(result: Result) -> str:
    """Return the picture as inline SVG; its colours are those of the page."""
    rows = {clause["id"]: clause for clause in result["clauses"]}
    height = _ROW * len(Stage)
    name = "Lifecycle of a reassignment"
    tip = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    parts = [
        f'<svg class="life" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{name}"><defs>',
        f'<marker id="tip" {tip} orient="auto-start-reverse">',
        '<path d="M0 0 8 4 0 8z" fill="context-stroke"/></marker></defs>',
    ]
    for way in list_ways():
        parts += _draw_way(way, rows)
    for number, stage in enumerate(Stage):
        top = _ROW * number + (_ROW - _BOX[1]) / 2
        parts.append(
            f'<g><title>{escape(stage.value)}</title><rect class="stage" '
            f'x="{_MIDDLE - _BOX[0] / 2}" y="{top}" width="{_BOX[0]}" height="{_BOX[1]}" rx="9"/>'
            f'<text class="stage" x="{_MIDDLE}" y="{top + 24}">{name_stage(stage)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def _draw_way(way: Way, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    order = list(Stage).index
    before, after = order(way.before), order(way.after)
    asked = [rows[clause] for clause in way.clauses if clause in rows]
    tested = sum(bool(row["exercised"]) for row in asked)
    broken = any(row["verdict"] == "violated" for row in asked)
    some = "part" if tested or not asked else "none"
    kind = "bad" if broken else "ok" if tested == len(asked) else some
    forward, passed = after > before, abs(after - before)
    start, end = ((_ROW * (place + 0.5)) for place in (before, after))
    if forward and passed == 1:
        edge = _BOX[1] / 2
        path = f"M{_MIDDLE} {start + edge}V{end - edge}"
        at = (_MIDDLE + 8.0, (start + end) / 2 + 4)
    else:
        side = 1 if forward else -1
        edge = _MIDDLE + side * _BOX[0] / 2
        out = edge + side * (18 + _SPREAD * passed)
        start, end = start + (5 if forward else -5), end - (5 if forward else -5)
        path = f"M{edge} {start}C{out} {start} {out} {end} {edge} {end}"
        at = (edge + 0.75 * (out - edge) - (12 if not forward else -2), (start + end) / 2 + 4)
    said = f"{tested}/{len(asked)}" if asked else ""
    lines = [way.words, *(f"{row['id']}: {row['verdict']}, {row['exercised']}" for row in asked)]
    yield f'<g class="way {kind}"><title>{escape(chr(10).join(lines))}</title>'
    yield f'<path d="{path}" marker-end="url(#tip)"/>'
    yield f'<text x="{at[0]:.0f}" y="{at[1]:.0f}">{said}</text></g>'
