"""What is counted of the clusters of an archive, and how counts are added up."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from reassure_pipeline.fleet.aggregates import Durations, First, TimeBins
from reassure_spec.znodes import ReplicaList

LISTED: Final = 20
"""How many single things of a kind are told of."""
LISTED_TERMS: Final = 100

UNDER: Final = "under"
MOVING: Final = "moving"
OFFLINE: Final = "offline"
KINDS: Final = (UNDER, MOVING, OFFLINE)
_URGENT: Final = {OFFLINE: 0, UNDER: 1, MOVING: 2}

COMPLETED: Final = "completed"
TAKEN_BACK: Final = "taken back"
GIVEN_UP: Final = "given up"
UNDER_WAY: Final = "under way"


class MoveRecord(NamedTuple):
    """One reassignment of one partition; `tables.columns` says what the fields are."""

    archive: str
    chroot: str
    topic: str
    partition: int
    route: str
    first_zxid: int | None
    last_zxid: int | None
    started_ms: int | None
    ended_ms: int | None
    outcome: str
    changes: int
    before: ReplicaList
    first_target: ReplicaList
    last_target: ReplicaList
    after: ReplicaList
    drops: int
    dropped: tuple[ReplicaList, ...]
    leaders: ReplicaList
    first_epoch: int
    last_epoch: int

    @property
    def duration_ms(self) -> int | None:
        """How long it took, None where its beginning or its end was not seen."""
        if self.started_ms is None or self.ended_ms is None:
            return None
        return max(0, self.ended_ms - self.started_ms)

    @property
    def moved(self) -> int:
        """How many replicas it put where there was none of the partition."""
        return len({*self.after} - {*self.before})

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print, and that a row of the table is."""
        told = self._asdict()
        for name in ("before", "first_target", "last_target", "after", "leaders"):
            told[name] = list(told[name])
        told["dropped"] = [list(each) for each in self.dropped]
        return {**told, "duration_ms": self.duration_ms, "moved": self.moved}


class ReplicationLag(NamedTuple):
    """How long a topic, or a partition, was not replicated as it should be, in milliseconds."""

    archive: str
    chroot: str
    topic: str
    partition: int
    """-1 for all of the topic together."""
    under_ms: int
    moving_ms: int
    offline_ms: int


class Behind(NamedTuple):
    """A partition that is not replicated as it should be, as the history stands."""

    archive: str
    chroot: str
    topic: str
    partition: int
    kind: str
    """One of `KINDS`."""
    since_ms: int | None
    """None where it was so before the history."""
    leader: int
    assigned: ReplicaList
    isr: ReplicaList

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        told = self._asdict()
        return {**told, "assigned": list(self.assigned), "isr": list(self.isr)}


class Churn(NamedTuple):
    """How often the in-sync set of a partition changed, or those that a broker is in."""

    archive: str
    chroot: str
    topic: str
    """"" for a broker."""
    number: int
    """The partition, or the broker."""
    joined: int
    left: int


class ControllerTerm(NamedTuple):
    """A controller's time in office."""

    archive: str
    chroot: str
    broker: int
    epoch: int
    zxid: int
    """Of the election; 0 where it was before the history."""
    from_ms: int | None
    to_ms: int
    is_over: bool


class Gap(NamedTuple):
    """A time in which a cluster had no controller."""

    archive: str
    chroot: str
    zxid: int
    """The transaction that took the one before away."""
    from_ms: int
    to_ms: int
    before: int
    """The broker whose term had ended."""
    after: int | None
    """The broker that was elected, None where nobody was."""


class Unclean(NamedTuple):
    """A leader that was elected and had not been in sync."""

    archive: str
    chroot: str
    topic: str
    partition: int
    zxid: int
    time_ms: int
    leader: int
    isr: ReplicaList
    """The in-sync set before."""


# By what the single things are ranked of which a report tells; ties go by place.


def _rank_longest(move: MoveRecord) -> Any:
    """Put the reassignments first that took longest."""
    return -(move.duration_ms or 0), *move[:4], move.first_zxid or 0


def _rank_oldest(move: MoveRecord) -> Any:
    """Put those under way first that began earliest, and before all those seen to begin."""
    return move.started_ms or 0, *move[:4]


def _rank_most_urgent(behind: Behind) -> Any:
    """Put first what is offline, then what is behind, then moves; of each the oldest."""
    return _URGENT[behind.kind], behind.since_ms or 0, *behind[:4]


def _rank_by_place(term: ControllerTerm) -> Any:
    """Put the terms of one cluster beside each other."""
    return term[:2]


def _rank_most_lag(lag: ReplicationLag) -> Any:
    """Put first what was under-replicated or offline for longest, moves left out."""
    return -(lag.under_ms + lag.offline_ms), -lag.moving_ms, *lag[:4]


def _rank_most_churn(churn: Churn) -> Any:
    """Put first what changed most often."""
    return -(churn.joined + churn.left), *churn[:4]


def _rank_latest(term: ControllerTerm) -> Any:
    """Put the terms first that began last."""
    return -(term.from_ms or 0), *term[:2], -term.zxid


def _rank_widest(gap: Gap) -> Any:
    """Put the longest gaps first."""
    return gap.from_ms - gap.to_ms, *gap[:3]


def _rank_earliest(unclean: Unclean) -> Any:
    """Put the earliest elections first."""
    return unclean.time_ms, *unclean[:5]


@dataclass(slots=True)
class Present:
    """How things stand where the history ends, of some partitions of an archive, or of all."""

    under_way: First[MoveRecord] = field(default_factory=lambda: First(LISTED, _rank_oldest))
    kinds: Counter[str] = field(default_factory=Counter)
    """How many partitions are of which kind."""
    behind: First[Behind] = field(default_factory=lambda: First(LISTED, _rank_most_urgent))
    in_office: First[ControllerTerm] = field(
        default_factory=lambda: First(LISTED_TERMS, _rank_by_place)
    )
    """The controllers' terms that are not over."""

    def take_in(self, other: "Present") -> None:
        """Add what stands elsewhere."""
        _take_in_fields(self, other)

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print; they tell of reassignments elsewhere."""
        return {
            **{kind: self.kinds[kind] for kind in KINDS},
            "partitions": [behind.as_dict() for behind in self.behind],
            "in_office": [term._asdict() for term in self.in_office],
        }


@dataclass(slots=True)
class Sums:
    """What facts come to: of some partitions of an archive, or of all of several archives."""

    bins: TimeBins = field(default_factory=TimeBins)
    durations: Durations = field(default_factory=Durations)
    longest: First[MoveRecord] = field(default_factory=lambda: First(LISTED, _rank_longest))
    present: Present = field(default_factory=Present)
    moves: Counter[str] = field(default_factory=Counter)
    """Of reassignments: how many began, ended in which way, and what they did."""
    lag: Counter[str] = field(default_factory=Counter)
    """By kind, in milliseconds of all partitions together."""
    topics: First[ReplicationLag] = field(default_factory=lambda: First(LISTED, _rank_most_lag))
    partitions: First[ReplicationLag] = field(default_factory=lambda: First(LISTED, _rank_most_lag))
    restless: First[Churn] = field(default_factory=lambda: First(LISTED, _rank_most_churn))
    joined: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """By archive, chroot and broker: how often it joined an in-sync set."""
    left: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    churn: Counter[str] = field(default_factory=Counter)
    terms: First[ControllerTerm] = field(default_factory=lambda: First(LISTED_TERMS, _rank_latest))
    gaps: First[Gap] = field(default_factory=lambda: First(LISTED, _rank_widest))
    without_ms: int = 0
    elections: Counter[str] = field(default_factory=Counter)
    unclean: First[Unclean] = field(default_factory=lambda: First(LISTED, _rank_earliest))

    def take_in(self, other: "Sums") -> None:
        """Add what others come to, who have other partitions or other archives."""
        self.without_ms += other.without_ms
        _take_in_fields(self, other)

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        brokers: First[Churn] = First(LISTED, _rank_most_churn)
        for key in self.joined.keys() | self.left.keys():
            archive, chroot, broker = key
            brokers.add(Churn(archive, chroot, "", broker, self.joined[key], self.left[key]))
        span = self.bins.range_ms
        return {
            "from_ms": None if span is None else span[0],
            "to_ms": None if span is None else span[1],
            "bin_ms": self.bins.width_ms,
            "series": self.bins.as_dict(),
            "at_end": self.present.as_dict(),
            "reassignments": {
                **_fill(
                    self.moves,
                    *("started", COMPLETED, TAKEN_BACK, GIVEN_UP, UNDER_WAY),
                    *("changes", "moved", "drops", "dropped"),
                ),
                "durations": self.durations.as_dict(),
                "longest": [move.as_dict() for move in self.longest],
                "oldest_under_way": [move.as_dict() for move in self.present.under_way],
            },
            "replication": {
                **{f"{kind}_ms": self.lag[kind] for kind in KINDS},
                "topics_behind": self.topics.count,
                "topics": [lag._asdict() for lag in self.topics],
                "partitions_behind": self.partitions.count,
                "partitions": [lag._asdict() for lag in self.partitions],
            },
            "in_sync": {
                **_fill(self.churn, "writes", "joined", "left"),
                "partitions_changed": self.restless.count,
                "partitions": [_rename(churn, "partition") for churn in self.restless],
                "brokers_changed": brokers.count,
                "brokers": [_rename(churn, "broker") for churn in brokers],
            },
            "controllers": {
                "terms": self.terms.count,
                "without_ms": self.without_ms,
                "gaps": self.gaps.count,
                "latest": [term._asdict() for term in self.terms],
                "longest_gaps": [gap._asdict() for gap in self.gaps],
            },
            "elections": {
                **_fill(self.elections, "clean", "unclean", "lost"),
                "first_unclean": [
                    {**unclean._asdict(), "isr": list(unclean.isr)} for unclean in self.unclean
                ],
            },
        }


def _take_in_fields(mine: Present | Sums, other: Present | Sums) -> None:
    """Add, field by field, what is counted or listed elsewhere."""
    for each in fields(mine):
        here, there = getattr(mine, each.name), getattr(other, each.name)
        if isinstance(here, Counter):
            here.update(there)
        elif not isinstance(here, int):
            here.take_in(there)


def _fill(counts: Counter[str], *names: str) -> dict[str, int]:
    """Return all of these counts by name, those that nothing was counted for as well."""
    return {name.replace(" ", "_"): counts[name] for name in names}


def _rename(churn: Churn, name: str) -> dict[str, Any]:
    """Return the record of a partition, or of a broker."""
    place = {} if name == "broker" else {"topic": churn.topic}
    counts = {"joined": churn.joined, "left": churn.left}
    return {"archive": churn.archive, "chroot": churn.chroot, **place, name: churn.number, **counts}
