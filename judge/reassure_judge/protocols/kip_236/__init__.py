"""KIP-236, as written and amended: requests in a queue, a record of each reassignment in flight.

The rules are the model's (`reassure_model.protocols.kip_236`). What a controller has in mind and
did not write is kept as several possible states (`reassure_judge.protocols.kip_236.possible`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

from reassure_judge.alike import NAMES, RECORD, SEQUENCE, Names
from reassure_judge.doubt import GRACE_MS
from reassure_judge.history import (
    AssignedWritten,
    BadMended,
    BadRequestRemoved,
    BadRequestSeen,
    ClusterHistory,
    Observation,
    StateWritten,
    Unreadable,
)
from reassure_judge.protocols.kip_236.possible import (
    RECORDS,
    Possible,
    believe,
    drop_head,
    fail_over,
    is_silent,
    list_named,
    remove_request,
    settle_request,
    submit_request,
    take_silent_steps,
)
from reassure_judge.reader import ZnodePath
from reassure_judge.router import Router
from reassure_judge.rules import Fault, Rules, Sign, Signs, list_repeated, show_state
from reassure_judge.standing import look_past
from reassure_model.controllers import ACTING, DEPOSED
from reassure_model.machine import Due
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, Partition, Reassignment, Request
from reassure_model.protocols.kip_236.machine import JUDGEMENT
from reassure_model.protocols.kip_236.requests import is_remembered
from reassure_model.protocols.kip_236.rules import accept_write
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
    adopt,
)
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import BadZnode, ReplicaList, RequestZnode

_ANY: Final = ("znode.well-formed",)
_ASSIGNED: Final = (*_ANY, "topic.partitions-kept", "topic.content-kept")
_ON_REQUESTS: Final = (*RECORDS, DeleteRequest)
_PROTOCOL: Final = frozenset({znodes.REASSIGNMENT_REQUESTS, znodes.REASSIGNMENTS})
_FOR: Final = "recorded for"
"""Under this the request is kept for which the record in flight was written last."""


# From transactions to observations ----------------------------------------------------------------


class ReassignmentWritten(NamedTuple):
    """The record of a reassignment was written, or deleted (None)."""

    reassignment: Reassignment | None


class RequestSubmitted(NamedTuple):
    """A request that names this partition was submitted."""

    request: Request


class RequestRemoved(NamedTuple):
    """A request that names this partition was removed."""

    sequence: int


class RequestHistory(ClusterHistory):
    """What is remembered of requests and records besides."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.records: dict[str, set[str]] = {}
        """By topic with a znode for its records: the records in it."""
        self.bad: dict[str, str] = {}
        self.waiting: dict[str, int] = {}
        """What waits in the request queue: zxid of its creation, by path."""
        self.taken_zxid = 0
        """When something was taken out of the request queue last."""

    def find_untouched(self) -> frozenset[str]:
        """Return what waits in the request queue and came after the last thing was taken there.

        A controller that looked at the queue would have taken something: this one did not look, or
        stopped at the first thing that it saw.
        """
        return frozenset(path for path, zxid in self.waiting.items() if zxid > self.taken_zxid)

    def speaks_requests(self) -> bool:
        """Whether there is a sign of KIP-236: its parents, a request or a record."""
        return bool(self.roots & _PROTOCOL or self.waiting or self.taken_zxid or self.records)


class RequestRouter(Router[RequestHistory]):
    """Reads the request queue and the records as well."""

    history = RequestHistory
    apart: ClassVar[frozenset[str]] = frozenset(
        {"topic", "state", "topic_config", "deletion", "parent", "flight"}
    )
    kinds: ClassVar[tuple[str, ...]] = (
        r"(?P<request_parents>/admin/reassignment_requests|/admin/reassignments)",
        r"/admin/reassignment_requests/(?P<request>[^/]+)",
        r"/admin/reassignments/(?P<parent>[^/]+)",
        r"/admin/reassignments/(?P<flight>[^/]+)/(?P<flight_partition>[^/]+)",
    )

    def __init__(self, readings: Readings, grace_ms: int = GRACE_MS, **more: Any) -> None:
        super().__init__(readings, grace_ms, **more)
        self._handlers |= {
            "request_parents": self._on_root,
            "request": self._on_request,
            "flight": self._on_flight,
            "parent": self._on_parent,
        }
        self._touched: dict[tuple[str, str], None] = {}
        """Chroot and topic of the records that this transaction wrote."""

    def _end_transaction(self) -> None:
        super()._end_transaction()
        for chroot, topic in self._touched:
            self._about = topic
            self._look_at_parent(self.get_cluster(chroot), topic)
        self._touched.clear()

    def _on_request(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        sequence = znodes.parse_request_name(at.first)
        if data is None:
            self._on_request_gone(cluster, at.path, sequence)
            return
        cluster.waiting.setdefault(at.path, self._now[0])
        # A request may be changed in its place: then what it was is gone.
        if cluster.bad.pop(at.path, None) is not None:
            self._emit(cluster, "", -1, at.path, BadMended())
        elif sequence is not None:
            self._drop_request(cluster, at.path, sequence)
        if sequence is None:
            reason = "is not named like a request"
            self._on_bad(cluster, at.path, "request.foreign-removed", reason)
            return
        if self._is_left_to_others(cluster.chroot, data):
            cluster.requests[sequence] = ()
            return
        try:
            request = znodes.decode_request(at.path, data)
        except BadZnode as error:
            large = len(data) > znodes.MAX_ZNODE_BYTES
            clause = "request.refuse.too-large" if large else "request.refuse.malformed"
            self._on_bad(cluster, at.path, clause, error.reason)
            return
        if not request.assignments:
            self._on_bad(cluster, at.path, "request.consumed", "asks for nothing")
            return
        cluster.requests[sequence] = tuple(request.assignments)
        self._tell_queue(cluster, at.path, sequence, request)
        for (topic, number), target in request.assignments.items():
            asked = Request(sequence, target, request.legacy)
            self._emit(cluster, topic, number, at.path, RequestSubmitted(asked))

    def find_asked(self, name: str, data: bytes) -> frozenset[str] | None:
        """Return the topics that a request names, None where it is wrong."""
        try:
            asked = znodes.decode_request(name, data).assignments
        except BadZnode:
            return None
        is_one = asked and znodes.parse_request_name(name) is not None
        return frozenset(topic for topic, _ in asked) if is_one else None

    def _is_left_to_others(self, chroot: str, data: bytes) -> bool:
        """Whether no topic that a request names is judged here, nor what it is as a whole."""
        owns = self.owns
        if owns is None or not self.apart or owns(chroot, ""):
            return False
        topics = znodes.find_named_topics(data)
        return topics is not None and not any(owns(chroot, topic) for topic in topics)

    def _on_request_gone(self, cluster: RequestHistory, path: str, sequence: int | None) -> None:
        if cluster.waiting.pop(path, None) is not None:
            cluster.taken_zxid = self._now[0]
        if cluster.bad.pop(path, None) is not None:
            self._emit(cluster, "", -1, path, BadRequestRemoved())
        elif sequence is not None:
            self._drop_request(cluster, path, sequence)

    def _drop_request(self, cluster: RequestHistory, path: str, sequence: int) -> None:
        if sequence in cluster.requests:
            self._tell_queue(cluster, path, sequence, None)
        for topic, number in cluster.requests.pop(sequence, ()):
            self._emit(cluster, topic, number, path, RequestRemoved(sequence))

    def _tell_queue(
        self, cluster: RequestHistory, path: str, sequence: int, request: RequestZnode | None
    ) -> None:
        """Take note of a request that was made, or is gone (None), as a whole."""

    def _on_bad(self, cluster: RequestHistory, path: str, clause: str, reason: str) -> None:
        cluster.bad[path] = clause
        self._emit(cluster, "", -1, path, BadRequestSeen(clause, reason))

    def _on_flight(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        topic = at.first
        if data is None and cluster.bad.pop(at.path, None) is not None:
            self._note_record(cluster, topic, at.second, gone=True)
            self._emit(cluster, "", -1, at.path, BadRequestRemoved())
            return
        self._note_record(cluster, topic, at.second, gone=data is None)
        number = znodes.parse_number(at.second)
        reason = self._find_foreign(cluster, at.path, data, topic, number)
        if reason is not None:
            self._on_bad(cluster, at.path, "child.foreign-removed", reason)
            return
        if number is None:
            return
        if data is None:
            self._emit(cluster, topic, number, at.path, ReassignmentWritten(None))
            return
        try:
            found = znodes.decode_reassignment(at.path, data)
        except BadZnode as error:
            self._emit(cluster, topic, number, at.path, Unreadable(error.reason))
            return
        record = Reassignment(found.target, found.top, found.legacy)
        self._emit(cluster, topic, number, at.path, ReassignmentWritten(record))

    def _on_parent(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        topic = at.first
        if data is not None:
            cluster.records.setdefault(topic, set())
        else:
            cluster.records.pop(topic, None)
            if cluster.bad.pop(at.path, None) is not None:
                self._emit(cluster, "", -1, at.path, BadRequestRemoved())
        self._touch(cluster, topic)

    def _touch(self, cluster: RequestHistory, topic: str) -> None:
        self._touched[cluster.chroot, topic] = None
        self._unfinished = True

    def _note_record(self, cluster: RequestHistory, topic: str, name: str, *, gone: bool) -> None:
        records = cluster.records.get(topic)
        if records is not None:
            (records.discard if gone else records.add)(name)
            self._touch(cluster, topic)

    @clause("child.parent-gone")
    def _look_at_parent(self, cluster: RequestHistory, topic: str) -> None:
        """Note whether the znode above a topic's records is left without any."""
        path = f"{znodes.REASSIGNMENTS}/{topic}"
        records = cluster.records.get(topic)
        if records is not None and not records:
            if path not in cluster.bad:
                self._on_bad(cluster, path, "child.parent-gone", "no record is left in it")
        elif cluster.bad.pop(path, None) is not None:
            self._emit(cluster, "", -1, path, BadMended())

    def _find_foreign(
        self,
        cluster: RequestHistory,
        path: str,
        data: bytes | None,
        topic: str,
        number: int | None,
    ) -> str | None:
        """Say why a record that somebody else wrote is none of ours, None when it may be."""
        if data is None:
            return None
        if number is None:
            return "is not named like a partition"
        author = cluster.get_author(self._now[2], fenced=cluster.chroot in self._fenced)
        if self._given or not author.is_client or author.fenced:
            return None
        if number not in cluster.topics.get(topic, {}):
            return "the partition does not exist"
        try:
            znodes.decode_reassignment(path, data)
        except BadZnode as error:
            return error.reason
        return None


# The rules ----------------------------------------------------------------------------------------


def find_write(before: Partition, event: object) -> Write | None:
    """Return the write of a controller that an event is; None for what is a client's."""
    match event:
        # The most frequent first: each case costs a little.
        case StateWritten(state, _) if state is not None:
            return CreateState(state) if before.state is None else WriteState(state)
        case AssignedWritten(assigned) if assigned is not None and before.assigned is not None:
            return WriteAssigned(assigned)
        case ReassignmentWritten(None) if before.reassignment is not None:
            return DeleteReassignment()
        case ReassignmentWritten(record) if record is not None:
            if before.reassignment is None:
                return CreateReassignment(record)
            return UpdateReassignment(record)
        case RequestRemoved(sequence):
            return DeleteRequest(sequence)
    return None


class RequestRules(Rules[Possible, Write]):
    """KIP-236."""

    profiles: ClassVar[tuple[str, ...]] = ("kip-236", "kip-236-amended")
    driven: ClassVar[tuple[str, ...]] = ("kip-236", "kip-236-amended")
    router: ClassVar[type[RequestRouter]] = RequestRouter
    judgement = JUDGEMENT
    leaders = (ChangeIsr,)
    names: ClassVar[Names] = {
        **NAMES,
        ReassignmentWritten: {"reassignment": RECORD},
        RequestSubmitted: {"request": RECORD},
        RequestRemoved: {"sequence": SEQUENCE},
    }
    flights = (ReassignmentWritten,)
    noticed = _ON_REQUESTS
    kept_at_rest = ("controller.epoch.kept", "znode.roots-kept", "topic.settings-kept")

    def __init__(self, profile: str, readings: Readings) -> None:
        super().__init__(profile, readings)
        self.is_view_kept = is_remembered(readings)

    @classmethod
    def find_sign(cls, signs: Signs) -> Sign | None:
        """Return the tree of requests or records that was written."""
        tree = next((tree for tree in sorted(_PROTOCOL, reverse=True) if tree in signs.trees), None)
        return None if tree is None else Sign(2, f"there is {tree}", {})

    def begin(self) -> Possible:
        """Return a partition that does not exist."""
        return Possible(self.judgement.begin)

    def find_write(self, state: Possible, seen: Observation) -> Write | None:
        """Say which write this is; a session that is broker and controller may write as either."""
        event, before, author = seen.event, state.partition, seen.author
        if isinstance(event, StateWritten) and event.state is not None:
            if before.assigned is None:
                return None
            if before.state is not None and not author.fenced:
                kept = event.state.leader_epoch == before.state.leader_epoch
                # Only a controller raises the epoch.
                if kept or (event.writer >= 0 and author.office not in (ACTING, DEPOSED)):
                    return ChangeIsr(event.state, event.writer)
        if isinstance(event, RequestRemoved) and author.is_client and not author.fenced:
            # Whoever made a request may withdraw it.
            return None
        return find_write(before, event)

    def take_over(self, state: Possible, seen: Observation) -> Iterable[Possible]:
        """Take over what clients write, what is given, and what nobody may be asked about."""
        partition = state.partition
        match seen.event:
            case RequestSubmitted(request):
                return (submit_request(state, request),)
            case AssignedWritten(None):
                return (state._replace(partition=Partition(requests=partition.requests)),)
            case AssignedWritten(assigned):
                return (state._replace(partition=replace(partition, assigned=assigned)),)
            case StateWritten(written, _):
                return (state._replace(partition=replace(partition, state=written)),)
            case ReassignmentWritten(record):
                taken = replace(partition, reassignment=record, drop_due=False)
                return (state._replace(partition=taken),)
            case RequestRemoved(sequence):
                return remove_request(state, sequence)
        return (state,)

    def fail_over(self, state: Possible) -> Possible:
        """Return the state as the next controller finds it, who remembers nothing."""
        return fail_over(state, self.readings)

    def accept(
        self, state: Possible, write: Write, around: Environment
    ) -> Accepted[Partition] | Rejected:
        """Ask the model, with what the controller has in mind about the lowest request."""
        if state.decided and isinstance(write, DeleteRequest) and not state.withdrawn:
            partition = state.partition
            if partition.requests[0].sequence == write.sequence:
                return Accepted(drop_head(partition), (state.decided, "request.consumed"))
        # A request that is removed was there: it is not the one that was withdrawn.
        gone = state.withdrawn and isinstance(write, DeleteRequest)
        partition = drop_head(state.partition) if gone else state.partition
        return accept_write(partition, write, around, self.readings)

    def follow(self, state: Possible, after: Partition, write: Write) -> Possible:
        """Return the state after a write; what was in mind about the lowest request is settled."""
        if state.decided or state.withdrawn:
            return settle_request(Possible(after, state.decided, state.withdrawn), write)
        return Possible(after)

    def count_besides(self, write: Write) -> tuple[str, ...]:
        """Return what any write, and one of the assignment, puts to the test."""
        return _ASSIGNED if isinstance(write, WriteAssigned) else _ANY

    @clause("request.same-target.no-change")
    def notice(self, state: Possible, write: Write, memory: dict[str, int]) -> tuple[str, ...]:
        """Notice a request that goes though its target was recorded for another one."""
        requests, flight = state.partition.requests, state.partition.reassignment
        if not requests:
            return ()
        if not isinstance(write, DeleteRequest):
            memory[_FOR] = requests[0].sequence
            return ()
        same = flight is not None and flight.target == requests[0].target
        if same and memory.get(_FOR) != requests[0].sequence:
            return ("request.same-target.no-change",)
        return ()

    def is_bound(self, state: Possible) -> bool:
        """Whether the lowest request is still there: one that is gone binds nobody."""
        return not state.withdrawn

    def list_named(self, state: Possible, write: Write | None) -> frozenset[int]:
        """Return the brokers that matter to a partition, or to a write to it."""
        return list_named(state.partition, write)

    def list_wanted(self, states: Iterable[Possible]) -> frozenset[int] | None:
        """Return the replicas that the lowest requests ask for."""
        heads = [request for state in states for request in state.partition.requests[:1]]
        if not heads:
            return None
        return frozenset(replica for request in heads for replica in request.target)

    def is_silent(self, state: Possible) -> bool:
        """Whether there is a silent step to think of at all."""
        return is_silent(state.partition)

    def take_silent_steps(
        self, state: Possible, views: Iterable[Environment]
    ) -> Iterator[Possible]:
        """Yield the states that one silent step leads to."""
        return take_silent_steps(state, views, self.readings)

    def list_stopping(
        self, state: Possible, write: Write, around: Environment
    ) -> Iterator[frozenset[int]]:
        """Yield the live brokers that a controller's write takes out of the in-sync set."""
        before = state.partition.state
        if isinstance(write, WriteState) and before is not None:
            out = frozenset(before.isr).difference(write.state.isr) & around.live
            if out:
                yield out

    def adopt(self, partition: Partition, write: Write) -> Partition:
        """Return the partition with what was written."""
        return adopt(partition, write)

    def believe(self, state: Possible, write: Write) -> tuple[Possible, ...]:
        """Return all that the author of a write that no rule allows may have in mind."""
        return believe(state, write, self.readings)

    def list_faults(self, partition: Partition) -> frozenset[Fault]:
        """Return what is wrong with a partition as it stands."""
        return super().list_faults(partition) | list_repeated(partition.assigned, partition.state)

    def look_past(self, partition: Partition, write: Write) -> tuple[Partition, Write]:
        """Return both with every replica once, and the leader in sync."""
        return look_past(partition, write)

    @clause("request.consumed")
    def find_debt(
        self, partition: Partition, owed: Due[Write], untouched: frozenset[str]
    ) -> Rejected:
        """Say which rule is broken, or that the queue was not looked at."""
        if isinstance(owed.write, _ON_REQUESTS) and partition.requests:
            path = znodes.request_path(partition.requests[0].sequence)
            if path in untouched:
                return _find_unseen(path, f"{owed.clause} says what becomes of it")
        return super().find_debt(partition, owed, untouched)

    def find_leftover(self, clause_id: str, path: str, reason: str, *, untouched: bool) -> Rejected:
        """Say that something is still there, or that the queue was not looked at."""
        if untouched:
            return _find_unseen(path, reason)
        return super().find_leftover(clause_id, path, reason, untouched=untouched)

    def list_kept(self, partition: Partition) -> Iterator[str]:
        """Yield the clauses that a partition puts to the test by being there."""
        if partition.assigned is not None:
            yield "topic.removed-when-asked"
        if partition.state is not None:
            yield "partition.state-kept"

    def tells_flight(self, event: object) -> bool | None:
        """Whether there is a record from here on."""
        return event[0] is not None if isinstance(event, ReassignmentWritten) else None

    def find_target(self, event: object) -> ReplicaList | None:
        """Return the target that a record holds."""
        record = event[0] if isinstance(event, ReassignmentWritten) else None
        return None if record is None else record.target

    def find_route(self, event: object) -> str:
        """Return whether the record is of a request, or of an entry of the old znode."""
        record = event[0] if isinstance(event, ReassignmentWritten) else None
        return "legacy record" if record is not None and record.legacy else "record"

    def exists(self, partition: Partition) -> bool:
        """Whether there is a partition, or a request that names it."""
        return partition.assigned is not None or bool(partition.requests)

    def describe(self, write: Write) -> str:
        """Return the content that a write leaves."""
        return _describe(write)

    def describe_before(self, partition: Partition, event: object) -> str:
        """Return what an event changed."""
        return _describe_before(partition, event)

    def describe_resting(
        self, partition: Partition, topic: str, number: int, owed: Due[Write] | None
    ) -> tuple[str, str]:
        """Return the znode that should have been written, and its content."""
        return _describe_resting(partition, topic, number, owed)


RULES: Final = RequestRules


def _find_unseen(path: str, why: str) -> Rejected:
    """Say what is broken where nothing was taken from the request queue since this came.

    What the request asks for has no part in it yet: whoever does not look leaves a good one too.
    """
    return Rejected(
        "request.consumed",
        f"nothing was taken from the queue since {path} came: it was not looked at, or is kept "
        f"({why})",
    )


# In words -----------------------------------------------------------------------------------------


def _show_reassignment(record: Reassignment | None) -> str:
    if record is None:
        return ""
    return znodes.encode_reassignment(
        znodes.ReassignmentZnode(record.top, record.target, record.legacy)
    ).decode()


def _describe(write: Write) -> str:
    """Return the content that a write leaves, as text."""
    match write:
        case CreateState(state) | WriteState(state) | ChangeIsr(state, _):
            return show_state(state)
        case WriteAssigned(assigned):
            return f"assigned {list(assigned)}"
        case CreateReassignment(record) | UpdateReassignment(record):
            return _show_reassignment(record)
        case DeleteReassignment():
            return "the record of the reassignment removed"
        case DeleteRequest(sequence):
            return f"request {sequence} removed"


def _describe_before(partition: Partition, event: object) -> str:
    match event:
        case StateWritten():
            return show_state(partition.state)
        case AssignedWritten():
            return "" if partition.assigned is None else f"assigned {list(partition.assigned)}"
        case ReassignmentWritten():
            return _show_reassignment(partition.reassignment)
        case RequestRemoved(sequence):
            targets = [r.target for r in partition.requests if r.sequence == sequence]
            return f"request {sequence} for {list(targets[0])}" if targets else ""
    return ""


def _describe_resting(
    partition: Partition, topic: str, number: int, owed: Due[Write] | None
) -> tuple[str, str]:
    """Return the znode that should have been written, and its content."""
    match owed.write if owed is not None else None:
        case WriteAssigned():
            return znodes.topic_path(topic), f"assigned {list(partition.assigned or ())}"
        case CreateReassignment() | UpdateReassignment() | DeleteReassignment():
            path = znodes.reassignment_path(topic, number)
            return path, _show_reassignment(partition.reassignment)
        case DeleteRequest(sequence):
            target = partition.requests[0].target
            return znodes.request_path(sequence), f"request {sequence} for {list(target)}"
        case _:
            return znodes.state_path(topic, number), show_state(partition.state)
