"""A controller: elected, fed by watches, one plan at a time.

There is one queue of events. Watches and the client's state listener only put something into it;
everything else happens in the thread that calls `pump`. Watches are lost with their connection, so
after every reconnect the controller arms all of them and takes all that it remembers for stale.

The plan in hand goes first, then events, then what the `agenda` has. `pump` can be given a budget
of effects and stops between two of them when it is spent; what is left of the plan stays in memory.
`drain` pumps until ZooKeeper has nothing new to say.

A controller whose session expired forgets everything and stands for election again on its new
session. One that was stopped in the middle of a plan and wakes up later goes on with that plan,
because it cannot know; the epoch check stops it at its first write.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from kazoo.protocol.states import EventType, KazooState

from reassure_controller.agenda import Agenda
from reassure_controller.client import Client
from reassure_controller.context import Context
from reassure_controller.controller_election import Candidate
from reassure_controller.crashing import OnPoint
from reassure_controller.effects import Effect, Planned, Recheck, list_keys
from reassure_controller.elections import NOT_CONTROLLER, Question, QuestionOf, find_unheard
from reassure_controller.engine import Conflict, ControllerMoved, PlanEngine, Uncertain
from reassure_controller.log_lines import about
from reassure_controller.pipelining import PipelinedEngine
from reassure_controller.plan import plan_rubbish
from reassure_controller.planned_job import Job
from reassure_controller.reader import ClusterReader
from reassure_controller.repairs import tell_untold
from reassure_controller.rules import Rules
from reassure_controller.session import (
    Indefinite,
    SessionLost,
    barrier,
    ensure_roots,
    flush,
    session_id,
    start,
    stop,
)
from reassure_controller.states import States
from reassure_controller.tally import TermTimes
from reassure_controller.transport import HearsCluster, Transport
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import Readings, get_profile
from reassure_spec.znodes import CONTROLLER, CONTROLLER_EPOCH, DELETED_TOPICS

log = logging.getLogger("reassure_controller")

TELL_AGAIN_S = 0.5
"""How often, at most, brokers that an order did not reach are told once more."""

CONNECTED, LOST, ASKED, ANSWERED = "connected", "lost", "asked", "answered"


class NotQuiet(TimeoutError):
    """There was still something to do when the time for `drain` was up."""


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


class Controller:
    """One controller process, or candidate for it.

    `client` is a kazoo client in the cluster's chroot; it is started if it is not. `readings` say
    how the protocols of the profile are carried out, and `settings` are what an operator sets for
    them; `clock_ms` gives wall-clock milliseconds for the `/controller` znode; `on_point` is told
    the point of each effect before it is carried out. With `at_once` above 1 it carries on with so
    many partitions together, and its writes are pipelined. Raises RefusedReading.
    """

    def __init__(
        self,
        client: Client,
        broker_id: int,
        transport: Transport,
        readings: Readings | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        *,
        profile: str = DEFAULT_PROFILE,
        settings: tuple[object, ...] = (),
        on_point: OnPoint = lambda _: None,
        at_once: int = 1,
    ) -> None:
        self.broker_id, self._at_once, self._on_point = broker_id, at_once, on_point
        self.rules = Rules(readings or get_profile(profile), profile, settings)
        self._client = client
        self.candidate = Candidate(client, broker_id, profile, self._on_watch, clock_ms)
        self._transport = transport
        self._clock_ms = clock_ms
        self._events: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._backlog: deque[tuple[str, str]] = deque()
        self._asked: deque[Question] = deque()
        """What brokers ask and were not answered, in order; another thread puts it there."""
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        """What brokers have answered meanwhile, and what is to be noted by it."""
        self._candidate = False
        self._dead = False
        self._active = False
        self._loaded = False
        self._session: int | None = None
        self.terms = TermTimes()
        self._unsettled = False
        self._forget()
        client.add_listener(self._on_connection)
        start(client)

    def _forget(self) -> None:
        """Drop all memory of the cluster."""
        self._client.unwatch_below()
        while self._asked:
            self._asked.popleft().answer(NOT_CONTROLLER)
        self.context = Context(states=States(self.rules.profile))
        self._agenda = self._make_agenda(self.context)
        self._engine = self._make_engine(self.context)
        self._job: Job | None = None
        self._unplanned = False
        self._active = False
        self._loaded = False

    def _make_engine(self, context: Context) -> PlanEngine:
        client, transport, on_point = self._client, self._transport, self._on_point
        kind = PlanEngine if self._at_once == 1 else PipelinedEngine
        return kind(client, self.broker_id, context, transport, on_point, self._on_answer)

    def _make_agenda(self, context: Context) -> Agenda:
        below = [path for planner in self.rules.planners for path in planner.watched_below]
        reader = ClusterReader(self._client, context, self._on_watch, below)
        return Agenda(reader, self.rules, self._clock_ms, self._at_once)

    # What other threads may call: only enqueue

    def _on_watch(self, event: Any) -> None:
        if event.type != EventType.NONE:  # NONE: the connection dropped, the listener says so
            self._events.put((event.type, event.path))

    def _on_connection(self, state: str) -> None:
        if state == KazooState.LOST:
            self._events.put((LOST, ""))
        elif state == KazooState.CONNECTED:
            self._events.put((CONNECTED, ""))

    def _on_answer(self, note: Callable[[], None]) -> None:
        self._answers.put(note)
        self._events.put((ANSWERED, ""))

    def ask(self, asked: QuestionOf) -> QuestionOf:
        """Take note of what a broker asks, and return it: it will have the answer."""
        self._asked.append(asked)
        self._events.put((ASKED, ""))
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
        more = [path for planner in self.rules.planners for path in planner.paths]
        ensure_roots(self._client, (DELETED_TOPICS, *more))
        elected = self.candidate.stand()
        self._unsettled = False
        if elected is None:
            return False
        self.context.epoch, self.context.epoch_version = elected
        self.context.session = self._session
        self._active = True
        self.terms.begin()
        log.info("controller %d was elected with epoch %d", self.broker_id, elected.epoch)
        return True

    def resign(self) -> None:
        """Give the term up: forget everything and delete `/controller` if it is ours.

        Raises Indefinite when ZooKeeper cannot be asked; the term has ended here all the same.
        """
        self._candidate = self._unsettled = False
        self._forget()
        self.candidate.leave()

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

    def pump(self, max_effects: int | None = None, *, deadline: float | None = None) -> PumpResult:
        """Work on what is known so far, in the caller's thread; do at most `max_effects` effects.

        Past the deadline (of the client's clock) it stops where the next turn would begin.
        Connection trouble is not raised: the result is then not idle, and a later call goes on.
        Raises StuckError when a piece of work cannot be got through.
        """
        done = 0
        while not self._dead:
            if deadline is not None and self._client.monotonic() > deadline:
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
        deadline = self._client.monotonic() + timeout
        done = 0
        look = barrier
        while True:
            left = deadline - self._client.monotonic()
            if left <= 0 and not self._dead:
                job = self._job.name if self._job is not None else "no work in hand"
                raise NotQuiet(
                    f"controller {self.broker_id} was still busy after {timeout} s: {job}, "
                    f"{len(self.context.requests)} requests pending"
                )
            try:
                if not self._dead:
                    look(self._client, left)
            except Indefinite:
                self._client.sleep(0.002)  # the client is reconnecting
                look = barrier
                continue
            left_effects = None if max_effects is None else max_effects - done
            result = self.pump(left_effects, deadline=deadline)
            done += result.effects_done
            if result.held:
                return replace(result, effects_done=done)
            if result.idle and result.effects_done == 0 and not self._unsettled:
                return PumpResult(done, held=False, idle=True)
            # Since the barrier only our own writes matter, and their events are here already.
            look = flush if result.idle and result.effects_done else barrier
            if not result.idle:
                self._client.sleep(0.002)

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
                self._agenda.tell_again()
                told_s = time.monotonic()
                continue
            try:
                self._note_event(*self._events.get(timeout=0.2))
            except queue.Empty:
                continue

    def _turn(self, budget: int | None) -> "_Turn":
        """Plan again if need be, run the plan in hand, and begin the next piece of work."""
        if self._engine.broken:
            self._read_again(self._engine.broken)
            self._engine.broken.clear()
        if self._unplanned and self._job is not None:
            self._plan_job(self._job)
            self._unplanned = False
            self._tell_cluster()  # who is told to follow a leader has to know where it is
        try:
            self._engine.run(budget)
        except (Conflict, Uncertain) as broken:
            with about(**list_keys(broken.effect)):
                log.info("planning again: %s", broken)
            self._unplanned = True
            if isinstance(broken, Uncertain):
                raise
            return _Turn.MORE
        if self._engine.next_effect is not None:
            return _Turn.HELD
        if self._job is not None:
            self._job.done()
            self._job = None
            self._agenda.reader.rubbish.clear()
            self.context.untold.clear()
            self._tell_cluster()
        if not self._begin_work():
            return _Turn.IDLE
        return _Turn.MORE

    def _plan_job(self, job: Job) -> None:
        steps = tell_untold(self.context, job.make(), self.rules)
        job.count_attempt(steps)
        self._engine.load(plan_rubbish(self._agenda.reader.rubbish) + steps)

    def _read_again(self, effects: list[Planned]) -> None:
        self._agenda.read_again(effects)
        rechecked = any(isinstance(effect, Recheck) for effect in effects)
        if rechecked and self._agenda.jobs and self._job is not None:
            # Whoever died is seen to first; what was in hand is planned again after that.
            self._agenda.jobs.append(self._job)
            self._job = None
            self._engine.load(())

    def _on_moved(self, moved: ControllerMoved) -> None:
        what = "%s: controller %d was superseded and resigns (%s)"
        log.warning(what, CONTROLLER_EPOCH, self.broker_id, moved)
        self._forget()
        self._unsettled = self._candidate

    def _begin_work(self) -> bool:
        """Take the next piece of work in hand; return whether there was any."""
        self._note_events()
        if not self._active:
            return self._begin_as_candidate()
        if not self._loaded:
            self._agenda.read_all()
            self._loaded = True
            self._start(Job("failover", self._agenda.plan_failover, done=self.terms.settle))
            return True
        if self._agenda.jobs:
            self._start(self._agenda.jobs.popleft())
            return True
        if self._backlog:
            self._on_event(*self._backlog.popleft())
            return True
        if self._asked:
            # What is handed over goes to nobody of whose death there is word already.
            self._take_asked()
            return True
        if self._agenda.take_stale():
            return True
        job = self._agenda.find_job()
        if job is not None:
            self._start(job)
        elif self._tell_cluster():
            self._agenda.reader.refresh_stale_states(self.context.partitions)
            self._tell_cluster()
        return job is not None

    def _start(self, job: Job) -> None:
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
        if kind in (LOST, ASKED):
            self._forget()
        elif kind == CONNECTED or path == CONTROLLER:
            self._unsettled = self._candidate
        return True

    def _note_events(self) -> None:
        """Take over all that other threads have said: what is stale now, and what is to be done."""
        while not self._events.empty():
            self._note_event(*self._events.get())

    def _note_event(self, kind: str, path: str) -> None:
        if kind == ANSWERED:
            self._answers.get()()
        elif not self._agenda.note(kind, path):
            self._backlog.append((kind, path))

    # Events

    def _on_event(self, kind: str, path: str) -> None:
        if kind == LOST:
            self._forget()
        elif kind == CONNECTED:
            self._on_reconnect()
        elif path == CONTROLLER:
            self._check_still_controller()
        elif kind != ASKED:
            self._agenda.take_event(path)

    def _on_reconnect(self) -> None:
        """Read everything again: what happened while the watches were gone gave no event."""
        expired = session_id(self._client) != self._session
        if expired:
            self._forget()
            self._unsettled = self._candidate
            return
        self._check_still_controller()
        if self._active:
            self._agenda.read_missed()

    def _check_still_controller(self) -> None:
        if self.candidate.holds_office():
            return
        log.warning(
            "%s: it is not of controller %d any more, which resigns", CONTROLLER, self.broker_id
        )
        self._forget()
        self._unsettled = True

    def _take_asked(self) -> None:
        """Queue what a broker asks, and its answer."""
        asked = self._asked[0]
        error = find_unheard(self.context, asked)
        if error:
            self._asked.popleft().answer(error)
        else:
            self._agenda.take_asked(asked, lambda: self._answer(asked))

    def _answer(self, asked: Question) -> None:
        self._asked.remove(asked)
        asked.answer()

    def _tell_cluster(self) -> bool:
        """Have brokers told what has changed; return whether there are any that understand it."""
        transport = self._transport
        return isinstance(transport, HearsCluster) and transport.tell_cluster(self.context)
