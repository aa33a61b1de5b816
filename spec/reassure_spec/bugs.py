"""Published bugs of Apache Kafka by the shape that they leave in a log, and what is at risk.

Both are data: `protocols/*/bugs.toml` and `protocols/common/risks.toml`. A bug is recognised by the
violation that an incident begins with; what else leaves the same shape is not told apart, so that
several may be named.
"""

import re
from dataclasses import dataclass, fields
from functools import cache
from itertools import zip_longest
from typing import Any

from reassure_spec.protocols import list_folders


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug, or one finding that nobody has published, that has a shape in the log."""

    id: str
    """Its number in Kafka's tracker, or the id of our finding."""
    title: str
    profiles: tuple[str, ...]
    clauses: tuple[str, ...]
    """Those that the first violation may break."""
    since: str
    """The first release that has it."""
    risk: str
    remedy: str
    source: str
    mended: str = ""
    """The first release without it, "" where there is none."""
    findings: tuple[str, ...] = ()
    author: str = ""
    """What is to be found in who wrote; a regular expression, as those that follow."""
    after: str = ""
    reason: str = ""

    @property
    def releases(self) -> str:
        """Which releases have it, in words."""
        upto = f"mended in {self.mended}" if self.mended else "not mended in any release"
        return f"Kafka {self.since} and later, {upto}"

    def is_in(self, release: str | None) -> bool:
        """Whether a cluster of this release or a later one may have it; None where nobody knows."""
        return not (release and self.mended) or not _is_from(release, self.mended)

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return {
            "id": self.id,
            "title": self.title,
            "since": self.since,
            "mended": self.mended or None,
            "findings": list(self.findings),
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Risk:
    """What is at risk where a clause is broken, and what to do about it."""

    risk: str
    remedy: str


def _is_from(release: str, first: str) -> bool:
    """Whether a release is the first one or a later one."""
    pairs = zip_longest(map(int, release.split(".")), map(int, first.split(".")), fillvalue=0)
    return next((one > other for one, other in pairs if one != other), True)


@cache
def load_bugs() -> tuple[Bug, ...]:
    """Return all bugs, in the order of the protocols."""
    lists = {"profiles", "clauses", "findings"}
    names = {each.name for each in fields(Bug)}
    found = []
    for folder in list_folders():
        for said in folder.read_tables("bugs.toml").get("bug", ()):
            assert said.keys() <= names, f"{folder.name}: unknown key of a bug: {said}"
            given: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in said.items()}
            found.append(Bug(**given))
    return tuple(found)


def find_bugs(
    profile: str, clause: str, author: str, after: str, reason: str, release: str | None = None
) -> tuple[Bug, ...]:
    """Return the bugs that leave this shape, of those that a cluster of the release may have."""
    shown = {"author": author, "after": after, "reason": reason}
    return tuple(
        bug
        for bug in load_bugs()
        if profile in bug.profiles
        and clause in bug.clauses
        and all(re.search(getattr(bug, name), text) for name, text in shown.items())
        and bug.is_in(release)
    )


@cache
def find_risk(clause: str) -> Risk:
    """Return what is at risk where a clause is broken.

    >>> find_risk("controller.epoch.kept").risk[:12]
    'two sessions'
    """
    for folder in list_folders():
        for said in folder.read_tables("risks.toml").get("risk", ()):
            for name in said["clauses"]:
                if clause == name or name == "." or (name[-1] == "." and clause.startswith(name)):
                    return Risk(said["risk"], said["remedy"])
    raise KeyError(clause)
