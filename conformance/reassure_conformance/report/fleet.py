"""The fleet over time: what an audit tells beyond violations, as a section of its page.

All plots share one axis of time, so that what happened together stands above each other, and one
line to look along. They are drawn here, as paths of a few kilobytes: a plotting library's pictures
bring colours of their own, which do not follow the page into the dark, text that shrinks with the
picture on a small screen, and either a script as large as ten of these pages or no way to ask for a
number. Nothing here grows with the history: the document is bounded, and so is what is shown of it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from reassure_conformance.report.cases import Result
from reassure_conformance.report.display import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    show_duration,
    show_time,
    show_zxid,
)
from reassure_conformance.report.present import KINDS

_CLAUSES: Final = 12
"""How many clauses have a row of their own."""
_CLUSTERS: Final = 12
"""How many clusters have a lane of their own among the controllers."""
_ARCHIVES: Final = 50
_ROWS: Final = 10
"""How many rows a table of single things has."""
_TICKS: Final = 6
_HIGH: Final = 100
"""How high a plot is, in its own units; as wide as there are bins."""
_BAR: Final = 0.86
_SEEN: Final = 4
"""How high the least bar is of what should not be overlooked."""
_SHADES: Final = 5
_HUES: Final = 8
_STEPS: Final = (
    *(1, 10, 100, *(n * SECOND for n in (1, 5, 10, 30))),
    *(n * MINUTE for n in (1, 2, 5, 10, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182, 364, 728, 3640)),
)
"""How far ticks may be apart."""


def embed(value: Any) -> Markup:
    """Return data as a script element of a page can hold it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c"))


def load_template(name: str) -> Template:
    """Return a template of reports, which escapes what it is given."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"lasting": show_duration, "moment": show_moment, "zxid": show_zxid}
    environment.filters["since"] = lambda ms: show_moment(ms) or "before the log"
    source = files("reassure_conformance.report") / name
    return environment.from_string(source.read_text(encoding="utf-8"))


class Series(NamedTuple):
    """What one colour of a plot shows."""

    words: str
    kind: str
    """The class that colours it."""
    values: tuple[float, ...]
    """One for each bin."""
    path: str = ""


class Plot(NamedTuple):
    """One plot over time."""

    name: str
    title: str
    what: str
    """What it shows, and how it is counted."""
    lines: tuple[Series, ...]
    top: str
    """What its upper edge stands for, in words."""
    described: str
    """Its gist in words, for those who do not see it."""
    mirrored: bool = False


class ClauseBins(NamedTuple):
    """A clause over time: each cell has its place, and its shade from 1 on."""

    clause: str
    kind: str
    found: int
    cells: tuple[tuple[int, int], ...]
    values: tuple[float, ...]


class Stay(NamedTuple):
    """A controller in office, or a time without one, as a bar: where, and how wide, in percent."""

    left: float
    width: float
    kind: str
    label: tuple[str, str]
    """What stands on it, and what else where there is room."""
    words: str


class Lane(NamedTuple):
    """One cluster's controllers."""

    name: str
    stays: tuple[Stay, ...]


class Axis(NamedTuple):
    """The time that all plots have."""

    start_ms: int
    bin_ms: int
    bins: int

    @property
    def end_ms(self) -> int:
        """Where the last bin ends."""
        return self.start_ms + self.bin_ms * self.bins

    def place(self, time_ms: int) -> float:
        """Return where a time is, in percent."""
        share = (time_ms - self.start_ms) / (self.bin_ms * self.bins)
        return round(100 * min(1.0, max(0.0, share)), 3)

    def spread(self, bins: Mapping[str, int], divisor: float = 1) -> tuple[float, ...]:
        """Return the value of every bin."""
        values = [0.0] * self.bins
        for start, value in bins.items():
            values[(int(start) - self.start_ms) // self.bin_ms] = value / divisor
        return tuple(values)

    def list_ticks(self) -> list[tuple[float, str]]:
        """Return places and words, few enough to be read."""
        span = self.bin_ms * self.bins
        step = next((each for each in _STEPS if span / each <= _TICKS), _STEPS[-1])
        first = -(-self.start_ms // step) * step
        times = range(first, self.end_ms, step)
        return [(self.place(time_ms), _show_tick(time_ms, span)) for time_ms in times]


def show_moment(ms: int | None) -> str:
    """Return a moment in words, to the second; "" for one that is not known.

    >>> show_moment(1_700_000_000_123)
    '2023-11-14 22:13:20'
    """
    return "" if ms is None else show_time(ms).partition(".")[0]


def _show_tick(ms: int, span: int) -> str:
    whole = show_moment(ms)
    if span <= 2 * MINUTE:
        return whole[11:] + (f".{ms % SECOND:03}" if span < 5 * SECOND else "")
    if span <= 2 * DAY:
        return whole[11:16]
    return whole[5:16] if span <= 10 * DAY else whole[:10]


def draw_fleet(result: Result) -> Markup:
    """Return the section, "" for a result that tells nothing of a fleet."""
    archives = result.get("archives", ()) if result["verb"] == "audit" else ()
    facts = result.get("facts")
    if facts is None and len(archives) < 2:
        return Markup("")
    template = load_template("fleet.html.jinja")
    worst = sorted(archives, key=lambda each: -each["violations"])[:_ARCHIVES]
    drawn = None if facts is None or facts["from_ms"] is None else _draw_time(facts)
    return Markup(
        template.render(
            facts=facts,
            time=drawn,
            moments=embed(drawn["moments"]) if drawn else "",
            kinds=KINDS,
            behind=0 if facts is None else sum(facts["at_end"][kind] for kind in KINDS),
            place=_name_place,
            most=_ROWS,
            archives=worst,
            others=len(archives) - len(worst),
        )
    )


def _name_place(record: Mapping[str, Any]) -> str:
    """Return whose a record is, short: topic and partition, below its cluster."""
    topic, number = record.get("topic", ""), record.get("partition", -1)
    if "broker" in record:
        return f"{record['chroot']} broker {record['broker']}".strip()
    below = f"{record['chroot']}/" if record["chroot"] else ""
    return below + (topic if number < 0 else f"{topic}-{number}")


def _draw_time(facts: Mapping[str, Any]) -> dict[str, Any]:
    width = facts["bin_ms"]
    first, last = facts["from_ms"] // width, facts["to_ms"] // width
    axis = Axis(first * width, width, last - first + 1)
    plots, rows = tuple(_list_plots(facts, axis)), _list_rows(facts["series"], axis)
    most = max((value for row in rows for value in row.values), default=0)
    lanes, hidden = _list_lanes(facts["controllers"], axis)
    asked = [
        *((f"{row.clause}{' (unsettled)' if row.kind else ''}", row.values) for row in rows),
        *((line.words, line.values) for plot in plots for line in plot.lines),
    ]
    return {
        "axis": axis,
        "plots": plots,
        "rows": rows,
        "most": round(most),
        "lanes": lanes,
        "hidden": hidden,
        "ticks": axis.list_ticks(),
        "moments": {
            "start": axis.start_ms,
            "width": axis.bin_ms,
            "count": axis.bins,
            "words": [[words, [round(value, 2) for value in values]] for words, values in asked],
        },
    }


def _list_plots(facts: Mapping[str, Any], axis: Axis) -> Iterator[Plot]:
    series = facts["series"]

    def line(words: str, kind: str, group: str, name: str, divisor: float = 1) -> Series:
        return Series(words, kind, axis.spread(series.get(group, {}).get(name, {}), divisor))

    lag = tuple(
        line(words, kind, "replication", name, axis.bin_ms)
        for words, kind, name in (
            ("under-replicated", "f-open", "under"),
            ("behind during a move", "f-act", "moving"),
            ("without a leader", "f-bad", "offline"),
        )
    )
    what = "partitions with fewer replicas in sync than assigned, averaged over time"
    yield _stack("lag", "Partitions behind", what, lag, axis, "partitions")
    moves = (
        line("started", "f-act", "reassignments", "started"),
        line("ended", "f-ok", "reassignments", "ended"),
    )
    yield _mirror("moves", "Reassignments", "started above, ended below", moves, axis)
    churn = (
        line("joined", "f-ok", "in_sync", "joined"),
        line("left", "f-open", "in_sync", "left"),
    )
    yield _mirror("churn", "In-sync sets", "replicas that joined above, left below", churn, axis)
    elections = (
        line("clean", "f-skip", "elections", "clean"),
        line("unclean", "f-bad", "elections", "unclean"),
        line("left without a leader", "f-adv", "elections", "lost"),
    )
    what = "leaders of partitions; unclean: not in sync before"
    unit = f"in {show_duration(axis.bin_ms)}"
    yield _stack("elections", "Elections", what, elections, axis, unit)


def _stack(
    name: str, title: str, what: str, lines: Sequence[Series], axis: Axis, unit: str
) -> Plot:
    """Put bars on each other."""
    sums = [sum(values) for values in zip(*(line.values for line in lines), strict=True)]
    top = max(sums, default=0)
    base, drawn = [0.0] * axis.bins, []
    for line in lines:
        path = _draw_bars(line.values, base, top, _HIGH, _SEEN if line.kind == "f-bad" else 0)
        base = [low + value for low, value in zip(base, line.values, strict=True)]
        drawn.append(line._replace(path=path))
    return Plot(name, title, what, tuple(drawn), _show_top(top, unit), _describe(drawn, axis))


def _mirror(name: str, title: str, what: str, lines: Sequence[Series], axis: Axis) -> Plot:
    """Put one row of bars above a line in the middle, and the other below."""
    top = max((value for line in lines for value in line.values), default=0)
    middle, above, below = _HIGH / 2, *lines
    zero = [0.0] * axis.bins
    drawn = (
        above._replace(path=_draw_bars(above.values, zero, top, middle)),
        below._replace(path=_draw_bars(below.values, zero, -top, middle)),
    )
    told = _show_top(top, f"either way in {show_duration(axis.bin_ms)}"), _describe(drawn, axis)
    return Plot(name, title, what, drawn, *told, mirrored=True)


def _draw_bars(
    values: Sequence[float], base: Sequence[float], top: float, floor: float, least: float = 0
) -> str:
    """Return bars that stand on `floor`, or hang from it where `top` is negative."""
    if not top:
        return ""
    unit = floor / top
    heights = [max(value * unit, least) if least else value * unit for value in values]
    return "".join(
        f"M{number} {floor - low * unit:.2f}v{-high:.2f}h{_BAR}v{high:.2f}z"
        for number, (value, high, low) in enumerate(zip(values, heights, base, strict=True))
        if value
    )


def _show_top(top: float, unit: str) -> str:
    """Return what the upper edge of a plot stands for."""
    return f"{_show_count(top)} {unit}" if top else "none"


def _show_count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:.2g}"


def _describe(lines: Sequence[Series], axis: Axis) -> str:
    """Say of each line how much it is, and where it is highest."""
    said = []
    for line in lines:
        highest = max(line.values, default=0)
        if highest:
            when = show_moment(axis.start_ms + line.values.index(highest) * axis.bin_ms)
            said.append(f"{line.words}: at most {_show_count(highest)}, from {when} on")
        else:
            said.append(f"{line.words}: never")
    return "; ".join(said)


def _list_rows(series: Mapping[str, Any], axis: Axis) -> list[ClauseBins]:
    """Return the clauses with most findings, what was violated first, and the rest together."""
    found = []
    for group, kind in (("violations", ""), ("unsettled", "open")):
        values = {c: axis.spread(bins) for c, bins in series.get(group, {}).items()}
        order = sorted(values, key=lambda clause: (-sum(values[clause]), clause))
        shown, rest = order[:_CLAUSES], order[_CLAUSES:]
        found += [(clause, kind, values[clause]) for clause in shown]
        if rest:
            whole = tuple(map(sum, zip(*(values[clause] for clause in rest), strict=True)))
            found.append((f"{len(rest)} other clauses", kind, whole))
    most = max((value for _, _, values in found for value in values), default=0)
    return [
        ClauseBins(clause, kind, round(sum(values)), _shade(values, most), values)
        for clause, kind, values in found
    ]


def _shade(values: Sequence[float], most: float) -> tuple[tuple[int, int], ...]:
    """Return the cells that are not empty: the darkest shade is that of the most."""
    root = most ** (1 / _SHADES)
    return tuple(
        (number, 1 + sum(value >= most / root**step for step in range(1, _SHADES)))
        for number, value in enumerate(values)
        if value
    )


def _list_lanes(controllers: Mapping[str, Any], axis: Axis) -> tuple[list[Lane], int]:
    """Return a lane for each cluster with terms that are told of, and how many have none."""
    clusters: dict[tuple[str, str], list[Stay]] = {}
    brokers = sorted({term["broker"] for term in controllers["latest"]})
    for term in controllers["latest"]:
        since = axis.start_ms if term["from_ms"] is None else term["from_ms"]
        words = f"controller {term['broker']}, epoch {term['epoch']}: {show_moment(since)}"
        words += f" to {show_moment(term['to_ms'])}, {show_duration(term['to_ms'] - since)}"
        hue = brokers.index(term["broker"]) % _HUES
        label = str(term["broker"]), f", epoch {term['epoch']}"
        stay = _make_stay(axis, since, term["to_ms"], f"c{hue}", label, words)
        clusters.setdefault((term["archive"], term["chroot"]), []).append(stay)
    for gap in controllers["longest_gaps"]:
        lasted = show_duration(gap["to_ms"] - gap["from_ms"])
        words = f"no controller for {lasted}, from {show_moment(gap['from_ms'])} on"
        stay = _make_stay(axis, gap["from_ms"], gap["to_ms"], "none", ("", ""), words)
        clusters.setdefault((gap["archive"], gap["chroot"]), []).append(stay)
    single = len({archive for archive, _ in clusters}) < 2
    alone = len(clusters) < 2
    lanes = [
        Lane(
            (chroot if alone else chroot or "/") if single else f"{archive} {chroot}", tuple(stays)
        )
        for (archive, chroot), stays in sorted(clusters.items())
    ]
    return lanes[:_CLUSTERS], max(0, len(lanes) - _CLUSTERS)


def _make_stay(
    axis: Axis, since: int, until: int, kind: str, label: tuple[str, str], words: str
) -> Stay:
    left = axis.place(since)
    return Stay(left, round(axis.place(until) - left, 3), kind, label, words)
