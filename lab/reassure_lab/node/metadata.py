"""What ZooKeeper says of the cluster, for those who ask a broker.

It is read whenever somebody asks. Kafka's brokers remember what the controller told them last
(UpdateMetadata); here every answer is of now.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from reassure_controller.session import gather
from reassure_lab.wire.messages import (
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataResponse,
    MetadataTopic,
)
from reassure_spec.znodes import (
    BROKER_IDS,
    CONTROLLER,
    NO_LEADER,
    TOPICS,
    BadZnode,
    ReplicaList,
    StateZnode,
    broker_path,
    decode_broker,
    decode_controller,
    decode_state,
    decode_topic,
    load_object,
    parse_number,
    state_path,
    topic_path,
)

Read = TypeVar("Read")

CLUSTER_ID: Final = "/cluster/id"
"""Kafka's own znode; brokers here make none."""

log = logging.getLogger(__name__)


class ClusterMetadata:
    """Reads the cluster of a client's chroot. Everything raises Indefinite."""

    def __init__(self, client: KazooClient, own: tuple[int, str, int] | None = None) -> None:
        """Read; `own` is a controller that is no broker and listens: its id, host and port."""
        self._client = client
        self._own = () if own is None else (MetadataBroker(*own),)

    @property
    def chroot(self) -> str:
        """The path below which all of its znodes are; empty where that is ZooKeeper's root."""
        return str(self._client.chroot)

    @property
    def id(self) -> str:
        """What tells this cluster from others: where it stands in ZooKeeper."""
        return self.chroot or "/"

    def find_address(self, broker: int) -> tuple[str, int] | None:
        """Return where a broker listens, None of one that is not registered.

        Raises BadZnode.
        """
        path = broker_path(broker)
        found = gather([self._client.get_async(path)])[0]
        return None if found is None else decode_broker(path, found[0])

    def tell(self, request: MetadataRequest) -> MetadataResponse:
        """Answer which brokers, topics and leaders there are.

        A znode that cannot be read is named in the log, and is nothing to the others.
        """
        client = self._client
        ids, names, controller, named = gather(
            [
                client.get_children_async(BROKER_IDS),
                client.get_children_async(TOPICS),
                client.get_async(CONTROLLER),
                client.get_async(CLUSTER_ID),
            ]
        )
        if request.topics is not None:
            names = [topic.name for topic in request.topics]
        brokers = (*self._list_brokers(ids or ()), *self._own)
        live = {broker.node_id for broker in brokers}
        chosen = _read(decode_controller, CONTROLLER, controller, -1)
        return MetadataResponse(
            brokers,
            _read(_decode_id, CLUSTER_ID, named, self.id),
            # Clients send there what they want of topics: a controller that is no broker has no ear
            # for them, and any broker has.
            chosen if chosen in live else min(live, default=-1),
            tuple(self._tell_topic(name, live) for name in sorted(set(names or ()))),
        )

    def _list_brokers(self, ids: Iterable[str]) -> Iterable[MetadataBroker]:
        numbers = sorted(number for name in ids if (number := parse_number(name)) is not None)
        found = gather([self._client.get_async(broker_path(number)) for number in numbers])
        for number, content in zip(numbers, found, strict=True):
            address = _read(decode_broker, broker_path(number), content, None)
            if address is not None:
                yield MetadataBroker(number, *address)

    def _tell_topic(self, name: str, live: set[int]) -> MetadataTopic:
        path = topic_path(name)
        content = gather([self._client.get_async(path)])[0] if is_topic(name) else None
        if content is None:
            return MetadataTopic(ErrorCode.unknown_topic_or_partition, name, ())
        found = _read(decode_topic, path, content, None)
        if found is None:
            return MetadataTopic(ErrorCode.unknown_server_error, name, ())
        assigned = sorted(found.items())
        paths = [state_path(name, number) for number, _ in assigned]
        states = gather([self._client.get_async(path) for path in paths])
        return MetadataTopic(
            ErrorCode.none,
            name,
            tuple(
                _tell_partition(number, replicas, _read(decode_state, path, state, None), live)
                for (number, replicas), path, state in zip(assigned, paths, states, strict=True)
            ),
        )


def _decode_id(path: str, data: bytes) -> str:
    """Return what Kafka's brokers call the cluster. Raises BadZnode."""
    return str(load_object(path, data).get("id"))


def _read(decode: Callable[[str, bytes], Read], path: str, content: Any, otherwise: Read) -> Read:
    """Return what a znode says, as read; something else where it is not there or says nothing."""
    if content is None:
        return otherwise
    try:
        return decode(path, content[0])
    except BadZnode as bad:
        log.warning("%s; clients are told of the rest", bad)
        return otherwise


def is_topic(name: str) -> bool:
    """Whether a topic can have this name: Kafka's own rule, and a name that is safe in a path."""
    good = all(one.isascii() and (one.isalnum() or one in "._-") for one in name)
    return good and 0 < len(name) < 250 and name not in (".", "..")


def _tell_partition(
    number: int, replicas: ReplicaList, state: StateZnode | None, live: set[int]
) -> MetadataPartition:
    dead = tuple(replica for replica in replicas if replica not in live)
    if state is None:
        error = ErrorCode.leader_not_available
        return MetadataPartition(error, number, NO_LEADER, replicas, (), offline_replicas=dead)
    leads = state.leader in live
    return MetadataPartition(
        ErrorCode.none if leads else ErrorCode.leader_not_available,
        number,
        state.leader if leads else NO_LEADER,
        replicas,
        state.isr,
        state.leader_epoch,
        dead,
    )
