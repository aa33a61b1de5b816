"""Where a follower cuts its log before it fetches in a new leader epoch.

Reading `follower.truncation`, in the order of history: at its own high watermark, as brokers did
when the document was written; where the leader's log ended; or at the end of what it shares with
the leader's log, worked out from leader epochs (Kafka's KIP-101 and KIP-279).

For the last the follower asks where its latest epoch ends in the leader's log. The leader answers
with the largest epoch that it has up to there. Where the follower has that epoch too, both logs are
the same up to the smaller of its two ends; where it has not, it asks again about the largest epoch
below that it has. Each question is about an older epoch, so the questions come to an end.
"""

from dataclasses import dataclass

from reassure_controller.replication.messages import EpochEndTold
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.storage.epochs import UNDEFINED, LeaderEpochs
from reassure_spec.clauses import clause


@dataclass(frozen=True, slots=True)
class AskLeader:
    """Ask the leader where this epoch ends."""

    epoch: int


@dataclass(frozen=True, slots=True)
class CutLog:
    """Cut the log here."""

    end: int


@clause("follower.truncates-first")
def begin_truncation(
    epochs: LeaderEpochs, log_end: int, high_watermark: int, rules: ReplicationRules
) -> AskLeader | CutLog:
    """Return what a follower does first; an empty log has nothing to cut."""
    if log_end == 0:
        return CutLog(log_end)
    at_mark = rules.readings.follower_truncation == "own-high-watermark"
    if at_mark:
        return CutLog(high_watermark)
    return AskLeader(epochs.latest)


@clause("follower.truncation.common-prefix")
def go_on(
    epochs: LeaderEpochs,
    log_end: int,
    high_watermark: int,
    told: EpochEndTold,
    rules: ReplicationRules,
) -> AskLeader | CutLog:
    """Return what a follower does with the leader's answer."""
    if rules.readings.follower_truncation == "leader-end":
        return CutLog(min(log_end, told.start))
    if told.epoch == UNDEFINED:
        # The leader has never heard of so late an epoch, as after an unclean election.
        return CutLog(high_watermark)
    if any(span.epoch == told.epoch for span in epochs.spans):
        own = epochs.end_offset_for(told.epoch, log_end)
        return CutLog(min(own.end_offset, told.end_offset, log_end))
    below = [span.epoch for span in epochs.spans if span.epoch < told.epoch]
    if not below:
        first = min((span.first_offset for span in epochs.spans), default=0)
        return CutLog(min(first, told.end_offset, log_end))
    return AskLeader(max(below))
