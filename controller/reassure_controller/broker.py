"""A broker: it registers, obeys, and leads.

What it keeps per partition beside the log is the leader and in-sync replicas that it was told, and
the version of the state znode that its next write of the in-sync set is conditional on.

With `replication` it has logs: its replicas fetch, lead and serve clients (`replication`), and
decide by themselves who is in sync. Without, nothing is looked at but ZooKeeper: there is no disk
and no time, and who is in sync is said by whoever drives the broker (`change_isr`). Whether the
leader may write it down is decided here in both cases.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reassure_controller.client import Client
from reassure_controller.log_lines import about
from reassure_controller.messages import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    UNKNOWN_BROKER_EPOCH,
    LeaderAndIsr,
    Message,
    Reply,
    StopReplica,
)
from reassure_controller.registration import IdTaken, take_id
from reassure_controller.replication.errors import STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from reassure_controller.replication.host import HostedPartition, IsrOutcome
from reassure_controller.session import (
    Indefinite,
    Operation,
    Refused,
    commit,
    fetch,
    gather,
    session_id,
    start,
    stop,
)
from reassure_controller.tally import LabelCounts
from reassure_controller.transport import LocalTransport
from reassure_spec.znodes import (
    CONTROLLER_EPOCH,
    BadZnode,
    PartitionKey,
    ReplicaList,
    StateZnode,
    broker_path,
    decode_controller_epoch,
    decode_state,
    decode_topic,
    encode_broker,
    encode_state,
    state_path,
    topic_path,
)

if TYPE_CHECKING:  # a broker without logs does not load what reads and writes them
    from reassure_controller.replication.hosting import Replicas

log = logging.getLogger("reassure_controller.broker")

LEAP: Final = 1_000
"""An order whose leader epoch is so far beyond the last one is held against ZooKeeper."""
Replication = Callable[["Broker", int], "Replicas"]
"""Makes the replicas of a broker that has just registered, given its broker epoch."""


_LOOK_S: Final = 0.05
"""How often one who waits for its id looks whether it is free."""


class Broker:
    """One broker on a kazoo client in the cluster's chroot.

    With a `LocalTransport` it receives messages as soon as it is registered. The client may be
    shared by several brokers (`owns_client=False`); each is then ended by deleting its znode.
    """

    def __init__(
        self,
        client: Client,
        broker_id: int,
        transport: LocalTransport | None = None,
        *,
        address: tuple[str, int] = ("127.0.0.1", 9092),
        owns_client: bool = True,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        replication: Replication | None = None,
    ) -> None:
        self.broker_id = broker_id
        self._client = client
        self._transport = transport
        self.address = address
        """Where it says that it listens."""
        self._owns_client = owns_client
        self._clock_ms = clock_ms
        self._replication = replication
        self.replicas: Replicas | None = None
        """Its replicas with their logs, None in a broker without logs."""
        self.isr_changes = LabelCounts()
        """How often it wrote smaller in-sync sets (`shrinks`), and larger ones (`expands`)."""
        self._session: int | None = None
        self.controller_epoch = 0
        """The epoch of the last controller that it obeyed, 0 before the first."""
        self._hosted: dict[PartitionKey, HostedPartition] = {}
        self._obeyed: dict[PartitionKey, int] = {}
        """By partition: the latest leader epoch of an order that was obeyed in this life, also
        where the replica is gone: an order from before would look new to a broker that forgot."""
        start(client)

    # Registration

    def register(self, patience_s: float = 0.0) -> None:
        """Make the configuration znode if it is absent, then the ephemeral registration.

        A former life of the broker stays registered until its session times out, and so long it
        may wait, and for ZooKeeper to answer. Raises FormerLife when it is registered even then,
        IdTaken when another broker has the id, Indefinite when ZooKeeper cannot be asked.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                content = encode_broker(*self.address, self._clock_ms())
                self._session = take_id(self._client, self.broker_id, content)
                self._begin_to_replicate()
                break
            except (Indefinite, IdTaken):
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_LOOK_S)
        if self._transport is not None:
            self._transport.register(self.broker_id, self.handle)

    def _begin_to_replicate(self) -> None:
        """Take up the replicas on disk; one that has registered again waits to be told anew.

        What was told to it before may be long out of date: while it was not registered a replica of
        its was perhaps taken from it, and nobody could tell.
        """
        if self._replication is None:
            return
        epoch = self.find_broker_epoch(self.broker_id)
        if epoch is None:
            raise Indefinite(f"{broker_path(self.broker_id)} has vanished; register again")
        if self.replicas is None:
            self.replicas = self._replication(self, epoch)
        else:
            self.replicas.begin_again(epoch)
            self._hosted.clear()
            self._obeyed.clear()

    @property
    def is_registered(self) -> bool:
        """Whether the session that the broker registered with is the client's."""
        return self._session is not None and self._session == session_id(self._client)

    def stop(self) -> None:
        """End as a process ends: the registration goes at once, memory with it.

        Raises DiskFailed where logs could not be closed in order; the broker has ended then too.
        """
        try:
            if self.replicas is not None:
                self.replicas.close()
        finally:
            self._end()

    def kill(self) -> None:
        """End as a process that is killed: what is not on disk is lost."""
        if self.replicas is not None:
            self.replicas.abandon()
        self._end()

    def _end(self) -> None:
        self.replicas = None
        if self._transport is not None:
            self._transport.unregister(self.broker_id)
        self._hosted.clear()
        self.controller_epoch = 0
        self._obeyed.clear()
        self._session = None
        if self._owns_client:
            stop(self._client)
            return
        try:
            commit(self._client, [("delete", (broker_path(self.broker_id), -1))])
        except Refused as refused:
            log.info("broker %d was gone already: %s", self.broker_id, refused)

    # Messages

    def handle(self, message: Message) -> Reply:
        """Obey a controller's message."""
        match message:
            case LeaderAndIsr() | StopReplica():
                with about(topic=message.topic, partition=message.partition):
                    return Reply(self._obey(message))
            case _:
                return Reply("not-a-request")

    def _refuse(self, controller_epoch: int, broker_epoch: int) -> str:
        """Return why an order is refused: it is of an earlier controller, or for an earlier life.

        Or of a controller that was never elected. What a broker was told in an earlier life it has
        forgotten, so that an old order would look new to it (KIP-380), and so would one of a
        controller that does not know yet that it was superseded: ZooKeeper says who came later.
        """
        own = None if self.replicas is None else self.replicas.broker_epoch
        is_for_other = own is not None and broker_epoch not in (UNKNOWN_BROKER_EPOCH, own)
        if is_for_other:
            log.warning("an order for broker epoch %d is refused: it is %s", broker_epoch, own)
            return STALE_BROKER_EPOCH
        stored: int | None = self.controller_epoch
        if controller_epoch > self.controller_epoch:
            stored = self._read_controller_epoch(controller_epoch)
        earlier = controller_epoch < (self.controller_epoch if stored is None else stored)
        unelected = stored is not None and controller_epoch > stored
        if earlier or unelected:
            what = "an order of controller epoch %d is refused: it is %s"
            log.warning(what, controller_epoch, stored)
            return STALE_CONTROLLER_EPOCH
        if stored is not None:
            self.controller_epoch = controller_epoch
        return ""

    def _read_controller_epoch(self, told: int) -> int | None:
        """Return the epoch of the last election, or what the broker is told where none was held.

        None where ZooKeeper cannot say: an order is obeyed then, and its epoch not remembered.
        """
        try:
            self._require_connection()
            gather([self._client.sync_async("/")])  # its server may not know of the election yet
            found = fetch(self._client, [CONTROLLER_EPOCH])[0]
            return told if found is None else decode_controller_epoch(CONTROLLER_EPOCH, found[0])
        except (Indefinite, BadZnode) as unreadable:
            log.warning("controller epoch %d is not looked up: %s", told, unreadable)
            return None

    def _obey(self, message: LeaderAndIsr | StopReplica) -> str:
        """Carry out an order, unless it is refused, while nobody serves the partition."""
        refused = self._refuse(message.controller_epoch, message.broker_epoch)
        if refused:
            return refused
        key = (message.topic, message.partition)
        with self._guard(key):
            if message.leader_epoch - self.find_obeyed(key) > LEAP and self._is_made_up(message):
                return "ignored"
            if isinstance(message, StopReplica):
                return self._end_role(message)
            return self._take_role(message)

    def _is_made_up(self, message: LeaderAndIsr | StopReplica) -> bool:
        """Whether an order is of a leader epoch that its partition has never had, or may be so.

        Obeyed, it would make the broker deaf to all orders of later leaders.
        """
        path, told = state_path(message.topic, message.partition), message.leader_epoch
        try:
            self._require_connection()
            gather([self._client.sync_async("/")])
            found = fetch(self._client, [path])[0]
            stored = NO_EPOCH if found is None else decode_state(path, found[0]).leader_epoch
        except (Indefinite, BadZnode) as unreadable:
            log.warning("an order of leader epoch %d is ignored: %s", told, unreadable)
            return True
        if told > stored:
            what = "%s-%d: an order of leader epoch %d is ignored: it is %d"
            log.warning(what, message.topic, message.partition, told, stored)
        return told > stored

    def _guard(self, key: PartitionKey) -> AbstractContextManager[object]:
        """Return what keeps out those who serve a partition, where there is anything to serve."""
        return nullcontext() if self.replicas is None else self.replicas.guard(key)

    def _take_role(self, message: LeaderAndIsr) -> str:
        """Take over a newer leader epoch; an equal or older one says nothing new."""
        if self.broker_id not in message.replicas:
            return "not-a-replica"
        key = (message.topic, message.partition)
        known = self.find_obeyed(key)
        if message.leader_epoch <= known and not self._is_made_anew(message, known):
            return "ignored"
        state = StateZnode(
            leader=message.leader,
            leader_epoch=message.leader_epoch,
            controller_epoch=message.state_controller_epoch,
            isr=message.isr,
        )
        self._hosted[key] = HostedPartition(
            message.replicas, state, message.state_version, message.controller_epoch
        )
        self._obeyed[key] = message.leader_epoch
        if self.replicas is not None:
            self.replicas.become(key)
        return "ok"

    def _is_made_anew(self, message: LeaderAndIsr, known: int) -> bool:
        """Whether an order is of another topic of that name than the one obeyed in epoch `known`.

        The epochs of a topic that was deleted and made anew begin again, and who had been moved
        away before has not heard of the deletion. An order that ZooKeeper bears out is no old one:
        epochs never fall while a topic lasts, and who was told to stop in the same epoch is not
        assigned any more. (Kafka has ids of topics for it since 2.8, KIP-516.)
        """
        key = (message.topic, message.partition)
        if key in self._hosted:
            return False
        paths = [state_path(*key), topic_path(message.topic)]
        try:
            self._require_connection()
            state, topic = fetch(self._client, paths)
            if state is None or topic is None:
                return False
            stored = decode_state(paths[0], state[0])
            assigned = decode_topic(paths[1], topic[0]).get(message.partition, ())
        except (Indefinite, BadZnode) as unreadable:
            log.warning("an order is taken for an old one: %s", unreadable)
            return False
        if (stored.leader, stored.leader_epoch) != (message.leader, message.leader_epoch):
            return False
        return message.leader_epoch < known or self.broker_id in assigned

    def _end_role(self, message: StopReplica) -> str:
        """Stop a replica, unless it has been told of a later leader epoch since (KIP-570)."""
        key, epoch = (message.topic, message.partition), message.leader_epoch
        known = self.find_obeyed(key)
        if NO_EPOCH < epoch < known:
            return "ignored"
        if epoch == EPOCH_DURING_DELETE:
            self._obeyed.pop(key, None)
        else:
            self._obeyed[key] = max(epoch, known)
        if self.replicas is not None:
            self.replicas.stop(key, message.controller_epoch, epoch, delete=message.delete)
        # Without a log, a stopped replica and a deleted one are the same: nothing is kept of it.
        self._hosted.pop(key, None)
        return "ok"

    def give_up(self, key: PartitionKey, leader_epoch: int) -> None:
        """Delete a replica that is not this broker's any more, as stored in this leader epoch.

        Orders up to there that are on their way still are old ones from now on.
        """
        with self._guard(key):
            self._obeyed[key] = max(leader_epoch, self.find_obeyed(key))
            if self.replicas is not None:
                self.replicas.stop(key, self.controller_epoch, NO_EPOCH, delete=True)
            self._hosted.pop(key, None)

    def hosted(self, topic: str, partition: int) -> HostedPartition | None:
        """Return what the broker keeps of a partition, or None when it has no replica of it."""
        return self._hosted.get((topic, partition))

    def find_obeyed(self, key: PartitionKey) -> int:
        """Return the latest leader epoch of an order that was obeyed in this life."""
        return self._obeyed.get(key, NO_EPOCH)

    def leads(self, topic: str, partition: int) -> bool:
        """Whether the broker takes itself for the partition's leader."""
        hosted = self._hosted.get((topic, partition))
        return hosted is not None and self._is_leader(hosted)

    def _is_leader(self, hosted: HostedPartition) -> bool:
        return hosted.state.leader == self.broker_id

    # The leader's side of the in-sync set

    def change_isr(
        self, topic: str, partition: int, *, add: int | None = None, remove: int | None = None
    ) -> IsrOutcome:
        """Take a replica into the in-sync set, or out of it, by one conditional write.

        Refused when this broker does not lead, when the replica to add is not assigned or not
        live, when the replica to remove is the leader, when the state was changed by a newer
        leader epoch, and by a broker with logs, which decides by itself. A set that already is as
        wanted is `ok` without a write.
        """
        key = (topic, partition)
        hosted = self._hosted.get(key)
        if hosted is None or not self._is_leader(hosted) or self.replicas is not None:
            return "refused"
        stranger = add is not None and add not in hosted.replicas
        if remove == self.broker_id or stranger:
            return "refused"
        while True:
            isr = tuple(one for one in self._hosted[key].state.isr if one != remove)
            if add is not None and add not in isr:
                isr = (*isr, add)
            outcome = self.write_isr(key, isr, lives=add)
            if outcome == "refused":
                outcome = self.refresh(key, lives=add)
                if outcome == "ok":
                    continue
            return outcome

    def find_broker_epoch(self, broker: int) -> int | None:
        """Return the broker epoch of a live broker: the czxid of its registration.

        Raises Indefinite.
        """
        self._require_connection()
        found = gather([self._client.exists_async(broker_path(broker))])[0]
        return None if found is None else int(found.czxid)

    def _require_connection(self) -> None:
        """Raise Indefinite at once where nobody is there to answer.

        Whoever asks holds up the partition that it asks for while it waits.
        """
        if not self._client.connected:
            raise Indefinite("the connection to ZooKeeper is lost")

    def write_isr(
        self, key: PartitionKey, isr: ReplicaList, *, lives: int | None = None
    ) -> IsrOutcome:
        """Write the in-sync set once, on top of the version that the broker knows.

        `lives` names a broker that has to be registered then. A set that is stored as wanted
        already is `ok` without a write. A broker whose session has ended is nobody until it has
        registered again, and writes nothing.
        """
        path, hosted = state_path(*key), self._hosted[key]
        if not self.is_registered:
            log.info("%s: broker %d is not registered", path, self.broker_id)
            return "refused"
        if isr == hosted.state.isr:
            return "ok"
        before, state = set(hosted.state.isr), replace(hosted.state, isr=isr)
        try:
            self._require_connection()
            there: list[Operation] = [] if lives is None else [("check", (broker_path(lives), -1))]
            write: Operation = ("set_data", (path, encode_state(state), hosted.state_version))
            *_, written = commit(self._client, [*there, write])
        except Refused as refused:
            log.info("%s: %s", path, refused)
            return "refused"
        except Indefinite as indefinite:
            log.info("%s: %s", path, indefinite)
            return "unknown"
        self._hosted[key] = replace(hosted, state=state, state_version=written.version)
        for kind, changed in (("shrinks", before - set(isr)), ("expands", set(isr) - before)):
            if changed:
                self.isr_changes.add(kind)
        return "ok"

    def refresh(self, key: PartitionKey, *, lives: int | None = None) -> IsrOutcome:
        """Read the state as stored; `refused` unless this leader, in this epoch, still has it.

        `refused` as well where `lives` names a broker that is not registered.
        """
        path, hosted = state_path(*key), self._hosted[key]
        try:
            self._require_connection()
            there = [] if lives is None else [broker_path(lives)]
            content, *registered = fetch(self._client, [path, *there])
            state = None if content is None else decode_state(path, content[0])
        except Indefinite as indefinite:
            log.info("%s: %s", path, indefinite)
            return "unknown"
        except BadZnode as bad:
            log.warning("%s: %s", bad.path, bad.reason)
            return "refused"
        mine = hosted.state
        if content is None or state is None or None in registered:
            return "refused"
        if state.leader != mine.leader or state.leader_epoch != mine.leader_epoch:
            return "refused"
        self._hosted[key] = replace(hosted, state=state, state_version=content[1].version)
        return "ok"
