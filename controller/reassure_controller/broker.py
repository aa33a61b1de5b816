"""A broker as far as reassignment needs one: it registers, obeys, and leads.

It has no log yet. What it keeps per partition is what a real broker keeps beside its log: the
leader and in-sync replicas it was told, and the version of the state znode that its next write of
the in-sync set is conditional on. When a replica is in sync is said by whoever drives the broker
(`change_isr`); whether the leader may write it down is decided here.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from reassure_controller.messages import ChangeIsr, LeaderAndIsr, Message, Reply, StopReplica
from reassure_controller.session import (
    Indefinite,
    Refused,
    commit,
    ensure_roots,
    gather,
    session_id,
    start,
    stop,
)
from reassure_controller.transport import LocalTransport
from reassure_spec.errors import BadUsage
from reassure_spec.znodes import (
    BadZnode,
    PartitionKey,
    ReplicaList,
    StateZnode,
    broker_config_path,
    broker_path,
    decode_state,
    encode_broker,
    encode_config,
    encode_state,
    state_path,
)

log = logging.getLogger("reassure_controller.broker")

IsrOutcome = Literal["ok", "refused", "unknown"]
"""Answer to a change of the in-sync set; `unknown`: the write may or may not have been made."""


class IdTaken(BadUsage):
    """Another live session is registered with the broker's id."""


@dataclass(frozen=True, slots=True)
class HostedPartition:
    """What a broker keeps of a partition that it has a replica of."""

    replicas: ReplicaList
    """The assigned replicas, as told last."""
    state: StateZnode
    state_version: int


class Broker:
    """One broker on a kazoo client in the cluster's chroot.

    With a `LocalTransport` it receives messages as soon as it is registered. The client may be
    shared by several brokers (`owns_client=False`); each is then ended by deleting its znode.
    """

    def __init__(
        self,
        client: KazooClient,
        broker_id: int,
        transport: LocalTransport | None = None,
        *,
        address: tuple[str, int] = ("127.0.0.1", 9092),
        owns_client: bool = True,
        faults: frozenset[str] = frozenset(),
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.broker_id = broker_id
        self._client = client
        self._transport = transport
        self._address = address
        self._owns_client = owns_client
        self._faults = faults
        self._clock_ms = clock_ms
        self._session: int | None = None
        self._controller_epoch = 0
        self._hosted: dict[PartitionKey, HostedPartition] = {}
        start(client)

    # Registration

    def register(self) -> None:
        """Make the configuration znode if it is absent, then the ephemeral registration.

        Raises IdTaken when another session has the id, Indefinite when ZooKeeper cannot be
        asked.
        """
        config = (broker_config_path(self.broker_id), encode_config({}))
        path = broker_path(self.broker_id)
        ephemeral = "registration-stays" not in self._faults
        registration = (path, encode_broker(*self._address, self._clock_ms()), None, ephemeral)
        refused = self._create(config, registration)
        if isinstance(refused, NoNodeError):  # nobody has made the paths of this cluster yet
            ensure_roots(self._client)
            refused = self._create(config, registration)
        if isinstance(refused, NodeExistsError):  # the broker was here before
            refused = self._create(registration)
        if refused is not None:
            found = gather([self._client.exists_async(path)])[0]
            if found is not None and found.ephemeralOwner != session_id(self._client):
                raise IdTaken(
                    f"{path}: another session is registered with this id; end that broker, or wait "
                    "until its session has timed out"
                )
        self._session = session_id(self._client)
        if self._transport is not None:
            self._transport.register(self.broker_id, self.handle)

    def _create(self, *znodes: tuple[Any, ...]) -> Exception | None:
        """Create znodes in one transaction; return why they could not be, None where they were."""
        try:
            commit(self._client, [("create", znode) for znode in znodes])
        except Refused as refused:
            if not isinstance(refused.error, NodeExistsError | NoNodeError):
                raise
            error: Exception = refused.error
            return error
        return None

    @property
    def is_registered(self) -> bool:
        """Whether the session that the broker registered with is the client's."""
        return self._session is not None and self._session == session_id(self._client)

    def stop(self) -> None:
        """End as a process ends: the registration goes at once, memory with it."""
        if self._transport is not None:
            self._transport.unregister(self.broker_id)
        self._hosted.clear()
        self._controller_epoch = 0
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
        """Obey a controller's message, or carry out a change of the in-sync set."""
        match message:
            case LeaderAndIsr():
                return Reply(self._become(message))
            case StopReplica():
                return Reply(self._stop_replica(message))
            case ChangeIsr():
                outcome = self.change_isr(
                    message.topic, message.partition, add=message.add, remove=message.remove
                )
                return Reply(outcome)
            case _:
                return Reply("not-a-request")

    def _is_stale(self, controller_epoch: int) -> bool:
        if controller_epoch < self._controller_epoch:
            return True
        self._controller_epoch = controller_epoch
        return False

    def _become(self, message: LeaderAndIsr) -> str:
        """Take over a newer leader epoch; an equal or older one says nothing new."""
        if self._is_stale(message.controller_epoch):
            return "stale-controller-epoch"
        key = (message.topic, message.partition)
        if self.broker_id not in message.replicas:
            return "not-a-replica"
        hosted = self._hosted.get(key)
        if hosted is not None and message.leader_epoch <= hosted.state.leader_epoch:
            return "ignored"
        state = StateZnode(
            leader=message.leader,
            leader_epoch=message.leader_epoch,
            controller_epoch=message.state_controller_epoch,
            isr=message.isr,
        )
        self._hosted[key] = HostedPartition(message.replicas, state, message.state_version)
        return "ok"

    def _stop_replica(self, message: StopReplica) -> str:
        if self._is_stale(message.controller_epoch):
            return "stale-controller-epoch"
        if "deaf-to-stop" in self._faults:
            return "ok"
        # Without a log, a stopped replica and a deleted one are the same: nothing is kept of it.
        self._hosted.pop((message.topic, message.partition), None)
        return "ok"

    def hosted(self, topic: str, partition: int) -> HostedPartition | None:
        """Return what the broker keeps of a partition, or None when it has no replica of it."""
        return self._hosted.get((topic, partition))

    def leads(self, topic: str, partition: int) -> bool:
        """Whether the broker takes itself for the partition's leader."""
        hosted = self._hosted.get((topic, partition))
        return hosted is not None and self._is_leader(hosted)

    def _is_leader(self, hosted: HostedPartition) -> bool:
        return hosted.state.leader == self.broker_id or "follower-leads" in self._faults

    # The leader's side of the in-sync set

    def change_isr(
        self, topic: str, partition: int, *, add: int | None = None, remove: int | None = None
    ) -> IsrOutcome:
        """Take a replica into the in-sync set, or out of it, by one conditional write.

        Refused when this broker does not lead, when the replica to add is not assigned or not
        live, when the replica to remove is the leader, and when the state was changed by a newer
        leader epoch. A set that already is as wanted is `ok` without a write.
        """
        key = (topic, partition)
        hosted = self._hosted.get(key)
        if hosted is None or not self._is_leader(hosted):
            return "refused"
        stranger = add is not None and add not in hosted.replicas
        if remove == self.broker_id or (stranger and "stranger-taken-in" not in self._faults):
            return "refused"
        try:
            dead = add is not None and not self._is_live(add)
            if dead and "dead-taken-in" not in self._faults:
                return "refused"
            return self._write_isr(key, hosted, add, remove)
        except Indefinite as indefinite:
            log.info("broker %d: %s-%d: %s", self.broker_id, topic, partition, indefinite)
            return "unknown"

    def _is_live(self, broker: int) -> bool:
        return gather([self._client.exists_async(broker_path(broker))])[0] is not None

    def _write_isr(
        self, key: PartitionKey, hosted: HostedPartition, add: int | None, remove: int | None
    ) -> IsrOutcome:
        path = state_path(*key)
        while True:
            isr = tuple(one for one in hosted.state.isr if one != remove)
            if add is not None and add not in isr:
                isr = (*isr, add)
            if isr == hosted.state.isr:
                return "ok"
            state = replace(hosted.state, isr=isr)
            try:
                written = commit(
                    self._client, [("set_data", (path, encode_state(state), hosted.state_version))]
                )
            except Refused as refused:
                fresh = self._read_state(key, hosted)
                if fresh is None or not isinstance(refused.error, BadVersionError):
                    log.info("%s: %s; the in-sync set is left alone", path, refused)
                    return "refused"
                self._hosted[key] = hosted = fresh
                continue
            self._hosted[key] = replace(hosted, state=state, state_version=written[0].version)
            return "ok"

    def _read_state(self, key: PartitionKey, hosted: HostedPartition) -> HostedPartition | None:
        """Return the state as stored, or None unless this leader, in this epoch, still has it."""
        path = state_path(*key)
        content = gather([self._client.get_async(path)])[0]
        if content is None:
            return None
        try:
            state = decode_state(path, content[0])
        except BadZnode as bad:
            log.warning("%s: %s", bad.path, bad.reason)
            return None
        mine = hosted.state
        if (state.leader, state.leader_epoch) != (mine.leader, mine.leader_epoch):
            return None
        return replace(hosted, state=state, state_version=content[1].version)
