"""Traces: how a way through a model is shown to people.

As text (what each step changed), and as a space-time diagram in SVG, one line for whoever takes
part and time running down.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from html import escape
from operator import attrgetter
from typing import Any, Final

from reassure_explorer.engine.result import Trace, TraceStep

_ROW: Final = 34
_COLUMN: Final = 110
_COLOUR: Final = "#393"


def find_changes(before: Any, after: Any) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ, with the value before and after."""
    return {
        name: (getattr(before, name), getattr(after, name))
        for name in before._fields
        if getattr(before, name) != getattr(after, name)
    }


def list_members(members: Iterable[Any]) -> list[Any]:
    """Return the members of a set in their own order, by kind and words where they have none.

    >>> list_members({10, 9}), list_members({("a", 1), "b", "a"})
    ([9, 10], ['a', 'b', ('a', 1)])
    """
    try:
        return sorted(members)
    except TypeError:
        return sorted(members, key=lambda member: (type(member).__name__, format_value(member)))


def format_value(value: Any) -> str:
    """Return a value as traces show it.

    >>> format_value(frozenset({2, 1})), format_value((1, 2)), format_value(None)
    ('{1 2}', '[1 2]', '-')
    >>> format_value({"a": 1, "b": (2,)})
    '{a: 1 b: [2]}'
    """
    if value is None:
        return "-"
    if isinstance(value, frozenset):
        return "{" + " ".join(format_value(member) for member in list_members(value)) + "}"
    if isinstance(value, tuple):
        return "[" + " ".join(format_value(entry) for entry in value) + "]"
    if isinstance(value, Mapping):
        parts = (f"{format_value(key)}: {format_value(entry)}" for key, entry in value.items())
        return "{" + " ".join(parts) + "}"
    if is_dataclass(value):
        parts = (format_value(getattr(value, part.name)) for part in fields(value))
        return f"{type(value).__name__}({' '.join(parts)})"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def make_plain(value: Any) -> Any:
    """Return a value as JSON has it: sets and tuples as lists, maps and records as objects.

    >>> make_plain({"isr": frozenset({2, 1}), 3: ("a", None)})
    {'isr': [1, 2], '3': ['a', None]}
    """
    if isinstance(value, frozenset):
        return [make_plain(member) for member in list_members(value)]
    if isinstance(value, tuple):
        return [make_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): make_plain(entry) for key, entry in value.items()}
    if is_dataclass(value):
        return {part.name: make_plain(getattr(value, part.name)) for part in fields(value)}
    return value if value is None or isinstance(value, int | str) else str(value)


def format_change(name: str, old: Any, new: Any) -> str:
    """Return how a field changed: of a set its members, of a map its keys, of a record its parts.

    >>> format_change("isr", frozenset({1, 2}), frozenset({2, 3}))
    'isr +3 -1'
    >>> format_change("log", {"a": 1, "b": 2}, {"a": 1, "b": 3})
    'log[b] 2 -> 3'
    >>> format_change("leader", None, 1)
    'leader - -> 1'
    """
    if isinstance(old, frozenset) and isinstance(new, frozenset):
        more = [f"+{format_value(member)}" for member in list_members(new - old)]
        less = [f"-{format_value(member)}" for member in list_members(old - new)]
        return " ".join([name, *more, *less])
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() == new.keys():
        parts = [(f"{name}[{format_value(key)}]", old[key], new[key]) for key in old]
    elif is_dataclass(old) and type(old) is type(new):
        pairs = ((part.name, old, new) for part in fields(old))
        parts = [(f"{name}.{part}", getattr(a, part), getattr(b, part)) for part, a, b in pairs]
    elif _are_rows(old) and _are_rows(new) and len(old) == len(new):
        parts = [(f"{name}[{at}]", *pair) for at, pair in enumerate(zip(old, new, strict=True))]
    else:
        return f"{name} {format_value(old)} -> {format_value(new)}"
    return ", ".join(format_change(*part) for part in parts if part[1] != part[2])


def _are_rows(value: Any) -> bool:
    return isinstance(value, tuple) and any(map(is_dataclass, value))


def tell_trace(trace: Trace) -> str:
    """Return the trace as lines: the start, then each step and what it changed."""
    width = max((len(step.words) for step in trace.steps), default=0)
    start = ", ".join(
        f"{n} {format_value(getattr(trace.initial, n))}" for n in trace.initial._fields
    )
    lines = [f"  start: {start}"]
    before = trace.initial
    for number, step in enumerate(trace.steps, 1):
        changes = find_changes(before, step.state)
        words = ", ".join(format_change(name, *values) for name, values in changes.items())
        lines.append(f"  {number:>3}. {step.words:<{width}}  {words or 'nothing changes'}")
        before = step.state
    return "\n".join(lines)


def draw_trace(
    trace: Trace,
    title: str = "",
    actor: Callable[[TraceStep], str] = attrgetter("action"),
    colours: Mapping[str, str] | None = None,
) -> str:
    """Return the trace as a space-time diagram: an SVG picture with a line for each actor.

    `actor` says who acts in a step, otherwise each action has its line; `colours` are those of
    actions that are to stand out.
    """
    actors = sorted({actor(step) for step in trace.steps})
    places = {name: 60 + _COLUMN * number for number, name in enumerate(actors)}
    text_at = 60 + _COLUMN * len(actors)
    height = 70 + _ROW * len(trace.steps)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{text_at + 620}" height="{height}" '
            'font-family="sans-serif" font-size="12">'
        ),
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for name, x in places.items():
        parts.append(f'<text x="{x}" y="24" text-anchor="middle">{escape(name)}</text>')
        parts.append(f'<line x1="{x}" y1="32" x2="{x}" y2="{height - 12}" stroke="#999"/>')
    before, last = trace.initial, (0, 0)
    for number, step in enumerate(trace.steps):
        x, y = places[actor(step)], 52 + _ROW * number
        if number:
            parts.append(f'<path d="M{last[0]} {last[1]}L{x} {y}" stroke="#cdd" fill="none"/>')
        colour = (colours or {}).get(step.action, _COLOUR)
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(
            f'<text x="{text_at}" y="{y + 4}">{_describe_step(number, before, step)}</text>'
        )
        before, last = step.state, (x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _describe_step(number: int, before: Any, step: TraceStep) -> str:
    changes: Mapping[str, tuple[Any, Any]] = find_changes(before, step.state)
    shown = [format_change(name, *values) for name, values in changes.items()]
    return escape(f"{number + 1}. {step.words}   {', '.join(shown)}")
