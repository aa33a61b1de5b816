"""The work of an audit in two passes, the same for both engines.

1. `Routing` takes the transactions of one archive in zxid order and answers observations, each
   addressed to one partition or to a cluster. It also notes what a verdict must know of the whole
   archive: which clusters were born in it, and what was under way when it began.
2. `Judging` takes the observations of some partitions, those of one partition in order.

Both can be spread by topic: workers and processes take in what concerns a cluster as a whole, and
leave out what is written about topics that are not in their `Share`.

**What is settled.** A rejected write is a violation only if the history before it is known. Where
it is not, the same finding is *unsettled*, and the clause is unknown rather than violated:

* in an archive that begins in the middle, for every cluster that was not born in it;
* after a hole, up to where judging begins anew from a snapshot behind it;
* before a cluster was upgraded to what the profile speaks of;
* behind a snapshot that judging begins from, while a controller may still act on what happened just
  before, and for a partition whose reassignment was under way, until that has ended: whether a drop
  is due is not written anywhere.

What the content of one znode breaks, or breaks on top of what a snapshot shows, nothing earlier can
excuse (`reassure_judge.verdicts`, `BY_CONTENT` and `BY_CHANGE`): that is settled all the same.

**Chapters.** Where judging begins anew (`archives.archive`) both passes do, with nothing
in mind but what the snapshot shows. `Passes` goes through all chapters of an archive; findings are
settled by what is known of the chapter that they are in.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

from reassure_judge.doubt import GRACE_MS
from reassure_judge.history import SeenWrite
from reassure_judge.judge import Tracking
from reassure_judge.rules import Rules
from reassure_judge.verdicts import BY_CHANGE, BY_CONTENT, Location, Tally, Violation
from reassure_model.partition import Environment
from reassure_pipeline.archives.archive import BEGINNING, MIDDLE, SNAPSHOT, Archive, Beginning
from reassure_pipeline.archives.beginnings import Base, Restart, find_open
from reassure_pipeline.audit.listed_findings import Findings
from reassure_pipeline.fleet.fleet_facts import FleetFacts
from reassure_pipeline.fleet.totals import MoveRecord, Sums
from reassure_zookeeper.codec import decode, decode_unless
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.transactions import Transaction

Key = tuple[str, str, int]
"""Chroot, topic and partition; topic "" and partition -1 for the cluster itself."""

Rest = tuple[str, str, int, int, Environment, frozenset[str], int]
"""The history has ended at rest: what a partition (or cluster) must be judged by then.

Its key, the last transaction before the rest, its surroundings, what waits in the request queue and
came after the last thing was taken there, and the server's clock at that transaction."""


class Share(NamedTuple):
    """The topics that one of several processes judges.

    Topics rather than partitions, for most of what is written about a partition stands in a znode
    that it shares with the others of its topic, or is about that one.
    """

    number: int
    of: int
    chroots: tuple[str, ...] | None = None
    """Those of the clusters that are judged; None for all."""

    def has(self, chroot: str, topic: str) -> bool:
        """Whether a topic is among them; clusters as a whole ("") are in the first share."""
        if self.chroots is not None and chroot not in self.chroots:
            return False
        if not topic:
            return self.number == 0
        return choose_share(chroot, topic, self.of) == self.number


def choose_share(chroot: str, topic: str, of: int) -> int:
    """Return the number of the share that a topic is in."""
    return crc32(f"{chroot}/{topic}".encode("utf-8", "surrogatepass")) % of


ALL: Final = Share(0, 1)


class Options(NamedTuple):
    """How archives are judged."""

    at_rest: bool = False
    """Whether the end of a history counts as a rest: what is owed by then is judged too."""
    min_insync_replicas: int = 1
    """What the brokers' own files say, which are not in ZooKeeper."""
    grace_ms: int = GRACE_MS
    """How long a change may be news (`reassure_judge.doubt`)."""
    facts: bool = False
    """Whether facts are taken beside (`fleet.fleet_facts`)."""
    strict: bool = False
    """Whether a watch tells what is not followed as a violation."""
    chroots: tuple[str, ...] | None = None
    """The clusters that a watch judges; None for all."""


DEFAULTS: Final = Options()


@dataclass(slots=True)
class KnownHistory:
    """What routing has learned of an archive as a whole."""

    begins: str
    born: dict[str, int] = field(default_factory=dict)
    """By chroot of a cluster whose birth was seen in the middle of a history: when that was."""
    in_flight: dict[Key, int | None] = field(default_factory=dict)
    """Reassignments that were under way at the snapshot: when each ended, None if it did not."""
    calm_zxid: int | None = None
    """First transaction that no news of before the snapshot can excuse; None if there is none."""
    unborn: bool = False
    """Whether there is a cluster that was not born here, in the middle of a history."""
    clusters: frozenset[str] = frozenset()
    """Chroots of all clusters met."""
    earlier: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By chroot of a cluster that was upgraded: the last transaction before, and the profile that
    speaks of what it was."""
    silent: frozenset[str] = frozenset()
    """Those of them in which there is no sign of KIP-236."""
    unjudged: Counter[str] = field(default_factory=Counter)
    """How often each tree was written that no rule is about."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """By reason: how many transactions no rule was asked about."""

    @classmethod
    def join(cls, chapters: "Sequence[KnownHistory]") -> "KnownHistory":
        """Return what is known of an archive by all its chapters."""
        first, *later = chapters
        if not later:
            return first
        joined = replace(first, unjudged=Counter(), passed_over=Counter(), earlier={})
        for known in chapters:
            joined.unborn |= known.unborn
            joined.clusters |= known.clusters
            joined.silent |= known.silent
            joined.earlier |= known.earlier
            joined.unjudged.update(known.unjudged)
            joined.passed_over.update(known.passed_over)
        spoke = (known.clusters - known.silent for known in chapters)
        joined.silent = joined.silent.difference(*spoke)
        return joined

    def add(self, other: "KnownHistory") -> None:
        """Take in what routing has learned for another share; this is the first one's."""
        for key, zxid in other.in_flight.items():
            if self.in_flight.get(key) is None:
                self.in_flight[key] = zxid
        self.silent &= other.silent


def is_settled(violation: Violation, known: KnownHistory, holes: tuple[Hole, ...]) -> bool:
    """Whether the history before a finding is known well enough to call it a violation."""
    if violation.clause in BY_CONTENT:
        return True
    # What shows a finding may come later than the write, and be the lack of what is missing.
    if holes and max(violation.zxid, violation.seen_zxid) >= holes[0].before:
        return False
    if violation.zxid <= known.earlier.get(violation.chroot, (0, ""))[0]:
        return violation.clause in BY_CHANGE
    if known.begins == MIDDLE:
        born = known.born.get(violation.chroot)
        return born is not None and violation.zxid >= born
    if known.begins == SNAPSHOT and violation.clause not in BY_CHANGE:
        if known.calm_zxid is None or violation.zxid < known.calm_zxid:
            return False
        key = (violation.chroot, violation.topic, violation.partition)
        ended = known.in_flight.get(key, 0)
        return ended is not None and violation.zxid > ended
    return True


class Routing:
    """Stage 1 for one archive."""

    def __init__(
        self,
        begins: str,
        base: Base | None,
        rules: Rules[Any, Any],
        options: Options = DEFAULTS,
        share: Share = ALL,
    ) -> None:
        self.known = KnownHistory(begins)
        self.rules = rules
        self.router = rules.make_router(
            options.grace_ms,
            whole=begins == BEGINNING,
            min_insync_replicas=options.min_insync_replicas,
        )
        self._share = share
        if share.chroots is not None:
            self.router.chosen = frozenset(share.chroots)
        self._own()
        self._base = base
        self._calm_ms = 0 if base is None else base.news_ms + options.grace_ms
        self._keys: set[Key] | None = set() if options.at_rest else None
        self._zxid = self._time_ms = 0
        self._watchful = begins != BEGINNING or options.at_rest

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Take up what was put aside."""
        self.__dict__.update(kept)
        self._own()

    def _own(self) -> None:
        if self._share != ALL:
            self.router.owns = lru_cache(maxsize=None)(self._share.has)

    def begin(self) -> list[SeenWrite]:
        """Return the observations that the base consists of."""
        if self._base is None:
            return []
        self._zxid = self._base.zxid
        observations = self.router.load(self._base.nodes)
        for seen in observations:
            if self.rules.tells_flight(seen.event):
                self.known.in_flight[seen[:3]] = None
        self._note_keys(observations)
        return observations

    def feed(self, transaction: Transaction) -> list[SeenWrite]:
        """Return the observations of the next transaction."""
        observations = self.router.feed(transaction)
        if self._watchful:
            self._watch(transaction, observations)
        return observations

    def get_feed(self) -> Callable[[Transaction], list[SeenWrite]]:
        """Return what does what `feed` does, and no more than has to be done for this archive."""
        return self.feed if self._watchful else self.router.feed

    def make_decoder(self) -> Callable[[bytes], Transaction]:
        """Return what makes of a record what is to be fed: no more than this share needs."""
        if self._share == ALL:
            return decode
        return partial(decode_unless, elsewhere=self.router.elsewhere)

    def _watch(self, transaction: Transaction, observations: list[SeenWrite]) -> None:
        known = self.known
        self._zxid, self._time_ms = transaction.zxid, transaction.time_ms
        if known.calm_zxid is None and transaction.time_ms > self._calm_ms:
            known.calm_zxid = transaction.zxid
        if known.in_flight:
            for seen in observations:
                ended = self.rules.tells_flight(seen.event) is False
                if ended and known.in_flight.get(seen[:3], 0) is None:
                    known.in_flight[seen[:3]] = seen.zxid
        self._note_keys(observations)

    def _note_keys(self, observations: list[SeenWrite]) -> None:
        if self._keys is not None:
            self._keys.update(seen[:3] for seen in observations)

    def take_stock(self) -> KnownHistory:
        """Bring up to date what is known of the archive as a whole, and return it."""
        known = self.known
        known.clusters = self.router.shown()
        if self._share.chroots is not None:
            known.clusters &= frozenset(self._share.chroots)
        met = [self.router.get_cluster(chroot) for chroot in known.clusters]
        known.silent = frozenset(c.chroot for c in met if not c.speaks_requests())
        earlier = self.rules.earlier
        known.earlier = {c.chroot: (c.earlier, earlier) for c in met if c.earlier}
        known.unjudged = self.router.count_unjudged()
        known.passed_over = self.router.passed_over.copy()
        if known.begins == MIDDLE:
            clusters = (self.router.get_cluster(chroot) for chroot in known.clusters)
            known.born = {c.chroot: c.known_since for c in clusters if c.known_since is not None}
            known.unborn = len(known.born) < len(known.clusters)
        return known

    def finish(self) -> Iterator[Rest]:
        """Yield a rest for every partition and cluster met, where the keys were kept."""
        self.take_stock()
        for chroot, topic, number in sorted(self._keys or ()):
            cluster = self.router.get_cluster(chroot)
            around, untouched = cluster.get_surroundings(topic, number), cluster.find_untouched()
            yield chroot, topic, number, self._zxid, around, untouched, self._time_ms


@dataclass(slots=True)
class Judged:
    """What judging some partitions of one archive came to; sums of these are the same again."""

    tally: Tally = field(default_factory=Tally)
    partitions: Counter[str] = field(default_factory=Counter)
    """How many were met, by chroot."""
    follow_ups: int = 0
    facts: Sums | None = None
    """What is told beyond verdicts, where that was asked for."""
    settled: Findings = field(default_factory=Findings)
    """All that was broken, advice included."""
    unsettled: Findings = field(default_factory=Findings)
    """Findings that may be due to what is missing."""

    def settle(self, known: KnownHistory, holes: tuple[Hole, ...]) -> None:
        """Tell the findings of the tally apart by whether they are settled; it has none then."""
        found, self.tally.violations = self.tally.violations, []
        sure = [is_settled(violation, known, holes) for violation in found]
        self.settled = Findings.gather(v for v, yes in zip(found, sure, strict=True) if yes)
        self.unsettled = Findings.gather(v for v, yes in zip(found, sure, strict=True) if not yes)

    def add(self, other: "Judged") -> None:
        """Take in what judging other partitions came to."""
        self.settled.take_in(other.settled)
        self.unsettled.take_in(other.unsettled)
        if other.facts is not None:
            self.facts = self.facts or Sums()
            self.facts.take_in(other.facts)
        self.tally.add(other.tally)
        self.partitions.update(other.partitions)
        self.follow_ups += other.follow_ups


class Judging:
    """Stage 2 for some partitions of one archive."""

    def __init__(self, rules: Rules[Any, Any], facts: FleetFacts | None = None) -> None:
        self._tracking = Tracking(rules)
        self._facts = facts
        self._sums: Sums | None = None
        # Whoever does not ask for facts pays nothing for them.
        self.observe = self._tracking.observe if facts is None else self._observe_with_facts

    def _observe_with_facts(self, seen: SeenWrite) -> None:
        self._tracking.observe(seen)
        self._facts.observe(seen)  # type: ignore[union-attr]

    def end(self, times_ms: tuple[int, int] | None) -> None:
        """Note when the first and the last transaction of the archive was that is judged."""
        if self._facts is not None:
            self._sums = self._facts.finish(times_ms)

    @property
    def tally(self) -> Tally:
        """What judging has come to so far."""
        return self._tracking.tally

    @property
    def partitions(self) -> Collection[Key]:
        """The partitions that were met."""
        return self._tracking.partitions.keys()

    def begin(self, given: Sequence[SeenWrite]) -> None:
        """Take what was there at the beginning."""
        for seen in given:
            self.observe(seen)

    def begin_anew(self, given: Sequence[SeenWrite], time_ms: int) -> None:
        """Take what was there at the beginning of a later chapter, by that time."""
        for seen in given:
            self._tracking.observe(seen)
        if self._facts is not None:
            self._facts.begin_anew(given, time_ms)

    def rest(self, rest: Rest) -> None:
        """Judge what must be true at the end."""
        chroot, _, partition, *_ = rest
        if partition >= 0:
            place = Location(rest[3], *rest[:3], "")
            self._tracking.partitions[rest[:3]].rest(place, *rest[4:])
        elif chroot in self._tracking.clusters:
            self._tracking.clusters[chroot].rest(chroot, *rest[3:])

    def sum_up(self) -> Judged:
        """Return what judging came to."""
        tracking = self._tracking
        tally, follow_ups = tracking.sum_up(), tracking.count_follow_ups()
        met = Counter(chroot for chroot, _, _ in tracking.partitions)
        return Judged(tally, met, follow_ups, self._sums)


T = TypeVar("T")
Chapter = tuple[Path | None, KnownHistory, Judged]
"""The snapshot that it begins from, if from any, and what the passes came to in it."""


class Passes:
    """Both passes over one archive, or over the topics of one share of it, chapter by chapter."""

    def __init__(
        self,
        archive: Archive,
        base: Base | None,
        rules: Rules[Any, Any],
        options: Options = DEFAULTS,
        share: Share = ALL,
        tell: Callable[[MoveRecord], None] | None = None,
    ) -> None:
        """Begin; `tell`, where given, is told of every reassignment (`FleetFacts`)."""
        self._rules = rules
        self._given = options, share
        wanted = options.facts or tell is not None
        self.facts = FleetFacts(archive.name, rules, tell) if wanted else None
        self.beginnings = [Beginning(archive.snapshot, -1 if base is None else base.zxid)]
        self.coming: list[Restart] = []
        """Where judging begins anew, once it has come to there."""
        self._ended: list[Chapter] = []
        self._met: set[Key] = set()
        """The partitions of those chapters."""
        self.routing = Routing(archive.begins, base, rules, options, share)
        self.judging = Judging(rules, self.facts)
        self.judging.begin(self.routing.begin())

    @property
    def snapshot(self) -> Path | None:
        """What the chapter begins from that is being judged, or the one that is to come."""
        return self.coming[-1].snapshot if self.coming else self.beginnings[-1].snapshot

    def cut(self, batch: Sequence[T], find_zxid: Callable[[T], int]) -> Iterator[Sequence[T]]:
        """Yield what comes next, in order, chapter by chapter, and begin each."""
        while self.coming and batch and find_zxid(batch[-1]) > self.coming[0].base.zxid:
            at = bisect_right(batch, self.coming[0].base.zxid, key=find_zxid)
            if at:
                yield batch[:at]
            self._begin_anew()
            batch = batch[at:]
        if batch:
            yield batch

    def make_decoder(self) -> Callable[[bytes], Transaction]:
        """Return what makes of a record what is to be judged: no more than this share needs."""
        # Where judging is to begin anew nobody can say yet what will not matter then.
        return decode if self.coming else self.routing.make_decoder()

    def _begin_anew(self) -> None:
        snapshot, base = self.coming.pop(0)
        self._ended.append(self._end_chapter())
        self._met.update(self.judging.partitions)
        self.routing = Routing(SNAPSHOT, base, self._rules, *self._given)
        self.judging = Judging(self._rules, self.facts)
        self.judging.begin_anew(self.routing.begin(), base.time_ms)
        # What is wrong as it stands there was told when it was written, or was written in the hole.
        self.judging.tally.violations.clear()
        self.beginnings.append(Beginning(snapshot, base.zxid))

    def _end_chapter(self) -> Chapter:
        known = self.routing.take_stock()
        return self.beginnings[-1].snapshot, known, self.judging.sum_up()

    def list_chapters(self) -> list[Chapter]:
        """Return what the chapters have come to so far."""
        return [*self._ended, self._end_chapter()]

    def finish(self, times_ms: tuple[int, int] | None) -> None:
        """Judge what must be true at the end, which the history has come to."""
        for rest in self.routing.finish():
            self.judging.rest(rest)
        self.judging.end(times_ms)

    def list_exercised(self) -> set[str]:
        """Return the clauses that were put to the test."""
        tallies = [judged.tally for _, _, judged in self._ended]
        return {clause for each in (*tallies, self.judging.tally) for clause in each.exercised}

    def count_partitions(self) -> Counter[str]:
        """Return how many partitions were met, by chroot."""
        return Counter(chroot for chroot, _, _ in self._met.union(self.judging.partitions))


def list_settled(
    chapters: Sequence[Chapter], holes: Iterable[Hole]
) -> list[tuple[Violation, bool]]:
    """Return all that was found in the chapters, and of each whether it is settled."""
    earlier = KnownHistory.join([known for _, known, _ in chapters]).earlier
    return [
        (violation, is_settled(violation, replace(known, earlier=earlier), missing))
        for snapshot, known, judged in chapters
        for missing in (find_open(holes, snapshot),)
        for violation in judged.tally.violations
    ]


def settle_chapters(
    chapters: Sequence[Chapter], holes: Iterable[Hole], partitions: Counter[str]
) -> Judged:
    """Return what all chapters came to, with their findings told apart.

    `partitions` is how many were met in all of them, by chroot.
    """
    earlier = KnownHistory.join([known for _, known, _ in chapters]).earlier
    total = Judged()
    for snapshot, known, judged in chapters:
        judged.settle(replace(known, earlier=earlier), find_open(holes, snapshot))
        total.add(judged)
    total.partitions = partitions
    return total
