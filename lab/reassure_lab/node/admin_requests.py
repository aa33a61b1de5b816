"""What a broker does with requests about topics, settings, producers' ids and coordinators.

There are no groups and no transactions. This broker says that it coordinates them, so that clients
ask for them at once, and are refused (`refusals`, and here the id of a transactional producer).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from reassure_controller.replication.host import ProducerLimits
from reassure_controller.session import Indefinite, gather
from reassure_lab.node.producer_ids import ProducerIds
from reassure_lab.node.topics import TopicRefused, create_topic, delete_topic
from reassure_lab.wire.admin_messages import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from reassure_lab.wire.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    Request,
    Response,
)
from reassure_spec.znodes import (
    MESSAGE_BYTES,
    MIN_ISR,
    TOPIC_MESSAGE_BYTES,
    BadZnode,
    decode_config,
    decode_topic,
    state_path,
    topic_config_path,
    topic_path,
)

log = logging.getLogger(__name__)

LOOK_S: Final = 0.05
"""How often one who waits for a topic looks whether it is there."""
_OF_TOPIC, _USUAL = 1, 5
"""Kafka's numbers for where a setting comes from."""


class AdminRequests:
    """Answers them; many threads may ask."""

    def __init__(
        self,
        client: KazooClient,
        broker_id: int,
        limits: ProducerLimits,
        *,
        any_setting: bool = False,
    ) -> None:
        """Answer; `any_setting` lets topics have settings that brokers here do not know."""
        self._any_setting = any_setting
        self._client = client
        self._broker_id = broker_id
        self._limits = limits
        self._ids = ProducerIds(client, broker_id)
        self._closing = threading.Event()
        self.address: tuple[str, int] = ("", -1)
        """Where the broker says that it listens."""

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._closing.set()

    def handle(self, request: Request) -> Response:
        """Answer a request. Raises Indefinite, where ZooKeeper does not say."""
        match request:
            case InitProducerIdRequest():
                return self._give_id(request)
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(ErrorCode.none, self._broker_id, *self.address)
            case CreateTopicsRequest():
                return self._create(request)
            case DeleteTopicsRequest():
                return self._delete(request)
            case DescribeConfigsRequest():
                return DescribeConfigsResponse(tuple(map(self._describe, request.resources)))
            case ControlledShutdownRequest():
                return ControlledShutdownResponse(ErrorCode.not_controller)
            case _:
                raise NotImplementedError(f"a broker does not carry out {request}")

    def _give_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        if request.transactional_id is not None:
            # Of the errors that end any client at once this one fits best: the limit is 0.
            return InitProducerIdResponse(ErrorCode.invalid_transaction_timeout)
        try:
            return InitProducerIdResponse(ErrorCode.none, self._ids.take(), 0)
        except (Indefinite, BadZnode) as unread:
            log.warning("a producer gets no id: %s", unread)
            return InitProducerIdResponse(ErrorCode.coordinator_not_available)

    # Topics

    def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        end_s = time.monotonic() + request.timeout_ms / 1000
        refused: dict[str, TopicRefused] = {}
        for topic in request.topics:
            try:
                self._create_one(topic, is_tried=request.validate_only)
            except TopicRefused as why:
                refused[topic.name] = why
        results = []
        for topic in request.topics:
            error = refused.get(topic.name)
            if error is not None:
                results.append(CreatableTopicResult(topic.name, error.error, str(error)))
                continue
            done = request.validate_only or self._wait(partial(self._is_led, topic.name), end_s)
            code = ErrorCode.none if done else ErrorCode.request_timed_out
            results.append(CreatableTopicResult(topic.name, code))
        return CreateTopicsResponse(tuple(results))

    def _create_one(self, topic: CreatableTopic, *, is_tried: bool) -> None:
        assigned = {one.partition_index: one.broker_ids for one in topic.assignments}
        create_topic(
            self._client,
            topic.name,
            assigned=assigned or None,
            partitions=1 if topic.num_partitions == -1 else topic.num_partitions,
            factor=1 if topic.replication_factor == -1 else topic.replication_factor,
            config={one.name: one.value or "" for one in topic.configs},
            is_tried=is_tried,
            any_setting=self._any_setting,
        )

    def _is_led(self, topic: str) -> bool:
        """Whether every partition of a topic has been given a leader."""
        path = topic_path(topic)
        content = gather([self._client.get_async(path)])[0]
        partitions = () if content is None else decode_topic(path, content[0])
        paths = [state_path(topic, partition) for partition in partitions]
        return None not in gather([self._client.exists_async(path) for path in paths])

    def _delete(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        end_s = time.monotonic() + request.timeout_ms / 1000
        errors: dict[str, ErrorCode] = {}
        for name in request.topic_names:
            try:
                delete_topic(self._client, name)
            except TopicRefused as refused:
                errors[name] = refused.error
        for name in request.topic_names:
            if name not in errors and not self._wait(partial(self._is_gone, name), end_s):
                errors[name] = ErrorCode.request_timed_out
        return DeleteTopicsResponse(
            tuple(
                DeletableTopicResult(name, errors.get(name, ErrorCode.none))
                for name in request.topic_names
            )
        )

    def _is_gone(self, topic: str) -> bool:
        return gather([self._client.exists_async(topic_path(topic))])[0] is None

    def _wait(self, condition: Callable[[], bool], end_s: float) -> bool:
        """Wait until the condition holds, the time is over, or the broker ends."""
        while not condition():
            if time.monotonic() >= end_s or self._closing.wait(LOOK_S):
                return False
        return True

    # Settings

    def _describe(self, asked: DescribeConfigsResource) -> DescribeConfigsResult:
        kind, name, wanted = asked.resource_type, asked.resource_name, asked.configuration_keys
        error, found = ErrorCode.none, []
        if kind == BROKER_RESOURCE and name == str(self._broker_id):
            found = [*self._list_usual("", MESSAGE_BYTES)]
        elif kind == TOPIC_RESOURCE and not self._is_gone(name):
            path = topic_config_path(name)
            content = gather([self._client.get_async(path)])[0]
            try:
                own = {} if content is None else decode_config(path, content[0])
            except BadZnode as bad:
                return DescribeConfigsResult(
                    ErrorCode.unknown_server_error, kind, name, error_message=str(bad)
                )
            found = [
                DescribeConfigsResourceResult(*one, config_source=_OF_TOPIC) for one in own.items()
            ]
            usual = self._list_usual(name, TOPIC_MESSAGE_BYTES)
            found += (one for one in usual if one.name not in own)
        else:
            topic = kind == TOPIC_RESOURCE
            error = ErrorCode.unknown_topic_or_partition if topic else ErrorCode.invalid_request
        configs = tuple(one for one in found if wanted is None or one.name in wanted)
        return DescribeConfigsResult(error, kind, name, configs)

    def _list_usual(self, topic: str, bytes_name: str) -> Iterator[DescribeConfigsResourceResult]:
        limits = self._limits
        for name, value in (
            (MIN_ISR, limits.find_minimum(topic)),
            (bytes_name, limits.find_batch_bytes(topic)),
        ):
            yield DescribeConfigsResourceResult(name, str(value), _USUAL)
