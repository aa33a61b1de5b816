"""A result as one HTML file that needs no network: what to show, for `page.html.jinja`."""

from collections import Counter
from collections.abc import Mapping, Set
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from reassure_conformance.report.cases import (
    WORDS,
    Case,
    Result,
    describe_clause,
    list_records,
)
from reassure_conformance.report.display import show_zxid
from reassure_conformance.report.document import HOLDS, NOT_DISCRIMINATED
from reassure_conformance.report.fleet import draw_fleet, embed, load_template
from reassure_conformance.report.incident_lines import (
    list_facts,
    list_incidents,
    name_incident,
    say_when,
)
from reassure_conformance.report.lifecycle import list_drawings
from reassure_conformance.report.qualified import read_report
from reassure_conformance.report.spacetime import pack_rows
from reassure_conformance.report.spelling import spell_verb
from reassure_spec.clauses import load_clauses

_LINES: Final = 30
"""How many lines of evidence a card has, the last ones: a story may have thousands of steps."""


_MOST_RECORDS: Final = 2_000
"""How many violations a page holds, more or less: each clause has its part of them."""
_LEAST_RECORDS: Final = 5
_LONGEST: Final = 600
"""How many characters of a znode's content a page shows."""
_MOST_INCIDENTS: Final = 100
_MOST_CARDS: Final = 20
"""How many things that are wrong have a card."""
_CARDS: Final = 4
"""How many do where the fleet comes after them."""


class CaseRow(NamedTuple):
    """A line of the table of cases."""

    case: Case
    word: str
    """What came of it."""
    level: str
    sentence: str
    times: str
    """How often it was put to the test, where that was counted."""


class Spot(NamedTuple):
    """A fault in the kill matrix."""

    kill: dict[str, Any]
    area: str
    """The area of the clause that caught it, "" for none."""
    heat: int
    """From 0, in one step, to 4: how long a story it took."""


def render_page(result: Result) -> str:
    """Return the page."""
    template = load_template("page.html.jinja")
    report = read_report(result)
    cases = report.cases
    films = _list_films(result)
    outcomes = Counter(case.outcome for case in cases)
    spots, fleet = _list_spots(result), draw_fleet(result)
    violations, beyond = _list_violations(result)
    return template.render(
        result=result,
        verb=spell_verb(result["verb"]),
        report=report,
        words=WORDS,
        shown=_LINES,
        cards=_CARDS if fleet else _MOST_CARDS,
        failing=report.failures,
        sentences={case.name: describe_clause(case.name) for case in cases},
        lines=_list_lines(result, cases),
        outcomes={outcome: outcomes[outcome] for outcome in WORDS if outcomes[outcome]},
        lives=[each._replace(svg=Markup(each.svg)) for each in list_drawings(result)],
        situations=[each for each in result.get("situations", ()) if each["reached"] is not None],
        spots=spots,
        fleet=fleet,
        incidents=[
            (each, name_incident(each), say_when(each), [*list_facts(each)])
            for each in list_incidents(result)[:_MOST_INCIDENTS]
        ],
        areas=sorted({spot.area for spot in spots} - {""}),
        has_story=bool(result.get("timeline")),
        films=embed(films),
        violations=embed(violations),
        beyond=sorted(beyond.items()),
        only_warnings=report.verdict == HOLDS
        and {each["kind"] for each in violations} <= {_WARNING},
    )


def _list_films(result: Result) -> list[Any]:
    """Return what space-time diagrams are drawn from: the failing story, then those of asides."""
    timelines = [result.get("timeline"), *(each["timeline"] for each in result.get("asides", ()))]
    return [
        None if each is None else {"lanes": each["lanes"], "rows": pack_rows(each)}
        for each in timelines
    ]


_WARNING: Final = "warning"
_LISTED: Final = {"violations": "violated", "unsettled": "not settled", "not_followed": _WARNING}
"""What is listed one by one, and what it is called."""


def _list_violations(result: Result) -> tuple[list[Any], Counter[str]]:
    """Return what was broken, left open or not followed: records, or stories of states.

    Each says what kind it is and, where what happened was kept, by which film that is told. Of each
    clause there are the first; how many more there are is counted by clause. Of the warnings of a
    clause there is one, that with a diagram if there is such.
    """
    asides = result.get("asides", ())
    every = [(each, kind) for name, kind in _LISTED.items() for each in list_records(result, name)]
    every += [(each["violation"], "known") for each in asides if each["known"]]
    films = {_place(each["violation"]): number for number, each in enumerate(asides, start=1)}
    story = result.get("timeline") or {"rows": ()}
    told = {row["zxid"] for row in story["rows"] if "zxid" in row}
    beyond = Counter[str]()
    for counts in result.get("not_listed", {}).values():
        beyond.update(counts)
    kinds = {(each["clause"], kind) for each, kind in every}
    room = Counter(dict.fromkeys(kinds, max(_LEAST_RECORDS, _MOST_RECORDS // max(1, len(kinds)))))
    room.update({each: 1 - room[each] for each in kinds if each[1] == _WARNING})
    every.sort(key=lambda each: each[1] == _WARNING and _place(each[0]) not in films)
    shown = []
    for each, kind in every:
        room[each["clause"], kind] -= 1
        if room[each["clause"], kind] < 0:
            beyond[each["clause"]] += 1
        else:
            shown.append(_describe(each, kind, told, films))
    return shown, beyond


def _describe(
    record: Mapping[str, Any], kind: str, told: Set[int], films: Mapping[tuple[Any, ...], int]
) -> dict[str, Any]:
    """Return a violation as the page lists it; `told` are the zxids of the failing story."""
    if "zxid" not in record:
        return {**record, "kind": kind}
    of_story = 0 if kind == "violated" and record["zxid"] in told else None
    film = films.get(_place(record)) if kind in (_WARNING, "known") else of_story
    short = {name: _shorten(value) for name, value in record.items()}
    return {**short, "kind": kind, "film": film, "zxid": show_zxid(record["zxid"])}


def _shorten(value: Any) -> Any:
    """Return a value as a page holds it: a znode of many partitions may be large."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]} … and {len(value) - _LONGEST} characters more"
    return value


def _place(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells a violation apart from others."""
    return tuple(record.get(name) for name in ("clause", "path", "zxid", "topic", "partition"))


def _list_lines(result: Result, cases: tuple[Case, ...]) -> list[CaseRow]:
    rows = {clause["id"]: clause for clause in result.get("clauses", ())}
    clauses = load_clauses()
    lines = []
    for case in cases:
        row = rows.get(case.name) if case.group == "clauses" else None
        level = clauses[case.name].level if case.name in clauses else case.group
        times = "" if row is None else str(row["exercised"])
        alike = row is not None and row["verdict"] == NOT_DISCRIMINATED
        word = NOT_DISCRIMINATED if alike else WORDS[case.outcome]
        lines.append(CaseRow(case, word, level, describe_clause(case.name), times))
    order = list(WORDS)
    return sorted(lines, key=lambda line: order.index(line.case.outcome))


def _list_spots(result: Result) -> list[Spot]:
    if result["verb"] != "faults" or "matrix" not in result:
        return []
    limits = (1, 3, 5, 8)
    return [
        Spot(
            kill,
            kill["clause"].partition(".")[0],
            sum(kill["steps"] > limit for limit in limits),
        )
        for kill in result["matrix"]
    ]
