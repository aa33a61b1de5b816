"""What the cluster is doing, as the tool reads it: assignments, brokers, reassignments.

A reassignment is known by its record under `/admin/reassignments`, by a request or an entry of the
old znode that no controller has dealt with yet, or, from Kafka 2.4 on, by what a topic says is
being added and removed. Whatever asked for it, all are listed.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from reassure_controller.session import Indefinite, connect, gather, stop
from reassure_lab.admin import LEGACY, PLACES, REQUESTS
from reassure_lab.admin.errors import BadContent, ClusterNotFound, Unsettled
from reassure_lab.node.topics import take_racks
from reassure_spec.profiles import list_readers
from reassure_spec.znodes import (
    BROKER_IDS,
    CONTROLLER,
    DELETED_TOPICS,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    TOPICS,
    AssignmentZnode,
    BadZnode,
    LegacyEntry,
    PartitionKey,
    ReplicaList,
    RequestZnode,
    broker_path,
    decode_controller,
    decode_controller_protocols,
    decode_reassign_partitions,
    decode_reassignment,
    decode_request,
    decode_state,
    decode_topic_lists,
    parse_number,
    parse_request_name,
    reassignment_path,
    state_path,
    topic_path,
)

log = logging.getLogger(__name__)

Route = str
"""How a reassignment was asked for: see `PLACES`; `broker`: by a request to one, from 2.4 on."""
Guard = tuple[str, int]
"""A znode, and the version that it must still have, -1 for any."""
Decoded = TypeVar("Decoded")


@dataclass(frozen=True, slots=True)
class Active:
    """A reassignment that is asked for or in flight."""

    key: PartitionKey
    route: Route
    target: ReplicaList
    assigned: ReplicaList = ()
    original: ReplicaList | None = None
    """The replicas before the reassignment, None where ZooKeeper does not tell."""
    in_sync: ReplicaList = ()
    top: int | None = None
    """How many replicas there were before, None where no record says so."""
    is_changed: bool = False
    """Whether the record had another target before."""
    guards: tuple[Guard, ...] = ()
    """What all this was read from."""

    @property
    def adding(self) -> ReplicaList:
        """Replicas that were not assigned before; where that is not told, those not in sync."""
        before = self.in_sync if self.original is None else self.original
        return tuple(replica for replica in self.target if replica not in before)

    @property
    def removing(self) -> ReplicaList:
        """Replicas that will go."""
        return tuple(replica for replica in self.assigned if replica not in self.target)


@dataclass(frozen=True, slots=True)
class OldZnodeRead:
    """Content of `/admin/reassign_partitions`."""

    entries: tuple[LegacyEntry, ...]
    version: int


@dataclass(slots=True)
class ClusterReading:
    """What was read."""

    assigned: dict[PartitionKey, ReplicaList] = field(default_factory=dict)
    """Of the topics that were asked about, and of those with a reassignment."""
    racks: dict[int, str | None] = field(default_factory=dict)
    """By live broker."""
    active: dict[PartitionKey, Active] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    """Topics that are to be deleted."""
    old_znode: OldZnodeRead | None = None
    takes_requests: bool = False
    """Whether the cluster has the paths of KIP-236."""
    controller: int | None = None
    """The active controller, None where there is none."""
    served: frozenset[str] | None = None
    """The protocols that it serves, None where it does not say."""
    requests: list[tuple[str, int, RequestZnode]] = field(default_factory=list)
    """The requests that nobody has dealt with: path, version and content."""

    @property
    def is_like_kafka(self) -> bool:
        """Whether the controller is a broker and does not say what it serves, as Kafka's."""
        return self.served is None and self.controller in self.racks

    def is_unread(self, route: Route) -> bool:
        """Whether it is known that nobody looks at what is asked for by this route."""
        if self.served is not None:
            return route in PLACES and self.served.isdisjoint(list_readers(PLACES[route]))
        return route == REQUESTS and self.is_like_kafka

    def is_stranded(self, active: Active) -> bool:
        """Whether nobody has taken this up, and nobody will."""
        return active.top is None and self.is_unread(active.route)


def open_cluster(hosts: str, timeout_s: float) -> KazooClient:
    """Return a client in a cluster's chroot. Raises NoCluster, which names what is not there."""
    try:
        client = connect(hosts, timeout_s=timeout_s, make_chroot=False)
    except (KazooTimeoutError, ValueError) as error:
        raise ClusterNotFound(f"{hosts}: no ZooKeeper answers; start one or correct it") from error
    try:
        found = read([client.exists_async(BROKER_IDS)])[0]
    except Unsettled:
        stop(client)
        raise
    if found is None:
        stop(client)
        raise ClusterNotFound(
            f"{hosts}: ZooKeeper answers, but {BROKER_IDS} does not exist there, so that there is "
            "no Kafka cluster; correct the chroot behind host:port"
        )
    return client


def read(reads: Iterable[Any]) -> list[Any]:
    """Wait for pipelined reads; None stands for a znode that is not there. Raises Unsettled."""
    try:
        return gather(reads)
    except Indefinite as indefinite:
        raise Unsettled(f"ZooKeeper does not answer ({indefinite}); ask again") from indefinite


def decode(decoder: Callable[[str, bytes], Decoded], path: str, data: bytes) -> Decoded:
    """Return what a znode holds. Raises BadContent, which names it."""
    try:
        return decoder(path, data)
    except BadZnode as bad:
        raise BadContent(bad.path, bad.reason) from bad


def read_state(client: KazooClient, topics: Iterable[str] | None = ()) -> ClusterReading:
    """Read what is being reassigned, the assignments of these topics, or of all, and brokers.

    What is asked for is read before the assignments: where both change meanwhile, the guards of a
    reassignment no longer hold. Raises Unsettled, BadContent.
    """
    state = ClusterReading()
    ids, names, deleted, roots = read(
        [
            client.get_children_async(BROKER_IDS),
            client.get_children_async(TOPICS),
            client.get_children_async(DELETED_TOPICS),
            client.exists_async(REASSIGNMENT_REQUESTS),
        ]
    )
    state.takes_requests, state.deleted = roots is not None, frozenset(deleted or ())
    state.racks = _read_racks(client, ids or ())
    _read_controller(client, state)
    _read_records(client, state)
    _read_requests(client, state)
    _read_old_znode(client, state)
    # What Kafka 2.4 and later has in flight stands in the topics alone.
    wanted = set(names or ()) if topics is None or not state.takes_requests else set(topics)
    _read_topics(client, state, sorted(wanted | {topic for topic, _ in state.active}))
    return state


def _read_racks(client: KazooClient, names: Iterable[str]) -> dict[int, str | None]:
    ids = sorted(number for name in names if (number := parse_number(name)) is not None)
    found = read([client.get_async(broker_path(broker)) for broker in ids])
    return take_racks(zip(ids, found, strict=True))


def _read_controller(client: KazooClient, state: ClusterReading) -> None:
    """Read who is controller, and what it serves; who writes something else there says nothing."""
    content = read([client.get_async(CONTROLLER)])[0]
    if content is None:
        return
    try:
        state.controller = decode_controller(CONTROLLER, content[0])
        state.served = decode_controller_protocols(CONTROLLER, content[0])
    except BadZnode as bad:
        log.warning("%s", bad)


def _read_records(client: KazooClient, state: ClusterReading) -> None:
    """Read `/admin/reassignments`: what is in flight."""
    topics = sorted(read([client.get_children_async(REASSIGNMENTS)])[0] or ())
    listed = read([client.get_children_async(f"{REASSIGNMENTS}/{topic}") for topic in topics])
    keys = [
        (topic, number)
        for topic, names in zip(topics, listed, strict=True)
        for name in names or ()
        if (number := parse_number(name)) is not None
    ]
    found = read([client.get_async(reassignment_path(*key)) for key in keys])
    for key, content in zip(keys, found, strict=True):
        if content is None:
            continue
        path, (data, stat) = reassignment_path(*key), content
        record = decode(decode_reassignment, path, data)
        state.active[key] = Active(
            key,
            LEGACY if record.legacy else REQUESTS,
            record.target,
            top=record.top,
            is_changed=stat.version > 0,
            guards=((path, stat.version),),
        )


def _read_requests(client: KazooClient, state: ClusterReading) -> None:
    """Read the requests that no controller has dealt with, in their order."""
    names = read([client.get_children_async(REASSIGNMENT_REQUESTS)])[0] or ()
    paths = sorted(
        f"{REASSIGNMENT_REQUESTS}/{n}" for n in names if parse_request_name(n) is not None
    )
    found = read([client.get_async(path) for path in paths])
    for path, content in zip(paths, found, strict=True):
        if content is None:
            continue
        try:
            request = decode_request(path, content[0])
        except BadZnode as bad:  # a controller deletes it and does nothing else
            log.warning("%s", bad)
            continue
        state.requests.append((path, content[1].version, request))
        for key, target in request.assignments.items():
            _ask(state, key, LEGACY if request.legacy else REQUESTS, target, (path, -1))


def _read_old_znode(client: KazooClient, state: ClusterReading) -> None:
    content = read([client.get_async(REASSIGN_PARTITIONS)])[0]
    if content is None:
        return
    data, stat = content
    entries = decode(decode_reassign_partitions, REASSIGN_PARTITIONS, data)
    state.old_znode = OldZnodeRead(entries, stat.version)
    for entry in entries:
        _ask(state, entry.key, LEGACY, entry.target, (REASSIGN_PARTITIONS, stat.version))
        if entry.original is not None:
            state.active[entry.key] = replace(state.active[entry.key], original=entry.original)


def _ask(
    state: ClusterReading, key: PartitionKey, route: Route, target: ReplicaList, guard: Guard
) -> None:
    """Note a target that a controller will take up, or that it will refuse to.

    What is in flight by another route stays as it is.
    """
    before = state.active.get(key, Active(key, route, target))
    if before.route == route:
        state.active[key] = replace(before, target=target, guards=(*before.guards, guard))


def _read_topics(client: KazooClient, state: ClusterReading, topics: Iterable[str]) -> None:
    """Read assignments, and complete what is known of reassignments by them."""
    names = tuple(topics)
    found = read([client.get_async(topic_path(topic)) for topic in names])
    for topic, content in zip(names, found, strict=True):
        if content is None:
            continue
        path, (data, stat) = topic_path(topic), content
        for number, lists in decode(decode_topic_lists, path, data).items():
            key = topic, number
            state.assigned[key] = lists.replicas
            known = state.active.get(key)
            if known is not None or lists.adding or lists.removing:
                active = _complete(known, key, lists)
                state.active[key] = replace(active, guards=(*active.guards, (path, stat.version)))
    # What is asked for partitions that there are not is refused by whoever looks at it.
    state.active = {key: one for key, one in state.active.items() if key in state.assigned}
    states = read([client.get_async(state_path(*key)) for key in state.active])
    for key, content in zip(tuple(state.active), states, strict=True):
        if content is not None:
            isr = decode(decode_state, state_path(*key), content[0]).isr
            state.active[key] = replace(state.active[key], in_sync=isr)


def _complete(known: Active | None, key: PartitionKey, lists: AssignmentZnode) -> Active:
    """Return a reassignment with what its topic says: who is assigned, and who was before."""
    assigned = lists.replicas
    if lists.adding or lists.removing:
        active = known or Active(key, "broker", _without(assigned, lists.removing))
        return replace(active, assigned=assigned, original=_without(assigned, lists.adding))
    assert known is not None
    original = known.original
    if original is None and known.top is not None:
        original = None if known.is_changed else _find_original(assigned, known)
    elif original is None and known.route == REQUESTS and set(known.target) - set(assigned):
        original = assigned  # nobody has dealt with it yet
    return replace(known, assigned=assigned, original=original)


def _find_original(assigned: ReplicaList, known: Active) -> ReplicaList | None:
    """Return the first replicas, as many as there were, where what is added stands behind them."""
    first, rest = assigned[: known.top], assigned[known.top :]
    return first if set(rest) <= set(known.target) else None


def _without(replicas: ReplicaList, others: ReplicaList) -> ReplicaList:
    return tuple(replica for replica in replicas if replica not in others)
