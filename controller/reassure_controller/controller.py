"""A controller: elected, fed by watches, one plan at a time.

Election (Kafka 2.1 and later): one transaction creates the ephemeral `/controller` and raises
`/controller_epoch` on condition of its version. The version that the epoch znode has afterwards is
the fence that every write of the term checks.

There is one queue of events. Watches and the client's state listener only put something into it;
everything else happens in the thread that calls `pump`. Watches are lost with their connection, so
after every reconnect the controller arms all of them and takes all that it remembers for stale.
An event says where to look, never what happened: the handler reads, and plans from what it reads.

Work is taken in this order: the plan in hand, then events, then partitions in flight whose state
has changed, one by one, then the lowest pending request. `pump` can be given a budget of effects
and stops between two of them when it is spent; what is left of the plan stays in memory. `drain`
pumps until ZooKeeper has nothing new to say.

A controller whose session expired forgets everything and stands for election again on its new
session. One that was stopped in the middle of a plan and wakes up later goes on with that plan,
because it cannot know; the epoch check stops it at its first write.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from typing import Any

from kazoo.protocol.states import EventType, KazooState

from reassure_controller.client import Client
from reassure_controller.context import Context, LiveBroker
from reassure_controller.crashing import OnPoint
from reassure_controller.effects import (
    CreatePartitionState,
    CreateReassignment,
    DeleteRequest,
    DeleteZnode,
    DeletionWrite,
    Effect,
    EndPreferred,
    HealingWrite,
    Recheck,
    RecheckOldZnode,
    RequestRead,
    Step,
    TranslateEntries,
    UpdateReassignment,
    Write,
    WriteOldZnode,
    WriteState,
)
from reassure_controller.elections import (
    NOT_CONTROLLER,
    Shutdown,
    find_refused_shutdown,
    list_remaining,
    plan_preferred,
    plan_rebalancing,
    plan_shutdown,
)
from reassure_controller.engine import Conflict, ControllerMoved, Engine, Uncertain, list_keys
from reassure_controller.log_lines import about
from reassure_controller.plan import (
    plan_bad_request,
    plan_broker_failure,
    plan_broker_start,
    plan_change,
    plan_failover,
    plan_health,
    plan_new_partitions,
    plan_old_znode,
    plan_request,
    plan_rubbish,
    tell_untold,
)
from reassure_controller.protocols.kip_46 import HealingSettings
from reassure_controller.reader import Reader
from reassure_controller.rules import Rules
from reassure_controller.session import (
    Indefinite,
    Operation,
    Refused,
    SessionLost,
    barrier,
    commit,
    ensure_roots,
    flush,
    gather,
    session_id,
    start,
    stop,
)
from reassure_controller.tally import Terms
from reassure_controller.topics import find_due_deletion, plan_deletion
from reassure_controller.transport import Transport
from reassure_spec.errors import ReassureError
from reassure_spec.profiles import PROTOCOLS
from reassure_spec.readings import Readings, get_profile
from reassure_spec.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETED_TOPICS,
    FAILED_BROKERS,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    BadZnode,
    PartitionKey,
    decode_controller_epoch,
    decode_request,
    encode_controller,
    encode_controller_epoch,
    parse_request_name,
)

log = logging.getLogger("reassure_controller")

HEALING_ROOTS = (FAILED_BROKERS, REASSIGNMENT_TASKS)
"""Paths that exist where somebody heals."""
TELL_AGAIN_S = 0.5
"""How often, at most, brokers that an order did not reach are told once more."""
MAX_ATTEMPTS = 100
"""How often a piece of work is planned, and nothing got through, before that is a defect."""

CONNECTED, LOST, STOPPING = "connected", "lost", "stopping"


class NotQuiet(TimeoutError):
    """There was still something to do when the time for `drain` was up."""


class StuckError(ReassureError):
    """A piece of work was planned again and again without getting anywhere."""


@dataclass(frozen=True, slots=True)
class PumpResult:
    """What a call of `pump` or `drain` did."""

    effects_done: int
    held: bool
    """Whether it stopped because the budget was spent and an effect is waiting."""
    idle: bool
    """Whether nothing was left that it knew of."""
    next_point: str | None = None
    """The point of the effect that is waiting, when held."""


class _Turn(Enum):
    """How a turn of the pump ended."""

    MORE = "more"
    HELD = "held"
    IDLE = "idle"
    TROUBLE = "trouble"


@dataclass(slots=True)
class _Job:
    """A piece of work: planned when it begins, and again whenever its plan does not hold."""

    name: str
    make: Callable[[], tuple[Step, ...]]
    done: Callable[[], None] = lambda: None
    """What follows once it is carried out, in memory alone."""
    attempts: int = 0
    """How often it was planned without there being less to do than ever before."""
    least: int | None = None
    """The length of its shortest plan."""


class Controller:
    """One controller process, or candidate for it.

    `client` is a kazoo client in the cluster's chroot; it is started if it is not. `readings`
    say how the protocol is carried out; `clock_ms` gives wall-clock milliseconds for the
    `/controller` znode; `profile` says which protocols are carried out, `healing` how brokers that
    stay away are healed where it has that; `on_point` is told the point of each effect before it is
    carried out. Raises UnknownFault or RefusedReading.
    """

    def __init__(
        self,
        client: Client,
        broker_id: int,
        transport: Transport,
        readings: Readings | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        *,
        profile: str = "kip-236",
        healing: HealingSettings | None = None,
        on_point: OnPoint = lambda _: None,
    ) -> None:
        self.broker_id = broker_id
        self.address: tuple[str, int] | None = None
        """Where it listens for brokers, which `/controller` says; None where it does not."""
        self._on_point = on_point
        self.rules = Rules(
            readings or get_profile(profile),
            profile,
            healing or HealingSettings(),
        )
        self._client = client
        self._transport = transport
        self._clock_ms = clock_ms
        self._events: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._backlog: deque[tuple[str, str]] = deque()
        self._asked: deque[Shutdown] = deque()
        """Brokers that want to stop and were not answered, whoever asked first before the others.

        Another thread puts them there."""
        self._candidate = False
        self._dead = False
        self._active = False
        self._loaded = False
        self._session: int | None = None
        self.terms = Terms()
        self._unsettled = False
        self.context = Context()
        self._engine = self._make_engine(self.context)
        self._forget()
        client.add_listener(self._on_connection)
        start(client)

    def _forget(self) -> None:
        """Drop all memory of the cluster."""
        self._client.unwatch_below()
        while self._asked:
            self._asked.popleft().answer(NOT_CONTROLLER)
        self.context = Context()
        self._reader = self._make_reader(self.context)
        self._engine = self._make_engine(self.context)
        self._jobs: deque[_Job] = deque()
        self._job: _Job | None = None
        self._unplanned = False
        self._stale: Write | Recheck | RecheckOldZnode | None = None
        self._active = False
        self._loaded = False

    def _make_engine(self, context: Context) -> Engine:
        client, transport, on_point = self._client, self._transport, self._on_point
        return Engine(client, self.broker_id, context, transport, on_point)

    def _make_reader(self, context: Context) -> Reader:
        return Reader(self._client, context, self._on_watch, self.rules)

    # What other threads may call: only enqueue

    def _on_watch(self, event: Any) -> None:
        if event.type != EventType.NONE:  # NONE: the connection dropped, the listener says so
            self._events.put((event.type, event.path))

    def _on_connection(self, state: str) -> None:
        if state == KazooState.LOST:
            self._events.put((LOST, ""))
        elif state == KazooState.CONNECTED:
            self._events.put((CONNECTED, ""))

    def shut_down(self, broker: int, broker_epoch: int) -> Shutdown:
        """Take note that a broker wants to stop; return what will have the answer."""
        asked = Shutdown(broker, broker_epoch)
        self._asked.append(asked)
        self._events.put((STOPPING, ""))
        return asked

    # Election

    @property
    def is_active(self) -> bool:
        """Whether this controller was elected and has not learnt that its term is over."""
        return self._active

    @property
    def epoch(self) -> int:
        """The controller epoch of the term, 0 when not elected."""
        return self.context.epoch

    @property
    def events_waiting(self) -> int:
        """How many events there are that were not looked at."""
        return self._events.qsize() + len(self._backlog)

    @property
    def next_effect(self) -> Effect | None:
        """The effect that comes next in the plan in hand, None where none waits."""
        return self._engine.next_effect

    @property
    def plan(self) -> tuple[Step, ...]:
        """What is left of the plan in hand."""
        return self._engine.plan

    def contend(self) -> bool:
        """Stand for election; return whether this controller is the active one now.

        When another one is, this one stands again as soon as that one is gone. Raises Indefinite or
        SessionLost when ZooKeeper cannot be asked; a later `pump` tries again then.
        """
        self._candidate = True
        if self._active:
            return True
        self._unsettled = True
        self._forget()
        self._session = session_id(self._client)
        healing = HEALING_ROOTS if self.rules.heals else ()
        ensure_roots(self._client, (DELETED_TOPICS, *healing))
        while True:
            held, epoch = gather(
                [
                    self._client.get_async(CONTROLLER, watch=self._on_watch),
                    self._client.get_async(CONTROLLER_EPOCH),
                ]
            )
            if epoch is None:
                if not self._create_epoch():
                    continue
                epoch_data, epoch_version = encode_controller_epoch(0), 0
            else:
                epoch_data, epoch_version = epoch[0], epoch[1].version
            if held is not None and self._is_ours(held[1]):
                # From an election whose outcome never arrived, or from a term that has ended.
                self._delete_own_controller(held[1].version)
                held = None
            elected = held is None and self._elect(epoch_data, epoch_version)
            if held is None:
                looked = self._client.exists_async(CONTROLLER, watch=self._on_watch)
            if elected or held is not None or gather([looked])[0] is not None:
                self._unsettled = False
                return elected

    def _is_ours(self, stat: Any) -> bool:
        return bool(stat.ephemeralOwner == session_id(self._client))

    def _create_epoch(self) -> bool:
        """Create the epoch znode; return whether it was not there."""
        try:
            commit(self._client, [("create", (CONTROLLER_EPOCH, encode_controller_epoch(0)))])
        except Refused:
            log.info("%s was created by somebody else", CONTROLLER_EPOCH)
            return False
        return True

    def _delete_own_controller(self, version: int) -> None:
        try:
            commit(self._client, [("delete", (CONTROLLER, version))])
        except Refused as refused:
            log.info("%s is gone already: %s", CONTROLLER, refused)

    def _elect(self, data: bytes, version: int) -> bool:
        epoch = decode_controller_epoch(CONTROLLER_EPOCH, data) + 1
        protocols = PROTOCOLS[self.rules.profile]
        content = encode_controller(self.broker_id, self._clock_ms(), self.address, protocols)
        create: Operation = ("create", (CONTROLLER, content, None, True))
        raised: Operation = (
            "set_data",
            (CONTROLLER_EPOCH, encode_controller_epoch(epoch), version),
        )
        try:
            results = commit(self._client, [create, raised])
        except Refused as refused:
            log.info("controller %d was not elected: %s", self.broker_id, refused)
            return False
        self.context.epoch = epoch
        self.context.epoch_version = results[-1].version
        self.context.session = self._session
        self._active = True
        self.terms.begin()
        log.info("controller %d was elected with epoch %d", self.broker_id, epoch)
        return True

    def resign(self) -> None:
        """Give the term up: forget everything and delete `/controller` if it is ours.

        Raises Indefinite when ZooKeeper cannot be asked; the term has ended here all the same.
        """
        self._candidate = self._unsettled = False
        self._forget()
        held = gather([self._client.get_async(CONTROLLER)])[0]
        if held is not None and self._is_ours(held[1]):
            self._delete_own_controller(held[1].version)

    def kill(self) -> None:
        """End as a process ends: the session is closed at once, memory is gone."""
        if self._dead:
            return
        self._dead = True
        self._candidate = False
        self._client.remove_listener(self._on_connection)
        self._forget()
        stop(self._client)

    # Work

    def pump(self, max_effects: int | None = None) -> PumpResult:
        """Work on what is known so far, in the caller's thread; do at most `max_effects` effects.

        Connection trouble is not raised: the result is then not idle, and a later call goes on.
        Raises StuckError when a piece of work cannot be got through.
        """
        return self._pump(max_effects, None)

    def _pump(self, max_effects: int | None, deadline: float | None) -> PumpResult:
        """Pump; past the deadline (of the monotonic clock) stop where the next turn would begin."""
        done = 0
        while not self._dead:
            if deadline is not None and time.monotonic() > deadline:
                return PumpResult(done, held=False, idle=False)
            engine = self._engine
            before = engine.effects_run
            turn = _Turn.MORE
            try:
                turn = self._turn(None if max_effects is None else max_effects - done)
            except ControllerMoved as moved:
                self._on_moved(moved)
            except Indefinite as trouble:
                log.info("controller %d: %s", self.broker_id, trouble)
                turn = _Turn.TROUBLE
                if isinstance(trouble, SessionLost):
                    self._forget()
            done += engine.effects_run - before
            if turn is not _Turn.MORE:
                waiting = engine.next_effect
                return PumpResult(
                    effects_done=done,
                    held=turn is _Turn.HELD,
                    idle=turn is _Turn.IDLE,
                    next_point=waiting.point if turn is _Turn.HELD and waiting else None,
                )
        return PumpResult(done, held=False, idle=True)

    def drain(self, timeout: float = 10.0, max_effects: int | None = None) -> PumpResult:
        """Pump until ZooKeeper has nothing new to say, or until `max_effects` effects are done.

        Every write that was answered before the call has been taken into account when it returns
        idle. Raises NotQuiet when that has not come about within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        done = 0
        look = barrier
        while True:
            left = deadline - time.monotonic()
            if left <= 0 and not self._dead:
                raise NotQuiet(
                    f"controller {self.broker_id} was still busy after {timeout} s: "
                    f"{self._describe()}"
                )
            try:
                if not self._dead:
                    look(self._client, left)
            except Indefinite:
                time.sleep(0.002)  # the client is reconnecting
                look = barrier
                continue
            result = self._pump(None if max_effects is None else max_effects - done, deadline)
            done += result.effects_done
            if result.held:
                return replace(result, effects_done=done)
            if result.idle and result.effects_done == 0 and not self._unsettled:
                return PumpResult(done, held=False, idle=True)
            # Since the barrier only our own writes matter, and their events are here already.
            look = flush if result.idle and result.effects_done else barrier
            if not result.idle:
                time.sleep(0.002)

    def run_forever(self, until: threading.Event) -> None:
        """Stand for election and work, as a process does, until the event is set."""
        self._candidate = True
        self._unsettled = True
        told_s = time.monotonic()
        while not until.is_set():
            if not self.pump().idle:
                until.wait(0.05)
                continue
            if self.context.unreached and time.monotonic() - told_s > TELL_AGAIN_S:
                self.tell_again()
                told_s = time.monotonic()
                continue
            try:
                self._note_event(*self._events.get(timeout=0.2))
            except queue.Empty:
                continue

    def tell_again(self) -> None:
        """Have live brokers that an order did not reach told what they have, as if they came back.

        Nobody else would: a broker that only the controller cannot reach keeps its registration.
        """
        brokers = self.context.take_unreached()
        if brokers:
            self._jobs.append(
                _Job(
                    "brokers not reached",
                    lambda: plan_broker_start(
                        self.context, brokers, self._touched(brokers), self.rules
                    ),
                )
            )

    def _describe(self) -> str:
        job = self._job.name if self._job is not None else "no work in hand"
        return f"{job}, {len(self.context.requests)} requests pending"

    def _turn(self, budget: int | None) -> "_Turn":
        """Plan again if need be, run the plan in hand, and begin the next piece of work."""
        if self._stale is not None:
            self._read_again(self._stale)
            self._stale = None
        if self._unplanned and self._job is not None:
            self._plan_job(self._job)
            self._unplanned = False
        try:
            self._engine.run(budget)
        except (Conflict, Uncertain) as broken:
            with about(**list_keys(broken.effect)):
                log.info("planning again: %s", broken)
            self._stale = broken.effect
            self._unplanned = True
            if isinstance(broken, Uncertain):
                if isinstance(broken.effect, CreatePartitionState | WriteState):
                    self.context.untold.add(broken.effect.key)
                raise
            return _Turn.MORE
        if self._engine.next_effect is not None:
            return _Turn.HELD
        if self._job is not None:
            self._job.done()
            self._job = None
            self._reader.rubbish.clear()
            self.context.untold.clear()
        if not self._begin_work():
            return _Turn.IDLE
        return _Turn.MORE

    def _plan_job(self, job: _Job) -> None:
        steps = tell_untold(self.context, job.make(), self.rules)
        if job.least is None or len(steps) < job.least:
            job.attempts, job.least = 0, len(steps)
        job.attempts += 1
        if job.attempts > MAX_ATTEMPTS:
            raise StuckError(f"{job.name} was planned {MAX_ATTEMPTS} times and never got through")
        self._engine.load(plan_rubbish(self._reader.rubbish) + steps)

    def _read_again(self, effect: Write | Recheck | RecheckOldZnode) -> None:
        """Read everything the effect was planned from."""
        self._reader.read_old_znode(arm=False)
        if isinstance(effect, HealingWrite):
            self._reader.read_records()
            self._reader.read_tasks(arm=False)
            self._reader.read_requests()
            return
        if isinstance(effect, DeletionWrite):
            self._take_deletions(arm=False)
            self._reader.read_topics([effect.topic])
            return
        if isinstance(effect, EndPreferred):
            self._reader.read_preferred(arm=False)
            return
        if isinstance(effect, TranslateEntries | WriteOldZnode | RecheckOldZnode):
            self._reader.read_requests()
            return
        if isinstance(effect, DeleteRequest | DeleteZnode):
            return
        self._reader.refresh_parents([effect.topic])
        self._reader.refresh([effect.key])
        if isinstance(effect, CreateReassignment | UpdateReassignment):
            self._note_recorded(effect)
        if isinstance(effect, Recheck):
            self._take_brokers(self._reader.read_brokers())
            if self._jobs and self._job is not None:
                # Whoever died is seen to first; what was in hand is planned again after that.
                self._jobs.append(self._job)
                self._job = None
                self._engine.load(())

    def _note_recorded(self, effect: CreateReassignment | UpdateReassignment) -> None:
        """Find out whether a record was written of which we had no answer."""
        content = self.context.partitions.get(effect.key)
        before = effect.version if isinstance(effect, UpdateReassignment) else -1
        if content is None or content.child_version <= before:
            return
        if content.child == effect.reassignment:
            self.context.note_taken(effect)

    def _on_moved(self, moved: ControllerMoved) -> None:
        log.warning(
            "%s: controller %d was superseded and resigns (%s)",
            CONTROLLER_EPOCH,
            self.broker_id,
            moved,
        )
        self._forget()
        self._unsettled = self._candidate

    def _begin_work(self) -> bool:
        """Take the next piece of work in hand; return whether there was any."""
        self._note_events()
        if not self._active:
            return self._begin_as_candidate()
        if not self._loaded:
            self._reader.read_all()
            self._loaded = True
            self._start(
                _Job(
                    "failover",
                    self._plan_failover,
                    done=self.terms.settle,
                )
            )
            return True
        if self._jobs:
            self._start(self._jobs.popleft())
            return True
        if self._backlog:
            self._on_event(*self._backlog.popleft())
            return True
        if self._reader.stale_topics:
            self._take_stale_topics()
            return True
        if self._reader.reset_topics:
            self._take_settings()
            return True
        if self._begin_advance():
            return True
        if self.context.queue_unread:
            self._reader.read_requests()
        if self.context.requests:
            name = self.context.requests[0]
            self._start(_Job(f"request {name}", lambda: self._plan_request(name)))
            return True
        if self._reader.rubbish:
            self._start(_Job("foreign znodes", lambda: ()))
            return True
        return self._begin_entries() or self._begin_topics() or self._begin_healing()

    def _begin_topics(self) -> bool:
        """Take in hand what clients ask of leaders and topics, where there is anything."""
        if plan_preferred(self.context, self.rules):
            self._start(_Job("preferred leaders", self._plan_preferred))
            return True
        if self._plan_rebalancing():
            self._start(_Job("rebalancing", self._plan_rebalancing))
            return True
        topic = find_due_deletion(self.context, self._clock_ms())
        if topic is None:
            return False
        self._start(_Job(f"deletion of {topic}", lambda: self._plan_deletion(topic)))
        return True

    def _plan_preferred(self) -> tuple[Step, ...]:
        asked = self.context.preferred
        if asked is not None:
            self._reader.refresh_states(asked.partitions)
        return plan_preferred(self.context, self.rules)

    def _plan_rebalancing(self) -> tuple[Step, ...]:
        if self.rules.rebalances:
            self._reader.refresh_stale_states(self.context.partitions)
        return plan_rebalancing(self.context, self.rules)

    def _plan_deletion(self, topic: str) -> tuple[Step, ...]:
        self._reader.refresh_states(self.context.keys_of([topic]))
        steps = plan_deletion(self.context, topic, self._clock_ms(), self.rules)
        if steps:
            deletion = self.context.deletions[topic]
            self.context.deletions[topic] = replace(deletion, told_ms=self._clock_ms())
        return steps

    def _begin_healing(self) -> bool:
        """Take in hand what healing has to do, where there is anything."""
        if self.context.tasks_unread:
            self._reader.read_tasks(arm=False)
        if not plan_health(self.context, self._clock_ms(), self.rules):
            return False
        self._start(_Job("healing", self._plan_health))
        return True

    def _plan_health(self) -> tuple[Step, ...]:
        tasks = self.context.tasks
        first = tasks[min(tasks)].assignments if tasks else {}
        self._reader.look_for_brokers(chain.from_iterable(first.values()))
        self._reader.catch_up(first)
        if self.context.requests:
            return ()  # it may be of this very task: whether it was made, no answer said
        return plan_health(self.context, self._clock_ms(), self.rules)

    def _begin_entries(self) -> bool:
        """Take the entries of the old znode in hand, where there is anything to do about them."""
        if not self._plan_entries():
            return False
        self._start(_Job("the old znode", self._plan_old_znode))
        return True

    def _plan_old_znode(self) -> tuple[Step, ...]:
        old = self.context.old
        if old is not None and not self.rules.keeps_records:
            keys = [entry.key for entry in old.entries]
            self._reader.catch_up(keys)
            self._reader.changed.update(keys)  # what begins now is carried on with after this
        return self._plan_entries()

    def _plan_entries(self) -> tuple[Step, ...]:
        return plan_old_znode(self.context, self.rules)

    def _start(self, job: _Job) -> None:
        self._job = job
        self._unplanned = True

    def _begin_as_candidate(self) -> bool:
        if self._candidate and self._unsettled:
            if not self._client.connected:
                raise Indefinite("not connected")
            self.contend()
            return True
        if not self._backlog:
            return False
        kind, path = self._backlog.popleft()
        if kind in (LOST, STOPPING):
            self._forget()
        elif kind == CONNECTED or path == CONTROLLER:
            self._unsettled = self._candidate
        return True

    def _note_events(self) -> None:
        """Take over all that other threads have said: what is stale now, and what is to be done."""
        while not self._events.empty():
            self._note_event(*self._events.get())

    def _note_event(self, kind: str, path: str) -> None:
        if not self._reader.note(kind, path):
            self._backlog.append((kind, path))

    def _begin_advance(self) -> bool:
        """Carry on with the first of the reassignments in flight for which that may be due."""
        changed = self._reader.changed
        changed &= self.context.flying
        if not changed:
            return False
        self._reader.refresh_stale_states(changed)
        key = min(changed)
        changed.discard(key)
        self._start(_Job("advance of {}-{}".format(*key), lambda: self._plan_advance(key)))
        return True

    # Events

    def _on_event(self, kind: str, path: str) -> None:
        if kind == LOST:
            self._forget()
        elif kind == CONNECTED:
            self._on_reconnect()
        elif kind == STOPPING:
            self._take_shutdown()
        elif path == CONTROLLER:
            self._check_still_controller()
        elif path == BROKER_IDS:
            self._take_brokers(self._reader.read_brokers())
        elif path == REASSIGN_PARTITIONS:
            self._reader.read_old_znode()
        elif path == REASSIGNMENT_TASKS:
            self._reader.read_tasks()
        elif path == DELETED_TOPICS:
            self._take_deletions()
        elif path == PREFERRED_ELECTION:
            self._reader.read_preferred()

    def _on_reconnect(self) -> None:
        """Read everything again: what happened while the watches were gone gave no event."""
        expired = session_id(self._client) != self._session
        if expired:
            self._forget()
            self._unsettled = self._candidate
            return
        self._check_still_controller()
        if not self._active:
            return
        self._take_brokers(self._reader.read_brokers())
        self._reader.make_stale()
        self._reader.read_old_znode()
        self._take_deletions()
        self._reader.read_preferred()
        self._reader.read_records()
        self._reader.read_tasks()

    def _check_still_controller(self) -> None:
        held = gather([self._client.get_async(CONTROLLER, watch=self._on_watch)])[0]
        if held is not None and self._is_ours(held[1]):
            return
        log.warning(
            "%s: it is not of controller %d any more, which resigns", CONTROLLER, self.broker_id
        )
        self._forget()
        self._unsettled = True

    def _take_brokers(self, now: dict[int, LiveBroker]) -> None:
        """Queue what follows from brokers that died, came, or did both between two looks."""
        before = self.context.brokers
        dead = {one for one in before if one not in now or now[one].epoch != before[one].epoch}
        new = {one for one in now if one not in before or now[one].epoch != before[one].epoch}
        self.context.known_brokers |= now.keys()
        self.context.brokers = {one: it for one, it in before.items() if one not in dead}
        self.context.stopping -= dead
        if dead:
            self._jobs.append(_Job("broker failure", lambda: self._plan_failure(dead)))
        if new:
            self._jobs.append(_Job("broker start", lambda: self._plan_start(new, now)))

    def _take_shutdown(self) -> None:
        """Queue the handover of what a broker has that wants to stop, and its answer."""
        if not self._asked:
            return  # whoever acted before has answered it
        asked = self._asked[0]
        error = find_refused_shutdown(self.context, asked)
        if error:
            self._asked.popleft().answer(error)
            return
        broker = asked.broker
        self.context.stopping.add(broker)
        self._jobs.append(
            _Job(
                f"handover of broker {broker}",
                lambda: plan_shutdown(self.context, broker, self._touched({broker}), self.rules),
                lambda: self._answer_shutdown(asked),
            )
        )

    def _answer_shutdown(self, asked: Shutdown) -> None:
        self._asked.remove(asked)
        asked.answer(remaining=list_remaining(self.context, asked.broker, self.context.partitions))

    def _take_deletions(self, *, arm: bool = True) -> None:
        """Read what is to be deleted; look after those again that are to stay after all."""
        stay = self._reader.read_deletions(arm=arm)
        keys = self.context.keys_of(stay)
        if keys:
            brokers = {one for key in keys for one in self.context.partitions[key].assigned}
            self._jobs.append(
                _Job(
                    "topics that stay",
                    lambda: plan_broker_start(
                        self.context, brokers, self._catch_up(keys), self.rules
                    ),
                )
            )

    def _take_stale_topics(self) -> None:
        """Read the topics that have changed; queue what follows from those that have grown."""
        topics, self._reader.stale_topics = self._reader.stale_topics, set()
        self._reader.read_topics(topics)
        self._bring_online(topics)

    def _take_settings(self) -> None:
        """Queue another look at what is offline in topics whose settings have changed."""
        topics, self._reader.reset_topics = self._reader.reset_topics, set()
        keys = [key for key in self.context.keys_of(topics) if self.context.is_offline(key)]
        if keys:
            self._jobs.append(
                _Job(
                    "offline partitions",
                    lambda: plan_broker_failure(self.context, self._catch_up(keys), self.rules),
                )
            )

    def _bring_online(self, topics: Iterable[str]) -> None:
        """Queue the first election of partitions that never had one."""
        keys = [
            key
            for key in self.context.keys_of(topics)
            if self.context.partitions[key].state is None
        ]
        self._reader.changed.update(keys)
        if keys:
            self._jobs.append(
                _Job(
                    "new partitions",
                    lambda: plan_new_partitions(self.context, self._present(keys), self.rules),
                )
            )

    # Planning of jobs

    def _present(self, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
        return [key for key in keys if key in self.context.partitions]

    def _touched(self, brokers: Iterable[int]) -> list[PartitionKey]:
        """Return the partitions with a replica on one of these brokers, their states fresh."""
        wanted = set(brokers)
        keys = [
            key
            for key, content in self.context.partitions.items()
            if wanted & {*content.hosts, *(content.state.isr if content.state else ())}
        ]
        return self._catch_up(keys)

    def _catch_up(self, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
        """Return those partitions that are still there, ready to have leaders elected.

        Reassignments may have waited for these: they are carried on with afterwards.
        """
        self._reader.changed.update(keys)
        self._reader.refresh_stale_states(keys)
        self._reader.look_for_unclean(keys)
        return self._present(keys)

    def _plan_failover(self) -> tuple[Step, ...]:
        self._reader.look_for_unclean(self.context.partitions)
        self._reader.changed.update(self.context.partitions)
        return plan_failover(self.context, self.rules)

    def _plan_failure(self, dead: set[int]) -> tuple[Step, ...]:
        return plan_broker_failure(self.context, self._touched(dead), self.rules)

    def _plan_start(self, new: set[int], now: dict[int, LiveBroker]) -> tuple[Step, ...]:
        self.context.brokers |= {one: now[one] for one in new}
        return plan_broker_start(self.context, new, self._touched(new), self.rules)

    def _plan_advance(self, key: PartitionKey) -> tuple[Step, ...]:
        return plan_change(self.context, key, self.rules) if self._present([key]) else ()

    def _plan_request(self, name: str) -> tuple[Step, ...]:
        path = f"{REASSIGNMENT_REQUESTS}/{name}"
        if parse_request_name(name) is None:
            reason = "not the name of a request, which is request_ and ten digits"
            return plan_bad_request(self.context, RequestRead(path, -1), reason, self.rules)
        found = self._reader.read_request(path)
        if found is None:
            self.context.requests.remove(name)
            return ()
        data, version = found
        read = RequestRead(path, version)
        try:
            request = decode_request(path, data)
        except BadZnode as bad:
            return plan_bad_request(self.context, read, bad.reason, self.rules)
        self._reader.look_for_brokers(chain.from_iterable(request.assignments.values()))
        self._reader.catch_up(request.assignments)
        self._reader.changed.update(request.assignments)
        return plan_request(self.context, read, request, self.rules)
