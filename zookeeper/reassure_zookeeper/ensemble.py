"""The logs of several members of an ensemble, or of one with gaps, put together into one history.

Members log the same proposals, each into files of its own, and each lacks what it was away for. The
merged history takes every zxid once, from whichever member has it whole.

**What was never committed.** A leader logs what it proposes before anybody follows. If it ends
there, another one is elected without it, and goes on in a new epoch from what a quorum has; whoever
logged more is told to truncate that when it comes back (ZooKeeper's `LearnerHandler.syncFollower`:
TRUNC; DIFF and SNAP send what is lacking, the latter as a snapshot, so that the log has a gap). In
the log of a member that did not come back it still stands: its *divergence*. So of each record that
not all have it is asked who *has* it, and whose log goes *past* it: straight from a record before
it to one of a newer epoch.

* It was committed if a majority of the members has it, or if one that has it goes on to a newer
  epoch from there: a leader of that epoch would have had it truncated.
* It was not if a majority went past it, or has other content under that zxid.
* Else nobody can say. It is left out, and what follows is uncertain: a `Hole`.

A member that was sent a snapshot goes past nothing: what it skipped may be in that. A majority is
one of the members that are given.

**What members write differently.** A refused multi may be logged in two forms
(`reassure_zookeeper.transactions.Error`). Both say the same.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from reassure_zookeeper.codec import HEADER, decode
from reassure_zookeeper.jute import Malformed
from reassure_zookeeper.log_survey import (
    ByteRange,
    Damage,
    LogRecord,
    Survey,
    list_records,
    read_record,
)
from reassure_zookeeper.txnlog import EPOCH_BITS, TornTail, get_zxid_in_name, is_next

_list = lru_cache(maxsize=64)(lambda span: tuple(list_records(span)))
"""The records of a byte range; those of some are asked for again and again."""


class Piece(NamedTuple):
    """A part of a log file that is read as it stands."""

    path: Path
    start: int = 0
    """First byte, of a record; 0 for the beginning of the file."""
    stop: int | None = None
    """The byte behind the last record; None for the end of the file."""
    first: int = 0
    """The zxid of its first record, as far as it is known without reading it."""
    last: int = -1
    """That of its last record, -1 where nobody knows without reading it."""


class Hole(NamedTuple):
    """Where transactions are missing, or where nobody can say what was committed."""

    after: int
    """The last zxid before it."""
    before: int
    """The first zxid behind it, -1 where there is none."""

    def count_missing(self) -> int | None:
        """Return how many transactions are missing; None where nobody can say.

        >>> Hole(0x10, 0x13).count_missing(), Hole(0x10, 0x100000002).count_missing()
        (2, None)
        """
        same = self.before >= 0 and self.after >> EPOCH_BITS == self.before >> EPOCH_BITS
        return self.before - self.after - 1 if same else None


@dataclass(frozen=True, slots=True)
class Divergence:
    """Records that a member has logged and that are no part of the history."""

    member: str
    file: Path
    offset: int
    """Where the first of them begins."""
    first: int
    last: int
    count: int
    certain: bool
    """Whether they were never committed; otherwise nobody can say."""


@dataclass(frozen=True, slots=True)
class Merged:
    """One history."""

    pieces: tuple[Piece, ...]
    """What to read, in order."""
    holes: tuple[Hole, ...]
    """Those that the zxids themselves do not show."""
    divergences: tuple[Divergence, ...]
    damages: tuple[Damage, ...]
    tail: TornTail | None
    """The unfinished record behind the last one, if there is one."""


@dataclass(slots=True)
class EnsembleMember:
    """The logs of one member, surveyed."""

    name: str
    ranges: list[ByteRange] = field(default_factory=list)
    """In the order of their zxids, none of which is in two of them."""
    damages: list[Damage] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    """Where two of its files contradict each other."""
    tail: TornTail | None = None
    """The unfinished last record of the last file."""
    snapshots: Sequence[int] = ()
    """The zxids that its snapshots are named by."""
    firsts: list[int] = field(default_factory=list)
    """The first zxid of each span."""
    onward: list[bool] = field(default_factory=list)
    """Of each span, whether the log goes on from its end without a gap to a newer epoch."""
    by_block: dict[int, list[ByteRange]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, surveys: Iterable[Survey], snapshots: Sequence[int] = ()
    ) -> "EnsembleMember":
        """Put together the files of a member. Raises OSError."""
        member = cls(name, snapshots=snapshots)
        for survey in sorted(surveys, key=_get_first):
            member._add(survey)
        member._index()
        return member

    @property
    def last(self) -> int:
        """The last zxid, -1 where there is none."""
        return self.ranges[-1].last if self.ranges else -1

    def _add(self, survey: Survey) -> None:
        added = [each for span in survey.ranges for each in self._leave_out_known(span)]
        if added:
            added[0] = added[0]._replace(broken=self._close(added[0]) or added[0].broken)
        last = self.last
        for damage in survey.damages:
            after = max(damage.after, last)
            later = (each.first for each in added if each.first > damage.after)
            before = -1 if damage.stop is None else next(later, -1)
            self.damages.append(replace(damage, after=after, before=before))
        self.ranges += added
        self.tail = survey.tail or (None if added else self.tail)

    def _leave_out_known(self, span: ByteRange) -> Iterator[ByteRange]:
        """Yield what of a byte range is newer than all before; an older part is in another file."""
        last = self.last
        if span.first > last:
            yield span
            return
        known = {each.zxid: each.checksum for own in self.ranges for each in _list(own)}
        records = list_records(span)
        for record in records:
            if record.zxid > last:
                left = sum(1 for _ in records) + 1
                yield span._replace(start=record.start, first=record.zxid, records=left)
                return
            if known.get(record.zxid) != record.checksum:
                self.holes.append(Hole(record.zxid - 1, record.zxid))
                reason = f"zxid 0x{record.zxid:x} comes after 0x{last:x}"
                place = span.path, record.start, record.stop
                self.damages.append(Damage(*place, reason, record.zxid - 1, record.zxid))

    def _close(self, following: ByteRange) -> bool:
        """Judge how the files so far end, as another one follows; answer whether damaged."""
        if self.tail is not None and following.first != self.last + 1:
            tail, place = self.tail, f"where zxid 0x{self.last + 1:x} should be"
            reason = f"{tail.reason} {place}, and the next file goes on with 0x{following.first:x}"
            self.damages.append(Damage(tail.file, tail.offset, None, reason, self.last))
        unended = [number for number, each in enumerate(self.damages) if each.before < 0]
        for number in unended:
            self.damages[number] = replace(self.damages[number], before=following.first)
        return bool(unended)

    def _index(self) -> None:
        onward = False
        ranges = self.ranges
        for number, span in reversed(list(enumerate(ranges))):
            following = ranges[number + 1] if number + 1 < len(ranges) else None
            if following is None or following.broken or not is_next(span.last, following.first):
                onward = False
            elif _epoch(following.first) > _epoch(span.last):
                onward = True
            else:
                onward = following.is_gapless and onward
            self.onward.append(onward)
        self.onward.reverse()
        self.firsts = [each.first for each in ranges]
        for span in ranges:
            self.by_block.setdefault(span.block, []).append(span)

    def goes_on(self, zxid: int) -> bool:
        """Whether the log goes on from this record of it, without a gap, to a newer epoch."""
        number = bisect_right(self.firsts, zxid) - 1
        span = self.ranges[number]
        left = sum(record.zxid > zxid for record in _list(span))
        return left == span.last - zxid and self.onward[number]

    def find_around(self, zxid: int) -> tuple[int, int]:
        """Return the zxids before and after one that is not in the log; -1 where that is unsure."""
        number = bisect_right(self.firsts, zxid) - 1
        if number < 0:
            return -1, -1
        span = self.ranges[number]
        if span.last > zxid:
            zxids = [record.zxid for record in _list(span)]
            place = bisect_right(zxids, zxid)
            return zxids[place - 1], zxids[place]
        if number + 1 == len(self.ranges) or self.ranges[number + 1].broken:
            return span.last, -1
        return span.last, self.ranges[number + 1].first

    def goes_past(self, zxid: int) -> bool:
        """Whether the log goes on to a newer epoch where this record, which it lacks, would be."""
        before, after = self.find_around(zxid)
        if before < 0 or after < 0 or not is_next(before, after):
            return False
        if _epoch(after) <= _epoch(zxid):
            return False
        return not any(before < each < after for each in self.snapshots)


def _get_first(survey: Survey) -> int:
    return survey.ranges[0].first if survey.ranges else get_zxid_in_name(survey.path)


def _epoch(zxid: int) -> int:
    return zxid >> EPOCH_BITS


def merge(members: Sequence[EnsembleMember]) -> Merged:
    """Put the logs of members together. Raises OSError."""
    merging = _Merging(members)
    for block in sorted({block for member in members for block in member.by_block}):
        merging.take_block(block)
    return merging.finish()


class _Merging:
    """One history in the making, block by block."""

    def __init__(self, members: Sequence[EnsembleMember]) -> None:
        self._members = members
        self._from = members[0]
        """Whose records were taken last: it is stayed with, so that pieces are long."""
        self._pieces: list[Piece] = []
        self._holes: list[Hole] = []
        self._divergences: list[Divergence] = []
        self._last = -1
        self._contested = False

    def take_block(self, block: int) -> None:
        present = {member.name: member for member in self._members if block in member.by_block}
        sums = {_sum_up(member.by_block[block]) for member in present.values()}
        past = any(
            member.goes_past(min(each.by_block[block][0].first for each in present.values()))
            for member in self._members
            if member.name not in present
        )
        if len(sums) > 1 or past:
            self._settle(block, list(present.values()))
            return
        if self._from.name not in present:
            self._from = next(iter(present.values()))
        for span in self._from.by_block[block]:
            self._take(span.path, span.start, span.stop, span.first, span.last)

    def _take(self, path: Path, start: int, stop: int, first: int, last: int) -> None:
        if self._contested:
            self._holes.append(Hole(self._last, first))
            self._contested = False
        if self._pieces and (self._pieces[-1].path, self._pieces[-1].stop) == (path, start):
            self._pieces[-1] = self._pieces[-1]._replace(stop=stop, last=last)
        else:
            self._pieces.append(Piece(path, start, stop, first, last))
        self._last = last

    def _settle(self, block: int, present: Sequence[EnsembleMember]) -> None:
        """Go through a block of which members hold different things, record by record."""
        found: dict[int, list[_Held]] = {}
        for member in present:
            for span in member.by_block[block]:
                for record in _list(span):
                    found.setdefault(record.zxid, []).append(_Held(member, record))
        for zxid in sorted(found):
            forms = _tell_apart(found[zxid])
            holders = {held.member.name for held in found[zxid]}
            others = [each for each in self._members if each.name not in holders]
            past = [member for member in others if member.goes_past(zxid)]
            if len(forms) == 1 and not past:
                self._take_from(forms[0])
            else:
                self._choose(forms, len(past))

    def _take_from(self, form: "list[_Held]") -> None:
        held = next((each for each in form if each.member is self._from), form[0])
        self._from, record = held
        self._take(record.path, record.start, record.stop, record.zxid, record.zxid)

    def _choose(self, forms: "list[list[_Held]]", past: int) -> None:
        """Take of several forms of a record, one of which may be that it is not, the committed."""
        most = len(self._members) // 2
        sure = [
            form
            for form in forms
            if len(form) > most or any(each.member.goes_on(each.record.zxid) for each in form)
        ]
        total = sum(map(len, forms)) + past
        for form in forms:
            if sure == [form]:
                self._take_from(form)
                continue
            lost = bool(sure) or total - len(form) > most
            if len(sure) > 1 or not lost:
                self._contested = True
            for held in form:
                self._leave_out(held, certain=len(sure) <= 1 and lost)

    def _leave_out(self, held: "_Held", *, certain: bool) -> None:
        member, record = held
        for number, each in enumerate(self._divergences):
            follows = (each.member, each.file, each.certain) == (member.name, record.path, certain)
            if follows and is_next(each.last, record.zxid):
                longer = replace(each, last=record.zxid, count=each.count + 1)
                self._divergences[number] = longer
                return
        place = member.name, record.path, record.start, record.zxid, record.zxid
        self._divergences.append(Divergence(*place, 1, certain))

    def finish(self) -> Merged:
        if self._contested:
            self._holes.append(Hole(self._last, -1))
        damages = sorted(
            (damage for member in self._members for damage in member.damages),
            key=lambda damage: (damage.after, str(damage.file), damage.offset),
        )
        self._holes += [hole for damage in damages for hole in self._find_hole(damage)]
        self._holes += [hole for member in self._members for hole in member.holes]
        tails = [member.tail for member in self._members if member.tail is not None]
        ends = {tail.file: tail for tail in tails}
        last = self._pieces[-1] if self._pieces else None
        return Merged(
            tuple(self._pieces),
            tuple(sorted(set(self._holes))),
            tuple(self._divergences),
            tuple(damages),
            None if last is None else ends.get(last.path),
        )

    def _find_hole(self, damage: Damage) -> Iterator[Hole]:
        """Yield the gap that a damage leaves, unless its zxids show it or another member fills it.

        What is damaged where an epoch ends may have held more of that epoch.
        """
        after, before = damage.after, damage.before
        if before < 0:
            if self._last <= after:
                yield Hole(after, -1)
        elif before > after + 1 and after >= 0 and is_next(after, before):
            around = {member.find_around(after + 1) for member in self._members}
            if (after, before) not in around and not self._has_between(after, before):
                yield Hole(after, before)

    def _has_between(self, after: int, before: int) -> bool:
        """Whether some member has a record between two zxids."""
        for member in self._members:
            number = bisect_right(member.firsts, after + 1)
            if number < len(member.firsts) and member.firsts[number] < before:
                return True
        return False


class _Held(NamedTuple):
    member: EnsembleMember
    record: LogRecord


def _sum_up(ranges: Iterable[ByteRange]) -> tuple[int, int]:
    """Return how many records there are, and a digest of them."""
    listed = list(ranges)
    return sum(each.records for each in listed), sum(each.digest for each in listed) % (1 << 64)


def _tell_apart(found: Sequence[_Held]) -> list[list[_Held]]:
    """Group those that hold the same record."""
    forms: dict[int, list[_Held]] = {}
    for held in found:
        forms.setdefault(held.record.checksum, []).append(held)
    if len(forms) == 1:
        return list(forms.values())
    said: dict[object, list[_Held]] = {}
    for form in forms.values():
        said.setdefault(_read_meaning(form[0].record), []).extend(form)
    return list(said.values())


def _read_meaning(record: LogRecord) -> object:
    """Return what a record says: that it was refused can be written in two forms."""
    content = read_record(record)
    try:
        transaction = decode(content)
    except Malformed:
        return content
    return content if transaction.error is None else content[: HEADER.size]
