"""Which line of a history may stand in the place of an earlier one, that says nothing beyond it.

A replica at work says the same few things over and over: its log has grown, a follower fetched, the
mark moved. For a short while the lines of one replica are written over instead of being followed by
more. They stand in the order in which one is concluded from the other, so that a newer one above an
older one only says earlier what was the case later. Anything else that is said ends that.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from reassure_spec.observations import (
    Answer,
    Evaluate,
    Fetch,
    Follow,
    IsrRead,
    IsrWrite,
    Lead,
    Observation,
    Produce,
    Replica,
    Serve,
    What,
)
from reassure_spec.znodes import ReplicaList

_RANKS: Final = {Replica: 0, Produce: 1, Fetch: 2, Evaluate: 3, Answer: 4, Serve: 4}
"""By kind: what is concluded from what has a larger one."""
_SLACK: Final = {Replica: 36, Fetch: 64}
"""By kind: how many bytes longer a line may become that is written over."""

Slot = tuple[type, int]
Said = TypeVar("Said", Replica, Produce, Fetch, Evaluate)


class Place(NamedTuple):
    """Where a line stands in the file."""

    line: Observation
    before: Observation | None
    """The line that it was encoded after."""
    position: int
    length: int


@dataclass(slots=True)
class Rewriting:
    """The lines of one replica that may be written over."""

    lasts_s: float
    """For how long a line may be written over."""
    began_s: float = 0.0
    places: dict[Slot, Place] = field(default_factory=dict)
    _is_following: bool = False
    _isr: ReplicaList = ()
    """The stored in-sync set, as the leader knows it."""
    _mark: int = 0
    """Its mark, by the last line about it that stays."""
    _looked_ms: int | None = None
    """When the leader looked, by the last line about it that stays."""
    _fetched: dict[int, Fetch] = field(default_factory=dict)
    """By follower: its last fetch that has a line that stays."""
    _is_answered: bool = True
    """Whether the producer of the line that stands here has its answer."""
    _owed: Counter[int] = field(default_factory=Counter)
    """By offset: how many lines of producers that stay still need the line of their answer."""

    def begin(self, now_s: float) -> None:
        """Have every line so far stay as it is."""
        waiting = self._get(Produce)
        for place in self.places.values():
            self._take_in(place.line.what)
        if waiting is not None and not self._is_answered:
            self._owed[waiting.offset] += 1
        self.began_s, self._is_answered = now_s, True
        self.places.clear()

    def find(self, line: Observation) -> tuple[Place | None, Observation]:
        """Return the place that a line may take, if any, and what it says there."""
        place = self.places.get(_name(line.what))
        if place is None or place.line[3:-1] != line[3:-1] or self._is_owed(line.what):
            return None, line
        what = self._renew(place.line.what, line.what) if self._is_sound(line) else None
        if what is None:
            return None, line
        return place, line._replace(sequence=place.line.sequence, what=what)

    def replace(self, place: Place) -> None:
        """Note what stands in a place now."""
        self._put(place)

    def append(self, place: Place, now_s: float) -> None:
        """Note a line at the end, which may be the end of what stands before it."""
        what, slot = place.line.what, _name(place.line.what)
        if self._is_owed(what):
            assert isinstance(what, Answer)
            self._owed -= Counter((what.offset,))
        elif not self._is_sound(place.line):
            self.begin(now_s)
            self._take_in(what)
        else:
            above = [kind for kind, _ in self.places if _RANKS[kind] > _RANKS[slot[0]]]
            heads = {one.line[3:-1] for one in self.places.values()} - {place.line[3:-1]}
            if above or heads or slot in self.places:
                self.begin(now_s)
            self._put(place)

    def _put(self, place: Place) -> None:
        what = place.line.what
        self.places[_name(what)] = place
        waiting = self._get(Produce)
        if isinstance(what, Produce):
            self._is_answered = False
        elif isinstance(what, Answer) and waiting is not None:
            self._is_answered |= waiting.offset == what.offset

    def _get(self, kind: type[Said], follower: int = -1) -> Said | None:
        """Return what a line of a kind says that may be written over."""
        place = self.places.get((kind, follower))
        what = None if place is None else place.line.what
        return what if isinstance(what, kind) else None

    def _is_sound(self, line: Observation) -> bool:
        """Whether what stands above a line bears it out; any other line stays, to be judged."""
        what, look = line.what, self._get(Evaluate)
        log = self._get(Replica)
        match what:
            case Produce():
                return True
            case Replica():
                if self._is_following:
                    return what.high_watermark <= what.log_end_offset
                return what.high_watermark <= (self._mark if look is None else look.high_watermark)
            case Fetch():
                before = self._get(Fetch, what.follower) or self._fetched.get(what.follower)
                end = what.log_end_offset
                if end is None or what.offset > end or what.follower_epoch != line.leader_epoch:
                    return False
                is_last = before is not None and _is_credited_by(what, before)
                is_now = what.caught_up_ms == what.time_ms and what.offset >= end
                return (is_now or is_last) and (log is None or not _is_behind(what, log))
            case Evaluate():
                if line.broker not in what.pseudo_isr or what.high_watermark < self._mark:
                    return False
                fetches = [self._get(Fetch, one) for one in what.pseudo_isr if one != line.broker]
                return all(
                    one is not None and what.high_watermark <= one.offset for one in fetches
                ) and (log is None or what.high_watermark <= log.log_end_offset)
            case Answer(error=None):
                return look is not None and what.offset <= look.high_watermark
            case Serve():
                far = max(what.high_watermark, what.offset or 0)
                return look is not None and what.high_watermark <= look.high_watermark >= far
        return False

    def _take_in(self, what: What) -> None:
        """Note what a line says that stays."""
        if isinstance(what, Lead | Follow):
            self._is_following = isinstance(what, Follow)
        if isinstance(what, Lead | Evaluate):
            self._mark, self._looked_ms = what.high_watermark, what.time_ms
        if isinstance(what, Lead | IsrRead) or (isinstance(what, IsrWrite) and what.isr_version):
            self._isr = what.isr
        if isinstance(what, Fetch):
            self._fetched[what.follower] = what

    def _is_soon(self, look: Evaluate) -> bool:
        """Whether the leader looked not long before, by a line that stays."""
        before, now = self._looked_ms, look.time_ms
        return before is None or now is None or now - before <= 1000 * self.lasts_s

    def _is_owed(self, what: What) -> bool:
        return isinstance(what, Answer) and self._owed[what.offset] > 0

    def _renew(self, old: What, new: What) -> What | None:
        """Return what may stand in the place of `old`; None where both have to be there."""
        match old, new:
            case Replica(), Replica() if old[:2] <= new[:2] and old.high_watermark <= new[1]:
                if self._is_following:
                    return new
                # A leader's mark is moved by looks, which come after the fetches that it goes by.
                since = old.time_ms if old.since_ms is None else old.since_ms
                return new._replace(high_watermark=old.high_watermark, since_ms=since)
            case Fetch(), Fetch() if self._may_repeat(old, new):
                return new._replace(before_ms=old.time_ms, before_end=old.log_end_offset)
            case Evaluate(), Evaluate() if old.high_watermark <= new.high_watermark:
                is_same = (old.pseudo_isr, old.isr) == (new.pseudo_isr, new.isr)
                return new if is_same and self._is_soon(new) else None
            case Serve(), Serve() if new.high_watermark >= old.high_watermark:
                return new._replace(offset=max(new.offset or 0, old.offset or 0) or None)
            case Produce(), Produce() if new.offset >= old.offset:
                return new
            case Answer(), Answer() if new.offset >= old.offset:
                return new
        return None

    def _may_repeat(self, old: Fetch, new: Fetch) -> bool:
        """Whether a fetch is another one of a follower that keeps up, as was concluded already."""
        look = self._get(Evaluate)
        if look is not None:
            in_sync = self._isr if look.isr is None else look.isr
            if new.follower not in look.pseudo_isr or new.follower not in in_sync:
                return False
        return new.offset >= old.offset


def _is_credited_by(fetch: Fetch, before: Fetch) -> bool:
    """Whether a fetch counts as caught up when the one before came: it has what was there then."""
    end = before.log_end_offset
    return end is not None and fetch.caught_up_ms == before.time_ms and fetch.offset >= end


def _is_behind(fetch: Fetch, log: Replica) -> bool:
    """Whether the end noted with a fetch is of before that of the log was told."""
    is_later = None in (fetch.time_ms, log.time_ms) or (fetch.time_ms or 0) > (log.time_ms or 0)
    return (fetch.log_end_offset or 0) < log.log_end_offset and is_later


def get_slack(what: What) -> int:
    """Return how much longer a line may become that says this."""
    return 4 if getattr(what, "time_ms", None) is None else _SLACK.get(type(what), 4)


def _name(what: What) -> Slot:
    return type(what), what.follower if isinstance(what, Fetch) else -1
