"""At which offsets the epochs of leaders begin in a log."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from reassure_controller.storage.errors import CorruptBatch, describe
from reassure_controller.storage.records import RecordBatch

UNDEFINED: Final = -1
"""Kafka's own number for an epoch, or an end offset, that the log knows nothing of."""


class EpochSpan(NamedTuple):
    """An epoch, and the first offset that was written under it."""

    epoch: int
    first_offset: int


class EpochEnd(NamedTuple):
    """The largest epoch not above one that was asked for, and the offset behind its records."""

    epoch: int
    end_offset: int


NO_EPOCH: Final = EpochEnd(UNDEFINED, UNDEFINED)
"""The answer when nothing is known of the epoch."""


@dataclass(frozen=True, slots=True)
class LeaderEpochs:
    """The epochs of one log, as spans of which each ends where the next begins.

    Epochs and first offsets both go up from span to span.
    """

    spans: tuple[EpochSpan, ...] = ()
    """The spans, oldest first."""

    @property
    def latest(self) -> int:
        """The newest epoch, or UNDEFINED in a log that has none."""
        return self.spans[-1].epoch if self.spans else UNDEFINED

    def epoch_at(self, offset: int) -> int:
        """Return the epoch that a record with this offset has, or UNDEFINED before the first."""
        return max((e for e, first in self.spans if first <= offset), default=UNDEFINED)

    def assign(self, epoch: int, first_offset: int) -> "LeaderEpochs":
        """Let the epoch begin at this offset, unless it has begun before.

        An epoch that began at or behind this offset without records gives way.
        """
        if self.spans and epoch <= self.latest:
            return self
        kept = self.truncate_to(first_offset).spans
        return LeaderEpochs((*kept, EpochSpan(epoch, first_offset)))

    def truncate_to(self, end_offset: int) -> "LeaderEpochs":
        """Forget the epochs that begin at or behind this offset."""
        return LeaderEpochs(tuple(span for span in self.spans if span.first_offset < end_offset))

    def begin_at(self, start_offset: int) -> "LeaderEpochs":
        """Forget the epochs that end at or before this offset.

        The first one that is left begins there, as Kafka has it: nothing is known of before.
        """
        past = [span for span in self.spans if span.first_offset <= start_offset]
        begun = (EpochSpan(span.epoch, start_offset) for span in past[-1:])
        return LeaderEpochs((*begun, *self.spans[len(past) :]))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return where the records of the epoch, or of the largest one below it, end.

        As Kafka answers OffsetsForLeaderEpoch: the newest epoch ends at the log's end; of an epoch
        above the newest nothing is known; one below the oldest ends where the oldest begins.
        """
        if epoch == UNDEFINED or epoch > self.latest:
            return NO_EPOCH
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        higher = next(span for span in self.spans if span.epoch > epoch)
        floor = max((span.epoch for span in self.spans if span.epoch <= epoch), default=epoch)
        return EpochEnd(floor, higher.first_offset)


def check_recovered(
    batch: RecordBatch, offset: int, latest: int, epochs: LeaderEpochs | None
) -> None:
    """Raise CorruptBatch where what no checksum covers does not continue the log.

    The epoch is compared with what the file of epochs says; it must not go back in any case.
    """
    if batch.base_offset != offset:
        raise CorruptBatch(batch.position, describe(f"base offset {offset}", batch.base_offset))
    expected = max(latest, batch.leader_epoch) if epochs is None else epochs.epoch_at(offset)
    if batch.leader_epoch != expected or batch.leader_epoch < latest:
        raise CorruptBatch(batch.position, describe(f"leader epoch {expected}", batch.leader_epoch))
