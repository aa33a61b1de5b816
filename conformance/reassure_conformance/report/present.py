"""How partitions and controllers stand where a history ends, in a few lines for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reassure_conformance.report.display import show_text, show_time

_SHOWN: Final = 5
"""How many single things of a kind are shown."""
KINDS: Final = {
    "offline": "without a leader",
    "under": "under-replicated",
    "moving": "behind in a move",
}
"""Why a partition is not at rest, in words."""


def describe_present(
    at_end: Mapping[str, Any], under_way: int, moves: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield what is not at rest, the most urgent first; `moves` are the oldest of those under way.

    `at_end` and the moves are as `facts` of a document has them.
    """
    behind = ", ".join(f"{at_end[kind]:,} {words}" for kind, words in KINDS.items())
    yield f"Partitions now   {behind}"
    for each in at_end["partitions"][:_SHOWN]:
        leader = "" if each["leader"] < 0 else f"leader {each['leader']}, "
        yield (
            f"  {_name(each)} {KINDS[each['kind']]} {_since(each['since_ms'])}: {leader}"
            f"assigned {each['assigned']}, in sync {each['isr']}"
        )
    yield f"Moves under way  {under_way:,}{', the oldest:' if moves else ''}"
    for move in moves[:_SHOWN]:
        yield (
            f"  {_name(move)} {_since(move['started_ms'])}: {move['before']} to "
            f"{move['last_target']}, assigned {move['after']}"
        )
    for term in at_end["in_office"][:_SHOWN]:
        place = f" of {show_text(term['chroot'])}" if term["chroot"] else ""
        since = _since(term["from_ms"])
        yield f"Controller now   {term['broker']}, epoch {term['epoch']}{place}, {since}"
    if not at_end["in_office"]:
        yield "Controller now   unknown"


def _name(place: Mapping[str, Any]) -> str:
    chroot = f"{place['chroot']} " if place["chroot"] else ""
    return show_text(f"{chroot}{place['topic']}-{place['partition']}")


def _since(time_ms: int | None) -> str:
    return "since before the log" if time_ms is None else f"since {show_time(time_ms)}"
