"""What brokers and their clients say to each other about one partition.

Every request has a `correlation`, which its response repeats: a response to a request that was
given up, or sent in an earlier life, is no response to the one that waits.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reassure_controller.replication.errors import NONE
from reassure_spec.znodes import PartitionKey

if TYPE_CHECKING:  # who says nothing of records does not load what reads and writes them
    from reassure_controller.storage.records import Checked

Correlation = tuple[int, int]
"""The life of who asks (its broker epoch, or a client's number), and the request's number in it."""

ANY_EPOCH: Final = -1
"""The leader epoch of a consumer that does not know which it is."""


@dataclass(frozen=True, slots=True)
class _Asks:
    """What every request says."""

    key: PartitionKey
    correlation: Correlation


@dataclass(frozen=True, slots=True)
class _Answers:
    """What every response says."""

    key: PartitionKey
    correlation: Correlation
    error: str = NONE


@dataclass(frozen=True, slots=True)
class Fetch(_Asks):
    """A follower asks for records from its log end on."""

    replica: int
    broker_epoch: int
    """Which life of the follower's broker asks."""
    leader_epoch: int
    offset: int
    max_bytes: int
    """0: no records; else as many batches as fit, and one at least."""


@dataclass(frozen=True, slots=True)
class Fetched(_Answers):
    """The leader's answer: record batches, and its high watermark."""

    high_watermark: int = 0
    records: bytes = b""
    start: int = 0
    """Where the leader's log begins."""


@dataclass(frozen=True, slots=True)
class AskEpochEnd(_Asks):
    """A follower asks where an epoch ends in the leader's log: Kafka's OffsetsForLeaderEpoch."""

    replica: int
    leader_epoch: int
    epoch: int
    """The epoch that is asked about."""


@dataclass(frozen=True, slots=True)
class EpochEndTold(_Answers):
    """The largest epoch not above the one asked for, and where its records end."""

    epoch: int = -1
    end_offset: int = -1
    start: int = 0
    """Where the leader's log ended at its election."""


@dataclass(frozen=True, slots=True)
class Produce(_Asks):
    """A producer sends record batches."""

    acks: int
    """Whose copy it waits for: nobody's (0), the leader's (1), or all in-sync replicas' (-1)."""
    records: "Checked | str"
    """Batches as the producer built them, to which the leader gives offsets and its epoch; or the
    error where they are none that a client may send."""


@dataclass(frozen=True, slots=True)
class Produced(_Answers):
    """The leader's answer to a producer; with acks 0 there is none."""

    end: int = -1
    """The offset behind the records."""


@dataclass(frozen=True, slots=True)
class Consume(_Asks):
    """A consumer asks for records."""

    offset: int
    max_bytes: int
    """As in `Fetch`."""
    leader_epoch: int = ANY_EPOCH
    """The latest leader epoch that the consumer has heard of (KIP-320)."""


@dataclass(frozen=True, slots=True)
class Consumed(_Answers):
    """Records below the high watermark, and the high watermark itself."""

    high_watermark: int = -1
    records: bytes = b""


Request = Fetch | AskEpochEnd | Produce | Consume
Response = Fetched | EpochEndTold | Produced | Consumed
