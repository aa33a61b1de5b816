"""How the znodes that every protocol has are called, and which cluster a path belongs to."""

import re
from typing import Final

from reassure_judge.trees import name_tree
from reassure_spec.znodes import parse_number

_KINDS: Final = (
    r"(?P<controller>/controller)",
    r"(?P<epoch>/controller_epoch)",
    r"/brokers/(?P<root>ids|topics)",
    r"/brokers/ids/(?P<broker>[^/]+)",
    r"/brokers/topics/(?P<topic>[^/]+)(?:/partitions/(?P<partition>[^/]+)/state)?",
    r"/config/topics/(?P<topic_config>[^/]+)",
    r"(?P<default_config>/config/brokers/<default>)",
    r"/config/brokers/(?P<broker_config>[^/]+)",
    r"(?P<parents>/config/topics|/config/brokers)",
    r"(?P<preferred>/admin/preferred_replica_election)",
    r"/admin/delete_topics/(?P<deletion>[^/]+)",
)
"""How each kind of path that every protocol knows is written, below the chroot: the kind is the
name of the first group."""
_NUMBERED: Final = {"broker": 0, "broker_config": 0, "state": 1}
"""Kinds of path of which one part is a number, and which one; other names are no such znodes."""
ELSEWHERE: Final = "elsewhere"
"""What is put before the kind of a path that is about a topic which is judged elsewhere."""
SIGNS: Final = frozenset({"root", "broker", "topic", "state"})
"""Kinds of path that show that a cluster is there."""
ALL_SIGNS: Final = SIGNS | {f"{ELSEWHERE} {kind}" for kind in SIGNS}
OWN_TREES: Final = frozenset({"brokers", "config", "admin", "consumers"})
"""Trees of a cluster in which names are chosen by its users."""


class PathKinds:
    """Tells the kinds of paths apart: those of one protocol, and those that every one has."""

    def __init__(self, own: tuple[str, ...]) -> None:
        kinds = (*_KINDS, *own)
        self._path = re.compile(rf"(?P<chroot>(?:/[^/]+)*?)(?:{'|'.join(kinds)})", re.DOTALL)
        each = [tuple(re.compile(kind).groupindex) for kind in kinds]
        self._groups = {name: names[: at + 1] for names in each for at, name in enumerate(names)}
        """By the last group of `_path` that a path fills: all that it fills, the chroot aside."""

    def split(self, path: str) -> tuple[str, str, str, str]:
        """Return (kind, chroot, first part, second part) of a path that matters.

        Of another path the kind is "", and the first part is the tree that it belongs to.
        """
        match = self._path.fullmatch(path)
        if match is None or match.lastgroup is None:
            return ("", "", name_tree(path), "")
        names = self._groups[match.lastgroup]
        chroot, *parts = match.group("chroot", *names)
        kind = "state" if match.lastgroup == "partition" else names[0]
        if kind in _NUMBERED and parse_number(parts[_NUMBERED[kind]]) is None:
            return ("", "", name_tree(path), "")
        parts.append("")
        return (kind, chroot, parts[0], parts[1])
