"""A result for people at a terminal: the verdict, what is wrong, what wants a look, warnings last.

Text of single things is made by `display`; what there is to say comes from `qualified`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reassure_conformance.report.cases import describe_death, find_needs, is_cut_short
from reassure_conformance.report.display import (
    Row,
    describe_broken,
    describe_record,
    fence,
    get_width,
    paint,
    render_table,
    say_counts,
    show_text,
    show_zxid,
)
from reassure_conformance.report.document import NOT_DISCRIMINATED
from reassure_conformance.report.qualified import ResultReport, Warned, read_report

_COUNTED: Final = ("stories", "examples", "steps", "transactions")
"""The counts that are said where nobody asks for all."""
_CALM: Final = {
    "holds": "that hold",
    "not exercised": "not exercised",
    "skipped": "skipped",
    "warning": "with a warning",
}
"""Verdicts on clauses that want no look, and what is said of how many there are."""


def render_run(result: Mapping[str, Any], form: str, *, verbose: bool = False) -> str:
    """Return what a run or the gate has to say: verdict and failure first, warnings last.

    With `verbose` every clause has its row, every count is said, and where the time went.
    """
    report = read_report(result)
    width = get_width() if form == "pretty" else None
    parts = [paint(report.headline), ""]
    parts += fence(describe_violation(report, width), form)
    parts += fence(_describe_death(report), form)
    parts += report.notes
    columns = ["by", "proof"] if "theorems" in result else []
    parts += render_clauses(result, form, verbose=verbose, columns=columns)
    if "exploration" in result:
        parts.append(result["exploration"]["text"])
    counts = result["counts"]
    named = counts if verbose else {name: counts.get(name, 0) for name in _COUNTED}
    parts.append(f"Counted: {say_counts(named)}")
    if verbose:
        parts.append(_render_clock(result["clock"], result["steps"]))
    parts += fence(describe_warnings(report.warnings), form)
    return "\n".join(parts)


def render_clauses(
    result: Mapping[str, Any], form: str, *, verbose: bool, columns: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the table of the clauses that want a look, and what the others come to.

    All of them with `verbose`. `columns` are those that a report has beside the usual ones.
    """
    rows = _list_rows(result)
    shown = [row for row in rows if verbose or row[2] not in _CALM]
    if shown:
        names = ["clause", "level", "verdict", "exercised", *columns]
        yield ""
        yield render_table("Clauses", names, shown, form)
    if rest := Counter(str(row[2]) for row in rows if row not in shown):
        said = ", ".join(f"{count} {_CALM[verdict]}" for verdict, count in rest.items())
        yield f"{'Other clauses' if shown else 'Clauses'}: {said}; --verbose lists them."


def _list_rows(result: Mapping[str, Any]) -> list[Row]:
    """Return one row for each clause: id, level, verdict, exercised.

    Where the gate asked by whom it was exercised, and the proof, as well. What was required and
    not exercised is vacuous, unless the run ended before it came up.
    """
    needs = find_needs(result)
    missing = () if is_cut_short(result) else result.get("not_exercised", ())
    rows: list[Row] = []
    for clause in result["clauses"]:
        name, verdict, count = clause["id"], clause["verdict"], str(clause["exercised"])
        if name in needs:
            verdict, count = "skipped", f"needs {needs[name]}"
        elif name in missing and verdict != NOT_DISCRIMINATED:
            verdict = "vacuous"
        elif verdict == "not followed":
            verdict = "warning"
        elif clause.get("undecided"):
            count += f" + {clause['undecided']} undecided"
        row: list[object] = [name, clause["level"], verdict, count]
        if "by" in clause:
            by = clause["by"]
            row.append(", ".join(f"{who} {n}" if len(by) > 1 else who for who, n in by.items()))
            row.append(clause.get("proof") or "")
        rows.append(row)
    return rows


def _render_clock(clock: Mapping[str, float], steps: int) -> str:
    """Return where the time of a run went, and how many steps it made a second."""
    total = sum(clock.values()) or 1.0
    shares = ", ".join(f"{name} {100 * value / total:.0f} %" for name, value in clock.items())
    return f"{steps / total:.0f} steps/s; time in: {shares}"


def _describe_death(report: ResultReport) -> Iterator[str]:
    """Yield what is known of an implementation or a server that could not go on."""
    if not report.result["died"]:
        return
    yield f"ADAPTER-DIED {show_text(report.result['died'])}"
    yield ""
    yield from describe_death(report.result)
    if report.repeat and not report.result["story"]:
        yield ""
        yield f"Repeat it with: {report.repeat}"
    yield ""


def describe_violation(report: ResultReport, width: int | None = None) -> Iterator[str]:
    """Yield the lines that show the first violation of a run's report; `width` is a terminal's."""
    result = report.result
    violations = result["violations"]
    if not violations:
        return
    clause_id = result.get("clause") or violations[0]["clause"]
    violation = next(v for v in violations if v["clause"] == clause_id)
    yield from describe_broken(clause_id, width)
    yield ""
    yield f"The shortest test case ({len(result['story'])} steps):"
    yield from (f"  {number}. {step}" for number, step in enumerate(result["story"], start=1))
    yield ""
    yield "What happened:"
    yield from describe_record(violation)
    others = [v for v in violations if v is not violation]
    if others:
        names = ", ".join(sorted({v["clause"] for v in others}))
        yield f"  and then {len(others)} more: {names}"
    if result["timeline"]:
        from reassure_conformance.report.timeline import draw_timeline

        yield ""
        yield from draw_timeline(result["timeline"], width)
    if report.repeat:
        yield ""
        yield f"Repeat it with: {report.repeat}"


def describe_warnings(warnings: Iterable[Warned]) -> Iterator[str]:
    """Yield the lines that show which advice was not followed, each clause with its first place."""
    for each in warnings:
        times = f"{each.times} time{'s' if each.times > 1 else ''}"
        yield f"Warning: {each.clause}, a SHOULD or MAY, was not followed {times}"
        if each.findings:
            yield f"  the document's own rules do not follow it: {', '.join(each.findings)}"
        yield f"  first at {_name_place(each.first)}: {show_text(each.first['reason'])}"


def _name_place(violation: Mapping[str, Any]) -> str:
    """Return where a violation is, in one of the two histories."""
    if "file" in violation:
        return f"{show_text(violation['file'])}:{violation['line']}"
    return f"{show_text(violation['path'])} at {show_zxid(violation['zxid'])}"
