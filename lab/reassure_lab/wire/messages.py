"""What is asked and answered over the wire, as plain values.

Names and nesting are Kafka's, times are milliseconds (`_ms`), and a field that a version lacks has
its default. What each field means is said at https://kafka.apache.org/protocol and, for a few of
them, here. What only controllers and brokers say, and what is refused, stands as kio has it.
"""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kio.schema.errors import ErrorCode

ANY_EPOCH: Final = -1
"""The leader epoch of one who does not know which it is."""

CONSUMER: Final = -1
"""The replica id of one who is no replica."""

LATEST: Final = -1
"""The timestamp that asks for the offset behind the last record."""

EARLIEST: Final = -2
"""The timestamp that asks for the offset of the first record."""

Answer = TypeVar("Answer")


class Asks(Generic[Answer]):
    """A request, with the type of its response."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class KioMessage(Asks["KioMessage"]):
    """A request or response as kio has it, of one version."""

    entity: Any

    @property
    def version(self) -> int:
        """The version of the format."""
        return int(self.entity.__version__)


# Metadata


@dataclass(frozen=True, slots=True)
class MetadataRequestTopic:
    """A topic that is asked for."""

    name: str


@dataclass(frozen=True, slots=True)
class MetadataRequest(Asks["MetadataResponse"]):
    """Ask which brokers, topics and leaders there are."""

    topics: tuple[MetadataRequestTopic, ...] | None
    """None asks for all topics."""
    allow_auto_topic_creation: bool = False


@dataclass(frozen=True, slots=True)
class MetadataBroker:
    """Where a broker listens."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class MetadataPartition:
    """Who leads a partition, and where its replicas are."""

    error_code: ErrorCode
    partition_index: int
    leader_id: int
    replica_nodes: tuple[int, ...]
    isr_nodes: tuple[int, ...]
    leader_epoch: int = ANY_EPOCH
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataTopic:
    """The partitions of a topic."""

    error_code: ErrorCode
    name: str
    partitions: tuple[MetadataPartition, ...]
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """What a broker knows of the cluster."""

    brokers: tuple[MetadataBroker, ...]
    cluster_id: str | None
    controller_id: int
    topics: tuple[MetadataTopic, ...]


# Produce


@dataclass(frozen=True, slots=True)
class ProducePartition:
    """Batches for one partition, as the client built them."""

    index: int
    records: bytes | None


@dataclass(frozen=True, slots=True)
class ProduceTopic:
    """Batches for one topic."""

    name: str
    partition_data: tuple[ProducePartition, ...]


@dataclass(frozen=True, slots=True)
class ProduceRequest(Asks["ProduceResponse"]):
    """Append records."""

    acks: int
    """0: no response; 1: once the leader has them; -1: once every replica in sync has them."""
    timeout_ms: int
    topic_data: tuple[ProduceTopic, ...]
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class ProducedPartition:
    """Where the records of one partition went, or why they did not."""

    index: int
    error_code: ErrorCode
    base_offset: int
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class ProducedTopic:
    """Where the records of one topic went."""

    name: str
    partition_responses: tuple[ProducedPartition, ...]


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """Where records went."""

    responses: tuple[ProducedTopic, ...]


# Fetch


@dataclass(frozen=True, slots=True)
class FetchPartition:
    """From where to read one partition, and what the one who asks knows of it."""

    partition: int
    fetch_offset: int
    partition_max_bytes: int
    current_leader_epoch: int = ANY_EPOCH
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class FetchTopic:
    """From where to read one topic."""

    topic: str
    partitions: tuple[FetchPartition, ...]


@dataclass(frozen=True, slots=True)
class FetchRequest(Asks["FetchResponse"]):
    """Read records."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    topics: tuple[FetchTopic, ...]
    max_bytes: int = 2**31 - 1
    isolation_level: int = 0


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """Batches of one partition, and how far it may be read."""

    partition_index: int
    error_code: ErrorCode
    high_watermark: int
    records: bytes | None
    last_stable_offset: int = -1
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class FetchedTopic:
    """Batches of one topic."""

    topic: str
    partitions: tuple[FetchedPartition, ...]


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Records that were read."""

    responses: tuple[FetchedTopic, ...]
    error_code: ErrorCode = ErrorCode.none


# ListOffsets


@dataclass(frozen=True, slots=True)
class ListOffsetsPartition:
    """The time of which the offset is asked for: a timestamp, LATEST or EARLIEST."""

    partition_index: int
    timestamp: int
    current_leader_epoch: int = ANY_EPOCH


@dataclass(frozen=True, slots=True)
class ListOffsetsTopic:
    """The times that are asked for in one topic."""

    name: str
    partitions: tuple[ListOffsetsPartition, ...]


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest(Asks["ListOffsetsResponse"]):
    """Ask for offsets by time."""

    replica_id: int
    topics: tuple[ListOffsetsTopic, ...]
    isolation_level: int = 0


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """The offset of a time; -1 where there is none."""

    partition_index: int
    error_code: ErrorCode
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = ANY_EPOCH


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """The offsets of one topic."""

    name: str
    partitions: tuple[ListedPartition, ...]


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """Offsets by time."""

    topics: tuple[ListedTopic, ...]


# OffsetForLeaderEpoch


@dataclass(frozen=True, slots=True)
class EpochPartition:
    """The epoch whose end is asked for."""

    partition: int
    leader_epoch: int
    current_leader_epoch: int = ANY_EPOCH


@dataclass(frozen=True, slots=True)
class EpochTopic:
    """The epochs that are asked for in one topic."""

    topic: str
    partitions: tuple[EpochPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochRequest(Asks["OffsetForLeaderEpochResponse"]):
    """Ask a leader where epochs end in its log."""

    topics: tuple[EpochTopic, ...]
    replica_id: int = -2
    """-2 is a replica whose id the version does not carry."""


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """The largest epoch not above the one that was asked for, and its end; -1 where unknown."""

    error_code: ErrorCode
    partition: int
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class EpochEndTopic:
    """The ends of epochs in one topic."""

    topic: str
    partitions: tuple[EpochEndOffset, ...]


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResponse:
    """Where epochs end."""

    topics: tuple[EpochEndTopic, ...]


# ControlledShutdown


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequest(Asks["ControlledShutdownResponse"]):
    """Ask the controller to move leaders away from a broker that wants to end."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class RemainingPartition:
    """A partition that the broker still leads."""

    topic_name: str
    partition_index: int


@dataclass(frozen=True, slots=True)
class ControlledShutdownResponse:
    """What the broker still leads."""

    error_code: ErrorCode
    remaining_partitions: tuple[RemainingPartition, ...] = ()


# ApiVersions


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest(Asks["ApiVersionsResponse"]):
    """Ask which requests a broker understands."""

    client_software_name: str = "reassure"
    client_software_version: str = "1"


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """The versions of one kind of request that are understood, both included."""

    api_key: int
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse:
    """Which requests are understood."""

    error_code: ErrorCode
    api_keys: tuple[ApiVersion, ...]


Request = Asks[Any]
"""What is asked."""

Response = object
"""What is answered."""
