"""What should have held, whatever went wrong: judged when all is healed and the log is read again.

Each promise is a function from what was seen to the sentences that say how it was broken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reassure_lab.soak.operations import SeenMark, Value
from reassure_spec.znodes import PartitionKey

SHOWN: Final = 10
"""How many breaches of one promise are spelt out."""

Logs = Mapping[PartitionKey, Sequence[bytes]]
"""By partition: its values from offset 0 on, as read when all was healed."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that was broken."""

    promise: str
    what: str


PROMISES: Final[Mapping[str, str]] = {
    "acknowledged-kept": "What was acknowledged is there, at its offset, with its value.",
    "one-value-at-an-offset": "Nobody ever sees another value at an offset.",
    "mark-monotone": "The mark that a consumer is shown never goes back.",
    "reassignments-end": "Every reassignment that was asked for ends, as it was asked for.",
    "in-sync-again": "Every assigned replica is in sync again, under a leader.",
    "nothing-left": "No znode, process or file stays that nobody needs.",
    "memory-flat": "A process that lives on does not grow.",
    "log-judged": "What the controllers wrote to ZooKeeper is what the profile allows.",
    "observations-judged": "What the brokers observed is what KAFKA-4485 allows.",
    "ended-as-asked": "No process ends but by a fault of the plan.",
}
"""Every promise by name, with one sentence."""


def check_logs(
    acknowledged: Iterable[Value], consumed: Iterable[Value], logs: Logs
) -> Iterator[Breach]:
    """Yield acknowledged records that are lost, and offsets at which two values were seen."""
    yield from _compare("acknowledged-kept", acknowledged, logs)
    yield from _compare("one-value-at-an-offset", consumed, logs)


def _compare(promise: str, seen: Iterable[Value], logs: Logs) -> Iterator[Breach]:
    for one in seen:
        log = logs.get(one.key, ())
        found = log[one.offset] if one.offset < len(log) else None
        if found != one.value:
            what = "nothing" if found is None else show(found)
            yield Breach(
                promise,
                f"{one.key[0]}-{one.key[1]}, offset {one.offset}: {one.who} had "
                f"{show(one.value)}, there is {what} (the log ends at {len(log)})",
            )


def check_marks(marks: Iterable[SeenMark], logs: Logs) -> Iterator[Breach]:
    """Yield marks that went back, as one consumer saw them or at the end."""
    last: dict[tuple[str, PartitionKey], int] = {}
    for mark in marks:
        before = last.get((mark.who, mark.key), 0)
        if mark.high_watermark < before:
            yield Breach(
                "mark-monotone",
                f"{mark.key[0]}-{mark.key[1]}: {mark.who} was shown {before}, then "
                f"{mark.high_watermark}",
            )
        last[mark.who, mark.key] = max(before, mark.high_watermark)
    for (who, key), mark_seen in last.items():
        end = len(logs.get(key, ()))
        if end < mark_seen:
            yield Breach(
                "mark-monotone",
                f"{key[0]}-{key[1]}: {who} was shown {mark_seen}, at the end there is {end}",
            )


def show(value: bytes) -> str:
    """Return a value as it is shown: its name, without what fills it up.

    >>> show(b"producer-1/7/....")
    'producer-1/7'
    """
    return value.decode("utf-8", "replace").rpartition("/")[0] or repr(value)


def shorten(breaches: Sequence[Breach]) -> list[Breach]:
    """Return the first breaches of each promise; what was left out is counted in one more."""
    kept: list[Breach] = []
    for promise in PROMISES:
        of_it = [one for one in breaches if one.promise == promise]
        kept += of_it[:SHOWN]
        if len(of_it) > SHOWN:
            kept.append(Breach(promise, f"and {len(of_it) - SHOWN} more"))
    return kept
