"""How results look to people: tables by clause, violations with their story and their evidence.

Text is made here as plain lines or as rich tables; nothing here decides anything. Colours are
rich's business and are off without a terminal or with NO_COLOR.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from textwrap import wrap
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
    "warning": "yellow",
    "unknown": "yellow",
    "vacuous": "yellow",
    "not exercised": "yellow",
    "not discriminated": "yellow",
    "skipped": "yellow",
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
    if violation.get("topic") and violation["partition"] >= 0:
        yield f"  of       {show_text(violation['topic'])}-{violation['partition']}"
    yield f"  znode    {show_text(violation['path'])}"
    when = f", {show_time(violation['time_ms'])}" if violation.get("time_ms") else ""
    yield f"  zxid     {show_zxid(violation['zxid'])}{when}"
    if violation.get("archive"):
        yield f"  archive  {violation['archive']}"
    author = f": {show_text(violation['author'])}" if violation.get("author") else ""
    yield f"  session  {violation['session']}{author}"


def say_counts(counts: Mapping[str, int | float]) -> str:
    """Return the counts that are not 0, in a line.

    >>> say_counts({"clauses_required": 2, "skipped": 0})
    'clauses required 2'
    """
    return ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in counts.items() if n)


def describe_broken(clause_id: str, width: int | None = None) -> Iterator[str]:
    """Yield the lines that name a clause that is violated, with its sentence and its source."""
    yield f"VIOLATED {clause_id}"
    clause = load_clauses().get(clause_id)
    if clause is not None:
        yield from hang("  ", clause.sentence, width)
        yield from hang("  ", f"({clause.source})", width)
