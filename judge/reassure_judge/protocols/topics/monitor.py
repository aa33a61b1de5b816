"""Topics and leaders: what is owed to whoever asks.

Nothing obliges a controller to delete topics, to hold preferred elections or to let brokers stop in
good order. One that declares that it does is held to it, by what the log shows and by what brokers
received.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from reassure_judge.cross_partition import NO_KEY
from reassure_judge.live_events import (
    ClusterView,
    Ended,
    Event,
    Looked,
    Received,
    ShutdownAsked,
    Wrote,
)
from reassure_judge.messages import Told
from reassure_judge.monitors import Driven, Monitor, Verdict, decide
from reassure_judge.protocols.topics.asked_for import (
    ANSWERED,
    DELETED,
    HANDED_OVER,
    LAST,
    NO_SETTINGS_LEFT,
    PREFERRED_HELD,
    UNKNOWN,
    WAITS_FOR_BROKERS,
    WAITS_FOR_MOVES,
    is_to_lead,
    is_to_leave,
)
from reassure_judge.protocols.topics.noting import Notes, SeenAsked, see_topic
from reassure_model.partition import Environment, Partition
from reassure_spec.clauses import clause
from reassure_spec.znodes import (
    BROKER_IDS,
    DELETED_TOPICS,
    PREFERRED_ELECTION,
    TOPIC_CONFIGS,
    TOPICS,
    BadZnode,
    PartitionKey,
    decode_preferred_election,
    parse_number,
)
from reassure_zookeeper.transactions import CloseSession, Create, Delete, SetData, Transaction

BEGINS_AGAIN: Final = "topic.delete.failover-begins-again"
RETRIED: Final = "topic.delete.failed-retried-later"


class _Standing(NamedTuple):
    """How a topic stood that somebody asks to be deleted, from a transaction on."""

    zxid: int
    epoch: int
    """Of the controller that acted."""
    kept: frozenset[tuple[PartitionKey, int]]
    """Partitions and brokers with a replica that is stopped by nothing but the deletion."""
    moving: PartitionKey | None
    """A partition that was being reassigned."""
    away: tuple[PartitionKey, int] | None
    """A replica whose broker was known to be down."""


@dataclass(slots=True)
class _Deletion:
    """A topic that somebody asks to be deleted."""

    since: int
    """The transaction that asked."""
    there: frozenset[int]
    """The brokers that were registered at some time since, in this term."""
    was_moving: bool = False
    """Whether a reassignment of the topic was in flight at some time since."""
    lacked: bool = False
    """Whether a broker with a replica was down at some time since."""
    known: bool = False
    """Whether there was such a topic."""
    was_gone: bool = False
    """Whether there was none at some time since: what is there then is another one."""
    died: set[int] = field(default_factory=set)
    """Brokers that died since."""
    returned: dict[int, int] = field(default_factory=dict)
    """By broker that died since and came back, the transaction in which it did."""
    unnoticed: frozenset[int] = frozenset()
    """The brokers that were registered at some time since then, or since the last rest."""
    past: list[_Standing] = field(default_factory=list)
    begun: set[int] = field(default_factory=set)
    """The epochs of the controllers that have begun, by what brokers were told."""
    removing: bool = False
    """Whether something of the topic was removed."""


class _Removal(NamedTuple):
    """A topic that has been removed, until it is clear what its replicas were told by then."""

    topic: str
    replicas: tuple[tuple[PartitionKey, int], ...]
    since: int
    until: int
    epoch: int
    returned: dict[int, int]


class TopicsMonitor(Monitor):
    """Follows deletions, preferred elections and shutdowns of one cluster."""

    def __init__(self, driven: Driven) -> None:
        super().__init__(driven)
        self._asked: dict[str, _Deletion] = {}
        self._settings: set[str] = set()
        self._removed: list[_Removal] = []
        self._spans: list[tuple[str, int, int | None]] = []
        """From when to when somebody asked for the deletion of a topic."""
        self._preferred: set[PartitionKey] | None = None
        """Those that were to be elected ever since somebody asked; None where nobody asks."""
        self._wanted = False
        """Whether any was to be elected when somebody asked."""
        self._handed: dict[int, set[PartitionKey]] = {}
        """By broker that stops, what it was to hand over or to leave ever since it asked."""
        self._burdened: set[int] = set()
        """Those of them that had anything to hand over or to leave when they asked."""
        self._live: frozenset[int] = frozenset()
        self._stopping: set[int] = set()
        """Brokers that ever asked to stop."""
        self._followed: list[tuple[str, _Deletion]] = []
        """The deletions that were asked for at some time since the last look."""
        self._orders: list[Told] = []
        """What brokers were told to stop since the last look."""
        self._notes: Final = Notes(driven)

    @property
    def deleting(self) -> frozenset[str]:
        """Topics that somebody asks to be deleted."""
        return frozenset(self._asked)

    def is_deleting(self, topic: str, zxid: int) -> bool:
        """Whether somebody asked for the deletion of a topic after this transaction."""
        return any(
            name == topic and since <= zxid and (until is None or zxid <= until)
            for name, since, until in self._spans
        )

    def take(self, event: Event) -> Iterator[Verdict]:
        """Yield what an event puts to the test, or how it breaks that."""
        match event:
            case Wrote() if event.transaction.error is None:
                yield from self._judge_write(event.transaction, event.before, event.after)
            case ShutdownAsked(broker, view):
                self._note_shutdown(broker, view)
            case Ended(broker):
                self._handed.pop(broker, None)
            case Received(told) if told.state is None:
                self._orders.append(told)
            case Looked(view):
                yield from self._judge_beginnings()
                yield from self._judge_orders()
                if event.rests:
                    yield from self._judge_rest(view)

    def _note_shutdown(self, broker: int, view: ClusterView) -> None:
        """Note that a broker tells the controller that it wants to stop."""
        self._handed[broker] = set()
        self._stopping.add(broker)
        there = (key for key in view.partitions if key[0] not in self._asked)
        self._notes.ask(there, view, self._see_around(view))
        kept = {key for key in view.partitions if self._holds(key, broker, view)}
        self._handed[broker] = kept
        if kept:
            self._burdened.add(broker)

    def _see_around(self, view: ClusterView, *, preferred: bool = False) -> Environment:
        """Return what is asked of whoever leads."""
        stopping = frozenset(self._handed)
        return Environment(view.live, view.known, stopping=stopping, preferred_asked=preferred)

    def _see(self, topic: str, deletion: _Deletion, view: ClusterView) -> SeenAsked:
        """Return how a topic stands whose deletion somebody asks for."""
        partitions = [partition for _, partition in _list_partitions(topic, view)]
        return see_topic(
            partitions,
            view,
            deletion.there,
            has_config=topic in self._settings,
            hears=self.driven.hears,
            is_finishing=deletion.known and not partitions,
        )

    # -- what the log shows

    def _judge_write(
        self, transaction: Transaction, before: ClusterView, after: ClusterView
    ) -> Iterator[Verdict]:
        if before.controller_epoch != after.controller_epoch:
            self._notes.succeed_led(before)
            for topic, deletion in self._asked.items():
                seen, epoch = self._see(topic, deletion, before), before.controller_epoch
                self._notes.succeed(topic, seen, epoch)
                deletion.there = deletion.unnoticed = after.live
        for op in transaction.ops:
            for path in (op.paths or ()) if isinstance(op, CloseSession) else ():
                yield from self._take(path, None, transaction.zxid, before, after)
            if isinstance(op, Create | SetData | Delete):
                data = None if isinstance(op, Delete) else op.data
                yield from self._take(op.path, data, transaction.zxid, before, after)
        self._look(transaction.zxid, after)

    def _take(
        self, path: str, data: bytes | None, zxid: int, before: ClusterView, after: ClusterView
    ) -> Iterator[Verdict]:
        below = path.removeprefix(self.driven.chroot)
        root, _, name = below.rpartition("/")
        topic = below.removeprefix(f"{TOPICS}/").partition("/")[0]
        if below == PREFERRED_ELECTION:
            yield from self._take_preferred(data, after)
        elif root == BROKER_IDS and data is None:
            yield from self._judge_handover(parse_number(name), before)
        elif root == TOPIC_CONFIGS:
            (self._settings.discard if data is None else self._settings.add)(name)
        elif root == DELETED_TOPICS and data is not None:
            self._asked[name] = _Deletion(zxid, after.live, unnoticed=after.live)
            self._followed.append((name, self._asked[name]))
            self._spans.append((name, zxid, None))
        elif root == DELETED_TOPICS:
            yield from self._judge_end(name, zxid, after)
        elif below.startswith(f"{TOPICS}/") and data is None and topic in self._asked:
            yield from self._judge_removal(topic, zxid, before, whole=root == TOPICS)

    def _look(self, zxid: int, after: ClusterView) -> None:
        """Note how things stand for whoever waits."""
        for topic, deletion in self._asked.items():
            partitions = _list_partitions(topic, after)
            replicas = {one for _, p in partitions for one in p.assigned or ()}
            deletion.known = deletion.known or bool(partitions)
            deletion.was_gone = deletion.was_gone or not partitions
            deletion.was_moving |= any(p.reassignment is not None for _, p in partitions)
            deletion.lacked |= not replicas <= after.live
            deletion.there |= after.live
            deletion.unnoticed |= after.live
            standing = _find_standing(zxid, after, partitions, deletion.unnoticed)
            if not deletion.past or deletion.past[-1][1:] != standing[1:]:
                deletion.past.append(standing)
            deletion.died |= self._live - after.live
            back = after.live - self._live
            deletion.returned |= dict.fromkeys(back & deletion.died, zxid)
            begun = after.controller_epoch in deletion.begun
            self._notes.look(topic, self._see(topic, deletion, after), begun=begun)
        self._live = after.live
        if self._preferred is not None:
            self._preferred = {key for key in self._preferred if self._is_to_lead(key, after)}
        for broker, keys in self._handed.items():
            keys &= {key for key in keys if self._holds(key, broker, after)}

    # -- deletions

    def _judge_beginnings(self) -> Iterator[Verdict]:
        """Judge when replicas were told to stop for a deletion, since the last look."""
        orders, self._orders = self._orders, []
        for told in orders:
            for topic, deletion in self._followed:
                if topic == told.topic:
                    yield from self._judge_beginning(told, deletion)
        self._followed = list(self._asked.items())

    @clause(WAITS_FOR_MOVES, WAITS_FOR_BROKERS)
    def _judge_beginning(self, told: Told, deletion: _Deletion) -> Iterator[Verdict]:
        """Judge the first order by which a controller begins a deletion."""
        key, zxid = (told.topic, told.partition), told.zxid
        if zxid is None or (told.broker in self._stopping and not told.delete):
            return
        then = next((each for each in reversed(deletion.past) if each.zxid <= zxid), None)
        if then is None or (key, told.broker) not in then.kept:
            return
        if told.controller_epoch != then.epoch or then.epoch in deletion.begun:
            return
        deletion.begun.add(then.epoch)
        if then.moving is not None:
            reason = f"partition {then.moving[1]} was being reassigned when replicas were stopped"
            yield decide(then.moving, WAITS_FOR_MOVES, reason)
        if then.away is not None:
            reason = f"broker {then.away[1]} was down when the other replicas were stopped"
            yield decide(then.away[0], WAITS_FOR_BROKERS, reason)

    def _judge_removal(
        self, topic: str, zxid: int, before: ClusterView, *, whole: bool
    ) -> Iterator[Verdict]:
        """Judge the removal of a topic, or of the first znode below it."""
        deletion = self._asked[topic]
        partitions = _list_partitions(topic, before)
        replicas = [(key, one) for key, p in partitions for one in p.assigned or ()]
        if not deletion.removing:
            yield from self._judge_waits(deletion, partitions, replicas)
        deletion.removing = not whole
        if whole:
            epoch, returned = before.controller_epoch, deletion.returned
            removal = _Removal(topic, tuple(replicas), deletion.since, zxid, epoch, returned)
            self._removed.append(removal)

    @clause(WAITS_FOR_MOVES, WAITS_FOR_BROKERS)
    def _judge_waits(
        self,
        deletion: _Deletion,
        partitions: Sequence[tuple[PartitionKey, Partition]],
        replicas: Sequence[tuple[PartitionKey, int]],
    ) -> Iterator[Verdict]:
        """Judge what had to be waited for before anything of a topic is removed."""
        moving = next((key for key, p in partitions if p.reassignment is not None), None)
        if moving is not None:
            reason = f"partition {moving[1]} was being reassigned when the topic was removed"
            yield decide(moving, WAITS_FOR_MOVES, reason)
        elif deletion.was_moving:
            yield Verdict(NO_KEY, WAITS_FOR_MOVES)
        away = next((each for each in replicas if each[1] not in deletion.there), None)
        if away is not None:
            reason = f"broker {away[1]} was down all the time; its log is there still"
            yield decide(away[0], WAITS_FOR_BROKERS, reason)
        elif deletion.lacked:
            yield Verdict(NO_KEY, WAITS_FOR_BROKERS)

    @clause(LAST, NO_SETTINGS_LEFT, UNKNOWN, DELETED)
    def _judge_end(self, topic: str, zxid: int, after: ClusterView) -> Iterator[Verdict]:
        deletion = self._asked.pop(topic)
        self._notes.end(topic, Environment(after.live, after.known))
        deletion.past.append(_Standing(zxid, 0, frozenset(), None, None))
        self._spans = [
            (name, since, zxid if name == topic and until is None else until)
            for name, since, until in self._spans
        ]
        partitions = _list_partitions(topic, after)
        if partitions and not deletion.was_gone:
            reason = "the topic is there still, and nobody asks for its deletion any more"
            yield decide(partitions[0][0], LAST, reason)
            return
        if topic in self._settings and not partitions:
            reason = "the topic is gone, its settings are there still"
            yield decide(NO_KEY, NO_SETTINGS_LEFT, reason)
            return
        kept = (LAST, NO_SETTINGS_LEFT, DELETED) if deletion.known else (UNKNOWN,)
        for clause_id in kept:
            yield Verdict(NO_KEY, clause_id)

    @clause(ANSWERED, BEGINS_AGAIN, RETRIED)
    def _judge_orders(self) -> Iterator[Verdict]:
        """Judge what brokers were told of the topics that were removed since the last look."""
        removed, self._removed = self._removed, []
        for removal in removed if self.driven.hears else ():
            yield from self._judge_answers(removal)

    def _judge_answers(self, removal: _Removal) -> Iterator[Verdict]:
        again = retried = False
        for key, broker in removal.replicas:
            orders = [
                told
                for told in self.driven.heard.list_told(key, broker)
                if (told.state is not None or told.delete)
                and (told.zxid is None or removal.since <= told.zxid < removal.until)
            ]
            mine = [told for told in orders if told.delete]
            earlier = [told for told in mine if told.controller_epoch < removal.epoch]
            now = [told for told in mine if told.controller_epoch == removal.epoch]
            if now and orders[-1] is not now[-1]:
                reason = f"broker {broker} was told to start its replica after it had deleted it"
                yield decide(key, ANSWERED, reason)
                return
            again = again or bool(earlier and now)
            retried = retried or broker in removal.returned
            if not now:
                clause_id = BEGINS_AGAIN if earlier else ANSWERED
                if broker in removal.returned and not earlier:
                    clause_id = RETRIED
                reason = f"broker {broker} was not told to delete its log by this controller"
                yield decide(key, clause_id, reason)
                return
        yield Verdict(NO_KEY, ANSWERED)
        if again:
            yield Verdict(NO_KEY, BEGINS_AGAIN)
        if retried:
            yield Verdict(NO_KEY, RETRIED)

    # -- preferred leaders

    def _is_to_lead(self, key: PartitionKey, view: ClusterView) -> bool:
        """Whether the preferred leader of a partition does not lead and could."""
        partition = view.partitions.get(key)
        if partition is None or key[0] in self._asked:
            return False
        return is_to_lead(partition, view.live)

    @clause(PREFERRED_HELD)
    def _take_preferred(self, data: bytes | None, after: ClusterView) -> Iterator[Verdict]:
        before, self._preferred = self._preferred, None
        if data is not None:
            try:
                asked = decode_preferred_election(PREFERRED_ELECTION, data)
            except BadZnode:
                asked = frozenset()
            self._preferred = {key for key in asked if self._is_to_lead(key, after)}
            self._wanted = bool(self._preferred)
            self._notes.ask(asked, after, self._see_around(after, preferred=True))
            return
        self._notes.answer(after)
        if before:
            key = min(before)
            reason = "its preferred leader was in sync all the time and was not elected"
            yield decide(key, PREFERRED_HELD, reason)
        elif self._wanted:
            yield Verdict(NO_KEY, PREFERRED_HELD)

    # -- brokers that stop

    def _holds(self, key: PartitionKey, broker: int, view: ClusterView) -> bool:
        """Whether a broker that stops still has to hand a partition over, or to leave it."""
        partition = view.partitions.get(key)
        if partition is None or key[0] in self._asked:
            return False
        return is_to_leave(partition, broker, view.live, frozenset(self._handed))

    @clause(HANDED_OVER)
    def _judge_handover(self, broker: int | None, before: ClusterView) -> Iterator[Verdict]:
        if broker is None or broker not in self._handed:
            return
        self._notes.answer(before)
        kept = {key for key in self._handed.pop(broker) if key in before.partitions}
        if kept:
            key = min(kept)
            state = before.partitions[key].state
            leads = state is not None and state.leader == broker
            what = "leads it still" if leads else "is in sync still"
            reason = f"broker {broker} stopped in good order and {what}"
            yield decide(key, HANDED_OVER, reason)
        elif broker in self._burdened:
            yield Verdict(NO_KEY, HANDED_OVER)
        self._burdened.discard(broker)

    # -- at rest

    @clause(DELETED, UNKNOWN, PREFERRED_HELD, WAITS_FOR_MOVES, WAITS_FOR_BROKERS)
    def _judge_rest(self, view: ClusterView) -> Iterator[Verdict]:
        """Yield what is owed, and what rightly waits, now that the cluster rests."""
        self._notes.idle(view, self._asked)
        for topic, deletion in sorted(self._asked.items()):
            deletion.unnoticed = view.live
            begun = view.controller_epoch in deletion.begun
            self._notes.rest(topic, self._see(topic, deletion, view), begun=begun)
            partitions = _list_partitions(topic, view)
            replicas = {one for _, p in partitions for one in p.assigned or ()}
            if not partitions:
                clause_id = DELETED if self._asked[topic].known else UNKNOWN
                what = f"somebody asks for the deletion of {topic}, which is not there"
                yield decide(NO_KEY, clause_id, f"the controller rests: {what}")
            elif any(p.reassignment is not None for _, p in partitions):
                yield Verdict(NO_KEY, WAITS_FOR_MOVES)
            elif not replicas <= view.live:
                yield Verdict(NO_KEY, WAITS_FOR_BROKERS)
            else:
                reason = "the controller rests, and nothing hinders the deletion of the topic"
                yield decide(partitions[0][0], DELETED, reason)
        if self._preferred is not None:
            reason = f"the controller rests, and {PREFERRED_ELECTION} is there still"
            yield decide(NO_KEY, PREFERRED_HELD, reason)


def _list_partitions(topic: str, view: ClusterView) -> list[tuple[PartitionKey, Partition]]:
    """Return the partitions of a topic that exist, in order."""
    found = ((key, p) for key, p in sorted(view.partitions.items()) if key[0] == topic)
    return [(key, p) for key, p in found if p.assigned is not None]


def _find_standing(
    zxid: int,
    view: ClusterView,
    partitions: Sequence[tuple[PartitionKey, Partition]],
    unnoticed: frozenset[int],
) -> _Standing:
    """Return how a topic stands; `unnoticed` are the brokers that nobody has to know are down.

    A reassignment stops replicas as well, but no leader that is of its target.
    """
    kept, away, moving = set(), None, None
    for key, partition in partitions:
        flight, state = partition.reassignment, partition.state
        if flight is not None:
            moving = moving or key
        for one in partition.assigned or ():
            leads = state is not None and state.leader == one
            if flight is None or (leads and one in flight.target):
                kept.add((key, one))
            if one not in unnoticed:
                away = away or (key, one)
    return _Standing(zxid, view.controller_epoch, frozenset(kept), moving, away)


MONITOR: Final = TopicsMonitor
