"""What a controller answers over the wire, where it listens.

Brokers ask it to hand over what they lead before they stop, and from inter-broker protocol 2.7 on
for in-sync sets (AlterPartition) and for blocks of producers' ids. Kafka's clients find it among
the nodes of the cluster, as one that leads nothing, and ask it to make and delete topics.
"""

import logging
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from reassure_controller.elections import NOT_CONTROLLER, Question, Shutdown
from reassure_controller.isr_changes import AskedIsr, IsrAnswer, IsrChange
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import Indefinite
from reassure_lab.node.admin_requests import AdminRequests
from reassure_lab.node.metadata import ClusterMetadata
from reassure_lab.node.orders import find_id
from reassure_lab.node.producer_ids import ProducerIds
from reassure_lab.wire.admin_messages import FindCoordinatorRequest, FindCoordinatorResponse
from reassure_lab.wire.apis import ALTER_PARTITION, APIS, CONTROLLER_APIS
from reassure_lab.wire.entities import fill
from reassure_lab.wire.frames import load_response
from reassure_lab.wire.listener import Unanswerable
from reassure_lab.wire.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    KioMessage,
    MetadataRequest,
    RemainingPartition,
    Request,
    Response,
)
from reassure_spec.znodes import BadZnode

if TYPE_CHECKING:
    from reassure_controller.controller import Controller

log = logging.getLogger(__name__)

ANSWER_S = 10.0
"""How long a controller may take for what a broker asks."""
_NOT_HERE = {0, 1, 2, 4, 5, 23}
"""What only those who have records answer: Produce, Fetch, ListOffsets, orders, epochs' ends."""
_COORDINATED = ("__consumer_offsets", "__transaction_state")
"""By Kafka's kind of key: the topic whose partitions' leaders coordinate."""
UNDERSTOOD = (*(api for api in APIS if api.key not in _NOT_HERE), *CONTROLLER_APIS)


class ControllerRequests:
    """Answers what brokers and clients ask of a controller; many threads may ask."""

    def __init__(self, controller: "Controller", client: KazooClient) -> None:
        self._controller = controller
        self._client = client
        self._ids = ProducerIds(client, controller.broker_id)
        self._admin = AdminRequests(
            client, controller.broker_id, ReplicationRules(), any_setting=True
        )
        self.address: tuple[str, int] = ("", -1)

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._admin.close()

    def handle(self, request: Request, client_id: str | None, version: int) -> Response:
        """Answer a request. Raises Unanswerable where it takes too long."""
        try:
            match request:
                case ControlledShutdownRequest():
                    return self._hand_over(request)
                case KioMessage(entity=entity) if entity.__api_key__ == ALTER_PARTITION:
                    return self._change_isr(request)
                case KioMessage():
                    return self._give_ids(request)
                case FindCoordinatorRequest():
                    return self._find_coordinator(request)
                case MetadataRequest():
                    own = (self._controller.broker_id, *self.address)
                    return ClusterMetadata(self._client, own).tell(request)
                case _:
                    return self._admin.handle(request)
        except (Indefinite, NotImplementedError) as error:
            raise Unanswerable(f"{client_id}: {error}") from error

    def _ask(self, asked: Question) -> ErrorCode:
        """Have the controller answer; return why it was refused as a whole. Raises Unanswerable."""
        self._controller.ask(asked)
        if not asked.answered.wait(ANSWER_S):
            raise Unanswerable(f"what broker {asked.broker} asks takes too long")
        return ErrorCode[asked.error.lower()] if asked.error else ErrorCode.none

    def _hand_over(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        asked = Shutdown(request.broker_id, request.broker_epoch)
        error = self._ask(asked)
        return ControlledShutdownResponse(
            error, tuple(RemainingPartition(*key) for key in asked.remaining)
        )

    def _find_coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """Name the broker that looks after a group, or a producer's transactions.

        Raises Unanswerable where there is none yet: brokers make the topic when they are asked.
        """
        if request.key_type not in range(len(_COORDINATED)):
            return FindCoordinatorResponse(ErrorCode.invalid_request, -1, "", -1)
        topic, context = _COORDINATED[request.key_type], self._controller.context
        numbers = context.numbers.get(topic, ())
        if numbers:
            content = context.partitions.get((topic, abs(_hash(request.key)) % len(numbers)))
            state = None if content is None else content.state
            leader = None if state is None else context.brokers.get(state.leader)
            if leader is not None:
                return FindCoordinatorResponse(ErrorCode.none, leader.id, leader.host, leader.port)
        raise Unanswerable(f"{topic} has no leader that would look after {request.key!r}")

    # In-sync sets

    def _change_isr(self, request: KioMessage) -> KioMessage:
        """Answer in the order that was asked in, by names of topics or their ids."""
        entity, version = request.entity, request.version
        names = self._find_names() if version > 1 else {}
        asked = AskedIsr(entity.broker_id, entity.broker_epoch)
        topics: list[tuple[Any, dict[str, Any], str | None]] = []
        for topic in entity.topics:
            by_id = version > 1
            name = names.get(topic.topic_id) if by_id else topic.topic_name
            head = {"topic_id": topic.topic_id} if by_id else {"topic_name": name}
            topics.append((topic, head, name))
            if name is not None:
                asked.changes += tuple(_to_change(name, one) for one in topic.partitions)
        error = self._ask(asked)
        kind = load_response(ALTER_PARTITION, version)
        if error != ErrorCode.none:
            return KioMessage(fill(kind, {"error_code": error}))
        answers = dict(zip((change.key for change in asked.changes), asked.answers, strict=False))
        unknown = IsrAnswer("UNKNOWN_TOPIC_ID")
        told = [
            {
                **head,
                "partitions": [
                    _tell_answer(
                        number.partition_index,
                        unknown if name is None else answers[name, number.partition_index],
                        version,
                    )
                    for number in topic.partitions
                ],
            }
            for topic, head, name in topics
        ]
        return KioMessage(fill(kind, {"error_code": error, "topics": told}))

    def _find_names(self) -> dict[Any, str]:
        """Return the topics by their ids, as the controller knows them."""
        context = self._controller.context
        found = ((find_id(context.find_topic_id(name)), name) for name in [*context.numbers])
        return {number: name for number, name in found if number is not None}

    # Ids of producers

    def _give_ids(self, request: KioMessage) -> KioMessage:
        """Give a broker a block of ids (KIP-730)."""
        entity = request.entity
        broker = self._controller.context.brokers.get(entity.broker_id)
        content: dict[str, Any] = {}
        if not self._controller.is_active:
            content["error_code"] = ErrorCode[NOT_CONTROLLER.lower()]
        elif broker is None or broker.epoch != entity.broker_epoch:
            content["error_code"] = ErrorCode.stale_broker_epoch
        else:
            try:
                block = self._ids.take_block()
            except BadZnode as bad:
                log.warning("a broker gets no ids for producers: %s", bad)
                content["error_code"] = ErrorCode.unknown_server_error
            else:
                content = {"producer_id_start": block.start, "producer_id_len": len(block)}
        content.setdefault("error_code", ErrorCode.none)
        kind = load_response(entity.__api_key__, request.version)
        return KioMessage(fill(kind, content))


def _hash(text: str) -> int:
    """Return Java's hash of a text, by which Kafka's brokers share keys out.

    >>> _hash("g"), _hash("another group")
    (103, -250510558)
    """
    total = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        total = (31 * total + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    return total - 2**32 if total >= 2**31 else total


def _to_change(topic: str, asked: Any) -> IsrChange:
    named = getattr(asked, "new_isr_with_epochs", None)
    isr = asked.new_isr if named is None else tuple(one.broker_id for one in named)
    return IsrChange((topic, asked.partition_index), asked.leader_epoch, asked.partition_epoch, isr)


def _tell_answer(partition: int, answer: IsrAnswer, version: int) -> dict[str, Any]:
    """Return what a leader is told of one partition; before version 2 some errors were not."""
    error, state = answer.error, answer.state
    if error == "INELIGIBLE_REPLICA" and version < 2:
        error = "OPERATION_NOT_ATTEMPTED"
    content: dict[str, Any] = {
        "partition_index": partition,
        "error_code": ErrorCode[error.lower()] if error else ErrorCode.none,
    }
    if state is not None:
        content |= {
            "leader_id": state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": state.isr,
            "leader_recovery_state": int(state.recovering or 0),
            "partition_epoch": answer.version,
        }
    return content
