"""What ZooKeeper says of the cluster, for those who ask a broker.

It is read whenever somebody asks. Kafka's brokers remember what the controller told them last
(UpdateMetadata); here every answer is of now.
"""

from collections.abc import Iterable

from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from reassure_controller.session import gather
from reassure_controller.wire.messages import (
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
    ReplicaList,
    broker_path,
    decode_broker,
    decode_controller,
    decode_state,
    decode_topic,
    parse_number,
    state_path,
    topic_path,
)


class Cluster:
    """Reads the cluster of a client's chroot. Everything raises Indefinite, BadZnode."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    @property
    def id(self) -> str:
        """What tells this cluster from others: where it stands in ZooKeeper."""
        return str(self._client.chroot) or "/"

    def find_address(self, broker: int) -> tuple[str, int] | None:
        """Return where a broker listens, None of one that is not registered."""
        path = broker_path(broker)
        found = gather([self._client.get_async(path)])[0]
        return None if found is None else decode_broker(path, found[0])

    def tell(self, request: MetadataRequest) -> MetadataResponse:
        """Answer which brokers, topics and leaders there are."""
        client = self._client
        ids, names, controller = gather(
            [
                client.get_children_async(BROKER_IDS),
                client.get_children_async(TOPICS),
                client.get_async(CONTROLLER),
            ]
        )
        if request.topics is not None:
            names = [topic.name for topic in request.topics]
        brokers = tuple(self._list_brokers(ids or ()))
        live = {broker.node_id for broker in brokers}
        return MetadataResponse(
            brokers,
            self.id,
            -1 if controller is None else decode_controller(CONTROLLER, controller[0]),
            tuple(self._tell_topic(name, live) for name in sorted(set(names or ()))),
        )

    def _list_brokers(self, ids: Iterable[str]) -> Iterable[MetadataBroker]:
        numbers = sorted(number for name in ids if (number := parse_number(name)) is not None)
        found = gather([self._client.get_async(broker_path(number)) for number in numbers])
        for number, content in zip(numbers, found, strict=True):
            if content is not None:
                yield MetadataBroker(number, *decode_broker(broker_path(number), content[0]))

    def _tell_topic(self, name: str, live: set[int]) -> MetadataTopic:
        path = topic_path(name)
        content = gather([self._client.get_async(path)])[0] if is_topic(name) else None
        if content is None:
            return MetadataTopic(ErrorCode.unknown_topic_or_partition, name, ())
        assigned = sorted(decode_topic(path, content[0]).items())
        paths = [state_path(name, number) for number, _ in assigned]
        states = gather([self._client.get_async(path) for path in paths])
        return MetadataTopic(
            ErrorCode.none,
            name,
            tuple(
                _tell_partition(number, replicas, path, state and state[0], live)
                for (number, replicas), path, state in zip(assigned, paths, states, strict=True)
            ),
        )


def is_topic(name: str) -> bool:
    """Whether a topic can have this name: Kafka's own rule, and a name that is safe in a path."""
    good = all(one.isascii() and (one.isalnum() or one in "._-") for one in name)
    return good and 0 < len(name) < 250 and name not in (".", "..")


def _tell_partition(
    number: int, replicas: ReplicaList, path: str, content: bytes | None, live: set[int]
) -> MetadataPartition:
    dead = tuple(replica for replica in replicas if replica not in live)
    if content is None:
        error = ErrorCode.leader_not_available
        return MetadataPartition(error, number, NO_LEADER, replicas, (), offline_replicas=dead)
    state = decode_state(path, content)
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
