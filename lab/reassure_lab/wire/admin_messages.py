"""What is asked and answered about topics, producers' ids and coordinators, as in `messages`."""

from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from reassure_lab.wire.messages import Asks

# InitProducerId


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest(Asks["InitProducerIdResponse"]):
    """Ask for an id to number batches under."""

    transactional_id: str | None
    transaction_timeout_ms: int


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse:
    """An id that nobody else has."""

    error_code: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


# FindCoordinator


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest(Asks["FindCoordinatorResponse"]):
    """Ask who looks after a group, or a producer's transactions."""

    key: str
    key_type: int = 0
    """0 is a group, 1 a transactional id."""


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """Who looks after it."""

    error_code: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_message: str | None = None


# CreateTopics


@dataclass(frozen=True, slots=True)
class CreatableReplicaAssignment:
    """Where the replicas of one partition are to be."""

    partition_index: int
    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CreatableTopicConfig:
    """A setting of a topic."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class CreatableTopic:
    """A topic that is to be; -1 of a count is what is usual."""

    name: str
    num_partitions: int
    replication_factor: int
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest(Asks["CreateTopicsResponse"]):
    """Create topics, and wait until they have leaders."""

    topics: tuple[CreatableTopic, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class CreatableTopicResult:
    """What came of one topic."""

    name: str
    error_code: ErrorCode
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse:
    """What came of them."""

    topics: tuple[CreatableTopicResult, ...]


# DeleteTopics


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest(Asks["DeleteTopicsResponse"]):
    """Delete topics, and wait until they are gone."""

    topic_names: tuple[str, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class DeletableTopicResult:
    """What came of one topic."""

    name: str
    error_code: ErrorCode


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse:
    """What came of them."""

    responses: tuple[DeletableTopicResult, ...]


# DescribeConfigs

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
"""Kafka's numbers for what has settings."""


@dataclass(frozen=True, slots=True)
class DescribeConfigsResource:
    """What has settings, and which of them are asked for; None: all."""

    resource_type: int
    resource_name: str
    configuration_keys: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class DescribeConfigsRequest(Asks["DescribeConfigsResponse"]):
    """Ask for settings."""

    resources: tuple[DescribeConfigsResource, ...]


@dataclass(frozen=True, slots=True)
class DescribeConfigsResourceResult:
    """A setting, and where it comes from: 1 the topic, 5 what is usual."""

    name: str
    value: str | None
    config_source: int = -1
    read_only: bool = False
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class DescribeConfigsResult:
    """The settings of one resource."""

    error_code: ErrorCode
    resource_type: int
    resource_name: str
    configs: tuple[DescribeConfigsResourceResult, ...] = ()
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeConfigsResponse:
    """The settings."""

    results: tuple[DescribeConfigsResult, ...]
