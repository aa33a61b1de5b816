"""What an audit tells beyond violations: moves, replication, elections, controllers, over time.

`FleetFacts` takes the observations of some partitions of one archive, those of one partition in
order, beside the judge and whatever the judge says of them. What it keeps while it goes is little
for each partition and each cluster; what remains in the end is bounded, and is the same sum however
the history was spread (`fleet.aggregates`). Of single partitions, moves, terms or elections the
first `LISTED` by a rank are told (`fleet.totals`); counts are always whole.

**What counts.** A partition is *offline* while it has no leader; *under-replicated* while fewer of
its assigned replicas are in sync than are assigned, which is told apart for the time in which a
reassignment is under way (*moving*). A leader is elected *unclean* if it was not in the in-sync set
before. A reassignment begins when it is recorded (by KIP-236), when the topic's znode says that
something is added or removed (Kafka from 2.4), or when the old znode names the partition (before);
it ends when that is gone. What began before the history has no beginning here: it counts from the
first transaction on for what lasts, and has no duration.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from reassure_judge.history import ControllerGone, ElectionSeen, SeenWrite, StateWritten
from reassure_judge.rules import Rules
from reassure_pipeline.fleet.totals import (
    COMPLETED,
    GIVEN_UP,
    KINDS,
    MOVING,
    OFFLINE,
    TAKEN_BACK,
    UNDER,
    UNDER_WAY,
    Behind,
    Churn,
    ControllerTerm,
    Gap,
    MoveRecord,
    Present,
    ReplicationLag,
    Sums,
    Unclean,
)
from reassure_spec.znodes import NO_LEADER, ReplicaList

_LISTED_STEPS: Final = 100
"""How many leaders, and drops, are told of one reassignment."""


@dataclass(slots=True)
class _Partition:
    """What is kept of a partition while the history is read."""

    assigned: ReplicaList | None = None
    leader: int = NO_LEADER
    isr: ReplicaList | None = None
    flight: MoveRecord | None = None
    """The reassignment under way, as far as it has come."""
    kind: str = ""
    since_ms: int | None = None
    """Since when it is of that kind, None for since the beginning."""
    lag: Counter[str] = field(default_factory=Counter)
    joined: int = 0
    left: int = 0
    epoch: int = 0
    """The controller epoch when something was written of it last."""


@dataclass(slots=True)
class _Cluster:
    """What is kept of a cluster while the history is read."""

    term: ControllerTerm | None = None
    lost: tuple[int, int, int] | None = None
    """zxid, time and broker of the end of the last term, where nobody was elected since."""


class FleetFacts:
    """Takes the facts of some partitions of one archive, as its observations come.

    `tell`, where given, is told of every reassignment, at its end or at the end of the history.
    """

    def __init__(
        self, archive: str, rules: Rules[Any, Any], tell: Callable[[MoveRecord], None] | None = None
    ) -> None:
        self._archive = archive
        self._assigns = rules.assigns
        self._find_assigned = rules.find_assigned
        self._find_target = rules.find_target
        self._find_route = rules.find_route
        self._tell = tell
        self._sums = Sums()
        self._partitions: dict[tuple[str, str, int], _Partition] = {}
        self._clusters: dict[str, _Cluster] = {}
        self._from_start: list[tuple[_Partition, str, int]] = []
        """Partitions that were of a kind since the beginning, and until when."""
        self._is_anew = False
        """Whether what is taken is what stands in a snapshot behind a hole."""
        self._handlers: dict[type, Callable[[SeenWrite], None]] = {
            StateWritten: self._on_state,
            rules.assigns: self._on_assigned,
            ElectionSeen: self._on_election,
            ControllerGone: self._on_gone,
        }
        self._flights = rules.flights
        for event in rules.flights:
            self._handlers[event] = self._on_flight

    def observe(self, seen: SeenWrite) -> None:
        """Take one observation."""
        handler = self._handlers.get(type(seen.event))
        if handler is not None:
            handler(seen)

    def begin_anew(self, given: Iterable[SeenWrite], time_ms: int) -> None:
        """Take what stands in a snapshot behind a hole, by this time.

        What lasted before and still does counts on. What ended meanwhile, or began, did so at a
        time that nobody knows, and how often is not counted.
        """
        self._is_anew = True
        for one in self._partitions.values():
            one.assigned, one.isr, one.leader = None, None, NO_LEADER
        moving, led = set[tuple[str, str, int]](), set[str]()
        for seen in given:
            if type(seen.event) is ElectionSeen:
                if seen.event.broker is not None:
                    led.add(seen.chroot)
            elif type(seen.event) in self._flights and self._find_target(seen.event) is not None:
                moving.add(seen[:3])
            self.observe(seen._replace(time_ms=time_ms))
        for key, one in self._partitions.items():
            if one.flight is not None and key not in moving:
                self._end(one, one.flight, (None, None), time_ms)
            self._weigh(one, time_ms)
        for chroot, cluster in self._clusters.items():
            if chroot not in led:
                self._end_term(cluster, time_ms, is_over=True)
        self._is_anew = False

    # Partitions -----------------------------------------------------------------------------------

    def _get(self, seen: SeenWrite) -> _Partition:
        key = seen.chroot, seen.topic, seen.partition
        found = self._partitions.get(key)
        if found is None:
            found = self._partitions[key] = _Partition()
        found.epoch = seen.around.controller_epoch
        return found

    def _on_state(self, seen: SeenWrite) -> None:
        one, state = self._get(seen), seen.event.state  # type: ignore[attr-defined]
        if state is None:
            one.isr, one.leader = None, NO_LEADER
        else:
            if one.isr is not None and not seen.given:
                self._compare(seen, one, state.leader, state.isr)
            one.isr, one.leader = state.isr, state.leader
            flight = one.flight
            if flight is not None and state.leader not in (NO_LEADER, *flight.leaders[-1:]):
                one.flight = flight._replace(leaders=_list_with(flight.leaders, state.leader))
        self._weigh(one, self._find_since(seen))

    def _compare(self, seen: SeenWrite, one: _Partition, leader: int, isr: ReplicaList) -> None:
        """Count what a state changes of the one before."""
        before, sums, time_ms = one.isr or (), self._sums, seen.time_ms
        if leader != one.leader:
            kind = "lost" if leader == NO_LEADER else "clean" if leader in before else "unclean"
            sums.elections[kind] += 1
            sums.bins.add(f"elections.{kind}", time_ms)
            if kind == "unclean":
                place = self._archive, seen.chroot, seen.topic, seen.partition
                sums.unclean.add(Unclean(*place, seen.zxid, time_ms, leader, before))
        if isr == before:
            return
        joined, left = {*isr}.difference(before), {*before}.difference(isr)
        if not joined and not left:
            return
        one.joined += len(joined)
        one.left += len(left)
        sums.churn["writes"] += 1
        for name, brokers, times in (("joined", joined, sums.joined), ("left", left, sums.left)):
            if brokers:
                sums.churn[name] += len(brokers)
                sums.bins.add(f"in_sync.{name}", time_ms, len(brokers))
                times.update((self._archive, seen.chroot, broker) for broker in brokers)

    def _on_assigned(self, seen: SeenWrite) -> None:
        one = self._get(seen)
        self._assign(one, self._find_assigned(seen.event))
        self._weigh(one, self._find_since(seen))

    def _assign(self, one: _Partition, assigned: ReplicaList | None) -> None:
        flight, before = one.flight, one.assigned or ()
        one.assigned = assigned
        if flight is None or assigned is None:
            return
        gone = tuple(replica for replica in before if replica not in assigned)
        if gone and {*assigned} != {*flight.last_target}:
            dropped = _list_with(flight.dropped, gone)
            one.flight = flight._replace(drops=flight.drops + 1, dropped=dropped)
            self._sums.moves["dropped"] += len(gone)

    def _on_flight(self, seen: SeenWrite) -> None:
        one, target, now = self._get(seen), self._find_target(seen.event), seen.time_ms
        flight = one.flight
        if target is not None and flight is None:
            one.flight = self._begin_move(seen, one, target)
            if not seen.given:
                self._sums.moves["started"] += 1
                self._sums.bins.add("reassignments.started", now)
        elif target is not None and flight is not None and target != flight.last_target:
            one.flight = flight._replace(last_target=target, changes=flight.changes + 1)
        if type(seen.event) is self._assigns:
            self._assign(one, self._find_assigned(seen.event))
        if target is None and one.flight is not None:
            end = (None, None) if self._is_anew else (seen.zxid, now)
            self._end(one, one.flight, end, now)
        self._weigh(one, self._find_since(seen))

    def _begin_move(self, seen: SeenWrite, one: _Partition, target: ReplicaList) -> MoveRecord:
        return MoveRecord(
            *(self._archive, *seen[:3]),
            route=self._find_route(seen.event),
            first_zxid=None if seen.given else seen.zxid,
            last_zxid=None,
            started_ms=None if seen.given else seen.time_ms,
            ended_ms=None,
            outcome=UNDER_WAY,
            changes=0,
            before=one.assigned or (),
            first_target=target,
            last_target=target,
            after=(),
            drops=0,
            dropped=(),
            leaders=() if one.leader == NO_LEADER else (one.leader,),
            first_epoch=one.epoch,
            last_epoch=one.epoch,
        )

    def _end(
        self, one: _Partition, flight: MoveRecord, end: tuple[int | None, int | None], now_ms: int
    ) -> None:
        after = {*(one.assigned or ())}
        if after == {*flight.last_target}:
            outcome = COMPLETED
        else:
            outcome = TAKEN_BACK if after == {*flight.before} else GIVEN_UP
        one.flight = None
        move = _stand(one, flight)._replace(last_zxid=end[0], ended_ms=end[1], outcome=outcome)
        self._sums.bins.add("reassignments.ended", now_ms)
        if move.duration_ms is not None:
            self._sums.durations.add(move.duration_ms)
            self._sums.longest.add(move)
        self._count_move(move)

    def _count_move(self, move: MoveRecord) -> None:
        moves = self._sums.moves
        for name, value in (
            (move.outcome, 1),
            ("changes", move.changes),
            ("moved", move.moved),
            ("drops", move.drops),
        ):
            moves[name] += value
        if self._tell is not None:
            self._tell(move)

    def _find_since(self, seen: SeenWrite) -> int | None:
        """Return since when it is as is seen, None for since the beginning."""
        return None if seen.given and not self._is_anew else seen.time_ms

    def _weigh(self, one: _Partition, since_ms: int | None) -> None:
        """Note of what kind a partition is from now on, or since the beginning (None)."""
        kind = _find_kind(one)
        if kind == one.kind:
            return
        if since_ms is not None:
            self._settle(one, since_ms)
        one.kind, one.since_ms = kind, since_ms

    def _settle(self, one: _Partition, until_ms: int) -> None:
        if not one.kind:
            return
        if one.since_ms is None:
            self._from_start.append((one, one.kind, until_ms))
        else:
            self._lasted(one, one.kind, one.since_ms, until_ms)

    def _lasted(self, one: _Partition, kind: str, since_ms: int, until_ms: int) -> None:
        lasted = max(0, until_ms - since_ms)
        if lasted:
            one.lag[kind] += lasted
            self._sums.lag[kind] += lasted
            self._sums.bins.spread(f"replication.{kind}", since_ms, until_ms)

    # Clusters -------------------------------------------------------------------------------------

    def _on_election(self, seen: SeenWrite) -> None:
        cluster = self._clusters.setdefault(seen.chroot, _Cluster())
        event: ElectionSeen = seen.event  # type: ignore[assignment]
        broker, epoch = event.broker, event.epoch
        term = cluster.term
        if self._is_anew and term is not None and (term.broker, term.epoch) == (broker, epoch):
            return
        if broker is None:
            # Before Kafka 2.1 the epoch is raised by itself, after the election.
            if cluster.term is not None:
                cluster.term = cluster.term._replace(epoch=epoch)
            return
        self._end_term(cluster, seen.time_ms, is_over=True)
        if cluster.lost is not None and not seen.given:
            self._lacked(seen.chroot, cluster.lost, seen.time_ms, broker)
        cluster.lost = None
        zxid, since = (0, None) if seen.given else (seen.zxid, seen.time_ms)
        place = self._archive, seen.chroot
        cluster.term = ControllerTerm(*place, broker, epoch, zxid, since, 0, is_over=False)
        if not seen.given:
            self._sums.bins.add("controllers.elected", seen.time_ms)

    def _on_gone(self, seen: SeenWrite) -> None:
        cluster = self._clusters.setdefault(seen.chroot, _Cluster())
        if cluster.term is not None:
            cluster.lost = seen.zxid, seen.time_ms, cluster.term.broker
        self._end_term(cluster, seen.time_ms, is_over=True)

    def _end_term(self, cluster: _Cluster, time_ms: int, *, is_over: bool) -> None:
        if cluster.term is not None:
            self._sums.terms.add(cluster.term._replace(to_ms=time_ms, is_over=is_over))
        cluster.term = None

    def _lacked(
        self, chroot: str, lost: tuple[int, int, int], until_ms: int, after: int | None
    ) -> None:
        zxid, since_ms, before = lost
        if until_ms <= since_ms:
            return
        self._sums.without_ms += until_ms - since_ms
        self._sums.bins.spread("controllers.without", since_ms, until_ms)
        gap = Gap(self._archive, chroot, zxid, since_ms, until_ms, before, after)
        self._sums.gaps.add(gap)

    # The end --------------------------------------------------------------------------------------

    def look(self, now_ms: int) -> Present:
        """Return how things stand at a time; more can be taken after that."""
        present = Present()
        for key, one in self._partitions.items():
            if one.flight is not None:
                present.under_way.add(_stand(one, one.flight))
            if one.kind:
                present.kinds[one.kind] += 1
                sets = one.assigned or (), one.isr or ()
                place = self._archive, *key
                present.behind.add(Behind(*place, one.kind, one.since_ms, one.leader, *sets))
        for cluster in self._clusters.values():
            if cluster.term is not None:
                present.in_office.add(cluster.term._replace(to_ms=now_ms))
        return present

    def finish(self, times_ms: tuple[int, int] | None) -> Sums:
        """Return what it all comes to; nothing can be taken after that.

        `times_ms` are those of the first and the last transaction of the archive that is judged.
        """
        self._sums.present = self.look(0 if times_ms is None else times_ms[1])
        if times_ms is not None:
            first_ms, last_ms = times_ms
            for time_ms in times_ms:
                self._sums.bins.reach(time_ms)
            for one in self._partitions.values():
                self._settle(one, last_ms)
            for one, kind, until_ms in self._from_start:
                self._lasted(one, kind, first_ms, until_ms)
            for chroot, cluster in self._clusters.items():
                self._end_term(cluster, last_ms, is_over=False)
                if cluster.lost is not None:
                    self._lacked(chroot, cluster.lost, last_ms, None)
        self._sum_up(sorted(self._partitions.items()))
        self._partitions.clear()
        return self._sums

    def _sum_up(self, partitions: Iterable[tuple[tuple[str, str, int], _Partition]]) -> None:
        topics: dict[tuple[str, str], Counter[str]] = {}
        for key, one in partitions:
            if one.flight is not None:
                self._count_move(_stand(one, one.flight))
            if one.joined or one.left:
                self._sums.restless.add(Churn(self._archive, *key, one.joined, one.left))
            if one.lag:
                self._sums.partitions.add(self._make_lag(key, one.lag))
                topics.setdefault(key[:2], Counter()).update(one.lag)
        for (chroot, topic), lag in topics.items():
            self._sums.topics.add(self._make_lag((chroot, topic, -1), lag))

    def _make_lag(self, key: tuple[str, str, int], lag: Counter[str]) -> ReplicationLag:
        return ReplicationLag(self._archive, *key, *(lag[kind] for kind in KINDS))


T = TypeVar("T")


def _list_with(listed: tuple[T, ...], more: T) -> tuple[T, ...]:
    """Return the first steps of a reassignment, with one more."""
    return listed if len(listed) >= _LISTED_STEPS else (*listed, more)


def _stand(one: _Partition, flight: MoveRecord) -> MoveRecord:
    """Return a reassignment with what is assigned now."""
    return flight._replace(after=one.assigned or (), last_epoch=one.epoch)


def _find_kind(one: _Partition) -> str:
    """Return of what kind a partition is now, "" for one that is as it should be, or unknown."""
    if one.isr is None or one.assigned is None:
        return ""
    if one.leader == NO_LEADER:
        return OFFLINE
    if {*one.assigned}.issubset(one.isr):
        return ""
    return UNDER if one.flight is None else MOVING
