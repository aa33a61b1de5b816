"""How results look to people: tables by clause, violations with their story and their evidence.

Text is made here as plain lines or as rich tables; nothing here decides anything. Colours are
rich's business and are off without a terminal or with NO_COLOR.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final

from reassure_spec.clauses import load_clauses

SECOND: Final = 1000
"""In milliseconds, as all that follow."""
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

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

_WIDTH: Final = 120
"""How wide tables are without a terminal, at least."""
_BETWEEN: Final = 3
"""How many characters a table takes between two columns, and in all at both edges."""


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


def get_width() -> int | None:
    """Return how many characters fit on a line, None where what is said goes to no terminal."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal else None


def paint(text: str) -> str:
    """Return text with its first word coloured as a verdict, where there are colours."""
    from rich.console import Console
    from rich.text import Text

    word = text.partition(" ")[0].rstrip(":,")
    console = Console(soft_wrap=True)
    if not console.is_terminal or word.lower() not in STYLES:
        return text
    shown = Text(text)
    shown.stylize(STYLES[word.lower()], 0, len(word))
    with console.capture() as capture:
        console.print(shown, end="")
    return capture.get()


def _render_rich(title: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a table of which no word is torn; where the terminal is too narrow, its rows below.

    Without a terminal nobody's width is known: what reads on finds names whole.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    texts = [[show_lines(value) for value in row] for row in rows]
    turned = list(zip(columns, *texts, strict=True))
    least = [max(map(len, _list_words(cells))) for cells in turned]
    need = sum(least) + _BETWEEN * len(columns)
    width = get_width() or max(_WIDTH, need)
    console = Console(width=width) if get_width() is None else Console()
    with console.capture() as capture:
        if width < need:
            console.print(title, style="italic", highlight=False)
            for cells in texts:
                console.print(*_list_fields(columns, cells), sep="\n", highlight=False)
        else:
            table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
            widths = _fit(turned, least, width)
            for place, column in enumerate(columns):
                number = all(isinstance(row[place], int | float) for row in rows) and bool(rows)
                justify: Any = "right" if number else "left"
                table.add_column(column, justify=justify, overflow="fold", width=widths[place])
            for cells in texts:
                table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in cells))
            console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def show_lines(value: object) -> str:
    """Return a value as text for a cell, of which each line stays on its own."""
    return "\n".join(show_text(line) for line in str(value).split("\n"))


def _list_words(cells: Iterable[str]) -> Iterator[str]:
    """Yield the words that must not be torn; one that fills lines by itself may be."""
    return (
        word if len(word) < _WIDTH / 2 else "" for cell in cells for word in cell.split() or [""]
    )


def _fit(turned: Sequence[Sequence[str]], least: Sequence[int], width: int) -> list[int]:
    """Return widths of columns, given with their cells, that fit.

    The widest gives way, down to its longest word.
    """
    widths = [max(len(line) for cell in cells for line in cell.split("\n")) for cells in turned]
    over = sum(widths) + _BETWEEN * len(widths) - width
    for _ in range(over):
        spare = [own - few for own, few in zip(widths, least, strict=True)]
        widest = max(range(len(widths)), key=lambda n: (spare[n] > 0, widths[n]))
        widths[widest] -= 1
    return widths


def _list_fields(columns: Sequence[str], cells: Sequence[str]) -> Iterator[Any]:
    """Yield a row as lines: its first cell, then what the others say, by column."""
    from rich.padding import Padding
    from rich.text import Text

    yield Text(cells[0], style="bold", overflow="fold")
    for column, cell in zip(columns[1:], cells[1:], strict=True):
        if cell:
            field = Text.assemble(f"{column} " if column else "", (cell, STYLES.get(cell, "")))
            yield Padding(field, (0, 0, 0, 2))


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


def show_duration(ms: float | None) -> str:
    """Return a duration in words, to two units.

    >>> show_duration(90_061_000), show_duration(1_500), show_duration(40), show_duration(None)
    ('1 d 1 h', '1.5 s', '40 ms', '')
    """
    if ms is None:
        return ""
    if ms < SECOND:
        return f"{ms:.0f} ms"
    if ms < MINUTE:
        return f"{ms / SECOND:.3g} s"
    units = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
    parts = []
    for size, word in units:
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count:,.0f} {word}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)


def show_text(text: str) -> str:
    """Return text from outside so that it stays on its line and says nothing to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def hang(start: str, text: str, width: int | None, below: str = "") -> Iterator[str]:
    """Yield a line, or as many as it takes at a width, each but the first after `below`.

    >>> list(hang("> ", "one two", 6))
    ['> one', '  two']
    """
    room = len(start) + len(text) if width is None else max(width - len(start), 1)
    first, *others = wrap(text, max(room, 1), break_on_hyphens=False) or [""]
    yield f"{start}{first}"
    yield from (f"{below or ' ' * len(start)}{line}" for line in others)


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


def render_clauses(
    report: Mapping[str, Any], form: str, *, verbose: bool, columns: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the table of the clauses that want a look, and what the others come to.

    All of them with `verbose`. `columns` are those that a report has beside the usual ones.
    """
    rows = clause_rows(report)
    shown = [row for row in rows if verbose or row[2] not in _CALM]
    if shown:
        names = ["clause", "level", "verdict", "exercised", *columns]
        yield ""
        yield render_table("Clauses", names, shown, form)
    if rest := Counter(str(row[2]) for row in rows if row not in shown):
        said = ", ".join(f"{count} {_CALM[verdict]}" for verdict, count in rest.items())
        yield f"{'Besides' if shown else 'Clauses'}: {said}; --verbose lists them."


_CALM: Final = {"holds": "that hold", "not exercised": "not exercised"}
"""Verdicts on clauses that want no look, and what is said of how many there are."""


def clause_rows(report: Mapping[str, Any]) -> list[Row]:
    """Return one row for each clause: id, level, verdict, exercised.

    Where the gate asked by whom it was exercised, and the proof, as well. What was required and
    not put to the test is vacuous, unless a violation ended the run before it came up.
    """
    not_asked = report.get("not_asked", {})
    missing = () if report["verdict"] == "violated" else report.get("not_exercised", ())
    rows: list[Row] = []
    for clause in report["clauses"]:
        name, verdict, count = clause["id"], clause["verdict"], str(clause["exercised"])
        if name in not_asked:
            verdict, count = "not asked", f"needs {' or '.join(not_asked[name])}"
        elif name in missing:
            verdict = "vacuous"
        elif clause.get("undecided"):
            count += f" + {clause['undecided']} undecided"
        row: list[object] = [name, clause["level"], verdict, count]
        if "by" in clause:
            by = clause["by"]
            row.append(", ".join(f"{who} {n}" if len(by) > 1 else who for who, n in by.items()))
            row.append(clause.get("proof") or "")
        rows.append(row)
    return rows


def say_counts(counts: Mapping[str, int | float]) -> str:
    """Return the counts that are not 0, in a line.

    >>> say_counts({"clauses_required": 2, "skipped": 0})
    'clauses required 2'
    """
    return ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in counts.items() if n)


def render_run(report: Mapping[str, Any], form: str, *, verbose: bool = False) -> str:
    """Return what a run or the gate has to say: verdict and failure first, then what wants a look.

    With `verbose` every clause has its row.
    """
    said = f"{report['verdict'].upper()}{_describe_scope(report)} in {report['seconds']:.1f} s"
    parts = [paint(f"{said}{_describe_extent(report['counts'])}"), ""]
    width = get_width() if form == "pretty" else None
    parts += fence(describe_violation(report, width), form)
    parts += fence(_describe_death(report), form)
    parts += fence(describe_not_followed(report["not_followed"]), form)
    parts += _describe_gaps(report)
    columns = ["by", "proof"] if "theorems" in report else []
    parts += render_clauses(report, form, verbose=verbose, columns=columns)
    if "exploration" in report:
        parts.append(report["exploration"]["text"])
    sums = ", ".join(f"{name} {value}" for name, value in report["counts"].items() if value)
    parts += [_render_clock(report["clock"], report["steps"]), paint(f"{said}: {sums}")]
    return "\n".join(parts)


def _describe_extent(counts: Mapping[str, int | float]) -> str:
    """Return how much was put to the test, where it was counted.

    >>> _describe_extent({"clauses_required": 3, "clauses_exercised": 2, "steps": 1})
    ': 2 of 3 clauses put to the test'
    """
    if "clauses_required" not in counts:
        return ""
    exercised, required = counts["clauses_exercised"], counts["clauses_required"]
    return f": {exercised} of {required} clauses put to the test"


def _describe_scope(report: Mapping[str, Any]) -> str:
    """Return for what a verdict is, where an implementation does not declare all that there is.

    >>> about = {"capabilities": ["brokers", "isr"]}
    >>> _describe_scope({"implementation": about, "lacking": {"kill": ["a.b", "c.d"]}})
    ' for brokers, isr; not asked: kill (2 clauses)'
    """
    known = [f"{one['name']} ({one['reason']})" for one in report.get("known", ()) if one["seen"]]
    but = f" but for what is known: {', '.join(known)}" if known else ""
    if not report["lacking"]:
        return but
    able = ", ".join(report["implementation"]["capabilities"]) or "what needs no capability"
    lacking = (
        f"{need} ({len(clauses)} clause{'s' if len(clauses) > 1 else ''})"
        for need, clauses in report["lacking"].items()
    )
    return f"{but} for {able}; not asked: {', '.join(lacking)}"


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
    if report["not_exercised"] and report["verdict"] == "violated":
        count = len(report["not_exercised"])
        yield f"Required and not reached before the violation ended the run: {count} clauses."
    for situation in report["situations"]:
        if situation["reached"] == 0 and report["verdict"] != "violated":
            needed = ", ".join(situation["clauses"])
            yield f"Never came up: {situation['name']}: {situation['sentence']} (for {needed})"
    for clause, reason in report.get("not_claimed", {}).items():
        yield f"Not claimed: {clause}: {reason}"
    if report["stale"]:
        yield "Failures that did not come up again: " + ", ".join(report["stale"])


def _render_clock(clock: Mapping[str, float], steps: int) -> str:
    """Return where the time of a run went, and how many steps it made a second."""
    total = sum(clock.values()) or 1.0
    shares = ", ".join(f"{name} {100 * value / total:.0f} %" for name, value in clock.items())
    return f"{steps / total:.0f} steps/s; time in: {shares}"


def describe_violation(report: Mapping[str, Any], width: int | None = None) -> Iterator[str]:
    """Yield the lines that show the first violation of a run's report; `width` is a terminal's."""
    violations = report["violations"]
    if not violations:
        return
    clause_id = report.get("clause") or violations[0]["clause"]
    violation = next(v for v in violations if v["clause"] == clause_id)
    yield from describe_broken(clause_id, width)
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
        yield from draw_timeline(report["timeline"], width)
    if report["directory"] is not None:
        yield ""
        yield f"Repeat it with: reassure replay {report['directory']}"


def describe_broken(clause_id: str, width: int | None = None) -> Iterator[str]:
    """Yield the lines that name a clause that is violated, with its sentence and its source."""
    yield f"VIOLATED {clause_id}"
    clause = load_clauses().get(clause_id)
    if clause is not None:
        yield from hang("  ", clause.sentence, width)
        yield from hang("  ", f"({clause.source})", width)


def describe_not_followed(
    violations: Sequence[Mapping[str, Any]], besides: Mapping[str, int] = MappingProxyType({})
) -> Iterator[str]:
    """Yield the lines that show which advice was not followed, each clause with its first place.

    `besides` counts by clause what is not listed.
    """
    for clause_id in dict.fromkeys(violation["clause"] for violation in violations):
        found = [violation for violation in violations if violation["clause"] == clause_id]
        first = found[0]
        yield f"NOT FOLLOWED {clause_id}, {len(found) + besides.get(clause_id, 0)} times"
        yield f"  first    {_name_place(first)}: {show_text(first['reason'])}"


def _name_place(violation: Mapping[str, Any]) -> str:
    """Return where a violation is, in one of the two histories."""
    if "file" in violation:
        return f"{show_text(violation['file'])}:{violation['line']}"
    return f"{show_text(violation['path'])} at {show_zxid(violation['zxid'])}"
