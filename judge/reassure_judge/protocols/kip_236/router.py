"""From transactions to requests and to the records of reassignments in flight."""

from typing import Any, ClassVar, Final, NamedTuple

from reassure_judge.doubt import GRACE_MS
from reassure_judge.history import (
    BadMended,
    BadRequestRemoved,
    BadRequestSeen,
    ClusterHistory,
    Unreadable,
)
from reassure_judge.router import Router
from reassure_judge.transaction_reader import ZnodePath
from reassure_model.partition import Reassignment, Request
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import BadZnode, RequestZnode

OWN_PARENTS: Final = frozenset({znodes.REASSIGNMENT_REQUESTS, znodes.REASSIGNMENTS})


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
        return bool(self.roots & OWN_PARENTS or self.waiting or self.taken_zxid or self.records)


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
        self, cluster: RequestHistory, path: str, data: bytes | None, topic: str, number: int | None
    ) -> str | None:
        """Say why a record that somebody else wrote is none of ours, None when it may be."""
        if data is None:
            return None
        if number is None:
            return "is not named like a partition"
        if self._given or not self._get_author(cluster).is_client:
            return None
        if number not in cluster.topics.get(topic, {}):
            return "the partition does not exist"
        try:
            znodes.decode_reassignment(path, data)
        except BadZnode as error:
            return error.reason
        return None
