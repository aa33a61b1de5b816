"""One replica while it leads: it serves followers, producers and consumers, and keeps the books.

Each act has the same order: read the clock, then the log's end (reading `lag.clock-read`); conclude
(`leading`); say it (`observing`); answer.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from reassure_controller.replication import errors
from reassure_controller.replication.backoff import Backoff
from reassure_controller.replication.followers import Follower
from reassure_controller.replication.leading import (
    Leadership,
    begin,
    evaluate,
    find_shown,
    may_enter,
    note,
    propose_isr,
)
from reassure_controller.replication.messages import (
    ANY_EPOCH,
    AskEpochEnd,
    Consume,
    Consumed,
    Correlation,
    EpochEndTold,
    Fetch,
    Fetched,
    Produce,
    Produced,
    Response,
)
from reassure_controller.replication.replica import Replica, Role
from reassure_controller.session import Indefinite
from reassure_controller.storage.errors import (
    CorruptLog,
    DiskFailed,
    OutOfOrder,
    SequenceRefused,
)
from reassure_controller.storage.records import Checked, scan
from reassure_spec.clauses import clause
from reassure_spec.observations import Answer, Evaluate, IsrRead, IsrWrite, Lead, Serve
from reassure_spec.observations import Fetch as FetchLine
from reassure_spec.observations import Produce as ProduceLine
from reassure_spec.observations import Replica as ReplicaLine
from reassure_spec.znodes import ReplicaList

log = logging.getLogger(__name__)

ReplyTo = Callable[[Response], None]
"""Where an answer goes."""


class Waiting(NamedTuple):
    """A producer that waits for all in-sync replicas."""

    end: int
    """The offset behind its records."""
    correlation: Correlation
    reply: ReplyTo


class Leading(Role):
    """A replica that leads in one leader epoch."""

    def __init__(self, replica: Replica, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self._replica = replica
        self._host = host = replica.host
        self._rules = host.rules
        self._waiting: list[Waiting] = []
        self._backoff = Backoff()
        self._lives: dict[int, int] = {}
        """By follower: the latest broker epoch that it has fetched with."""
        hosted, now_ms = replica.hosted, host.clock.now_ms()
        # Who is in sync and assigned no more is written out by the controller, or once it lags.
        replicas = tuple(dict.fromkeys((*hosted.replicas, *hosted.state.isr)))
        end = replica.log.end_offset
        replica.log.begin_epoch(leader_epoch)
        self.view: Leadership = begin(
            host.broker_id,
            replicas,
            hosted.state.isr,
            end,
            replica.high_watermark,
            now_ms,
            self._rules,
        )
        self.due_ms = now_ms
        """When it looks again who keeps up."""
        self._concluded: tuple[ReplicaList, int] = (), 0
        """Who keeps up and where the mark is, as written last."""
        self._is_quiet = False
        """Whether nothing happened since then."""
        self._served = -1, 0
        """The mark that consumers were shown last, and the end of what they were handed out."""
        line = Lead(
            end,
            replica.high_watermark,
            replicas,
            hosted.state.isr,
            hosted.state_version,
            self._rules.lag_ms_max,
            now_ms,
            replica.list_epochs(),
        )
        replica.say(line)
        self.evaluate()

    # Followers

    def serve_fetch(self, request: Fetch, reply: ReplyTo) -> None:
        """Note a follower's request and answer it."""
        error = self._refuse_fetch(request)
        if error != errors.NONE:
            start = self._replica.log.start_offset
            reply(Fetched(request.key, request.correlation, error, start=start))
            return
        follower = request.replica
        now_ms, end = self._read_clock_and_end()
        self._lives[follower] = request.broker_epoch
        before = self.view.followers[follower]
        self.view = note(self.view, follower, request.offset, end, now_ms, self._rules)
        noted = self.view.followers[follower]
        line = FetchLine(
            follower,
            request.offset,
            request.leader_epoch,
            noted.last_fetch_leader_end,
            now_ms,
            max(0, noted.last_caught_up_ms),
        )
        if self._is_repeated(before, noted):
            self._replica.say_later(follower, line)
        else:
            if noted.offset >= noted.last_fetch_leader_end:  # its credit is of now
                self._replica.supersede(follower)
            else:
                self._replica.say_deferred()
            self._replica.say(line)
            self._is_quiet = False
            self.evaluate()
        reply(self.answer_again(request))

    def _is_repeated(self, before: Follower, noted: Follower) -> bool:
        """Whether a fetch told nothing but that the follower goes on keeping up.

        Nobody asks for that before the next look, and only for the last one then: it is caught up
        at that one's own time.
        """
        told = noted.offset, noted.last_fetch_leader_end
        return (
            self.view.is_settled
            and told == (before.offset, before.last_fetch_leader_end)
            and before.last_fetch_ms < noted.last_fetch_ms == noted.last_caught_up_ms
        )

    def answer_again(self, request: Fetch) -> Fetched:
        """Answer a fetch that has been noted, now that there may be more to say."""
        try:
            records = self._read_for(request, self._host.clock.now_ms())
        except (DiskFailed, CorruptLog) as failed:
            self._warn("nothing is sent to %d: %s", request.replica, failed)
            return Fetched(request.key, request.correlation, errors.KAFKA_STORAGE_ERROR)
        mark, start = self._replica.high_watermark, self._replica.log.start_offset
        return Fetched(request.key, request.correlation, errors.NONE, mark, records, start)

    @clause("lag.clock-before-end")
    def _read_clock_and_end(self) -> tuple[int, int]:
        """Return the time and the log's end, read in this order: the end is never too old."""
        clock, log = self._host.clock, self._replica.log
        if self._rules.readings.lag_clock_read == "after-end":
            end = log.end_offset
            return clock.now_ms(), end
        now_ms, end = clock.now_ms(), log.end_offset
        return now_ms, end

    @clause("fetch.epoch-fenced")
    def _refuse_fetch(self, request: Fetch) -> str:
        error = self.check_epoch(request.leader_epoch)
        if error != errors.NONE:
            return error
        replica, follower = self._replica, request.replica
        if follower not in self.view.followers or follower not in replica.hosted.replicas:
            return errors.NOT_LEADER_OR_FOLLOWER
        if not replica.log.start_offset <= request.offset <= replica.log.end_offset:
            return errors.OFFSET_OUT_OF_RANGE
        if self._is_of_dead_life(request):
            return errors.STALE_BROKER_EPOCH
        return errors.NONE

    def _is_of_dead_life(self, request: Fetch) -> bool:
        """Whether a request was sent before its broker died: what it says of its log may be lost.

        ZooKeeper is asked where it matters, when the request could bring the follower into the
        in-sync set; that is once for each entry, since a member is not asked about.
        """
        follower, epoch = request.replica, request.broker_epoch
        if epoch < self._lives.get(follower, epoch):
            return True
        if not may_enter(self.view, follower, request.offset, self._rules):
            return False
        try:
            return self._host.states.find_broker_epoch(follower) != epoch
        except Indefinite as indefinite:
            log.info("%s-%d: is %d alive? %s", *request.key, follower, indefinite)
            return True

    def _read_for(self, request: Fetch, now_ms: int) -> bytes:
        """Return records for a follower; none while a quota holds one up that is out of sync."""
        replica, quota = self._replica, self._host.quotas.as_leader
        if request.max_bytes <= 0:
            return b""
        if request.replica in self.view.isr:
            return replica.log.read(request.offset, request.max_bytes)
        if self.is_held_up(request):
            return b""
        most = quota.allow(replica.key, request.max_bytes, now_ms)
        records = replica.log.read(request.offset, most)
        quota.note(replica.key, len(records), now_ms)
        return records

    def is_held_up(self, request: Fetch) -> bool:
        """Whether a quota lets a follower have nothing now."""
        out_of_sync = request.replica not in self.view.isr
        now_ms, quota = self._host.clock.now_ms(), self._host.quotas.as_leader
        return out_of_sync and quota.allow(self._replica.key, 1, now_ms) == 0

    def check_epoch(self, leader_epoch: int) -> str:
        """Return why a request of another leader epoch is refused."""
        if leader_epoch < self.leader_epoch:
            return errors.FENCED_LEADER_EPOCH
        return errors.UNKNOWN_LEADER_EPOCH if leader_epoch > self.leader_epoch else errors.NONE

    def tell_epoch_end(self, request: AskEpochEnd, reply: ReplyTo) -> None:
        """Answer where an epoch ends in the log."""
        error = self.check_epoch(request.leader_epoch)
        if error != errors.NONE:
            reply(EpochEndTold(request.key, request.correlation, error))
            return
        log_end = self._replica.log.end_offset
        found = self._replica.log.epochs.end_offset_for(request.epoch, log_end)
        start = self.view.start
        reply(
            EpochEndTold(
                request.key, request.correlation, error, found.epoch, found.end_offset, start
            )
        )

    # The books

    @clause("lag.evaluated-in-time")
    def tick(self) -> None:
        """Evaluate if it is time to: a follower that stops fetching causes no event."""
        if self._host.clock.now_ms() >= self.due_ms:
            self.evaluate()

    def evaluate(self) -> None:
        """Look who keeps up and how far the mark may go, and write the in-sync set if it changes.

        What was waiting for a member that is written out can go on at once, so another look
        follows on a write.
        """
        while True:
            self._settle_attempt()
            self.look()
            if not self.store_isr():
                return

    def look(self) -> None:
        """Conclude who keeps up and how far the mark may go, and answer whom that lets go on."""
        replica, host = self._replica, self._host
        now_ms, end = host.clock.now_ms(), replica.log.end_offset
        self.view = evaluate(self.view, end, now_ms, self._rules)
        mark = self.view.high_watermark
        concluded = self.view.pseudo_isr, mark
        is_news = concluded != self._concluded or not self.view.is_settled
        if is_news or now_ms >= self.due_ms:
            self.due_ms, self._concluded = now_ms + self._rules.evaluate_ms, concluded
            if is_news or mark < end or not self._is_calm(now_ms):
                self._is_quiet = True
                replica.say(Evaluate(*concluded, time_ms=now_ms))
        replica.high_watermark = mark
        self._answer_up_to(mark)

    def _is_calm(self, now_ms: int) -> bool:
        """Whether nothing happened since the last line but that all who are waited for fetched on.

        That is so whatever is concluded of it: who is silent is looked at.
        """
        waited = (self.view.followers.get(one) for one in self.view.pseudo_isr)
        recent = now_ms - self._rules.evaluate_ms
        return self._is_quiet and all(one is None or one.last_fetch_ms >= recent for one in waited)

    @clause("isr.write.conditional", "isr.lagging-leaves")
    def store_isr(self) -> bool:
        """Write the in-sync set where it should be another one; answer whether that was done.

        Refused, the state is read again: a newer leader, or controller, may have written it.
        """
        wanted, isr = propose_isr(self.view, self._rules), self.view.isr
        if set(wanted) == set(isr):
            return False
        key, states = self._replica.key, self._host.states
        expected = self._replica.hosted.state_version
        outcome = states.write_isr(key, wanted)
        version = self._replica.hosted.state_version if outcome == "ok" else None
        self._replica.say(IsrWrite(wanted, expected, version))
        self._is_quiet = False
        if outcome == "unknown":
            self.view = replace(self.view, attempted=wanted)
            return False
        if outcome != "refused":
            self.view = replace(self.view, isr=wanted)
            return True
        self.read_again()
        return False

    def _settle_attempt(self) -> None:
        """Find out what became of a write that was not answered."""
        if self.view.attempted:
            self.read_again()

    def read_again(self) -> None:
        """Read the stored in-sync set, where this is still its leader."""
        outcome = self._host.states.refresh(self._replica.key)
        self.is_refused = outcome == "refused"
        if outcome == "ok":
            hosted = self._replica.hosted
            line = IsrRead(hosted.state.isr, hosted.state_version)
            self._replica.say(line)
            self._is_quiet = False
            self.view = replace(self.view, isr=hosted.state.isr, attempted=())

    # Clients

    def produce(self, request: Produce, reply: ReplyTo) -> None:
        """Append records, and answer when as many hold them as the producer asked for."""
        replica, host = self._replica, self._host
        before = replica.log.end_offset
        appended = self._refuse_produce(request) or self._append(request.records)
        if isinstance(appended, str):
            if request.acks != 0:
                reply(Produced(request.key, request.correlation, appended))
            return
        if appended.stop > before:  # else a producer has sent once more what is there
            replica.say(ReplicaLine(appended.stop, replica.high_watermark, host.clock.now_ms()))
            self._is_quiet = False
        if request.acks == -1 and appended.stop > replica.high_watermark:
            replica.say(ProduceLine(appended.stop))
            self._waiting.append(Waiting(appended.stop, request.correlation, reply))
        elif request.acks != 0:
            reply(Produced(request.key, request.correlation, errors.NONE, appended.stop))
        self.evaluate()

    def _refuse_produce(self, request: Produce) -> str:
        if request.acks not in (-1, 0, 1):
            return errors.INVALID_REQUIRED_ACKS
        few = request.acks == -1 and self._are_few()
        return errors.NOT_ENOUGH_REPLICAS if few else errors.NONE

    def _are_few(self) -> bool:
        """Whether fewer replicas are in sync than min.insync.replicas asks for."""
        return len(self.view.isr) < self._host.limits.find_minimum(self._replica.key[0])

    def _append(self, records: Checked | str) -> str | range:
        """Return the offsets that the records have, or why they have none."""
        replica = self._replica
        if isinstance(records, str):
            return records
        if records.largest_bytes > self._host.limits.find_batch_bytes(replica.key[0]):
            return errors.MESSAGE_TOO_LARGE
        try:
            now_ms = self._host.clock.now_ms()
            appended = replica.log.append_produced(records, self.leader_epoch, now_ms)
        except SequenceRefused as refused:
            log.info("%s-%d: %s", *replica.key, refused)
            return refused.error
        except (DiskFailed, CorruptLog) as failed:
            self._warn("%s", failed)
            return errors.KAFKA_STORAGE_ERROR
        except OutOfOrder as overtaken:  # its own log has seen a later leader epoch
            log.warning("%s-%d: %s", *replica.key, overtaken)
            return errors.NOT_LEADER_OR_FOLLOWER
        self._backoff.succeed()
        return appended

    def _warn(self, what: str, *values: object) -> None:
        """Speak of the disk, and less and less often while it goes on failing."""
        now_ms = self._host.clock.now_ms()
        if self._backoff.is_over(now_ms):
            log.warning(f"%s-%d: {what}", *self._replica.key, *values)
            self._backoff.fail(now_ms)

    @clause("hw.acks-all.answered")
    def _answer_up_to(self, mark: int) -> None:
        """Answer the producers whose records the mark has passed.

        Where fewer than the minimum are in sync by then the records are safe as far as the mark
        goes, and are not what the producer asked for.
        """
        left: list[Waiting] = []
        few = self._are_few()
        for waiting in self._waiting:
            if waiting.end > mark:
                left.append(waiting)
            else:
                self._answer(waiting, errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND if few else "")
        self._waiting = left

    def _answer(self, waiting: Waiting, error: str) -> None:
        key = self._replica.key
        self._replica.say(Answer(waiting.end, error or None))
        waiting.reply(Produced(key, waiting.correlation, error, waiting.end))

    def end(self) -> None:
        """Tell every producer that waits that this broker no longer leads."""
        for waiting in self._waiting:
            self._answer(waiting, errors.NOT_LEADER_OR_FOLLOWER)
        self._waiting = []

    def give_up(self, correlation: Correlation) -> None:
        """Tell a producer that waits that its time is over, and keep nothing of it."""
        for waiting in self._waiting:
            if waiting.correlation == correlation:
                self._waiting.remove(waiting)
                self._answer(waiting, errors.REQUEST_TIMED_OUT)
                return

    def consume(self, request: Consume, reply: ReplyTo) -> None:
        """Hand out records below the mark."""
        replica, key = self._replica, request.key
        if request.leader_epoch != ANY_EPOCH:
            error = self.check_epoch(request.leader_epoch)
            if error != errors.NONE:
                reply(Consumed(key, request.correlation, error))
                return
        shown = find_shown(self.view, replica.log.end_offset, self._rules)
        if shown is None:
            reply(Consumed(key, request.correlation, errors.OFFSET_NOT_AVAILABLE))
            return
        if not replica.log.start_offset <= request.offset <= replica.log.end_offset:
            reply(Consumed(key, request.correlation, errors.OFFSET_OUT_OF_RANGE))
            return
        records = b""
        if request.offset < shown and request.max_bytes > 0:
            try:
                records = replica.log.read(request.offset, request.max_bytes, below=shown)
            except (DiskFailed, CorruptLog) as failed:
                self._warn("nothing is shown: %s", failed)
                reply(Consumed(key, request.correlation, errors.KAFKA_STORAGE_ERROR))
                return
        end = max((batch.last_offset + 1 for batch in scan(records)), default=None)
        mark, farthest = self._served
        if shown != mark or (end is not None and end > farthest):
            self._served = shown, max(farthest, end or 0)
            replica.say(Serve(shown, end))
        reply(Consumed(key, request.correlation, errors.NONE, shown, records))
