"""How results look to people: tables by clause, violations with their story and their evidence.

Text is made here as plain lines or as rich tables; nothing here decides anything. Colours are
rich's business and are off without a terminal or with NO_COLOR.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
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
    "not asked": "yellow",
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
        # Without a terminal nobody's width is known, and clause ids should not be torn apart.
        whole = column == "clause"
        table.add_column(
            column, justify="right" if number else "left", overflow="fold", no_wrap=whole
        )
    for row in rows:
        table.add_row(*(Text(str(value), style=STYLES.get(str(value), "")) for value in row))
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
    if "file" in violation:
        yield f"  line     {show_text(violation['file'])}:{violation['line']}"
        yield f"  of       {show_text(violation['topic'])}-{violation['partition']}"
        yield f"  writer   {show_text(violation['author'])}"
    else:
        yield from _describe_transaction(violation)
    yield f"  before   {show_text(violation['before']) or '(nothing)'}"
    yield f"  after    {show_text(violation['after']) or '(nothing)'}"
    yield f"  wrong    {show_text(violation['reason'])}"
    yield f"  allowed  {show_text(violation['expected'])}"


def _describe_transaction(violation: Mapping[str, Any]) -> Iterator[str]:
    yield f"  znode    {show_text(violation['path'])}"
    when = f", {show_time(violation['time_ms'])}" if violation.get("time_ms") else ""
    yield f"  zxid     {show_zxid(violation['zxid'])}{when}"
    if violation.get("archive"):
        yield f"  archive  {violation['archive']}"
    author = f": {show_text(violation['author'])}" if violation.get("author") else ""
    yield f"  session  {violation['session']}{author}"


def clause_rows(
    clauses: Sequence[Mapping[str, Any]],
    proofs: Mapping[str, str] | None = None,
    not_asked: Iterable[str] = (),
) -> list[Row]:
    """Return one row for each clause: id, level, verdict, exercised.

    Where given, by whom it was exercised, and the proof.
    """
    rows: list[Row] = []
    for clause in clauses:
        verdict = "not asked" if clause["id"] in not_asked else clause["verdict"]
        count = str(clause["exercised"])
        if clause.get("undecided"):
            count += f" + {clause['undecided']} undecided"
        row: list[object] = [clause["id"], clause["level"], verdict, count]
        if "by" in clause:
            by = clause["by"]
            row.append(", ".join(f"{who} {n}" if len(by) > 1 else who for who, n in by.items()))
        if proofs is not None:
            row.append(proofs.get(clause["id"], ""))
        rows.append(row)
    return rows


def say_counts(counts: Mapping[str, int | float]) -> str:
    """Return the counts that are not 0, in a line.

    >>> say_counts({"clauses_required": 2, "skipped": 0})
    'clauses required 2'
    """
    return ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in counts.items() if n)


def render_run(report: Mapping[str, Any], form: str) -> str:
    """Return what a run or the gate has to say: verdict and failure first, then the tables."""
    sums = ", ".join(f"{name} {value}" for name, value in report["counts"].items() if value)
    said = f"{report['verdict'].upper()}{_describe_scope(report)}"
    verdict = f"{said} in {report['seconds']:.1f} s: {sums}"
    parts = [verdict, ""]
    parts += fence(describe_violation(report), form)
    parts += fence(_describe_death(report), form)
    parts += fence(describe_not_followed(report["not_followed"]), form)
    parts += _describe_gaps(report)
    proofs = None
    columns = ["clause", "level", "verdict", "exercised"]
    if "theorems" in report:
        columns += ["by", "proof"]
        proofs = {clause["id"]: clause.get("proof") or "" for clause in report["clauses"]}
    rows = clause_rows(report["clauses"], proofs, report["not_asked"])
    parts += ["", render_table("Clauses", columns, rows, form)]
    if "exploration" in report:
        parts.append(report["exploration"]["text"])
    parts += [_render_clock(report["clock"], report["steps"]), verdict]
    return "\n".join(parts)


def _describe_scope(report: Mapping[str, Any]) -> str:
    """Return for what a verdict is, where an implementation does not declare all that there is.

    >>> about = {"capabilities": ["brokers", "isr"]}
    >>> _describe_scope({"implementation": about, "lacking": {"kill": ["a.b", "c.d"]}})
    ' for brokers, isr; not asked: kill (2 clauses)'
    """
    if not report["lacking"]:
        return ""
    able = ", ".join(report["implementation"]["capabilities"]) or "what needs no capability"
    lacking = (
        f"{need} ({len(clauses)} clause{'s' if len(clauses) > 1 else ''})"
        for need, clauses in report["lacking"].items()
    )
    return f" for {able}; not asked: {', '.join(lacking)}"


def _describe_death(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is known of an implementation or a server that could not go on."""
    if not report["died"]:
        return
    yield f"ADAPTER-DIED {report['died']}"
    yield from (f"  {line}" for line in report["traceback"].splitlines())
    if report["died_after"]:
        yield "It had been asked to do:"
        steps = enumerate(report["died_after"], start=1)
        yield from (f"  {number}. {step}" for number, step in steps)


def _describe_gaps(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps a run from holding, or was left out of it, and what to do about it."""
    if report["unsettled"]:
        yield (
            f"The cluster did not come to rest {report['unsettled']} times, though nothing was "
            "held: settle() answered False. It has to answer True as soon as a controller acts and "
            "all that was written before the call has been dealt with; only then is it judged what "
            "is still owed. What had been done stands in unsettled-N.txt of the directory of the "
            "run; docs/adapter.md says more."
        )
    if report["not_exercised"]:
        yield "Not exercised, though required: " + ", ".join(report["not_exercised"])
    for situation in report["situations"]:
        if situation["reached"] == 0:
            needed = ", ".join(situation["clauses"])
            yield f"Never came up: {situation['name']}: {situation['sentence']} (for {needed})"
    for need, clauses in report["lacking"].items():
        yield f"Not asked, as the implementation does not declare {need}: {', '.join(clauses)}"
    for clause, reason in report.get("not_claimed", {}).items():
        yield f"Not claimed: {clause}: {reason}"
    if report["stale"]:
        yield "Saved failures that did not fail: " + ", ".join(report["stale"])


def _render_clock(clock: Mapping[str, float], steps: int) -> str:
    """Return where the time of a run went, and how many steps it made a second."""
    total = sum(clock.values()) or 1.0
    shares = ", ".join(f"{name} {100 * value / total:.0f} %" for name, value in clock.items())
    return f"{steps / total:.0f} steps/s; time in: {shares}"


def describe_violation(report: Mapping[str, Any]) -> Iterator[str]:
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
    if report["timeline"]:
        from reassure_conformance.report.timeline import draw_timeline

        yield ""
        yield from draw_timeline(report["timeline"])
    if report["directory"] is not None:
        yield ""
        yield f"Repeat it with: reassure replay {report['directory']}"


def describe_not_followed(violations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines that show which advice was not followed, each clause with its first place."""
    for clause_id in dict.fromkeys(violation["clause"] for violation in violations):
        found = [violation for violation in violations if violation["clause"] == clause_id]
        first = found[0]
        yield f"NOT FOLLOWED {clause_id}, {len(found)} times"
        yield f"  first    {_name_place(first)}: {show_text(first['reason'])}"


def _name_place(violation: Mapping[str, Any]) -> str:
    """Return where a violation is, in one of the two histories."""
    if "file" in violation:
        return f"{show_text(violation['file'])}:{violation['line']}"
    return f"{show_text(violation['path'])} at {show_zxid(violation['zxid'])}"


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
