"""How a watch stands, on a terminal: a few lines that stay below what was told."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from reassure_conformance.report.display import STYLES, show_text, show_zxid
from reassure_conformance.report.present import describe_present

if TYPE_CHECKING:
    from reassure_pipeline.watch.loop import Status

_STATES: Final = {"caught up": "green", "behind": "yellow", "waiting": "dim", "lost": "bold red"}
_WORDS: Final = {"violation": "violated", "not_followed": "warning", "unsettled": "unknown"}
_SHOWN: Final = 8
"""How many clauses are shown, those broken most often."""


def render_status(status: "Status") -> Any:
    """Return how a watch stands as something that rich shows."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    columns = ("archive", "state", "transactions", "partitions", "zxid", "behind", "missing")
    for column in columns:
        right = column in ("transactions", "partitions", "behind", "missing")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for each in status.archives:
        table.add_row(
            Text(show_text(each.name)),
            Text(each.state, style=_STATES[each.state]),
            f"{each.transactions:,}",
            f"{each.partitions:,}",
            show_zxid(each.last_zxid) if each.transactions else "-",
            f"{each.behind_s:.1f} s" if each.behind_s else "-",
            str(each.missing or "-"),
        )
    lines = [Text(line) for line in _describe_present(status)]
    return Group(Text(describe_status(status), style="bold"), table, *lines, *_list_clauses(status))


def _describe_present(status: "Status") -> Iterator[str]:
    """Yield how partitions and controllers of all archives stand, where facts are taken."""
    found = [each.present for each in status.archives if each.present is not None]
    if found:
        present, *others = found
        for other in others:
            present.take_in(other)
        moves = [move.as_dict() for move in present.under_way]
        yield from describe_present(present.as_dict(), present.under_way.count, moves)


def describe_status(status: "Status") -> str:
    """Return how a watch stands in one line."""
    sums = dict.fromkeys(_WORDS.values(), 0)
    for (kind, _), times in status.found.items():
        sums[_WORDS[kind]] += times
    found = ", ".join(f"{times} {word}" for word, times in sums.items())
    return (
        f"{status.seconds:.0f} s, {status.rate:,.0f} transactions/s, {status.exercised} clauses "
        f"exercised: {found}"
    )


def _list_clauses(status: "Status") -> Iterator[Text]:
    for (kind, clause), times in status.found.most_common(_SHOWN):
        word = _WORDS[kind]
        yield Text.assemble((f"{word:>12}", STYLES[word]), f" {times:>6}  {clause}")
    if len(status.found) > _SHOWN:
        yield Text(f"{len(status.found) - _SHOWN} more clauses", style="dim")
