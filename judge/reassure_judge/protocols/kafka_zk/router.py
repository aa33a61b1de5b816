"""What the judge needs to read the logs of Apache Kafka itself, whatever its version.

Beside what every protocol has in ZooKeeper there are the lists of what is added and removed in a
topic's znode (from 2.4), the old znode of reassignments, and notifications. Controller and broker
of one process share one session, so it is the leader epoch that tells whose write one is: only a
controller raises it.
"""

from typing import Any, ClassVar, NamedTuple

from reassure_judge.authors import FENCED, Verdicts, judge_authority
from reassure_judge.doubt import GRACE_MS, ChangeTime
from reassure_judge.history import ClusterHistory, Forbidden, Handled, SeenWrite, StateWritten
from reassure_judge.protocols.kafka_zk.waiting import PartitionWaits
from reassure_judge.router import Router
from reassure_judge.transaction_reader import ZnodePath
from reassure_model.controllers import ACTING
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, from_znode
from reassure_model.protocols.kafka_zk import Assignment
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, AssignmentZnode, BadZnode, PartitionKey, ReplicaList


class ListsWritten(NamedTuple):
    """A topic's znode says this of a partition; None: it holds the partition not."""

    assignment: Assignment | None


class EntryWritten(NamedTuple):
    """The old znode names this target for the partition; None: it names the partition not."""

    target: ReplicaList | None


class Disk(NamedTuple):
    """A disk that died on a broker, as far as it may hold a partition."""

    since_ms: int
    shown: bool = False
    """Whether a controller has taken the partition offline there since."""


class Returning(NamedTuple):
    """A leader's write in a session that may be its own: it expired, and registers later."""

    session: int
    broker: int
    seen: SeenWrite


class KafkaHistory(ClusterHistory):
    """What is remembered of one cluster besides."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.lists: dict[str, dict[int, Assignment]] = {}
        """By topic and partition: the assignment with what is being added and removed."""
        self.entries: dict[PartitionKey, ReplicaList] = {}
        """What the old znode names."""
        self.states: dict[PartitionKey, LeaderAndIsr] = {}
        self.gone: dict[PartitionKey, frozenset[int]] = {}
        """By partition: replicas still in sync whose brokers went away."""
        self.disks: dict[PartitionKey, dict[int, Disk]] = {}
        """By partition and registered broker: the disk that may hold it, and died."""
        self.won_ms = 0
        """When the acting controller won its term."""
        self.is_marked = False
        """Whether states say if their leader recovers, as they do from 3.2 on."""
        self.cut: dict[int, int] = {}
        """By live broker: the first transaction by which a controller took it out of an in-sync set
        though it was to stay assigned."""
        self.joined: dict[PartitionKey, dict[int, int]] = {}
        """By partition and in-sync replica: the transaction by which its leader let it join."""
        self.odd: dict[PartitionKey, ChangeTime] = {}
        """Partitions that no controller leaves so at the end of an event, and the last transaction
        to do with each: it took them out of the old znode, or the in-sync set is too wide."""
        self.waiting: dict[PartitionKey, ChangeTime] = {}
        """The same of those that the old znode names."""
        self.born: dict[PartitionKey, int] = {}
        """By partition without a state: the transaction that made it."""
        self.lost: dict[int, int] = {}
        """By broker: the transaction that ended its registration, if it was not being shut down."""
        self.returning: list[Returning] = []
        """What was written in sessions that no broker had registered yet."""
        self.waits = PartitionWaits()
        self.acted: int | None = None
        """The first state that the acting controller wrote, by when it had read what there is."""

    def is_wide(self, key: PartitionKey) -> bool:
        """Whether somebody is in sync and not assigned."""
        state, lists = self.states.get(key), self.lists.get(key[0], {}).get(key[1])
        return state is not None and lists is not None and not set(state.isr) <= {*lists.replicas}

    def list_dead_disks(self, key: PartitionKey, time_ms: int, grace_ms: int) -> frozenset[int]:
        """Return the brokers that may have told the controller that they hold it no more.

        They tell what they lost when a disk dies, and each new controller that asks.
        """
        found = self.disks.get(key, {}).items()
        asked = time_ms - grace_ms
        return frozenset(b for b, d in found if d.shown or max(d.since_ms, self.won_ms) >= asked)


class KafkaRouter(Router[KafkaHistory]):
    """Reads the lists, the old znode and notifications as well."""

    history = KafkaHistory
    lets_in_again = True
    calls_elect: ClassVar[bool] = False
    """Whether clients may ask by a call for a leader that is not in sync (KIP-460)."""
    together: ClassVar[str] = "assigned.change.only-as-due"
    """The clause that a write breaks which changes several partitions at once."""
    completed: ClassVar[str | None] = "move.step.remove-path"
    """The clause by which entries are carried out; None where the lists tell of moves."""
    kinds = (
        r"(?P<entries>/admin/reassign_partitions)",
        r"/log_dir_event_notification/(?P<log_dir>[^/]+)",
        r"(?P<notifications>/isr_change_notification|/log_dir_event_notification)",
        r"/isr_change_notification/(?P<isr_change>[^/]+)",
    )

    def __init__(self, readings: Readings, grace_ms: int = GRACE_MS, **more: Any) -> None:
        super().__init__(readings, grace_ms, **more)
        self._handlers |= {
            "entries": self._on_entries,
            "log_dir": self._on_log_dir,
            "notifications": self._on_notification,
            "isr_change": self._on_notification,
        }
        self._written: dict[int, Assignment] = {}
        """What the topic's znode at hand says of its partitions."""

    def judge_authority(self, office: str, *, fenced: bool) -> Verdicts:
        """Judge who made a controller's write; before 2.1 there are no fences."""
        if fenced or self.readings.controller_fenced == "yes":
            return judge_authority(office, fenced=fenced)
        found = judge_authority(office, fenced=True)
        return found._replace(tested=tuple(c for c in found.tested if c != FENCED))

    def _decides(self, cluster: KafkaHistory) -> bool:
        if cluster.chroot in self._fenced:
            return True
        return cluster.get_author(self._now[2], fenced=False).office == ACTING

    def _is_orderly(self, cluster: KafkaHistory, broker: int) -> bool:
        """Whether no in-sync set with others alive was left to it when its shutdown began.

        A leader writes until its session closes, and learns of a shutdown late, its own included:
        it lets replicas join, or the stopping broker join again. None of that is the shutdown's.
        """
        others = cluster.live - {broker}
        begun = cluster.cut.get(broker, self._now[0])
        for key, state in cluster.states.items():
            joined = cluster.joined.get(key, {})
            isr = {replica for replica in state.isr if joined.get(replica, 0) <= begun}
            if broker in isr and not others.isdisjoint(isr) and key[0] not in cluster.deleting:
                return False
        return True

    def _note_members(
        self, cluster: KafkaHistory, key: PartitionKey, before: LeaderAndIsr, after: LeaderAndIsr
    ) -> None:
        """Note who joined by the leader's word, and whom a controller took out for no move."""
        zxid = self._now[0]
        joined = cluster.joined.get(key, {})
        left = {replica: since for replica, since in joined.items() if replica in after.isr}
        if after.leader_epoch == before.leader_epoch:
            left |= {replica: zxid for replica in after.isr if replica not in before.isr}
        else:
            lists = cluster.lists.get(key[0], {}).get(key[1], Assignment(()))
            moving = lists.is_reassigning
            target = lists.target if moving else cluster.entries.get(key, lists.replicas)
            for replica in cluster.live.intersection(before.isr).difference(after.isr):
                if replica in target:
                    cluster.cut.setdefault(replica, zxid)
        cluster.joined[key] = left

    @clause("shipped.assignment.lists-within")
    def _on_topic(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        topic = at.first
        before = cluster.lists.get(topic, {})
        self._written = {}
        try:
            written = {} if data is None else znodes.decode_topic_lists(at.path, data)
            self._written = {number: _get_lists(each) for number, each in written.items()}
        except BadZnode as error:
            # Where the replicas themselves are readable, the lists are what is wrong.
            try:
                znodes.decode_topic(at.path, data or b"")
            except BadZnode:
                pass
            else:
                broken = Forbidden("shipped.assignment.lists-within", error.reason)
                self._emit(cluster, topic, min(before, default=0), at.path, broken)
                self._written = before
        super()._on_topic(cluster, at, data)

    def _emit_assigned(
        self,
        cluster: KafkaHistory,
        path: str,
        topic: str,
        before: dict[int, ReplicaList],
        after: dict[int, ReplicaList],
    ) -> None:
        old, new = cluster.lists.get(topic, {}), {}
        for number, replicas in after.items():
            found = self._written.get(number) or old.get(number)
            new[number] = found or Assignment(replicas)
        cluster.lists[topic] = new
        self._judge_together(cluster, path, topic, old, new)
        for number in {**old, **new}:
            if old.get(number) != new.get(number):
                self._emit(cluster, topic, number, path, ListsWritten(new.get(number)))
                if number not in old:
                    cluster.born[topic, number] = self._now[0]
                    cluster.waits.ripen(cluster, ChangeTime(*self._now[:2]), self.grace_ms)
                self._note_odd(cluster, (topic, number))

    @clause("shipped.assignment.one-partition", "assigned.change.only-as-due")
    def _judge_together(
        self,
        cluster: KafkaHistory,
        path: str,
        topic: str,
        old: dict[int, Assignment],
        new: dict[int, Assignment],
    ) -> None:
        """Judge a write that changes more than one partition, or one beside those that it adds.

        Where one of them is moved, those that are put in another order only are wrong.
        """
        both = old.keys() & new.keys()
        changed = [number for number in sorted(both) if old[number] != new[number]]
        if len(changed) <= (new.keys() <= old.keys()) or self._given:
            return
        turned = [n for n in changed if _is_turned(old[n], new[n])]
        wrong = turned if 0 < len(turned) < len(changed) else changed[1:] or changed
        for number in wrong:
            others = [n for n in {**old, **new} if n != number and old.get(n) != new.get(n)]
            reason = f"{topic}-{number} is changed in one write with {sorted(others)}"
            self._forbid(cluster, topic, number, path, Rejected(self.together, reason))

    def _note_odd(self, cluster: KafkaHistory, key: PartitionKey, *, removed: bool = False) -> None:
        """Note whether a partition that something was written of is one to look at again."""
        cluster.odd.pop(key, None)
        cluster.waiting.pop(key, None)
        self._note_wait(cluster, key)
        if key in cluster.entries:
            cluster.waiting[key] = ChangeTime(*self._now[:2])
        elif removed or cluster.is_wide(key):
            cluster.odd[key] = ChangeTime(*self._now[:2])

    def _note_wait(self, cluster: KafkaHistory, key: PartitionKey) -> None:
        """Note whether a partition waits for its controller."""
        dead = frozenset(cluster.disks.get(key, ()))
        moment = ChangeTime(*self._now[:2])
        cluster.waits.note(cluster, key, moment, dead, self.completed)

    def _tell_handled(
        self, cluster: KafkaHistory, key: PartitionKey, state: LeaderAndIsr | None
    ) -> None:
        """Tell partitions that the controller is at an event that is younger than they are.

        It answers the birth of a partition by its first state, the loss of a broker by taking it
        out of in-sync sets, and a leader by a state in the same epoch. What it has made itself it
        has made an end of by then, and of what clients have asked for as well, except where it may
        have read of the event as it took office.
        """
        before, now = cluster.states.get(key), self._now[0]
        same = before and state and state.leader_epoch == before.leader_epoch
        if before is None:
            answered = cluster.born.pop(key, 0)
        elif same:
            # One that is not fenced is the leader's own, and its broker may be the controller's.
            answered = now if cluster.chroot in self._fenced else 0
        else:
            gone = {*before.isr} - {*(() if state is None else state.isr), *cluster.live}
            answered = max((cluster.lost.get(broker, 0) for broker in gone), default=0)
        began = cluster.acted is not None and answered > cluster.acted and not same
        cluster.acted = cluster.acted or now
        if answered > cluster.terms.won_zxid:
            self._tell(cluster, cluster.odd, answered)
        if began:
            self._tell(cluster, cluster.waiting, answered)
        moment = ChangeTime(*self._now[:2])
        sure = answered if began else 0
        for late, overdue in cluster.waits.find_overdue(cluster, moment, self.grace_ms, sure):
            if late != key:
                self._emit(cluster, *late, znodes.state_path(*late), overdue)

    def _tell(
        self, cluster: KafkaHistory, odd: dict[PartitionKey, ChangeTime], answered: int
    ) -> None:
        """Tell those of which nothing was written since, and not again before something is."""
        for key in [key for key, since in odd.items() if since.zxid < answered]:
            self._emit(cluster, *key, znodes.state_path(*key), Handled(odd.pop(key)))

    def _on_state(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        key = at.first, int(at.second)
        out = self._out if cluster.shown else cluster.kept_back
        if data is not None and not self._given and self._decides(cluster):
            self._tell_handled(cluster, key, _read_state(at.path, data))
        told = len(out)
        super()._on_state(cluster, at, data)
        before, state = cluster.states.pop(key, None), self._state
        cluster.is_marked |= self._recovering is not None
        if state is None:
            if data is None:
                cluster.gone.pop(key, None)
                cluster.disks.pop(key, None)
                cluster.joined.pop(key, None)
            return
        cluster.states[key] = state
        if cluster.returning:
            self._settle_returning(cluster)
        self._note_odd(cluster, key)
        if before is not None:
            if len(out) > told:
                self._note_returning(cluster, out[-1])
                out[-1] = self._add_hidden(cluster, key, before, out[-1])
            self._note_members(cluster, key, before, state)
            self._note_disks(cluster, key, before, state)
        gone = cluster.gone.get(key)
        if gone:
            # The last member stays in the set when it is taken offline.
            raised = before is not None and state.leader_epoch != before.leader_epoch
            left = frozenset() if raised and len(state.isr) == 1 else gone.intersection(state.isr)
            cluster.gone[key] = left

    def _find_writer(self, cluster: KafkaHistory, key: PartitionKey, state: LeaderAndIsr) -> int:
        """Return who wrote; a leader that lost its session goes on in the next one at once."""
        writer, leader = super()._find_writer(cluster, key, state), state.leader
        before = cluster.states.get(key)
        same = before and (before.leader, before.leader_epoch) == (leader, state.leader_epoch)
        gone = leader in cluster.registered - cluster.live and not self._decides(cluster)
        return leader if writer < 0 and same and gone else writer

    def _note_returning(self, cluster: KafkaHistory, seen: SeenWrite) -> None:
        """Note what is right only if the session turns out to be the leader's."""
        broker = seen.event.writer if isinstance(seen.event, StateWritten) else -1
        if broker >= 0 and not seen.author.brokers and not seen.author.fenced:
            cluster.returning.append(Returning(self._now[2], broker, seen))

    @clause("isr.change.by-leader")
    def _settle_returning(self, cluster: KafkaHistory, broker: int = -1) -> None:
        """Tell of what was written in the name of a broker by a session that is not its own.

        It is not where the `broker` registers in another one, or not within the grace.
        """
        left = []
        for each in cluster.returning:
            if each.broker == broker and each.session == self._now[2]:
                continue
            late = self._now[1] - each.seen.time_ms > self.grace_ms
            if each.broker != broker and not late:
                left.append(each)
                continue
            reason = f"session 0x{each.session:x} is not that of broker {each.broker}, which leads"
            event = Forbidden("isr.change.by-leader", reason)
            (self._out if cluster.shown else cluster.kept_back).append(
                each.seen._replace(event=event)
            )
        cluster.returning = left

    def _add_hidden(
        self, cluster: KafkaHistory, key: PartitionKey, before: LeaderAndIsr, seen: SeenWrite
    ) -> SeenWrite:
        """Return what was seen with what no znode shows, and may have made its author write it."""
        state = self._state
        disks = cluster.list_dead_disks(key, self._now[1], self.grace_ms)
        returned = cluster.gone.get(key, frozenset()) & cluster.live
        unclean = state is not None and state.leader not in (NO_LEADER, *before.isr)
        marked = self._recovering is True or not cluster.is_marked
        called = unclean and marked and self.calls_elect
        if not (disks or returned or called):
            return seen
        doubt = seen.doubt._replace(disks=disks, returned=returned, called=called)
        return seen._replace(doubt=doubt)

    def _note_disks(
        self, cluster: KafkaHistory, key: PartitionKey, before: LeaderAndIsr, after: LeaderAndIsr
    ) -> None:
        """Note whom a controller took offline for a disk, and whose disk lives: who joins."""
        disks = cluster.disks.get(key)
        if not disks:
            return
        dead = cluster.list_dead_disks(key, self._now[1], self.grace_ms)
        raised = after.leader_epoch != before.leader_epoch
        left = {*before.isr} - {*after.isr}
        left |= {before.leader} if after.leader == NO_LEADER else set()
        for broker, disk in tuple(disks.items()):
            if raised and broker in dead and broker in left:
                disks[broker] = disk._replace(shown=True)
            elif not raised and broker in {*after.isr} - {*before.isr}:
                del disks[broker]

    def _on_broker(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        broker = int(at.first)
        for disks in cluster.disks.values():
            disks.pop(broker, None)
        if data is not None and cluster.returning:
            self._settle_returning(cluster, broker)
        if data is None:
            self._note_gone(cluster, broker)
            cluster.lost.pop(broker, None)
            if broker not in cluster.cut:
                cluster.lost[broker] = self._now[0]
                cluster.waits.ripen(cluster, ChangeTime(*self._now[:2]), self.grace_ms)
        super()._on_broker(cluster, at, data)
        for key, state in cluster.states.items():
            if broker == state.leader or broker in state.isr:
                self._note_wait(cluster, key)
        if data is None:
            cluster.cut.pop(broker, None)

    def _note_gone(self, cluster: KafkaHistory, broker: int) -> None:
        for key, state in cluster.states.items():
            if broker in state.isr:
                cluster.gone[key] = cluster.gone.get(key, frozenset()) | {broker}

    def _on_epoch(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        """Forget who is back: a controller that takes office does not know that they were gone."""
        cluster.gone = {key: gone - cluster.live for key, gone in cluster.gone.items()}
        cluster.acted, cluster.won_ms = None, self._now[1]
        super()._on_epoch(cluster, at, data)

    def _on_entries(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        try:
            entries = () if data is None else znodes.decode_reassign_partitions(at.path, data)
        except BadZnode:
            entries = ()  # a client's mistake, which asks for nothing
        before, after = cluster.entries, {entry.key: entry.target for entry in entries}
        cluster.entries = after
        for topic, number in {**before, **after}:
            target = after.get((topic, number))
            if target != before.get((topic, number)):
                self._emit(cluster, topic, number, at.path, EntryWritten(target))
                removed = target is None and not self._get_author(cluster).is_client
                self._note_odd(cluster, (topic, number), removed=removed)

    def _on_log_dir(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        """Take every replica of a broker that lost a disk for one that may be offline.

        Which ones are, the broker tells the controller by a request.
        """
        brokers = cluster.brokers_of_session.get(self._now[2], ())
        for key, state in cluster.states.items() if data is not None else ():
            for broker in brokers:
                if broker in state.isr:
                    cluster.disks.setdefault(key, {})[broker] = Disk(self._now[1])

    def _on_notification(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        """Pass over what only says that something else was written."""


def _is_turned(old: Assignment, new: Assignment) -> bool:
    """Whether the same replicas are put in another order, and nothing else."""
    same = set(old.replicas) == set(new.replicas)
    return same and (old.adding, old.removing) == (new.adding, new.removing)


def _read_state(path: str, data: bytes) -> LeaderAndIsr | None:
    try:
        return from_znode(znodes.decode_state(path, data))
    except BadZnode:  # the router tells of it
        return None


def _get_lists(found: AssignmentZnode) -> Assignment:
    return Assignment(found.replicas, found.adding, found.removing)
