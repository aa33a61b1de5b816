"""Which protocol a log is of, told by the znodes that only one of them has.

Each protocol says by itself what its signs are (`Rules.find_sign`); here they are gathered, cluster
by cluster. A cluster of which nothing tells is nobody's: then the profile has to be named.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reassure_judge.protocols import find_protocols
from reassure_judge.rules import Sign, Signs
from reassure_judge.transaction_reader import CHECK, CREATE, SET_DATA, TransactionLike
from reassure_judge.trees import KAFKAS_OWN
from reassure_spec import znodes

_ADMIN: Final = (
    znodes.REASSIGNMENT_REQUESTS,
    znodes.REASSIGNMENTS,
    "/admin/reassignment_tasks",
    "/admin/failed_brokers",
)
_LISTS: Final = "adding_replicas"
_MOST_PATHS: Final = 200_000
_TAILS: Final = "|".join(sorted({*_ADMIN, *KAFKAS_OWN}, reverse=True))
_PATH: Final = re.compile(
    rf"(?P<chroot>(?:/[^/]+)*?)(?:/brokers/(?P<kind>ids|topics)/(?P<name>[^/]+)(?P<below>/.*)?"
    rf"|(?P<tail>{_TAILS})(?P<inside>/.*)?|(?P<epoch>/controller_epoch))",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a log was found to be of."""

    profile: str
    why: str
    """The signs, in words."""
    readings: Mapping[str, str]
    """The readings that the log itself settles, with their values."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """By chroot: the releases that write as that cluster does, where some do not."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return {"profile": self.profile, "why": self.why, "readings": dict(self.readings)}


@dataclass(slots=True)
class Gatherer:
    """Gathers the signs in one archive, or in some of its files: what these came to can be added.

    Nearly all that is written stands where something stood before and tells nothing new. `told` is
    where it does: whoever reads may leave out transactions that write at these paths alone, and
    check besides.
    """

    clusters: dict[str, Signs] = field(default_factory=dict)
    told: set[bytes] = field(default_factory=set)
    """Paths, as they stand in a record."""

    def feed(self, transaction: TransactionLike) -> None:
        """Take note of a transaction that took effect."""
        if transaction.error is not None:
            return
        op: Any
        for op in transaction.ops:
            if op.kind in (CREATE, SET_DATA):
                self.note(op.path, op.data)
            elif op.kind == CHECK:
                self.note(op.path, None)

    def add(self, other: "Gatherer") -> None:
        """Take in the signs that were found elsewhere in the archive."""
        for chroot, signs in other.clusters.items():
            self.clusters.setdefault(chroot, Signs()).add(signs)

    def note(self, path: str, data: bytes | None) -> None:
        """Take note of a znode that was written, or of a check of one (None)."""
        found = _PATH.fullmatch(path)
        if found is None:
            return
        signs = self.clusters.setdefault(found["chroot"], Signs())
        if found["epoch"] is not None:
            signs.fenced = signs.fenced or data is None
        elif found["tail"] is not None:
            signs.trees.add(found["tail"])
            if found["inside"] is not None:
                signs.filled.add(found["tail"])
                self._note_told(signs, path)
        else:
            signs.shown = True
            if found["below"] is not None:
                self._note_told(signs, path)
            elif data is not None and not _is_known(signs, found["kind"], data):
                _note_content(signs, found["kind"], _read(data))

    def _note_told(self, signs: Signs, path: str) -> None:
        """Note that writes at a path tell no more, but for what is checked beside them."""
        if not signs.fenced:
            return
        if len(self.told) >= _MOST_PATHS:
            self.told.clear()
        self.told.add(path.encode("utf-8", "surrogatepass"))

    def find_clusters(self) -> Iterator[tuple[str, Signs]]:
        """Yield chroot and signs of every cluster that there is."""
        for chroot, signs in sorted(self.clusters.items()):
            if signs.shown:
                yield chroot, signs


def _is_known(signs: Signs, kind: str, data: bytes) -> bool:
    """Whether content is that of a topic without lists, as it was met before.

    A name can be spelled in JSON with escapes, too.
    """
    named = _LISTS.encode() in data or b"\\" in data
    return kind == "topics" and signs.without_lists and not named


def _read(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:  # the judge names what cannot be read
        return {}
    return value if isinstance(value, dict) else {}


def _note_content(signs: Signs, kind: str, content: Mapping[str, Any]) -> None:
    if kind == "topics":
        with_lists = _LISTS in content
        signs.with_lists += with_lists
        signs.without_lists |= bool(content) and not with_lists
        if isinstance(version := content.get("version"), int):
            signs.topics.add(version)
    elif isinstance(version := content.get("version"), int):
        signs.brokers.add(version)


def find_first_release(version: str | None) -> str | None:
    """Return the first of the releases that a version names, None where it names none.

    >>> find_first_release("Kafka 2.4 to 2.6")
    '2.4'
    """
    found = None if version is None else re.search(r"[0-9.]+", version)
    return None if found is None else found[0]


def find_sign(signs: Signs) -> tuple[str, Sign] | None:
    """Return the profile of a cluster, and what tells; the most particular protocol comes first."""
    found = [
        (sign, profile)
        for profile, rules in find_protocols().items()
        if profile == rules.profiles[0] and (sign := rules.find_sign(signs)) is not None
    ]
    if not found:
        return None
    sign, profile = max(found, key=lambda each: each[0].rank)
    return profile, sign


def recognise(archives: Iterable[tuple[str, Gatherer]]) -> Recognised | str | None:
    """Return what the archives, given by name, are of.

    Text says why nobody can say: they are not all of one protocol. None where nothing tells.
    """
    found: dict[str, Sign] = {}
    versions: dict[str, str] = {}
    words: list[str] = []
    for name, gatherer in archives:
        for chroot, signs in gatherer.find_clusters():
            told = find_sign(signs)
            if told is None:
                continue
            profile, sign = told
            version = find_protocols()[profile].find_version(signs)
            if version is not None:
                versions[chroot] = version
            if profile in found:
                # Only what all of them settle alike holds of all.
                common = found[profile].readings.items() & sign.readings.items()
                found[profile] = found[profile]._replace(readings=dict(sorted(common)))
                continue
            found[profile] = sign
            words.append(f"{name}, the cluster at {chroot or '/'}: {sign.words} ({profile})")
    if not found:
        return None
    if len(found) > 1:
        return "the logs are of several protocols: " + "; ".join(words)
    ((profile, sign),) = found.items()
    return Recognised(profile, sign.words, sign.readings, versions)
