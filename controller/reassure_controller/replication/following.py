"""One replica while it follows: it truncates, then fetches, one request at a time.

It is a step function without a loop of its own: `next_request` says what to send now, `take` what
to do with an answer. A request that got no answer is simply followed by the next one, and an answer
that is not to the latest request is none.
"""

import logging

from reassure_controller.replication.backoff import Backoff
from reassure_controller.replication.errors import NONE, OFFSET_OUT_OF_RANGE
from reassure_controller.replication.messages import (
    AskEpochEnd,
    Correlation,
    EpochEndTold,
    Fetch,
    Fetched,
    Request,
)
from reassure_controller.replication.replica import Replica, Role
from reassure_controller.replication.truncation import AskLeader, CutLog, begin_truncation, go_on
from reassure_controller.storage.errors import CorruptBatch, CorruptLog, DiskFailed, OutOfOrder
from reassure_spec.clauses import clause
from reassure_spec.observations import Follow, Restored
from reassure_spec.observations import Replica as ReplicaLine

log = logging.getLogger(__name__)


class Following(Role):
    """A replica that follows the leader of one leader epoch."""

    def __init__(self, replica: Replica, leader: int, leader_epoch: int) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        self._replica = replica
        self._host = replica.host
        self._question: AskLeader | None = None
        """What is still to be asked before the log can be cut."""
        self._waits_for: Correlation | None = None
        self.is_refused = False
        """Whether the last answer was an error."""
        self._backoff = Backoff()
        self._truncate()

    def _truncate(self) -> None:
        replica = self._replica
        self._take_step(
            begin_truncation(
                replica.log.epochs, replica.log.end_offset, replica.high_watermark, self._host.rules
            )
        )

    @clause("follower.truncates-first")
    def _take_step(self, step: AskLeader | CutLog) -> None:
        """Cut the log, after which fetching begins, or keep what has to be asked first."""
        if isinstance(step, AskLeader):
            self._question = step
            return
        self._question = None
        replica = self._replica
        if step.end < replica.log.start_offset:
            replica.log.start_over(step.end)
        else:
            replica.log.truncate_to(step.end)
        end = replica.log.end_offset
        replica.high_watermark = min(replica.high_watermark, end)
        self._replica.say(Follow(end, replica.high_watermark))

    def _start_over(self, start: int) -> None:
        """Go on from where the leader's log begins: what is missing before it is deleted there.

        A leader deletes only what is below its mark, so all of that was in sync.
        """
        replica = self._replica
        replica.log.start_over(start)
        replica.high_watermark = start
        replica.say(Restored(start, start, ()))
        replica.say(Follow(start, start))

    # Asking

    def next_request(self, now_ms: int) -> Request | None:
        """Return what to send to the leader now, None while a quota or the disk forbids it."""
        replica, host = self._replica, self._host
        if not self._backoff.is_over(now_ms):
            return None
        most = host.rules.fetch_bytes
        if not self._is_in_sync():
            most = host.quotas.as_follower.allow(replica.key, most, now_ms)
        if self._question is None and most == 0:
            return None
        correlation = self._waits_for = host.next_correlation()
        if self._question is not None:
            return AskEpochEnd(
                replica.key, correlation, host.broker_id, self.leader_epoch, self._question.epoch
            )
        return Fetch(
            replica.key,
            correlation,
            host.broker_id,
            host.broker_epoch,
            self.leader_epoch,
            replica.log.end_offset,
            most,
        )

    def _is_in_sync(self) -> bool:
        return self._host.broker_id in self._replica.hosted.state.isr

    # Answers

    def awaits(self, answer: Fetched | EpochEndTold) -> bool:
        """Whether an answer is to the latest request."""
        return answer.correlation == self._waits_for

    def take(self, answer: Fetched | EpochEndTold, now_ms: int) -> None:
        """Take the leader's answer, if it is to the latest request."""
        if not self.awaits(answer):
            return
        self._waits_for = None
        self.is_refused = answer.error != NONE
        try:
            self._take(answer, now_ms)
        except (CorruptBatch, OutOfOrder, DiskFailed, CorruptLog) as refused:
            log.warning("%s-%d: %s; asking the leader again", *answer.key, refused)
            if isinstance(refused, DiskFailed):
                self._backoff.fail(now_ms)
        else:
            self._backoff.succeed()

    def _take(self, answer: Fetched | EpochEndTold, now_ms: int) -> None:
        if answer.error != NONE:
            log.info("%s-%d: leader %d: %s", *answer.key, self.leader, answer.error)
            end = self._replica.log.end_offset
            is_outside = answer.error == OFFSET_OUT_OF_RANGE
            if is_outside and isinstance(answer, Fetched) and answer.start > end:
                self._start_over(answer.start)
            elif self._cuts_by_epoch() or is_outside:
                self._truncate()
        elif isinstance(answer, Fetched):
            self._take_records(answer, now_ms)
        else:
            replica = self._replica
            end, mark = replica.log.end_offset, replica.high_watermark
            self._take_step(go_on(replica.log.epochs, end, mark, answer, self._host.rules))

    def _cuts_by_epoch(self) -> bool:
        """Whether to truncate once more does no harm: what is shared with the leader stays."""
        return self._host.rules.readings.follower_truncation == "common-prefix"

    @clause("hw.follower.from-leader")
    def _take_records(self, answer: Fetched, now_ms: int) -> None:
        """Append what the leader has sent, and take its high watermark as far as the log goes."""
        replica, host = self._replica, self._host
        if answer.records:
            replica.log.append_batches(answer.records)
        if not self._is_in_sync():
            host.quotas.as_follower.note(replica.key, len(answer.records), now_ms)
        end, mark = replica.log.end_offset, answer.high_watermark
        mark = min(mark, end)
        mark = max(mark, replica.high_watermark)
        is_moved, replica.high_watermark = mark != replica.high_watermark, mark
        if answer.records:
            replica.supersede(host.broker_id)
            replica.say(ReplicaLine(end, mark))
        elif is_moved:  # which matters when it is saved, or begins to lead
            replica.say_later(host.broker_id, ReplicaLine(end, mark))
