"""A result as a badge: a small SVG with the verdict."""

from html import escape
from typing import Final

from reassure_conformance.report.cases import Result
from reassure_conformance.report.document import HOLDS
from reassure_conformance.report.qualified import read_report

_COLOURS: Final = {
    "holds": "#2b7a3d",
    "violated": "#b3261e",
    "unknown": "#8a6100",
    "vacuous": "#5f6368",
}
_CHARACTER: Final = 6.6
"""How wide a character is taken to be, in pixels at the size used."""
_PAD: Final = 8


def render_badge(result: Result) -> str:
    """Return the SVG: the verdict, and as its title the whole of it."""
    report = read_report(result)
    name = "reassure" if result["profile"] is None else f"reassure {result['profile']}"
    verdict, skipped = report.verdict, sum(map(len, report.skipped.values()))
    said = verdict if verdict != HOLDS else ": ".join(filter(None, (verdict, report.coverage)))
    said += f", {skipped} skipped" if skipped else ""
    title = escape(f"{name}: {report.headline}")
    left, right = (round(len(text) * _CHARACTER + 2 * _PAD) for text in (name, said))
    width, middle = left + right, left + right / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" '
        f'aria-label="{title}" font-family="Verdana,sans-serif" '
        'font-size="11" fill="#fff" text-anchor="middle">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#3c4043"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLOURS[verdict]}"/></g>'
        f'<text x="{left / 2}" y="14">{escape(name)}</text>'
        f'<text x="{middle}" y="14">{escape(said)}</text></svg>\n'
    )
