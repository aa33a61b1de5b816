"""How results look to people: tables by clause, violations with their story and their evidence.

Text is made here as plain lines or as rich tables; nothing here decides anything. Colours are
rich's business and are off without a terminal or with NO_COLOR.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reassure_spec.clauses import load_clauses

STYLES: Final = {
    "holds": "green",
    "proved": "green",
    "killed": "green",
    "violated": "bold red",
    "survived": "bold red",
    "refuted": "magenta",
    "not followed": "yellow",
    "unknown": "yellow",
    "vacuous": "yellow",
    "not exercised": "yellow",
}

Row = Sequence[object]


def render_table(title: str, columns: Sequence[str], rows: Sequence[Row], form: str) -> str:
    """Return a table as text: `pretty` for terminals, `markdown` for documents."""
    if form == "markdown":
        lines = [f"### {title}", "", "| " + " | ".join(columns) + " |"]
        lines.append("|" + " --- |" * len(columns))
        lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
        return "\n".join(lines) + "\n"
    return _render_rich(title, columns, rows)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _render_rich(title: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        number = all(isinstance(row[place], int | float) for row in rows) and bool(rows)
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(value), style=STYLES.get(str(value), "")) for value in row))
    # Without a terminal nobody's width is known, and clause ids should not be torn apart.
    console = Console() if Console().is_terminal else Console(width=120)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def clause_rows(
    clauses: Sequence[Mapping[str, Any]], proofs: Mapping[str, str] | None = None
) -> list[Row]:
    """Return one row for each clause: id, level, verdict, exercised and, if given, the proof."""
    rows: list[Row] = []
    for clause in clauses:
        row: list[object] = [clause["id"], clause["level"], clause["verdict"], clause["exercised"]]
        if proofs is not None:
            row.append(proofs.get(clause["id"], ""))
        rows.append(row)
    return rows


def describe_violation(
    report: Mapping[str, Any], directory: Path | None, diagram: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines that show the first violation of a run's report."""
    violations = report["violations"]
    if not violations:
        return
    clause_id = report.get("clause") or violations[0]["clause"]
    violation = next(v for v in violations if v["clause"] == clause_id)
    clause = load_clauses().get(clause_id)
    yield f"VIOLATED {clause_id}"
    if clause is not None:
        yield f"  {clause.sentence}"
        yield f"  ({clause.source})"
    yield ""
    yield f"The shortest story ({len(report['story'])} steps):"
    yield from (f"  {number}. {step}" for number, step in enumerate(report["story"], start=1))
    yield ""
    yield "What happened:"
    yield f"  znode    {violation['path']}"
    yield f"  zxid     {violation['zxid']} (session {violation['session']})"
    yield f"  before   {violation['before'] or '(nothing)'}"
    yield f"  after    {violation['after'] or '(nothing)'}"
    yield f"  wrong    {violation['reason']}"
    yield f"  allowed  {violation['expected']}"
    others = [v for v in violations if v is not violation]
    if others:
        names = ", ".join(sorted({v["clause"] for v in others}))
        yield f"  and then {len(others)} more: {names}"
    if diagram:
        yield ""
        yield from diagram
    if directory is not None:
        yield ""
        yield f"Repeat it with: reassure replay {directory}"


def describe_not_followed(violations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines that show which advice was not followed, each clause with its first place."""
    for clause_id in dict.fromkeys(violation["clause"] for violation in violations):
        found = [violation for violation in violations if violation["clause"] == clause_id]
        first = found[0]
        yield f"NOT FOLLOWED {clause_id}, {len(found)} times"
        yield f"  first    {first['path']} at zxid {first['zxid']}: {first['reason']}"


def describe_clause(clause_id: str, places: Sequence[str]) -> Iterator[str]:
    """Yield the lines that explain one clause."""
    clause = load_clauses()[clause_id]
    yield f"{clause.id}  ({clause.level})"
    yield f"  {clause.sentence}"
    yield ""
    yield f"  Chapter   {clause.chapter}"
    yield f"  Source    {clause.source}"
    yield f"  Profiles  {', '.join(clause.profiles)}"
    yield f"  Why       {clause.why}"
    if clause.unseen:
        yield f"  Unseen    {clause.unseen}"
    yield f"  In code   {', '.join(places) or '(nowhere)'}"
