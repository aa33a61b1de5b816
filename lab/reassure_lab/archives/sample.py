"""Histories made to measure: what a correct cluster writes, transaction by transaction.

A `SampleCluster` keeps the books of a small cluster (versions, epochs, assignments) and appends to
`transactions` what each actor would have written: brokers register, a controller is elected, topics
appear, requests are submitted and carried out. Every single write is a method of its own, so that a
history with one planted fault is the correct one with one call added, left out or changed. Each
method returns the zxid of what it wrote.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reassure_spec import znodes
from reassure_spec.znodes import ReassignmentZnode, ReplicaList, RequestZnode, StateZnode
from reassure_zookeeper.transactions import (
    MULTI,
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Op,
    SetData,
    Transaction,
)

CLIENT: Final = 0x1000
"""Session of the client that creates topics and submits requests."""
_FIRST_BROKER: Final = 0x2000
_MS_PER_TRANSACTION: Final = 10


@dataclass(frozen=True, slots=True)
class SamplePartition:
    """A partition as the books have it."""

    assigned: ReplicaList
    state: StateZnode
    top: int = 0


class SampleCluster:
    """A cluster that writes its own history; brokers 1 to `brokers`, broker 1 is controller."""

    def __init__(
        self, brokers: int = 8, chroot: str = "", first_zxid: int = 1, time_ms: int = 10**12
    ) -> None:
        self.chroot = chroot
        self.zxid = first_zxid - 1
        self.time_ms = time_ms
        self.transactions: list[Transaction] = []
        self.partitions: dict[tuple[str, int], SamplePartition] = {}
        self.epoch = 0
        self.controller = 0
        self.requests = 0
        self._versions: dict[str, int] = {}
        self._begin(brokers)

    # The few ways to write ------------------------------------------------------------------------

    def append(self, *ops: Op, session: int = CLIENT) -> int:
        """Append one transaction of these ops as they stand; answer its zxid."""
        self.zxid += 1
        self.time_ms += _MS_PER_TRANSACTION
        kind = ops[0].variant if len(ops) == 1 else MULTI
        self.transactions.append(Transaction(session, 0, self.zxid, self.time_ms, kind, ops))
        return self.zxid

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> Create:
        """Return the op that creates a znode."""
        self._versions[path] = 0
        return Create(self.chroot + path, data, ephemeral=ephemeral)

    def put(self, path: str, data: bytes) -> SetData:
        """Return the op that writes a znode."""
        self._versions[path] = self._versions.get(path, 0) + 1
        return SetData(self.chroot + path, data, self._versions[path])

    def delete(self, path: str) -> Delete:
        """Return the op that deletes a znode."""
        self._versions.pop(path, None)
        return Delete(self.chroot + path)

    def knows(self, path: str) -> bool:
        """Whether a znode is there."""
        return path in self._versions

    def control(self, *ops: Op, fenced: bool = True, writer: int | None = None) -> int:
        """Append a controller's transaction, which checks the controller epoch unless told not.

        `writer` is a broker that makes it in the controller's place.
        """
        broker = self.controller if writer is None else writer
        return self.act(broker, self._fence, *ops) if fenced else self.act(broker, *ops)

    def act(self, broker: int, *ops: Op) -> int:
        """Append a transaction in a broker's session."""
        return self.append(*ops, session=_FIRST_BROKER + broker)

    # Brokers and controllers ----------------------------------------------------------------------

    def _begin(self, brokers: int) -> None:
        self.append(CreateSession(30_000))
        made = {""}
        parents = [self.chroot] if self.chroot else []
        for path in [*parents, *(self.chroot + root for root in znodes.PERSISTENT_ROOTS)]:
            parts = path.split("/")
            for depth in range(2, len(parts) + 1):
                part = "/".join(parts[:depth])
                if part not in made:
                    made.add(part)
                    self.append(Create(part))
        self.append(self.create(znodes.CONTROLLER_EPOCH, b"0"))
        for broker in range(1, brokers + 1):
            self.register(broker)
        self.elect(1)

    def register(self, broker: int) -> int:
        """Start a broker: a session, and its registration."""
        self.act(broker, CreateSession(30_000))
        data = znodes.encode_broker("127.0.0.1", 9000 + broker, self.time_ms)
        return self.act(broker, self.create(znodes.broker_path(broker), data, ephemeral=True))

    def kill(self, broker: int) -> int:
        """Expire a broker's session, and with it all that it owns."""
        owned = [znodes.broker_path(broker)]
        if broker == self.controller:
            owned.append(znodes.CONTROLLER)
        paths = [self.delete(path).path for path in owned if self.knows(path)]
        return self.act(broker, CloseSession(tuple(paths)))

    def elect(self, broker: int, *, raised: int = 1) -> int:
        """Make a broker the controller, with the next epoch."""
        self.epoch += raised
        self.controller = broker
        data = znodes.encode_controller(broker, self.time_ms)
        made = self.create(znodes.CONTROLLER, data, ephemeral=True)
        epoch = self.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(self.epoch))
        self._fence = Check(epoch.path, epoch.version + 1)
        return self.act(broker, made, epoch)

    # Topics and partitions ------------------------------------------------------------------------

    def create_topic(self, topic: str, assignment: Mapping[int, ReplicaList]) -> int:
        """Create a topic, and bring its partitions online."""
        path = znodes.topic_path(topic)
        zxid = self.append(self.create(path, znodes.encode_topic(assignment)))
        self.control(self.create(f"{path}/partitions"))
        for number, assigned in assignment.items():
            state = StateZnode(assigned[0], 0, self.epoch, assigned)
            self.partitions[topic, number] = SamplePartition(assigned, state)
            self.control(
                self.create(znodes.partition_path(topic, number)),
                self.create(znodes.state_path(topic, number), znodes.encode_state(state)),
            )
        return zxid

    def write_state(
        self,
        topic: str,
        number: int,
        leader: int | None = None,
        isr: ReplicaList | None = None,
        *,
        raised: int = 1,
        fenced: bool = True,
    ) -> int:
        """Write leader and in-sync replicas as the controller, raising the leader epoch."""
        partition = self.partitions[topic, number]
        before = partition.state
        state = StateZnode(
            before.leader if leader is None else leader,
            before.leader_epoch + raised,
            self.epoch,
            before.isr if isr is None else isr,
        )
        self.partitions[topic, number] = replace(partition, state=state)
        data = znodes.encode_state(state)
        return self.control(self.put(znodes.state_path(topic, number), data), fenced=fenced)

    def write_isr(
        self, topic: str, number: int, isr: ReplicaList, writer: int | None = None
    ) -> int:
        """Write the in-sync replicas as the leader, or as another broker."""
        partition = self.partitions[topic, number]
        state = replace(partition.state, isr=isr)
        self.partitions[topic, number] = replace(partition, state=state)
        data = znodes.encode_state(state)
        op = self.put(znodes.state_path(topic, number), data)
        return self.act(state.leader if writer is None else writer, op)

    def join(self, topic: str, number: int, replicas: Iterable[int]) -> int:
        """Let replicas join the in-sync set, one write each."""
        zxid = self.zxid
        for replica in replicas:
            isr = self.partitions[topic, number].state.isr
            if replica not in isr:
                zxid = self.write_isr(topic, number, (*isr, replica))
        return zxid

    def write_assigned(
        self, topic: str, number: int, assigned: ReplicaList, *, fenced: bool = True
    ) -> int:
        """Write the assigned replicas of one partition."""
        partition = self.partitions[topic, number]
        self.partitions[topic, number] = replace(partition, assigned=assigned)
        whole = {n: p.assigned for (name, n), p in self.partitions.items() if name == topic}
        data = znodes.encode_topic(whole)
        return self.control(self.put(znodes.topic_path(topic), data), fenced=fenced)

    # Requests and reassignments -------------------------------------------------------------------

    def submit(self, topic: str, targets: Mapping[int, ReplicaList]) -> int:
        """Submit a request; answers its sequence number, not a zxid."""
        sequence = self.requests
        self.requests += 1
        content = RequestZnode({(topic, number): target for number, target in targets.items()})
        self.append(self.create(znodes.request_path(sequence), znodes.encode_request(content)))
        return sequence

    def remove_request(self, sequence: int) -> int:
        """Remove a request."""
        return self.control(self.delete(znodes.request_path(sequence)))

    def record(self, topic: str, number: int, target: ReplicaList, top: int | None = None) -> int:
        """Record the reassignment of a partition, or its change."""
        path = znodes.reassignment_path(topic, number)
        partition = self.partitions[topic, number]
        if partition.top:
            written = partition.top if top is None else top
            data = znodes.encode_reassignment(ReassignmentZnode(written, target))
            return self.control(self.put(path, data))
        written = len(partition.assigned) if top is None else top
        self.partitions[topic, number] = replace(partition, top=written)
        data = znodes.encode_reassignment(ReassignmentZnode(written, target))
        parent = f"{znodes.REASSIGNMENTS}/{topic}"
        parents = () if parent in self._versions else (self.create(parent),)
        return self.control(*parents, self.create(path, data))

    def remove_record(self, topic: str, number: int) -> int:
        """Remove the record of a reassignment, and with the last one the znode above it."""
        partition = self.partitions[topic, number]
        self.partitions[topic, number] = replace(partition, top=0)
        gone = self.delete(znodes.reassignment_path(topic, number))
        if any(p.top for (name, _), p in self.partitions.items() if name == topic):
            return self.control(gone)
        return self.control(gone, self.delete(f"{znodes.REASSIGNMENTS}/{topic}"))

    def expand(self, topic: str, number: int, target: ReplicaList) -> int:
        """Assign the target beside what is assigned, and announce it by a new leader epoch."""
        assigned = self.partitions[topic, number].assigned
        added = tuple(replica for replica in target if replica not in assigned)
        self.write_assigned(topic, number, assigned + added)
        return self.write_state(topic, number)

    def drop(self, topic: str, number: int, dropped: ReplicaList) -> int:
        """Carry out a drop: out of the in-sync set first, then out of the assignment."""
        partition = self.partitions[topic, number]
        if any(replica in dropped for replica in partition.state.isr):
            isr = tuple(replica for replica in partition.state.isr if replica not in dropped)
            self.write_state(topic, number, isr=isr)
        kept = tuple(replica for replica in partition.assigned if replica not in dropped)
        return self.write_assigned(topic, number, kept)

    def move_leader(self, topic: str, number: int, target: ReplicaList) -> int:
        """Elect a leader out of the target where the old one is not in it."""
        state = self.partitions[topic, number].state
        if state.leader in target:
            return self.zxid
        leader = next(replica for replica in target if replica in state.isr)
        return self.write_state(topic, number, leader)

    def stop_old(self, topic: str, number: int, target: ReplicaList) -> int:
        """Take the old replicas out of the in-sync set, one write each."""
        zxid = self.zxid
        for replica in self.partitions[topic, number].state.isr:
            if replica not in target:
                isr = self.partitions[topic, number].state.isr
                zxid = self.write_state(topic, number, isr=tuple(r for r in isr if r != replica))
        return zxid

    def complete(self, topic: str, number: int, target: ReplicaList) -> int:
        """Complete a reassignment whose target is in sync."""
        self.move_leader(topic, number, target)
        self.stop_old(topic, number, target)
        self.write_assigned(topic, number, target)
        return self.remove_record(topic, number)

    def begin_reassign(self, topic: str, targets: Mapping[int, ReplicaList]) -> int:
        """Request, record and expand; answers the zxid of the request's removal."""
        sequence = self.submit(topic, targets)
        for number, target in targets.items():
            self.record(topic, number, target)
        zxid = self.remove_request(sequence)
        for number, target in targets.items():
            self.expand(topic, number, target)
        return zxid

    def reassign(self, topic: str, targets: Mapping[int, ReplicaList]) -> int:
        """Carry a reassignment of several partitions of one topic from request to completion."""
        self.begin_reassign(topic, targets)
        for number, target in targets.items():
            self.join(topic, number, target)
        zxid = self.zxid
        for number, target in targets.items():
            zxid = self.complete(topic, number, target)
        return zxid

    def change_target(
        self, topic: str, number: int, target: ReplicaList, dropped: ReplicaList
    ) -> int:
        """Change the reassignment in flight of one partition, dropping what the rule drops."""
        sequence = self.submit(topic, {number: target})
        self.record(topic, number, target)
        self.remove_request(sequence)
        self.drop(topic, number, dropped)
        return self.expand(topic, number, target)


def write_sample(topics: int, partitions: int = 10, chroot: str = "") -> list[Transaction]:
    """Return the history of a cluster whose topics are each reassigned, one in five changed midway.

    About 15 transactions come of each partition, of `partitions` in each topic. Which brokers a
    partition goes through differs from partition to partition.
    """
    brokers = 24
    cluster = SampleCluster(brokers, chroot)

    def choose(number: int, *places: int) -> ReplicaList:
        return tuple(1 + (number * 7 + place) % brokers for place in places)

    for index in range(topics):
        topic, shift = f"topic-{index:05d}", index * 5
        numbers = range(partitions)
        cluster.create_topic(topic, {n: choose(n + shift, 0, 1, 2) for n in numbers})
        cluster.begin_reassign(topic, {n: choose(n + shift, 3, 4, 5) for n in numbers})
        for number in numbers:
            target = choose(number + shift, 3, 4, 5)
            if number % 5 == 4:
                cluster.join(topic, number, target[1:2])
                dropped, target = target, choose(number + shift, 3, 6, 7)
                cluster.change_target(topic, number, target, dropped)
            cluster.join(topic, number, target)
            cluster.complete(topic, number, target)
    return cluster.transactions
