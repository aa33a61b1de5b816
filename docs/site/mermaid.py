"""Mermaid's state diagrams and flowcharts as inline SVG, so that the site needs no script for them.

Where the pages are read as files Mermaid draws them; here all boxes stand in a column in the order
in which they are named, ways onwards lie at its right and ways back at its left.
"""

import re
from html import escape
from typing import Final

_WAY: Final = re.compile(r"^(\S+?)(?:\[(.+?)\])? --> (\S+?)(?:\[(.+?)\])?(?:: (.+))?$")
_ROW: Final = 58
_HEIGHT: Final = 34
_LETTER: Final = 7.4
_SPREAD: Final = 22
"""How much further out a way is drawn for each box that it passes."""
_START: Final = "[*]"
_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)
Way = tuple[str, str, str]


def read_diagram(text: str) -> tuple[dict[str, str], list[Way]]:
    r"""Return boxes, each with its words, and ways between them, each with what is said of it.

    >>> read_diagram("flowchart LR\n    a[one] --> b")
    ({'a': 'one', 'b': 'b'}, [('a', 'b', '')])
    """
    boxes: dict[str, str] = {}
    ways: list[Way] = []
    for line in map(str.strip, text.strip().splitlines()[1:]):
        found = _WAY.match(line)
        if found is None:
            raise ValueError(f"{line!r} in a diagram: expected `box[words] --> box[words]: label`")
        before, its_words, after, other_words, said = found.groups()
        for box, words in ((before, its_words), (after, other_words)):
            boxes[box] = words or boxes.get(box, box)
        ways.append((before, after, said or ""))
    return boxes, ways


def draw_diagram(text: str) -> str:
    """Return a diagram as HTML without an empty line."""
    boxes, ways = read_diagram(text)
    order = list(boxes)
    longest = max((abs(order.index(a) - order.index(b)) for a, b, _ in ways), default=1)
    side = 24 + _SPREAD * longest
    box = 32 + round(_LETTER * max(map(len, boxes.values())))
    middle, width, height = side + box / 2, 2 * side + box, _ROW * len(order)
    parts = [
        f'<figure class="diagram"><svg viewBox="0 0 {width} {height}" width="{width}" role="img">',
        _TIP,
    ]
    for before, after, said in ways:
        line = _draw_line(order.index(before), order.index(after), middle, box)
        words = f"{boxes[before]} → {boxes[after]}" + (f": {said}" if said else "")
        parts.append(
            f'<g class="way"><title>{escape(words)}</title>'
            f'<path d="{line}" marker-end="url(#tip)"/></g>'
        )
    for place, (name, words) in enumerate(boxes.items()):
        y = _ROW * (place + 0.5)
        if name == _START:
            parts.append(f'<circle cx="{middle}" cy="{y}" r="7"/>')
            continue
        parts.append(
            f'<rect x="{side}" y="{y - _HEIGHT / 2}" width="{box}" height="{_HEIGHT}" rx="8"/>'
            f'<text x="{middle}" y="{y + 4.5}">{escape(words)}</text>'
        )
    return "\n".join([*parts, "</svg></figure>"])


def _draw_line(before: int, after: int, middle: float, box: int) -> str:
    """Return the path of a way: straight to the next box, curved past others and back."""
    start, end = _ROW * (before + 0.5), _ROW * (after + 0.5)
    if after == before + 1:
        return f"M{middle} {start + _HEIGHT / 2}V{end - _HEIGHT / 2}"
    side = 1 if after > before else -1
    edge = middle + side * box / 2
    out = edge + side * (8 + _SPREAD * abs(after - before))
    start, end = start + 5 * side, end - 5 * side
    return f"M{edge} {start}C{out} {start} {out} {end} {edge} {end}"
