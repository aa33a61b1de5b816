"""What a broker answers who wants something of topics, settings, ids or coordinators."""

import threading
from typing import Any

import pytest
from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import ensure_roots
from reassure_lab.node.admin_requests import AdminRequests
from reassure_lab.node.producer_ids import BLOCK, LATEST_BLOCK, ProducerIds
from reassure_lab.wire.admin_messages import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from reassure_lab.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse
from reassure_spec.znodes import (
    broker_path,
    decode_config,
    decode_topic,
    encode_broker,
    topic_config_path,
    topic_path,
)

PLACE = CreatableReplicaAssignment
SETTING = CreatableTopicConfig


@pytest.fixture
def client(make_cluster: Any) -> KazooClient:
    """A cluster's ZooKeeper, with three brokers in it."""
    admin = make_cluster(()).admin
    ensure_roots(admin, ["/admin/delete_topics"])
    for number in (1, 2, 3):
        admin.create(broker_path(number), encode_broker("127.0.0.1", number, 1), ephemeral=True)
    return admin  # type: ignore[no-any-return]


@pytest.fixture
def broker(client: KazooClient) -> AdminRequests:
    """The requests of broker 1."""
    requests = AdminRequests(client, 1, ReplicationRules(min_insync_replicas=2))
    requests.address = ("127.0.0.1", 7)
    return requests


def create(broker: AdminRequests, topic: CreatableTopic, *, tried: bool = False) -> ErrorCode:
    """Return what comes of a topic."""
    answer: Any = broker.handle(CreateTopicsRequest((topic,), 1, tried))
    [result] = answer.topics
    assert (result.error_message is None) == (
        result.error_code in (ErrorCode.none, ErrorCode.request_timed_out)
    )
    code: ErrorCode = result.error_code
    return code


def test_topic_is_created_as_asked_for(broker: AdminRequests, client: KazooClient) -> None:
    """Counts, an assignment and settings are written; no leader within the time is an error."""
    counted = CreatableTopic("counted", 3, 2, configs=(SETTING("min.insync.replicas", "2"),))
    assert create(broker, counted, tried=True) == ErrorCode.none
    assert client.exists(topic_path("counted")) is None
    assert create(broker, counted) == ErrorCode.request_timed_out
    assigned = decode_topic("", client.get(topic_path("counted"))[0])
    assert sorted(assigned) == [0, 1, 2]
    assert {len({*replicas}) for replicas in assigned.values()} == {2}
    assert {replicas[0] for replicas in assigned.values()} == {1, 2, 3}
    config = decode_config("", client.get(topic_config_path("counted"))[0])
    assert config == {"min.insync.replicas": "2"}
    told = CreatableTopic("told", -1, -1, (PLACE(0, (3, 1)), PLACE(1, (1, 2))))
    for number in (0, 1):
        client.ensure_path(f"/brokers/topics/later/partitions/{number}/state")
    assert create(broker, told) == ErrorCode.request_timed_out
    assert decode_topic("", client.get(topic_path("told"))[0]) == {0: (3, 1), 1: (1, 2)}


def test_creation_waits_for_leaders(broker: AdminRequests, client: KazooClient) -> None:
    """The answer comes when a controller has given every partition a leader."""
    answers: list[Any] = []
    asked = CreateTopicsRequest((CreatableTopic("led", 1, 1),), 20_000)
    thread = threading.Thread(target=lambda: answers.append(broker.handle(asked)))
    thread.start()
    while client.exists(topic_path("led")) is None:
        assert answers == []
    client.ensure_path("/brokers/topics/led/partitions/0/state")
    thread.join()
    assert [one.error_code for one in answers[0].topics] == [ErrorCode.none]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (CreatableTopic("a/b", 1, 1), ErrorCode.invalid_topic_exception),
        (CreatableTopic("a", 0, 1), ErrorCode.invalid_partitions),
        (CreatableTopic("a", 10**6, 1), ErrorCode.invalid_partitions),
        (CreatableTopic("a", 1, 4), ErrorCode.invalid_replication_factor),
        (CreatableTopic("a", -1, -1, (PLACE(0, (1, 1)),)), ErrorCode.invalid_replica_assignment),
        (CreatableTopic("a", -1, -1, (PLACE(1, (1,)),)), ErrorCode.invalid_replica_assignment),
        (CreatableTopic("a", -1, -1, (PLACE(0, (9,)),)), ErrorCode.invalid_replica_assignment),
        (CreatableTopic("a", 1, 1, (), (SETTING("x", "1"),)), ErrorCode.invalid_config),
        (
            CreatableTopic("a", 1, 1, (), (SETTING("max.message.bytes", "many"),)),
            ErrorCode.invalid_config,
        ),
        (CreatableTopic("there", 1, 1), ErrorCode.topic_already_exists),
    ],
)
def test_topic_that_cannot_be_is_refused(
    topic: CreatableTopic, error: ErrorCode, broker: AdminRequests, client: KazooClient
) -> None:
    """Each by Kafka's error, with nothing written."""
    client.create(topic_path("there"), b"")
    assert create(broker, topic) == error
    assert client.get_children("/brokers/topics") == ["there"]


def test_deletion_is_asked_for_once(broker: AdminRequests, client: KazooClient) -> None:
    """It is written for the controller, and answered when the topic is gone."""
    client.create(topic_path("t"), b"")
    for _ in range(2):
        answer: Any = broker.handle(DeleteTopicsRequest(("t", "no", "a/b"), 1))
        assert answer.responses == (
            DeletableTopicResult("t", ErrorCode.request_timed_out),
            DeletableTopicResult("no", ErrorCode.unknown_topic_or_partition),
            DeletableTopicResult("a/b", ErrorCode.unknown_topic_or_partition),
        )
    assert client.get_children("/admin/delete_topics") == ["t"]


def test_settings_are_told_with_where_they_come_from(
    broker: AdminRequests, client: KazooClient
) -> None:
    """A topic's own settings come before what is usual; what is not there is refused."""
    create(broker, CreatableTopic("t", 1, 1, (), (SETTING("max.message.bytes", "9"),)))

    def describe(kind: int, name: str, keys: tuple[str, ...] | None = None) -> Any:
        asked = DescribeConfigsRequest((DescribeConfigsResource(kind, name, keys),))
        answer: Any = broker.handle(asked)
        return answer.results[0].error_code, {
            one.name: (one.value, one.config_source) for one in answer.results[0].configs
        }

    told = {"max.message.bytes": ("9", 1), "min.insync.replicas": ("2", 5)}
    assert describe(TOPIC_RESOURCE, "t") == (ErrorCode.none, told)
    assert describe(TOPIC_RESOURCE, "t", ("x",)) == (ErrorCode.none, {})
    assert describe(TOPIC_RESOURCE, "no") == (ErrorCode.unknown_topic_or_partition, {})
    assert describe(BROKER_RESOURCE, "1")[1]["min.insync.replicas"] == ("2", 5)
    assert describe(BROKER_RESOURCE, "2") == (ErrorCode.invalid_request, {})
    client.set(topic_config_path("t"), b"{")
    assert describe(TOPIC_RESOURCE, "t") == (ErrorCode.unknown_server_error, {})


def test_ids_are_given_once_in_a_cluster(client: KazooClient) -> None:
    """Brokers that take blocks at once give no id twice, and go on behind what Kafka has given."""
    block = b'{"version":1,"broker":2,"block_start":"4000","block_end":"4999"}'
    client.create(LATEST_BLOCK, block)
    given: list[int] = []
    brokers = [ProducerIds(client, number) for number in (1, 2)]
    count = BLOCK + 200

    def take(ids: ProducerIds) -> None:
        given.extend([ids.take() for _ in range(count)])

    threads = [threading.Thread(target=take, args=(ids,)) for ids in brokers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*given}) == len(given) == 2 * count
    assert (min(given), max(given) < 5000 + 4 * BLOCK) == (5000, True)


def test_what_nobody_carries_out_is_refused_at_once(
    broker: AdminRequests, client: KazooClient
) -> None:
    """A transactional producer gets no id, a broker hands nothing over, and coordinates itself."""
    assert broker.handle(InitProducerIdRequest(None, 0)) == InitProducerIdResponse(
        ErrorCode.none, 0, 0
    )
    assert broker.handle(InitProducerIdRequest("x", 0)) == InitProducerIdResponse(
        ErrorCode.invalid_transaction_timeout
    )
    found = FindCoordinatorResponse(ErrorCode.none, 1, "127.0.0.1", 7)
    assert broker.handle(FindCoordinatorRequest("g")) == found
    assert broker.handle(ControlledShutdownRequest(1, 2)) == ControlledShutdownResponse(
        ErrorCode.not_controller
    )
    client.set(LATEST_BLOCK, b'{"block_end":7}')
    requests = AdminRequests(client, 2, ReplicationRules())
    assert requests.handle(InitProducerIdRequest(None, 0)) == InitProducerIdResponse(
        ErrorCode.coordinator_not_available
    )
