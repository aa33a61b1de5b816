"""Which transactions matter to the judge, and to whom: to one share of the topics, or to all.

Where a profile lets topics be judged apart (`Router.apart`), a transaction that writes to topics
of one share alone is addressed to that share, and a transaction of anything else to everybody. The
first signs of a cluster in a part of a log go to everybody as well, so that all know from when on
it is one.

Of nearly every transaction only the kinds and paths of its operations are looked at, as they stand
in its record. Whatever else there is (refused ones, ends of sessions, rare kinds, and what concerns
no rule) is decoded, so that what makes no sense is noticed by whoever reads it first.
"""

import struct
from collections import Counter
from typing import Any, Final

from reassure_judge.history import CLOSE_SESSION, CREATE, DELETE, OWN_TREES, SET_DATA, SIGNS
from reassure_judge.rules import Rules
from reassure_pipeline.passes import choose_share
from reassure_zookeeper.codec import HEADER, OP_HEADER, decode
from reassure_zookeeper.jute import INT
from reassure_zookeeper.transactions import CHECK, CREATE2, MULTI, Transaction

EVERYBODY: Final = -1
_NOBODY: Final = -2
_NOTHING: Final = -3
"""No rule is about it, and nobody counts it."""
_UNKNOWN: Final = -4
_WRITES: Final = frozenset({CREATE, SET_DATA, DELETE})
_PLAIN: Final = frozenset({CREATE, CREATE2, SET_DATA, DELETE})
"""Operations whose body begins with the path that they write to."""
_CACHE_LIMIT: Final = 500_000
_AT_KIND: Final = HEADER.size - INT.size
_BODY: Final = HEADER.size
_OP_SIZE: Final = OP_HEADER.size
_unpack_int = INT.unpack_from
_unpack_op = OP_HEADER.unpack_from


class Addressing:
    """Addresses the transactions of one part of a log, in order, to `shares` shares."""

    def __init__(self, rules: Rules[Any, Any], shares: int) -> None:
        self.unjudged: Counter[str] = Counter()
        """How often each tree was written of which nothing was handed on to the judge."""
        self._shares = shares
        self._locate = rules.make_router().locate
        self._places: dict[bytes, int] = {}
        self._shown: set[str] = set()
        self._with_topics: set[str] = set()

    def find(self, record: bytes) -> int | None:
        """Return the share, EVERYBODY, or None where a record concerns no rule.

        Raises `Malformed` where it was decoded and makes no sense.
        """
        # Only what is known already is answered here, so that nothing is learned from an operation
        # before it is clear that its transaction took effect.
        try:
            found = self._find_known(record)
        except struct.error:  # told by decoding, with its reason
            found = _UNKNOWN
        return self._find_transaction(decode(record)) if found < EVERYBODY else found

    def _find_known(self, record: bytes) -> int:
        kind = _unpack_int(record, _AT_KIND)[0]
        places = self._places
        if kind != MULTI:
            if kind not in _PLAIN:
                return _UNKNOWN
            path = record[_BODY + 4 : _BODY + 4 + _unpack_int(record, _BODY)[0]]
            return places.get(path, _UNKNOWN)
        at, found = _BODY + 4, _UNKNOWN
        for _ in range(_unpack_int(record, _BODY)[0]):
            kind, size = _unpack_op(record, at)
            at += _OP_SIZE
            if kind in _PLAIN and size > 0:
                place = places.get(record[at + 4 : at + 4 + _unpack_int(record, at)[0]], _UNKNOWN)
                if place < EVERYBODY:
                    return _UNKNOWN
                if found != place:
                    found = place if found == _UNKNOWN else EVERYBODY
            elif kind != CHECK or size < 0:
                return _UNKNOWN
            at += size
        return found

    def _find_transaction(self, transaction: Transaction) -> int | None:
        found: int | None = None
        strange = False
        for op in transaction.ops if transaction.error is None else ():
            kind = op.kind
            if kind in _WRITES:
                path: str = op.path  # type: ignore[union-attr]
                place = self._find_place(path.encode("utf-8", "surrogatepass"))
                if place == _NOBODY:
                    strange = True
                elif place == _NOTHING:
                    pass
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

    def _find_place(self, encoded: bytes) -> int:
        known = self._places.get(encoded)
        if known is not None:
            return known
        path = encoded.decode("utf-8", "surrogatepass")
        kind, chroot, topic = self._locate(path)
        if not kind:
            place = _NOBODY if topic else _NOTHING  # here its tree
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
            place = choose_share(chroot, topic, self._shares)
        if len(self._places) >= _CACHE_LIMIT:
            self._places.clear()
        self._places[encoded] = place
        return place
