"""What a watch tells, each once: a finding with its evidence, or what is missing for a verdict.

An alert has an id that is made of what it says, so that whoever meets it twice can tell. Judging a
history again from any point leads to the same alerts with the same ids.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from reassure_judge.verdicts import Violation
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedFile
from reassure_zookeeper.log_survey import Damage

VIOLATION: Final = "violation"
NOT_FOLLOWED: Final = "not_followed"
UNSETTLED: Final = "unsettled"
HOLE: Final = "hole"
DAMAGE: Final = "damage"

_ID_DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to tell."""

    kind: str
    """`violation`, `not_followed`, `unsettled`, `hole` or `damage`."""
    id: str
    archive: str
    """The path that was given."""
    seen_at: int
    """The transaction that brought it to light: with a finding, that which broke the clause, or a
    later one without which nobody could have said."""
    body: Mapping[str, Any]
    """The record of the finding as an audit reports it; else what is missing, and where."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that is told."""
        head = {"kind": self.kind, "id": self.id, "archive": self.archive, "seen_at": self.seen_at}
        return {**head, **self.body}

    def as_line(self) -> str:
        """Return the record as one line of JSON, without its end."""
        return json.dumps(self.as_dict())


def _make(kind: str, archive: str, seen_at: int, body: Mapping[str, Any], number: int) -> Alert:
    # What it is called may depend on what is known by then; what it says does not.
    content = json.dumps([archive, seen_at, body, number], sort_keys=True)
    name = sha256(content.encode()).hexdigest()[:_ID_DIGITS]
    return Alert(kind, name, archive, seen_at, body)


def tell_findings(
    archive: str, seen_at: int, found: Iterable[tuple[str, Violation]]
) -> Iterator[Alert]:
    """Yield an alert for each finding, given with its kind, that one transaction brought."""
    numbers: dict[Violation, int] = {}
    for kind, violation in found:
        number = numbers[violation] = numbers.get(violation, -1) + 1
        yield _make(kind, archive, seen_at, violation.as_dict(), number)


def tell_hole(archive: str, hole: Hole) -> Alert:
    """Return the alert that transactions are missing."""
    reason = (
        f"transactions from 0x{hole.after + 1:x} up to 0x{hole.before:x} are missing; violations "
        "after them are uncertain until judging restarts from a later snapshot"
    )
    body = {"after": hole.after, "before": hole.before, "reason": reason}
    return _make(HOLE, archive, hole.before, body, 0)


def tell_damage(archive: str, seen_at: int, damage: Damage | DamagedFile) -> Alert:
    """Return the alert that a file cannot be read."""
    file = str(damage.file.absolute())
    body = {"file": file, "offset": damage.offset, "reason": damage.reason}
    return _make(DAMAGE, archive, seen_at, body, 0)
