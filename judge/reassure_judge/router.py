"""What a write to each kind of znode means that every protocol has.

The `Router` remembers who is registered, who is controller, which settings there are. Everything
else it hands on as observations of partitions, or of the cluster.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from reassure_judge.doubt import GRACE_MS, ChangeTime, Setting
from reassure_judge.history import (
    AssignedWritten,
    BrokerGone,
    BrokerRegistered,
    ControllerGone,
    ElectionSeen,
    Forbidden,
    StateWritten,
    Unreadable,
)
from reassure_judge.transaction_reader import CREATE, History, TransactionReader, ZnodePath
from reassure_model.lives import (
    find_broken_deletion_end,
    find_broken_settings_removal,
    find_broken_state_removal,
    find_broken_topic,
)
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, from_znode
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import BadZnode, PartitionKey, ReplicaList


class Router(TransactionReader[History]):
    """Turns transactions into observations, in order.

    A protocol that has znodes of its own derives from this: it adds how they are written, and what
    handles them.
    """

    lets_in_again: ClassVar[bool] = False
    """Whether a leader may let a broker in again that a controller took out because it stops."""

    def __init__(self, readings: Readings, grace_ms: int = GRACE_MS, **more: Any) -> None:
        super().__init__(readings, grace_ms, **more)
        self._handlers |= {
            "root": self._on_root,
            "controller": self._on_controller,
            "epoch": self._on_epoch,
            "broker": self._on_broker,
            "broker_config": self._on_broker_config,
            "topic_config": self._on_topic_config,
            "topic": self._on_topic,
            "state": self._on_state,
            "parents": self._on_root,
            "preferred": self._on_preferred,
            "deletion": self._on_deletion,
            "default_config": self._on_default_config,
        }
        self._elections: dict[str, tuple[int | None, bool]] = {}
        """By chroot: whom this transaction elected, and whether it raised the epoch."""
        self._state: LeaderAndIsr | None = None
        """What the state znode that was written last holds, None where it is gone or unreadable."""
        self._recovering: bool | None = None
        """Whether it marks the leader as elected without being in sync; None: it does not say."""

    def _end_transaction(self) -> None:
        """Tell of whom this transaction elected."""
        zxid, _, session = self._now
        for chroot, (broker, raised) in self._elections.items():
            cluster = self.get_cluster(chroot)
            if raised:
                cluster.terms.win(session, zxid)
                cluster.changes.forget()
                cluster.forget_authors()
            path = znodes.CONTROLLER if broker is not None else znodes.CONTROLLER_EPOCH
            event = ElectionSeen(broker, cluster.epoch, cluster.terms.ephemeral)
            self._emit(cluster, "", -1, path, event)
        self._elections.clear()

    # What a write means, by kind of znode --------------------------------------------------------

    @clause("znode.roots-kept")
    def _on_root(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        """Note the birth of a cluster, before which nothing was; a parent has to stay."""
        if data is not None:
            cluster.roots.add(at.path)
        else:
            cluster.roots.discard(at.path)
            reason = "nothing can stand under it any more"
            self._emit(cluster, "", -1, at.path, Forbidden("znode.roots-kept", reason))
            # ZooKeeper removes no znode with children, so whoever stood there was gone by then.
            for broker in sorted(cluster.live) if at.first == "ids" else ():
                self._on_write(cluster.chroot + znodes.broker_path(broker), None)
        created = data is not None and not self._given and self._op.kind == CREATE
        if at.first == "ids" and created and not cluster.is_met():
            if cluster.known_since is None:
                cluster.known_since = self._now[0]
            cluster.terms.whole = True
            cluster.changes.forget()

    def _on_controller(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        terms = cluster.terms
        if data is None:
            cluster.controller = terms.owner = None
            self._emit(cluster, "", -1, at.path, ControllerGone())
            return
        created = self._given or self._op.kind == CREATE
        if created:
            terms.owner = self._now[2]
            terms.ephemeral = self._now[2] != 0 if self._given else self._op.ephemeral
        try:
            cluster.controller = znodes.decode_controller(at.path, data)
        except BadZnode as error:
            self._emit(cluster, "", -1, at.path, Unreadable(error.reason))
            return
        if self._given:
            terms.winner = terms.owner
            cluster.forget_authors()
        else:
            self._elections[cluster.chroot] = (cluster.controller, False)
            self._unfinished = True

    @clause("controller.epoch.kept")
    def _on_epoch(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        self._forget_fence()
        if data is None:
            cluster.terms.epoch_version = None
            if cluster.epoch:
                reason = f"it held {cluster.epoch}, and epochs would begin anew"
                self._emit(cluster, "", -1, at.path, Forbidden("controller.epoch.kept", reason))
            return
        cluster.terms.epoch_version = None if self._given else getattr(self._op, "version", 0)
        try:
            epoch = znodes.decode_controller_epoch(at.path, data)
        except BadZnode as error:
            self._emit(cluster, "", -1, at.path, Unreadable(error.reason))
            return
        begun = cluster.epoch != 0 or epoch != 0
        cluster.epoch = epoch
        cluster.forget_surroundings()
        if self._given:
            self._emit(cluster, "", -1, at.path, ElectionSeen(cluster.controller, epoch))
        elif begun:
            broker, _ = self._elections.get(cluster.chroot, (None, False))
            self._elections[cluster.chroot] = (broker, True)
            self._unfinished = True

    def _on_broker(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        broker = int(at.first)
        zxid, time_ms, session = self._now
        if not self._given and (data is None or broker not in cluster.live):
            if broker not in cluster.known:
                cluster.changes.note_first_name(broker, ChangeTime(zxid, time_ms))
            cluster.changes.note_registration(broker, ChangeTime(zxid, time_ms))
        if data is None:
            orderly = self._is_orderly(cluster, broker)
            for key, left_out in cluster.decided.items():
                if broker in left_out:
                    cluster.decided[key] = left_out - {broker}
                    self._emit(cluster, *key, at.path, BrokerGone(broker, orderly))
            cluster.live -= {broker}
            for owned in cluster.brokers_of_session.values():
                owned.discard(broker)
        else:
            cluster.live |= {broker}
            cluster.registered |= {broker}
            asks = frozenset({broker} if _asks_for_isr(at.path, data) else ())
            cluster.asking = cluster.asking - {broker} | asks
            if self._given or self._op.kind == CREATE:
                cluster.brokers_of_session.setdefault(session, set()).add(broker)
        cluster.forget_surroundings()
        cluster.forget_authors()
        if data is not None and not self._given and self._op.kind == CREATE:
            self._emit(cluster, "", -1, at.path, BrokerRegistered(self._op.ephemeral))

    def _on_broker_config(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        broker = frozenset({int(at.first)})
        zxid, time_ms, _ = self._now
        if not self._given and not broker <= cluster.known:
            cluster.changes.note_first_name(int(at.first), ChangeTime(zxid, time_ms))
        cluster.configured = (
            cluster.configured - broker if data is None else (cluster.configured | broker)
        )
        cluster.changes.forget()
        cluster.forget_surroundings()

    def _note_setting(self, cluster: History, topics: Iterable[str]) -> None:
        """Note how it was before the settings of these topics change."""
        zxid, time_ms, _ = self._now
        if not self._given:
            for topic in topics:
                before = cluster.get_surroundings(topic)
                cluster.changes.note_setting(Setting(zxid, time_ms, topic, before))

    def _read_settings(
        self, cluster: History, path: str, data: bytes | None
    ) -> tuple[int | None, bool | None] | None:
        """Return the minimum and whether unclean elections are allowed; None where unreadable."""
        try:
            config = {} if data is None else znodes.decode_config(path, data)
            least = znodes.parse_limit(path, config, znodes.MIN_ISR)
            return least, znodes.parse_unclean(path, config)
        except BadZnode as error:
            self._emit(cluster, "", -1, path, Unreadable(error.reason))
            return None

    def _on_topic_config(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        topic = at.first
        if data is None and topic in cluster.settings:
            exists, deleting = bool(cluster.topics.get(topic)), topic in cluster.deleting
            if deleting:
                self._judge_remover(cluster, at.path)
            broken = find_broken_settings_removal(exists=exists, deleting=deleting)
            if broken is not None:
                self._forbid(cluster, topic, min(cluster.topics[topic]), at.path, broken)
        self._note_setting(cluster, (topic,))
        said = self._read_settings(cluster, at.path, data)
        if said is None:
            return
        (cluster.settings.discard if data is None else cluster.settings.add)(topic)
        least, unclean = said
        cluster.everywhere = None
        cluster.min_isr.pop(topic, None)
        cluster.unclean.pop(topic, None)
        if least is not None:
            cluster.min_isr[topic] = least
        if unclean is not None:
            cluster.unclean[topic] = unclean

    def _on_default_config(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        self._note_setting(cluster, cluster.topics)
        said = self._read_settings(cluster, at.path, data)
        if said is not None:
            least, unclean = said
            cluster.everywhere = None
            cluster.min_isr_default = self.min_insync_replicas if least is None else least
            cluster.unclean_default = unclean is True

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def _judge_remover(self, cluster: History, path: str) -> None:
        """Judge who removes what a client asked the controller to see to; a client may withdraw."""
        author = self._get_author(cluster)
        for broken in () if self._given or author.is_client else author.broken:
            self._forbid(cluster, "", -1, path, broken)

    def _on_preferred(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        if data is None:
            self._judge_remover(cluster, at.path)
        try:
            asked = () if data is None else znodes.decode_preferred_election(at.path, data)
        except BadZnode:
            asked = ()  # a client's mistake, which asks for nothing
        cluster.asked = frozenset(asked)
        cluster.everywhere = None

    def _on_deletion(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        topic = at.first
        self._note_setting(cluster, (topic,))
        cluster.everywhere = None
        if data is not None:
            cluster.deleting.add(topic)
            return
        self._judge_remover(cluster, at.path)
        # Settings of a topic that was made anew in between are its own.
        begun = topic in cluster.begun and not cluster.topics.get(topic)
        has_settings = topic in cluster.settings
        broken = find_broken_deletion_end(begun=begun, has_settings=has_settings)
        if broken is not None:
            self._forbid(cluster, "", -1, at.path, broken)
        cluster.deleting.discard(topic)
        cluster.begun.discard(topic)

    def _forbid(
        self, cluster: History, topic: str, partition: int, path: str, broken: Rejected
    ) -> None:
        self._emit(cluster, topic, partition, path, Forbidden(broken.clause, broken.reason))

    def _on_topic(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        topic = at.first
        cluster.had_topics = True
        before = cluster.topics.get(topic, {})
        try:
            found = ({}, {}) if data is None else znodes.decode_topic_and_extras(at.path, data)
        except BadZnode as error:
            self._emit(cluster, topic, min(before, default=0), at.path, Unreadable(error.reason))
            return
        after, extras = found
        if before:
            after = self._judge_topic(cluster, at.path, topic, after, extras, removed=data is None)
        cluster.topics[topic], cluster.extras[topic] = after, extras
        if self._given:
            # Whoever is assigned existed; the snapshot does not say who else did.
            cluster.registered = cluster.registered.union(*after.values())
            cluster.forget_surroundings()
        self._emit_assigned(cluster, at.path, topic, before, after)

    def _emit_assigned(
        self,
        cluster: History,
        path: str,
        topic: str,
        before: dict[int, ReplicaList],
        after: dict[int, ReplicaList],
    ) -> None:
        """Tell each partition of which the topic's znode says something else now."""
        ended = len(before)
        for number, was in before.items():
            assigned = after.get(number)
            # Most are the very same lists: they were read from the same content.
            if assigned is not was and assigned != was:
                self._emit(cluster, topic, number, path, AssignedWritten(assigned))
            ended -= assigned is None
        if len(after) > ended:
            for number, assigned in after.items():
                if number not in before:
                    self._emit(cluster, topic, number, path, AssignedWritten(assigned))

    def _judge_topic(
        self,
        cluster: History,
        path: str,
        topic: str,
        after: dict[int, ReplicaList],
        extras: dict[str, Any],
        *,
        removed: bool,
    ) -> dict[int, ReplicaList]:
        """Judge what a write takes out of a topic's znode; return what it holds by rights."""
        before, deleting = cluster.topics[topic], topic in cluster.deleting
        old = cluster.extras.get(topic, {})
        changed = {name for name, value in old.items() if extras.get(name) != value}
        lost = before.keys() - after.keys()
        broken = find_broken_topic(lost, changed, removed=removed, deleting=deleting)
        if removed and deleting:
            self._judge_remover(cluster, path)
            cluster.begun.add(topic)
        if broken is None:
            return after
        if removed or not lost:
            self._forbid(cluster, topic, min(before), path, broken)
            return after
        for number in sorted(lost):
            self._forbid(cluster, topic, number, path, broken)
        return after | {number: before[number] for number in lost}

    def _on_state(self, cluster: History, at: ZnodePath, data: bytes | None) -> None:
        topic = at.first
        number = int(at.second)
        self._state, self._recovering = None, None
        if data is None:
            exists = number in cluster.topics.get(topic, {})
            broken = find_broken_state_removal(exists=exists, deleting=topic in cluster.deleting)
            if broken is not None:
                self._forbid(cluster, topic, number, at.path, broken)
                return
            self._emit(cluster, topic, number, at.path, StateWritten(None, -1))
            return
        usual = znodes.read_usual_state(data)
        if usual is not None:
            self._state = state = LeaderAndIsr(*usual)
        else:
            try:
                said = znodes.decode_state(at.path, data)
            except BadZnode as error:
                self._emit(cluster, topic, number, at.path, Unreadable(error.reason))
                return
            self._state, self._recovering = from_znode(said), said.recovering
            state = self._state
        if self._decides(cluster):
            assigned = cluster.topics.get(topic, {}).get(number, ())
            left_out = cluster.live.intersection(assigned).difference(state.isr)
            # One that was left out may be unassigned before its registration ends.
            before = cluster.decided.get((topic, number), left_out)
            left_out |= before if self.lets_in_again else before.difference(state.isr)
            cluster.decided[topic, number] = left_out
        writer = self._find_writer(cluster, (topic, number), state)
        self._emit(cluster, topic, number, at.path, StateWritten(state, writer))

    def _find_writer(self, cluster: History, key: PartitionKey, state: LeaderAndIsr) -> int:
        """Return the broker that wrote a state, -1 for none."""
        brokers = cluster.brokers_of_session.get(self._now[2])
        if brokers:
            return state.leader if state.leader in brokers else min(brokers)
        # Whatever a controller wrote was written for the leader, if it may be.
        return state.leader if self._decides(cluster) and state.leader in cluster.asking else -1

    def _decides(self, cluster: History) -> bool:
        """Whether the write at hand is a controller's."""
        return cluster.chroot in self._fenced

    def _is_orderly(self, cluster: History, broker: int) -> bool:
        """Whether a broker whose registration ends had been taken out of the in-sync sets."""
        return True


def _asks_for_isr(path: str, data: bytes) -> bool:
    try:
        return znodes.asks_for_isr(path, data)
    except BadZnode:
        return False
