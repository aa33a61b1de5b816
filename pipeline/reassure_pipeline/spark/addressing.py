"""Which transactions matter to the judge, and to whom: to some shares of the topics, or to all.

Where a profile lets topics be judged apart (`Router.apart`), a transaction that writes to topics
of one share alone is addressed to that share, and a transaction of anything else to everybody. The
first signs of a cluster in a part of a log go to everybody as well, so that all know from when on
it is one.

**Requests** for reassignments are the cluster's, and matter to whom they name. One goes to the
shares of the topics in it, and so do its changes and its removal where they stand in the same part;
in another part nobody knows what was asked, so everybody is told. That is all that matters as long
as no request comes under a number that was used before (`Addressing.asked` tells), and as long as
nobody asks how long a request has waited, which is a matter of all others (at rest).

Of nearly every transaction only the kinds and paths of its operations are looked at, as they stand
in its record. Whatever else there is (refused ones, ends of sessions, requests, rare kinds, and
what concerns no rule) is decoded, so that what makes no sense is noticed by whoever reads it first.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from reassure_judge.paths import OWN_TREES, SIGNS
from reassure_judge.rules import Rules
from reassure_judge.transaction_reader import CLOSE_SESSION, CREATE, DELETE, SET_DATA
from reassure_pipeline.audit.passes import choose_share
from reassure_spec.znodes import parse_request_name
from reassure_zookeeper.codec import HEADER, OP_HEADER, decode
from reassure_zookeeper.jute import INT
from reassure_zookeeper.transactions import CHECK, CREATE2, MULTI, Transaction

EVERYBODY: Final = -1
_NOBODY: Final = -2
_NOTHING: Final = -3
"""No rule is about it, and nobody counts it."""
_UNKNOWN: Final = -4
_REQUEST: Final = -5
"""A request of which nobody knows whom it concerned so far."""
_WRITES: Final = frozenset({CREATE, SET_DATA, DELETE})
_PLAIN: Final = frozenset({CREATE, CREATE2, SET_DATA, DELETE})
"""Operations whose body begins with the path that they write to."""
_CACHE_LIMIT: Final = 500_000
_AT_KIND: Final = HEADER.size - INT.size
_BODY: Final = HEADER.size
_OP_SIZE: Final = OP_HEADER.size
_unpack_int = INT.unpack_from
_unpack_op = OP_HEADER.unpack_from


class Asked(NamedTuple):
    """The numbers of the requests that were written below one chroot."""

    lowest: int
    """Of those that were made and did not go to everybody, -1 where one of them came under a number
    that was used before."""
    highest: int
    """Of all."""


_NONE_ASKED: Final = Asked(1 << 62, -1)


def is_growing(parts: Iterable[Mapping[str, Asked]]) -> bool:
    """Whether no request came under a number that was used before, from part to part in order."""
    highest = dict[str, int]()
    for part in parts:
        for chroot, asked in part.items():
            before = highest.get(chroot, -1)
            if asked.lowest <= before:
                return False
            highest[chroot] = max(before, asked.highest)
    return True


def list_asked(rules: Rules[Any, Any], paths: Iterable[str]) -> dict[str, Asked]:
    """Return the numbers of the requests among these paths, which were there before all parts."""
    locate, highest = rules.make_router().locate, dict[str, int]()
    for path in paths:
        sequence = parse_request_name(path.rpartition("/")[2])
        if sequence is not None:
            kind, chroot, _ = locate(path)
            if kind == "request":
                highest[chroot] = max(sequence, highest.get(chroot, -1))
    return {chroot: _NONE_ASKED._replace(highest=number) for chroot, number in highest.items()}


class Addressing:
    """Addresses the transactions of one part of a log, in order, to `shares` shares.

    With `requests_to_all` requests go to everybody.
    """

    def __init__(
        self, rules: Rules[Any, Any], shares: int, *, requests_to_all: bool = False
    ) -> None:
        self.unjudged: Counter[str] = Counter()
        """How often each tree was written of which nothing was handed on to the judge."""
        self.asked: dict[str, Asked] = {}
        """By chroot: the numbers of the requests that were made or changed, where it matters."""
        self._shares = shares
        self._router = rules.make_router()
        self._locate = self._router.locate
        self._requests_to_all = requests_to_all or not self._router.apart
        self._everybody = range(shares)
        self._goes_to: list[Sequence[int]] = [(number,) for number in range(shares)]
        """By place: the shares. The first places are of a share each, the others of requests."""
        self._places_of_requests: dict[frozenset[int], int] = {}
        self._places: dict[bytes, int] = {}
        self._shown: set[str] = set()
        self._with_topics: set[str] = set()

    def find(self, record: bytes) -> Sequence[int]:
        """Return the shares that a record goes to, none where it concerns no rule.

        Raises `Malformed` where it was decoded and makes no sense.
        """
        # Only what is known already is answered here, so that nothing is learned from an operation
        # before it is clear that its transaction took effect.
        try:
            found: int | None = self._find_known(record)
        except struct.error:  # told by decoding, with its reason
            found = _UNKNOWN
        if found is not None and found < EVERYBODY:
            found = self._find_transaction(decode(record))
        if found is None:
            return ()
        return self._everybody if found == EVERYBODY else self._goes_to[found]

    def _find_known(self, record: bytes) -> int:
        kind = _unpack_int(record, _AT_KIND)[0]
        places = self._places
        if kind != MULTI:
            if kind not in _PLAIN:
                return _UNKNOWN
            path = record[_BODY + 4 : _BODY + 4 + _unpack_int(record, _BODY)[0]]
            place = places.get(path, _UNKNOWN)
            return _UNKNOWN if place >= self._shares and kind != DELETE else place
        at, found = _BODY + 4, _UNKNOWN
        for _ in range(_unpack_int(record, _BODY)[0]):
            kind, size = _unpack_op(record, at)
            at += _OP_SIZE
            if kind in _PLAIN and size > 0:
                place = places.get(record[at + 4 : at + 4 + _unpack_int(record, at)[0]], _UNKNOWN)
                if place < EVERYBODY or (place >= self._shares and kind != DELETE):
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
                encoded = path.encode("utf-8", "surrogatepass")
                place = self._find_place(encoded)
                if place >= self._shares or place == _REQUEST:
                    place = self._find_request(op, encoded, place)
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
        elif kind == "request" and not self._requests_to_all:
            return _REQUEST
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
        self._remember(encoded, place)
        return place

    def _remember(self, encoded: bytes, place: int) -> None:
        if len(self._places) >= _CACHE_LIMIT:
            self._places.clear()
        self._places[encoded] = place

    def _find_request(self, op: Any, encoded: bytes, known: int) -> int:
        """Return where a write to a request goes: to whom it concerned so far, and does now."""
        if op.kind == DELETE:
            return EVERYBODY if known == _REQUEST else known
        _, chroot, _ = self._locate(op.path)
        name = op.path.rpartition("/")[2]
        topics = self._router.find_asked(name, op.data)
        # A request that is changed was made before: who knows for whom.
        is_for_all = known == _REQUEST and op.kind == SET_DATA
        is_for_all |= chroot not in self._shown or not OWN_TREES.isdisjoint(chroot.split("/"))
        place = EVERYBODY
        if topics is not None and not is_for_all:
            shares = frozenset(choose_share(chroot, topic, self._shares) for topic in topics)
            place = self._name_shares(
                shares.union(() if known == _REQUEST else self._goes_to[known])
            )
        self._remember(encoded, place)
        sequence = parse_request_name(name)
        if sequence is not None:
            lowest, highest = self.asked.get(chroot, _NONE_ASKED)
            if op.kind == CREATE and place != EVERYBODY:
                lowest = min(lowest, sequence) if sequence > highest else -1
            self.asked[chroot] = Asked(lowest, max(highest, sequence))
        return place

    def _name_shares(self, shares: frozenset[int]) -> int:
        """Return the place that stands for requests that go to these shares."""
        place = self._places_of_requests.setdefault(shares, len(self._goes_to))
        if place == len(self._goes_to):
            self._goes_to.append(tuple(sorted(shares)))
        return place
