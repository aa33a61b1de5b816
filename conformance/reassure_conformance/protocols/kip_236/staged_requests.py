"""Requests and records of reassignments on a stage: what the worlds of KIP-236 ask of it.

Whatever stands on top of the request protocol (the old znode, healing) asks for the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NoReturn

from kazoo.protocol.states import ZnodeStat

from reassure_conformance.adapter import Reply
from reassure_conformance.gate.steps import format_partition
from reassure_conformance.scenarios.live.stage import (
    ANOTHER_WAY,
    REFUSED,
    Done,
    NotLive,
    Stage,
)
from reassure_judge.verdicts import Violation
from reassure_model.environment import Join, Leave
from reassure_model.partition import (
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
    from_znode,
    is_target_in_sync,
    to_znode,
)
from reassure_model.protocols.kip_236 import Identity
from reassure_model.protocols.kip_236.narration import format_write
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_spec.znodes import PartitionKey, ReplicaList


class Writes:
    """What a controller writes to partitions, in words, and what need not be told of it."""

    def __init__(self, stage: Stage) -> None:
        self._stage: Final = stage
        self._early: dict[PartitionKey, Done] = {}
        """Raises of the leader epoch that may announce an end before it is due."""

    def count_raises(self, key: PartitionKey) -> int:
        """Return how often the leader epoch was raised though nobody owed that."""
        return self._stage.raises[format_partition(key)]

    def _lower_state(self, key: PartitionKey, state: LeaderAndIsr) -> LeaderAndIsr:
        return replace(state, leader_epoch=state.leader_epoch - self.count_raises(key))

    def lower(self, key: PartitionKey, partition: Partition) -> Partition:
        """Return the partition with its epoch less the raises that nobody owed."""
        if partition.state is None:
            return partition
        return replace(partition, state=self._lower_state(key, partition.state))

    def recall(self, key: PartitionKey, stored: Partition) -> Partition:
        """Return what is stored, lowered, with what follows from the order of earlier writes."""
        followed = self._stage.partition(key)
        return replace(
            self.lower(key, stored),
            drop_due=followed.drop_due,
            announce_due=followed.announce_due,
            completing=followed.completing,
        )

    def tell(self, done: Iterable[Done]) -> list[tuple[PartitionKey, str]]:
        """Return the lines of what was done, each with its partition.

        The controller raises the leader epoch before it deletes a dropped log. Where the drop
        leaves the target, that raise announces the end as well: it is told after the drop, where
        the rules owe it, and is not spare. Raises NotLive for what nobody owed.
        """
        lines: list[tuple[PartitionKey, str]] = []
        for one in done:
            if one.is_spare_raise and _leaves_target_in_sync(one.before):
                self._count_spare(self._early.pop(one.key, None))
                self._early[one.key] = one
            elif one.is_spare_raise:
                self._count_spare(one)
            else:
                lines.append((one.key, self._format_done(one)))
            if one.clause == "drop.carried-out" and one.key in self._early:
                text = self._format_write(self._early.pop(one.key))
                lines.append((one.key, f"{text} (expand.announced)"))
        return lines

    def _count_spare(self, raised: Done | None) -> None:
        if raised is not None:
            self._stage.raises[format_partition(raised.key)] += 1

    def _format_write(self, done: Done) -> str:
        write: Write = done.write
        if isinstance(write, WriteState | CreateState):
            write = replace(write, state=self._lower_state(done.key, write.state))
        return format_write(write, self.lower(done.key, done.before))

    def _format_done(self, done: Done) -> str:
        text = self._format_write(done)
        if done.broken:
            return f"{text} (breaks {done.broken})"
        if not done.clause and self._stage.violations:
            return f"{text} (not owed)"
        if not done.clause:
            raise NotLive(ANOTHER_WAY, text)
        return f"{text} ({done.clause})"


def _leaves_target_in_sync(partition: Partition) -> bool:
    """Whether the drop that is due leaves the target, in its order, and all of it is in sync."""
    if not partition.drop_due or partition.reassignment is None:
        return False
    target = partition.reassignment.target
    kept = tuple(replica for replica in partition.assigned or () if replica in target)
    return kept == target and is_target_in_sync(partition)


def change_isr(stage: Stage, key: PartitionKey, action: Join | Leave) -> bool:
    """Have the leader change the in-sync set; answer whether it did."""
    joins = isinstance(action, Join)
    return stage.change_isr(action.replica, key, joins=joins) is Reply.OK


def refuse_to_go_on(action: Join | Leave) -> NoReturn:
    """Raise NotLive for a change of the in-sync set that the rules allow and no leader made."""
    raise NotLive(REFUSED, str(action))


def create_partition(
    stage: Stage, key: PartitionKey, partition: Partition, min_insync: int = 1, *, given: bool
) -> None:
    """Make a partition with its record. Where it is given, it was there before the story."""
    record: list[tuple[str, bytes]] = []
    if partition.reassignment is not None:
        content = _encode_record(partition.reassignment)
        record = [
            (f"{znodes.REASSIGNMENTS}/{key[0]}", b""),
            (znodes.reassignment_path(*key), content),
        ]
    assigned = partition.assigned or ()
    stage.create_partition(key, assigned, partition.state, min_insync, record, given=given)


def _encode_record(flight: Reassignment) -> bytes:
    record = znodes.ReassignmentZnode(flight.top, flight.target, flight.legacy)
    return znodes.encode_reassignment(record)


def submit(
    stage: Stage,
    targets: dict[PartitionKey, ReplicaList],
    *,
    legacy: bool = False,
    given: bool = False,
) -> None:
    """Make one request for these partitions."""
    content = znodes.encode_request(znodes.RequestZnode(targets, legacy))
    create_request(stage, content, given=given)


def create_request(stage: Stage, content: bytes, *, given: bool = False) -> None:
    """Make a request with this content."""
    stage.create(lambda driver: driver.submit(stage.chroot, [content]), given=given)


def forge(stage: Stage, key: PartitionKey, write: Write) -> Violation | None:
    """Make a write that nobody asked for, in the name of the controller or of a broker.

    The judge says of it what it says of any other in the log. Raises NotLive for a broker that has
    no session.
    """
    content = _encode(stage, key, write)
    if isinstance(write, ChangeIsr):
        assert content is not None
        return stage.forge_as(write.writer, znodes.state_path(*key), content)
    return stage.forge(_list_paths(key, write), content)


def _list_paths(key: PartitionKey, write: Write) -> tuple[str, ...]:
    """Return the znode that a write is made to, after those above it that may be missing."""
    topic, number = key
    match write:
        case CreateState() | WriteState() | ChangeIsr():
            above = (f"{znodes.topic_path(topic)}/partitions", znodes.partition_path(topic, number))
            return (*above, znodes.state_path(topic, number))
        case WriteAssigned():
            return (znodes.topic_path(topic),)
        case CreateReassignment() | UpdateReassignment() | DeleteReassignment():
            return (f"{znodes.REASSIGNMENTS}/{topic}", znodes.reassignment_path(topic, number))
        case DeleteRequest(sequence):
            return (znodes.request_path(sequence),)


def _encode(stage: Stage, key: PartitionKey, write: Write) -> bytes | None:
    """Return the content that a write leaves, None where it deletes."""
    match write:
        case CreateState(state) | WriteState(state) | ChangeIsr(state, _):
            return znodes.encode_state(to_znode(state))
        case WriteAssigned(assigned):
            path = znodes.topic_path(key[0])
            lists = znodes.decode_topic(path, stage.fetch(path) or b"")
            return znodes.encode_topic({**lists, key[1]: assigned})
        case CreateReassignment(flight) | UpdateReassignment(flight):
            return _encode_record(flight)
        case DeleteReassignment() | DeleteRequest():
            return None


def read_partition(stage: Stage, key: PartitionKey) -> tuple[Partition, Identity | None]:
    """Return what the znodes hold of a partition, and the zxids of its record."""
    driver, chroot, root = stage.driver, stage.chroot, znodes.REASSIGNMENT_REQUESTS
    paths = (znodes.topic_path(key[0]), znodes.state_path(*key), znodes.reassignment_path(*key))
    names = driver.client.get_children_async(chroot + root)
    topic, state, record = driver.fetch(chroot, paths)
    queue = [f"{root}/{name}" for name in sorted(names.get())]
    assigned = None if topic is None else znodes.decode_topic(paths[0], topic[0]).get(key[1])
    requests = _find_requests(key, queue, driver.fetch(chroot, queue))
    partition = Partition(assigned, requests=tuple(requests))
    if state is not None:
        found = from_znode(znodes.decode_state(paths[1], state[0]))
        partition = replace(partition, state=found)
    if record is None:
        return partition, None
    flight = znodes.decode_reassignment(paths[2], record[0])
    in_flight = Reassignment(flight.target, flight.top, flight.legacy)
    identity = Identity(record[1].czxid, record[1].mzxid)
    return replace(partition, reassignment=in_flight), identity


def _find_requests(
    key: PartitionKey, paths: Iterable[str], found: Iterable[tuple[bytes, ZnodeStat] | None]
) -> Iterator[Request]:
    """Yield what the requests ask of a partition."""
    for path, content in zip(paths, found, strict=True):
        sequence = znodes.parse_request_name(path.rpartition("/")[2])
        if sequence is None or content is None:
            continue
        request = znodes.decode_request(path, content[0])
        if key in request.assignments:
            yield Request(sequence, request.assignments[key], request.legacy)
