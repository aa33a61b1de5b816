"""All replicas of one broker, behind one door: every message comes in here."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import Final, assert_never

from reassure_controller.log_lines import about
from reassure_controller.replication import errors
from reassure_controller.replication.clock import Clock, SteadyClock
from reassure_controller.replication.following import Following
from reassure_controller.replication.host import ProducerLimits, StateStore
from reassure_controller.replication.messages import (
    AskEpochEnd,
    Consume,
    Consumed,
    Correlation,
    EpochEndTold,
    Fetch,
    Fetched,
    Produce,
    Produced,
    Request,
    Response,
)
from reassure_controller.replication.observing import Observer
from reassure_controller.replication.quota import Quotas
from reassure_controller.replication.replica import Replica, Role
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading, ReplyTo
from reassure_controller.replication.upkeep import Upkeep, UpkeepSettings
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.errors import CorruptLog, DiskFailed
from reassure_spec.observations import What
from reassure_spec.znodes import NO_LEADER, PartitionKey

log = logging.getLogger(__name__)

REFUSALS: Final[Mapping[type[Request], Callable[..., Response]]] = {
    Fetch: Fetched,
    AskEpochEnd: EpochEndTold,
    Produce: Produced,
    Consume: Consumed,
}
"""By kind of request: the kind of its response."""


class Replicas:
    """The replicas of one broker, in one of its lives.

    Many threads may serve, take and ask at once: each replica has a guard of its own, which is held
    while the disk or ZooKeeper is waited for on its account, and nobody else's. Orders, and what
    else changes which replicas there are, come one at a time; whoever gives them sees to that.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: int,
        states: StateStore,
        disk: LogDirectory,
        clock: Clock,
        observer: Observer,
        rules: ReplicationRules,
        quotas: Quotas | None = None,
        upkeep: UpkeepSettings | None = None,
        limits: ProducerLimits | None = None,
    ) -> None:
        """Take up every replica that there is a log of."""
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.rules = rules
        self.clock: Clock = SteadyClock(clock)
        self.quotas = quotas or Quotas()
        self.limits = limits or rules
        self.states = states
        self._disk = disk
        self._observer = observer
        self._requests = count(1)
        self._guards: dict[PartitionKey, threading.RLock] = {}
        self._unready: set[PartitionKey] = set()
        """Partitions of which a replica could not become what the broker was told."""
        self._upkeep = Upkeep(self, disk, upkeep or UpkeepSettings(), self.clock.now_ms())
        marks = disk.high_watermarks
        self._replicas = {
            key: Replica(self, key, log, marks.get(key, 0)) for key, log in disk.logs.items()
        }

    # What replicas ask of their host

    def say(self, key: PartitionKey, controller_epoch: int, leader_epoch: int, what: What) -> None:
        """Write a line of history about a replica."""
        self._observer.say(key, controller_epoch, leader_epoch, what)

    def next_correlation(self) -> Correlation:
        """Return what the next request is known by."""
        return self.broker_epoch, next(self._requests)

    def guard(self, key: PartitionKey) -> threading.RLock:
        """Return what whoever deals with a replica of a partition has to hold."""
        return self._guards.setdefault(key, threading.RLock())

    def __iter__(self) -> Iterator[Replica]:
        return iter(tuple(self._replicas.values()))

    # Orders

    def find(self, key: PartitionKey) -> Replica | None:
        """Return the replica of a partition, if there is one."""
        return self._replicas.get(key)

    def become(self, key: PartitionKey) -> None:
        """Have a replica lead or follow, as the broker was told; one that is not there is made.

        Where the disk does not allow it, the replica does neither, and `tick` tries again.
        """
        with self.guard(key):
            self._unready.add(key)
            try:
                replica = self._replicas.get(key)
                if replica is None:
                    self.quotas.catch_up()
                    replica = self._replicas[key] = Replica(self, key, self._disk.log(*key), 0)
                self._take_role(replica)
            except (DiskFailed, CorruptLog) as failed:
                log.warning("%s-%d neither leads nor follows: %s", *key, failed)
            else:
                self._unready.discard(key)

    def _take_role(self, replica: Replica) -> None:
        replica.obey()
        state = replica.hosted.state
        if state.leader == self.broker_id:
            replica.role = Leading(replica, state.leader_epoch)
        elif state.leader != NO_LEADER:
            replica.role = Following(replica, state.leader, state.leader_epoch)

    def begin_again(self, broker_epoch: int) -> None:
        """Go by another broker epoch; replicas neither lead nor follow before they are told to."""
        self.broker_epoch = broker_epoch
        self._unready.clear()
        self._rest()

    def _rest(self) -> None:
        for replica in self:
            with self.guard(replica.key):
                replica.rest()

    def stop(
        self, key: PartitionKey, controller_epoch: int, leader_epoch: int, *, delete: bool
    ) -> None:
        """Have a replica neither lead nor follow, and delete it when asked to."""
        with self.guard(key):
            self._unready.discard(key)
            replica = self._replicas.get(key)
            if replica is None:
                return
            replica.stop(controller_epoch, leader_epoch, is_deleted=delete)
            if delete:
                del self._replicas[key]
                try:
                    self._disk.delete(*key)
                except DiskFailed as failed:
                    log.warning("%s-%d is deleted, its files are not all gone: %s", *key, failed)

    # Messages

    def serve(self, request: Request, reply: ReplyTo) -> None:
        """Serve a request; the answer may come later, or never."""
        key = request.key
        with self.guard(key), about(topic=key[0], partition=key[1]):
            role = self._find_role(key)
            if not isinstance(role, Leading):
                error = errors.NOT_LEADER_OR_FOLLOWER
                reply(REFUSALS[type(request)](key, request.correlation, error))
                return
            match request:
                case Fetch():
                    role.serve_fetch(request, reply)
                case AskEpochEnd():
                    role.tell_epoch_end(request, reply)
                case Produce():
                    role.produce(request, reply)
                case Consume():
                    role.consume(request, reply)
                case _:
                    assert_never(request)

    def give_up(self, key: PartitionKey, correlation: Correlation) -> None:
        """Answer a producer that waits for all in-sync replicas that its time is over."""
        with self.guard(key):
            role = self._find_role(key)
            if isinstance(role, Leading):
                role.give_up(correlation)

    def answer_again(self, fetch: Fetch) -> Fetched:
        """Answer a fetch that has been noted, now that there may be more to say."""
        with self.guard(fetch.key):
            role = self._find_role(fetch.key)
            if isinstance(role, Leading) and role.leader_epoch == fetch.leader_epoch:
                return role.answer_again(fetch)
        return Fetched(fetch.key, fetch.correlation, errors.NOT_LEADER_OR_FOLLOWER)

    def _find_role(self, key: PartitionKey) -> Role | None:
        replica = self._replicas.get(key)
        return None if replica is None else replica.role

    def take(self, answer: Fetched | EpochEndTold) -> None:
        """Take an answer to a request of a replica."""
        key = answer.key
        with self.guard(key), about(topic=key[0], partition=key[1]):
            role = self._find_role(key)
            if isinstance(role, Following):
                role.take(answer, self.clock.now_ms())

    def next_requests(self, leader: int | None = None) -> Iterator[tuple[int, Request]]:
        """Yield what replicas that follow would send now, and to which broker.

        With a leader, only what is for that one.
        """
        for replica in self:
            with self.guard(replica.key):
                role = replica.role
                if not isinstance(role, Following) or leader not in (None, role.leader):
                    continue
                request = role.next_request(self.clock.now_ms())
            if request is not None:
                yield role.leader, request

    # Time

    def tick(self) -> None:
        """Do what is due: leaders look who lags, and the disk is looked after.

        A replica that somebody deals with has its turn the next time. Who is not due is passed over
        without its guard, as most are of thousands; a leader looks once more under it.
        """
        now_ms = self.clock.now_ms()
        for replica in self:
            role = replica.role
            if not isinstance(role, Leading) or now_ms < role.due_ms:
                continue
            guard = self.guard(replica.key)
            if guard.acquire(blocking=False):
                try:
                    if replica.role is role:
                        role.tick()
                finally:
                    guard.release()
        self._upkeep.tick(self.clock.now_ms())

    def retry(self) -> None:
        """Have the replicas lead or follow that could not before."""
        for key in sorted(self._unready):
            with self.guard(key):
                if key in self._unready:
                    self.become(key)

    def find_mark(self, key: PartitionKey) -> int:
        """Return a replica's high watermark, 0 where there is no replica."""
        replica = self._replicas.get(key)
        return 0 if replica is None else replica.high_watermark

    def checkpoint(self) -> None:
        """Write the high watermarks to disk. Raises WriteRefused."""
        marks = {}
        for replica in self:
            with self.guard(replica.key):
                replica.say_deferred(self.broker_id)
                marks[replica.key] = replica.high_watermark
        self._disk.save_high_watermarks(marks)

    def close(self) -> None:
        """End in order: answer who waits, checkpoint, and close the logs. Raises DiskFailed."""
        self._rest()
        with ExitStack() as ending:
            ending.callback(self._observer.close)
            ending.callback(self._disk.close)
            self.checkpoint()

    def abandon(self) -> None:
        """End as a process that is killed does: nothing is said, nothing more is written."""
        self._disk.abandon()
        self._observer.close()
