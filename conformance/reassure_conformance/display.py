"""How results look to people: tables by clause, violations with their story and their evidence.

Text is made here as plain lines or as rich tables; nothing here decides anything. Colours are
rich's business and are off without a terminal or with NO_COLOR.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
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


def show_zxid(zxid: int) -> str:
    """Return a zxid as ZooKeeper writes it.

    >>> show_zxid(0x100000007)
    '0x100000007'
    """
    return f"0x{zxid & 0xFFFFFFFFFFFFFFFF:x}"


def show_time(time_ms: int) -> str:
    """Return a moment of a server's clock, in UTC; a number where it is out of any calendar.

    >>> show_time(1700000000123)
    '2023-11-14 22:13:20.123 UTC'
    """
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms since 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"


def show_text(text: str) -> str:
    """Return text from outside so that it stays on its line and says nothing to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def fence(lines: Iterable[str], form: str) -> list[str]:
    """Return lines that are to stay as they are, fenced where the form is a document."""
    kept = list(lines)
    return ["```text", *kept, "```", ""] if kept and form == "markdown" else kept


def describe_record(violation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show one violation: where, when, by whom, what, and what is wrong."""
    yield f"  znode    {show_text(violation['path'])}"
    when = f", {show_time(violation['time_ms'])}" if violation["time_ms"] else ""
    yield f"  zxid     {show_zxid(violation['zxid'])}{when}"
    if violation.get("archive"):
        yield f"  archive  {violation['archive']}"
    author = f": {show_text(violation['author'])}" if violation["author"] else ""
    yield f"  session  {violation['session']}{author}"
    yield f"  before   {show_text(violation['before']) or '(nothing)'}"
    yield f"  after    {show_text(violation['after']) or '(nothing)'}"
    yield f"  wrong    {show_text(violation['reason'])}"
    yield f"  allowed  {show_text(violation['expected'])}"


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
    yield from describe_record(violation)
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
        place = f"{show_text(first['path'])} at {show_zxid(first['zxid'])}"
        yield f"  first    {place}: {show_text(first['reason'])}"


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
