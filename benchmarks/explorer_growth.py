"""A picture of how the time a state grows with the states: both axes in powers of ten."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 78, 24, 46, 56


@dataclass(frozen=True, slots=True)
class Point:
    """One exploration."""

    states: int
    seconds: float
    """Processor time of the whole."""
    known: float
    """Processor time of the same again with all paths known."""
    bytes: float
    """Memory for each state."""

    @property
    def nanoseconds(self) -> float:
        """Time for each state."""
        return 1e9 * self.seconds / self.states

    @property
    def nanoseconds_known(self) -> float:
        """Time for each state with all paths known."""
        return 1e9 * self.known / self.states


def draw_growth(points: Sequence[Point]) -> str:
    """Return the picture as SVG."""
    high = max(5, math.ceil(math.log10(max(p.nanoseconds for p in points))))
    low = math.floor(math.log10(min(p.nanoseconds_known for p in points)))
    right = max(8, math.ceil(math.log10(max(p.states for p in points))))
    left = min(5, math.floor(math.log10(min(p.states for p in points))))

    def place(states: float, nanoseconds: float) -> tuple[float, float]:
        x = LEFT + (math.log10(states) - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        y = (
            HEIGHT
            - BOTTOM
            - (math.log10(nanoseconds) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
        )
        return round(x, 1), round(y, 1)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="sans-serif" font-size="12"><title>Time for each state</title>'
        ),
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">Time for each distinct state, one thread</text>',
        f'<text x="{WIDTH // 2}" y="{HEIGHT - 12}" text-anchor="middle">distinct states</text>',
    ]
    for power in range(left, right + 1):
        x, y = place(10**power, 10**low)
        parts.append(f'<path d="M{x} {TOP}V{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{_name(power)}</text>')
    for power in range(low, high + 1):
        x, y = place(10**left, 10**power)
        parts.append(f'<path d="M{x} {y}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        words = f"{10**power:,} ns" if power < 3 else f"{10 ** (power - 3):,} µs"
        parts.append(f'<text x="{x - 8}" y="{y + 4}" text-anchor="end">{words}</text>')
    known = [place(p.states, p.nanoseconds_known) for p in points]
    whole = [place(p.states, p.nanoseconds) for p in points]
    parts += _draw_line(whole, "#c83", "with learning the paths")
    parts += _draw_line(known, "#36c", "all paths known")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _name(power: int) -> str:
    return f'10<tspan dy="-5" font-size="9">{power}</tspan>'


def _draw_line(places: Sequence[tuple[float, float]], colour: str, words: str) -> list[str]:
    path = "L".join(f"{x} {y}" for x, y in places)
    dots = [f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x, y in places]
    x, y = places[0]
    return [
        f'<path d="M{path}" stroke="{colour}" fill="none" stroke-width="2"/>',
        *dots,
        f'<text x="{x + 8}" y="{y - 10}" fill="{colour}">{words}</text>',
    ]
