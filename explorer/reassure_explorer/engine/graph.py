"""The whole state graph of a small model, and an abstract picture of it."""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import graph_kernels
from reassure_explorer.engine.derived import Engine
from reassure_explorer.engine.interface import Model, ModelError
from reassure_explorer.engine.renderings import format_value
from reassure_explorer.engine.result import Budget
from reassure_explorer.engine.runs import as_rows, merge_all

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
_WIDTH: Final = 230
_HEIGHT: Final = 64
MOST_NODES: Final = 150


class StateGraph:
    """States as sorted rows, and the successors of each by each action instance.

    Made from an engine that has explored everything. Steps that lead outside the constraint are
    left out.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine, self.model = engine, engine.model
        self.count = len(engine.instances)
        levels = [level.restore() for level in engine.levels]
        self.rows = as_rows(merge_all(levels, engine.layout.words))
        d = engine.diagrams
        self.columns: I64 = np.concatenate([[0], np.cumsum(d.count_widths())]).astype(np.int64)
        """For each action instance its first column among the targets, and where the last ends."""
        self.owners: I64 = np.repeat(np.arange(self.count), np.diff(self.columns))
        """The action instance of each column."""
        self.targets: I32 = graph_kernels.link(
            self.rows, d.roots[: self.count], d.children, d.clear, d.put, d.more, self.columns
        )
        if self.model.constraint is not None:
            self.targets[self.targets == -3] = -1
        assert self.targets.min(initial=0) >= -1, "the exploration missed a successor"

    @property
    def starts(self) -> I32:
        """The rows of the initial states."""
        packed = {self.engine.layout.pack(state) for state in self.model.initial_states}
        rows = [i for i, row in enumerate(self.rows.tolist()) if tuple(row) in packed]
        return np.array(rows, dtype=np.int32)

    def unpack(self, row: int) -> Any:
        """Return the plain state of a row."""
        return self.engine.layout.unpack(tuple(self.rows[row].tolist()))


def make_graph(model: Model, states: int) -> StateGraph:
    """Explore a model and return its graph. Raises ModelError above so many states."""
    engine = Engine(model)
    result = engine.run(keep_going=True, budget=Budget(states=states))
    if result.unfinished is not None:
        raise ModelError(f"model {model.name} has more than {states} states; take a smaller scope")
    return StateGraph(engine)


def draw_graph(model: Model, fields: Sequence[str], states: int = 200_000) -> str:
    """Return an SVG picture of the graph with all states alike that agree in these fields.

    A node stands for such a class of states, in the column of the fewest steps that lead to it; an
    arrow says which actions lead from one class to another. Raises ModelError for unknown fields,
    for more than `states` states, and for more than `MOST_NODES` classes.
    """
    strangers = [name for name in fields if name not in model.fields]
    if strangers or not fields:
        known = ", ".join(model.fields)
        raise ModelError(f"no field {strangers or 'given'}; the fields are: {known}")
    graph = make_graph(model, states)
    everywhere = np.ones(len(graph.rows), dtype=np.bool_)
    _, _, steps = graph_kernels.find_ways(graph.targets, graph.starts, everywhere)
    classes: dict[tuple[Any, ...], int] = {}
    depth: dict[int, int] = {}
    member = np.empty(len(graph.rows), dtype=np.int32)
    for row in np.argsort(steps, kind="stable").tolist():
        state = graph.unpack(row)
        key = tuple(getattr(state, name) for name in fields)
        member[row] = classes.setdefault(key, len(classes))
        depth.setdefault(int(member[row]), int(steps[row]))
    if len(classes) > MOST_NODES:
        raise ModelError(
            f"{len(classes)} classes of states are too many to draw, {MOST_NODES} are not; "
            "take fewer fields"
        )
    arrows: dict[tuple[int, int], set[str]] = {}
    for at, owner in enumerate(graph.owners.tolist()):
        action, _ = graph.engine.instances[owner]
        for row in np.flatnonzero(graph.targets[:, at] >= 0).tolist():
            pair = (int(member[row]), int(member[graph.targets[row, at]]))
            if pair[0] != pair[1]:
                arrows.setdefault(pair, set()).add(action.name)
    return _draw(list(classes), fields, depth, arrows)


def _draw(
    classes: list[tuple[Any, ...]],
    fields: Sequence[str],
    depth: dict[int, int],
    arrows: dict[tuple[int, int], set[str]],
) -> str:
    columns = {d: c for c, d in enumerate(sorted(set(depth.values())))}
    filled: dict[int, int] = {}
    places: dict[int, tuple[int, int]] = {}
    for node in range(len(classes)):
        column = columns[depth[node]]
        row = filled.setdefault(column, 0)
        filled[column] += 1
        places[node] = (20 + column * _WIDTH, 20 + row * _HEIGHT)
    size = (40 + len(columns) * _WIDTH, 40 + max(filled.values()) * _HEIGHT)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
            'font-family="sans-serif" font-size="11">'
            '<rect width="100%" height="100%" fill="white"/>'
        ),
        (
            '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>'
        ),
    ]
    for (here, there), names in sorted(arrows.items()):
        parts.append(_draw_arrow(places[here], places[there], ", ".join(sorted(names))))
    for node, (x, y) in places.items():
        values = zip(fields, classes[node], strict=True)
        words = [f"{name} {format_value(value)}" for name, value in values]
        parts.append(
            f'<rect x="{x}" y="{y}" width="150" height="40" rx="6" fill="#eef" stroke="#557"/>'
            f"<title>{escape(', '.join(words))}</title>"
        )
        for line, text in enumerate((", ".join(words[:2]), ", ".join(words[2:]))):
            parts.append(f'<text x="{x + 6}" y="{y + 16 + 15 * line}">{escape(text[:30])}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw_arrow(here: tuple[int, int], there: tuple[int, int], words: str) -> str:
    (x, y), (u, v) = here, there
    forth = u > x
    start, end = (x + 150, y + 20), (u, v + 20)
    if not forth:
        start, end = (x + 75, y), (u + 75, v + 40 if v < y else v)
    bend = 40 if forth else -30
    path = f"M{start[0]} {start[1]}C{start[0] + bend} {start[1]} {end[0] - bend} {end[1]} "
    return (
        f'<path d="{path}{end[0]} {end[1]}" stroke="#888" fill="none" marker-end="url(#a)">'
        f"<title>{escape(words)}</title></path>"
    )
