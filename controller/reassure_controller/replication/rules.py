"""What a broker goes by when it replicates: the rule, the readings, the limits."""

from dataclasses import dataclass, field
from typing import Final, Literal

from reassure_spec.readings import Readings
from reassure_spec.rooms import BROKER, refuse_readings

Rule = Literal["lag", "before"]

LAG_MS_MAX: Final = 10_000
"""Kafka's own default of replica.lag.time.max.ms when the document was written."""
FETCH_BYTES: Final = 1 << 20
"""Kafka's own replica.fetch.max.bytes."""
BATCH_BYTES_MAX: Final = 2**20 + 12
"""Kafka's own message.max.bytes: a MiB, and what stands before the bytes that a length counts."""


@dataclass(frozen=True, slots=True)
class ReplicationRules:
    """The settings of one broker. Raises RefusedReading for a reading that it does not carry out.

    `rule` is "lag" for KAFKA-4485's own, and "before" for the one that it replaces: out of the
    in-sync set after a limit behind the leader's end, into it as soon as a fetch is at the high
    watermark.
    """

    readings: Readings = field(default_factory=Readings)
    rule: Rule = "lag"
    lag_ms_max: int = LAG_MS_MAX
    """How long a follower may lag and still be waited for: replica.lag.time.max.ms."""
    min_insync_replicas: int = 1
    batch_bytes_max: int = BATCH_BYTES_MAX
    """How large a batch may be that a producer sends: message.max.bytes."""
    fetch_bytes: int = FETCH_BYTES
    """How much a follower asks for at a time."""

    def __post_init__(self) -> None:
        refuse_readings(BROKER, self.readings)

    def find_minimum(self, _topic: str) -> int:
        """Return what holds for every topic."""
        return self.min_insync_replicas

    def find_batch_bytes(self, _topic: str) -> int:
        """Return what holds for every topic."""
        return self.batch_bytes_max

    @property
    def evaluate_ms(self) -> int:
        """How often a leader looks who lags, whether anybody fetches or not."""
        return max(1, self.lag_ms_max // 2)
