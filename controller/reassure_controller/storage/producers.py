"""What a log remembers of idempotent producers: Kafka's rules for their sequences.

All of it stands in the batches, so it is worked out from them and kept nowhere else.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from reassure_controller.replication.errors import (
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from reassure_controller.storage.errors import SequenceRefused
from reassure_controller.storage.records import RecordBatch

BATCHES_KEPT: Final = 5
"""How many batches of a producer are known again, which is as many as it may have in flight."""
EXPIRY_MS: Final = 86_400_000
"""How long one is remembered that says nothing: Kafka's own producer.id.expiration.ms."""
_SEQUENCES: Final = 2**31
"""Behind the last sequence comes 0 again."""


@dataclass(slots=True)
class _Producer:
    """One producer in one epoch."""

    epoch: int
    seen_ms: int
    batches: deque[tuple[int, range]] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))
    """The first sequence of each, and its offsets."""


class ProducerStates:
    """The producers of one log, whoever was heard of last at the end."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def find_duplicate(self, batch: RecordBatch, *, may_have_forgotten: bool) -> range | None:
        """Return the offsets that a batch has already; None of one that comes next.

        Raises SequenceRefused. A producer that nobody knows begins with 0; where its records may
        be deleted by now it is told so, and begins anew.
        """
        known = self._producers.get(batch.producer_id)
        expected = 0
        if known is not None and batch.producer_epoch < known.epoch:
            reason = f"epoch {batch.producer_epoch} is older than {known.epoch}"
            raise SequenceRefused(INVALID_PRODUCER_EPOCH, batch.producer_id, reason)
        if known is not None and batch.producer_epoch == known.epoch:
            for sequence, offsets in known.batches:
                if (sequence, len(offsets)) == (batch.base_sequence, batch.count):
                    return offsets
                expected = (sequence + len(offsets)) % _SEQUENCES
        if batch.base_sequence != expected:
            forgotten = known is None and may_have_forgotten
            error = UNKNOWN_PRODUCER_ID if forgotten else OUT_OF_ORDER_SEQUENCE_NUMBER
            reason = f"sequence {batch.base_sequence} comes where {expected} is next"
            raise SequenceRefused(error, batch.producer_id, reason)
        return None

    def note(self, batch: RecordBatch, offsets: range, now_ms: int) -> None:
        """Remember a batch and where it is, and forget those that said nothing for long."""
        if batch.producer_id < 0:
            return
        known = self._producers.pop(batch.producer_id, None)
        if known is None or known.epoch != batch.producer_epoch:
            known = _Producer(batch.producer_epoch, now_ms)
        known.seen_ms = now_ms
        known.batches.append((batch.base_sequence, offsets))
        self._producers[batch.producer_id] = known
        while self._producers[oldest := next(iter(self._producers))].seen_ms < now_ms - EXPIRY_MS:
            del self._producers[oldest]
