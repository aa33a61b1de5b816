"""Which transactions matter to the judge, and to whom: to one topic, or to a whole cluster.

Where a profile lets topics be judged apart (`Router.apart`), a transaction that writes to one topic
alone is addressed to that topic, and a transaction of anything else to everybody. The first signs
of a cluster in a file go to everybody as well, so that all know from when on it is one.
"""

from collections import Counter
from typing import Any, Final

from reassure_judge.history import CLOSE_SESSION, CREATE, DELETE, OWN_TREES, SET_DATA, SIGNS
from reassure_judge.rules import Rules
from reassure_pipeline.passes import name_topic
from reassure_zookeeper.transactions import Transaction

EVERYBODY: Final = b""
_NOBODY: Final = b"\0"
"""No place has this name, for there is no such chroot."""
_WRITES: Final = frozenset({CREATE, SET_DATA, DELETE})


def encode_topic(chroot: str, topic: str) -> bytes:
    """Return what a topic's share is chosen by."""
    return name_topic(chroot, topic).encode("utf-8", "surrogatepass")


class Addressing:
    """Addresses the transactions of one file, in order."""

    def __init__(self, rules: Rules[Any, Any]) -> None:
        self.unjudged: Counter[str] = Counter()
        """How often each tree was written of which nothing was handed on to the judge."""
        self._locate = rules.make_router().locate
        self._places: dict[str, bytes] = {}
        self._shown: set[str] = set()
        self._with_topics: set[str] = set()

    def find(self, transaction: Transaction) -> bytes | None:
        """Return the topic (`encode_topic`), EVERYBODY, or None where it concerns no rule."""
        found: bytes | None = None
        strange = False
        for op in transaction.ops if transaction.error is None else ():
            kind = op.kind
            if kind in _WRITES:
                path: str = op.path  # type: ignore[union-attr]
                place = self._places.get(path)
                if place is None:
                    place = self._find_place(path)
                if place is _NOBODY:
                    strange = True
                elif found is None:
                    found = place
                elif found != place:
                    found = EVERYBODY
            elif kind == CLOSE_SESSION:
                found = EVERYBODY
        if strange:
            if found is not None:
                return EVERYBODY
            self._count(transaction)
        return found

    def _count(self, transaction: Transaction) -> None:
        for op in transaction.ops:
            if op.kind in _WRITES:
                _, _, tree = self._locate(op.path)  # type: ignore[union-attr]
                if tree:
                    self.unjudged[tree] += 1

    def _find_place(self, path: str) -> bytes:
        kind, chroot, topic = self._locate(path)
        if not kind:
            place = _NOBODY
        elif not topic or not OWN_TREES.isdisjoint(chroot.split("/")):
            place = EVERYBODY
        elif chroot not in self._shown:
            if kind in SIGNS:
                self._shown.add(chroot)
            if kind == "topic":
                self._with_topics.add(chroot)
            return EVERYBODY
        elif kind == "topic" and chroot not in self._with_topics:
            self._with_topics.add(chroot)
            return EVERYBODY
        else:
            place = encode_topic(chroot, topic)
        self._places[path] = place
        return place
