"""Which requests are understood, in which versions, and which values carry them.

The versions are those of Kafka 2.3, the last before reassignments went over the wire: producers and
consumers of any later release still speak them. Of what controllers send the brokers here
understand one version, the one of 2.3; only StopReplica is the one of 2.6, which says in which
leader epoch a replica is to stop (KIP-570). Brokers of Kafka are asked which they understand.
"""

from dataclasses import dataclass
from typing import Final

from reassure_lab.wire.admin_messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from reassure_lab.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    FetchRequest,
    FetchResponse,
    KioMessage,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)
from reassure_lab.wire.refusals import REFUSED


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request, with its number in the protocol."""

    key: int
    versions: range
    request: type[Request]
    response: type[Response]

    @property
    def newest(self) -> int:
        """The newest version that is understood."""
        return self.versions[-1]


LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, ALTER_PARTITION, PRODUCER_IDS = 4, 5, 6, 56, 67
"""What controllers and brokers say to each other."""
CONTROLLER_APIS: Final = (
    Api(ALTER_PARTITION, range(4), KioMessage, KioMessage),
    Api(PRODUCER_IDS, range(1), KioMessage, KioMessage),
)
"""What a controller understands besides."""

API_VERSIONS: Final = Api(18, range(4), ApiVersionsRequest, ApiVersionsResponse)

APIS: Final = (
    Api(0, range(3, 8), ProduceRequest, ProduceResponse),
    Api(1, range(4, 12), FetchRequest, FetchResponse),
    Api(2, range(1, 6), ListOffsetsRequest, ListOffsetsResponse),
    Api(3, range(1, 8), MetadataRequest, MetadataResponse),
    Api(LEADER_AND_ISR, range(2, 3), KioMessage, KioMessage),
    Api(STOP_REPLICA, range(3, 4), KioMessage, KioMessage),
    Api(7, range(2, 4), ControlledShutdownRequest, ControlledShutdownResponse),
    Api(10, range(3), FindCoordinatorRequest, FindCoordinatorResponse),
    API_VERSIONS,
    Api(19, range(5), CreateTopicsRequest, CreateTopicsResponse),
    Api(20, range(4), DeleteTopicsRequest, DeleteTopicsResponse),
    Api(22, range(2), InitProducerIdRequest, InitProducerIdResponse),
    Api(23, range(2, 4), OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    Api(32, range(1, 3), DescribeConfigsRequest, DescribeConfigsResponse),
)

REFUSED_APIS: Final = tuple(
    Api(key, versions, KioMessage, KioMessage) for key, versions in REFUSED.items()
)
BY_KEY: Final = {api.key: api for api in (*APIS, *REFUSED_APIS, *CONTROLLER_APIS)}
BY_REQUEST: Final[dict[type, Api]] = {
    api.request: api for api in APIS if api.request is not KioMessage
}
