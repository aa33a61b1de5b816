"""Known failures: which clauses and stories of an implementation fail, or may, and why.

    # one a line: failing or flaky, a clause or a story, and the reason
    failing complete.announced       the leader epoch is raised once, JIRA-123
    flaky   leader-dies              the watch is lost now and then

What is known to fail does not count against a run; what was to fail and did not is stale.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from reassure_conformance.gate.story import shipped_stories
from reassure_spec.clauses import load_clauses
from reassure_spec.errors import BadData

FAILING: Final = "failing"
FLAKY: Final = "flaky"


class BadKnown(BadData):
    """A line that names no known failure."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One known failure."""

    name: str
    """A clause, or a story."""
    kind: str
    """`failing` or `flaky`."""
    reason: str


def read_known(path: Path) -> tuple[KnownFailure, ...]:
    """Return the known failures of a file. Raises BadKnown."""
    names = {*load_clauses(), *(story.name for story in shipped_stories())}
    found: dict[str, KnownFailure] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.split(maxsplit=2)
        if not words or words[0].startswith("#"):
            continue
        where = f"{path}:{number}: {line.strip()!r}"
        if len(words) < 3 or words[0] not in (FAILING, FLAKY):
            raise BadKnown(
                f"{where} is no known failure; write failing or flaky, a clause or story, and why"
            )
        kind, name, reason = words
        if name not in names:
            near = get_close_matches(name, names, n=3) or ["what `reassure spec` lists"]
            raise BadKnown(f"{where} names no clause and no story; did you mean {', '.join(near)}")
        if name in found:
            raise BadKnown(f"{where} names {name} again; say it once")
        found[name] = KnownFailure(name, kind, reason)
    return tuple(found.values())
