"""Which requests are understood, in which versions, and which values carry them.

The versions are those of Kafka 2.3, the last before reassignments went over the wire: producers and
consumers of any later release still speak them. What controllers send has one version, the one of
2.3, because all brokers of a cluster are of one make; only StopReplica is the one of 2.6, which
says in which leader epoch a replica is to stop (KIP-570).
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
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
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
    StopReplicaRequest,
    StopReplicaResponse,
)
from reassure_lab.wire.refusals import REFUSED, Refusal, RefusedRequest


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


API_VERSIONS: Final = Api(18, range(4), ApiVersionsRequest, ApiVersionsResponse)

APIS: Final = (
    Api(0, range(3, 8), ProduceRequest, ProduceResponse),
    Api(1, range(4, 12), FetchRequest, FetchResponse),
    Api(2, range(1, 6), ListOffsetsRequest, ListOffsetsResponse),
    Api(3, range(1, 8), MetadataRequest, MetadataResponse),
    Api(4, range(2, 3), LeaderAndIsrRequest, LeaderAndIsrResponse),
    Api(5, range(3, 4), StopReplicaRequest, StopReplicaResponse),
    Api(7, range(2, 3), ControlledShutdownRequest, ControlledShutdownResponse),
    Api(10, range(3), FindCoordinatorRequest, FindCoordinatorResponse),
    API_VERSIONS,
    Api(19, range(5), CreateTopicsRequest, CreateTopicsResponse),
    Api(20, range(4), DeleteTopicsRequest, DeleteTopicsResponse),
    Api(22, range(2), InitProducerIdRequest, InitProducerIdResponse),
    Api(23, range(2, 4), OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    Api(32, range(1, 3), DescribeConfigsRequest, DescribeConfigsResponse),
)

REFUSED_APIS: Final = tuple(
    Api(key, versions, RefusedRequest, Refusal) for key, versions in REFUSED.items()
)
BY_KEY: Final = {api.key: api for api in (*APIS, *REFUSED_APIS)}
BY_REQUEST: Final[dict[type, Api]] = {api.request: api for api in APIS}
