"""Healing in the gate: what only whoever holds the clock can judge, and what has to come up.

Neither the failure interval nor the size of a task is in ZooKeeper, and the time in a record is by
the clock of whoever wrote it. The gate has the implementation say its settings and lets its time
pass, so it can judge both.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from reassure_conformance.adapter import BROKERS, CLOCK, HOLD, ISR, KILL
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.approaches import (
    KEY,
    TOPIC,
    Draw,
    catch_up,
    create,
    fail_over,
    get_assigned,
    pick,
    pick_others,
)
from reassure_conformance.gate.events import (
    History,
    Situation,
    Took,
    Wrote,
    iterate_failovers,
    iterate_writes,
)
from reassure_conformance.gate.moment import Moment
from reassure_judge.judge import ClusterView
from reassure_model.outcome import Rejected
from reassure_spec.clauses import clause
from reassure_spec.znodes import (
    BROKER_IDS,
    FAILED_BROKERS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    BadZnode,
    TaskZnode,
    decode_request,
    decode_task,
    parse_number,
)
from reassure_zookeeper.transactions import CloseSession, Create, Delete, Transaction


class HealingWatch:
    """Follows the failures and tasks of one example by the gate's own clock."""

    def __init__(self, chroot: str, interval_ms: int, partitions_per_task: int) -> None:
        self.now_ms = 0
        """How much time the gate has let pass."""
        self._brokers = f"{chroot}{BROKER_IDS}/"
        self._records = f"{chroot}{FAILED_BROKERS}/"
        self._tasks = f"{chroot}{REASSIGNMENT_TASKS}/"
        self._interval_ms = interval_ms
        self._most = partitions_per_task
        self._missed: dict[int, int] = {}
        """By broker: when it went first since it was last known to be there, on this clock.

        A record that is planned in time and written late has the earlier time, and one that stands
        while its broker comes and goes unseen keeps it."""
        self._recorded: set[int] = set()

    @clause("heal.interval", "heal.generate.small-tasks")
    def judge(self, transaction: Transaction, before: ClusterView) -> Iterator[str | Rejected]:
        """Yield the clauses that a transaction keeps, or how it breaks them."""
        if transaction.error is not None:
            return
        for op in transaction.ops:
            for path in (op.paths or ()) if isinstance(op, CloseSession) else ():
                registered = parse_number(path.removeprefix(self._brokers))
                if registered is not None:
                    self._note_broker(registered, there=False)
            if not isinstance(op, Create | Delete):
                continue
            recorded = parse_number(op.path.removeprefix(self._records))
            registered = parse_number(op.path.removeprefix(self._brokers))
            if recorded is not None:
                self._note_record(recorded, made=isinstance(op, Create), live=before.live)
            elif registered is not None:
                self._note_broker(registered, there=isinstance(op, Create))
            elif isinstance(op, Create) and op.path.startswith(self._tasks):
                yield from self._judge_task(op.path, op.data, before)

    def _note_broker(self, broker: int, *, there: bool) -> None:
        if not there:
            self._missed.setdefault(broker, self.now_ms)
        elif broker not in self._recorded:
            self._missed.pop(broker, None)

    def _note_record(self, broker: int, *, made: bool, live: frozenset[int]) -> None:
        if made:
            self._recorded.add(broker)
            return
        self._recorded.discard(broker)
        if broker in live:
            self._missed.pop(broker, None)

    def _judge_task(self, path: str, data: bytes, before: ClusterView) -> Iterator[str | Rejected]:
        try:
            task = decode_task(path, data)
        except BadZnode:
            return  # the judge tells it
        if not task.automatic:
            return
        # What an implementation does not say of itself is not put to the test.
        if self._most:
            count, clause_id = len(task.assignments), "heal.generate.small-tasks"
            reason = f"{count} partitions, the limit is {self._most}"
            yield Rejected(clause_id, reason) if count > self._most else clause_id
        replaced = _find_replaced(task, before) if self._interval_ms else frozenset()
        for broker in sorted(replaced & self._missed.keys()):
            away_ms = self.now_ms - self._missed[broker]
            if away_ms < self._interval_ms:
                reason = f"broker {broker} is away for {away_ms} ms of {self._interval_ms}"
                yield Rejected("heal.interval", reason)
            else:
                yield "heal.interval"


def _find_replaced(task: TaskZnode, before: ClusterView) -> frozenset[int]:
    """Return the brokers that have a replica of a task's partitions and are to have none."""
    return frozenset(
        replica
        for key, target in task.assignments.items()
        if key in before.partitions
        for replica in before.partitions[key].assigned or ()
        if replica not in target
    )


# -- how each is recognised


def _find_below(history: History, *roots: str) -> Iterator[tuple[int, Wrote, Create | Delete]]:
    """Yield what was made and removed below one of the paths, with place and transaction."""
    for place, wrote in iterate_writes(history):
        for op in wrote.transaction.ops:
            if isinstance(op, Create | Delete) and any(f"{root}/" in op.path for root in roots):
                yield place, wrote, op


def _count_generated(history: History) -> int:
    return sum(
        isinstance(op, Create) and b'"isAutoGenerated":true' in op.data
        for _, _, op in _find_below(history, REASSIGNMENT_TASKS)
    )


def _count_operators(history: History) -> int:
    taken = (event for event in history if isinstance(event, Took))
    return sum(isinstance(e.step, s.SubmitTask) and e.result == "ok" for e in taken)


def _count_queues(history: History) -> int:
    """Count tasks that were persisted while another one waited or ran."""
    waiting: set[str] = set()
    found = 0
    for _, _, op in _find_below(history, REASSIGNMENT_TASKS):
        if isinstance(op, Create):
            found += bool(waiting)
            waiting.add(op.path)
        else:
            waiting.discard(op.path)
    return found


def _count_half_done(history: History) -> int:
    """Count tasks of which a part was there already when the controller asked for the rest."""
    tasks: dict[str, TaskZnode] = {}
    found = 0
    for _, wrote, op in _find_below(history, REASSIGNMENT_TASKS, REASSIGNMENT_REQUESTS):
        if f"{REASSIGNMENT_REQUESTS}/" not in op.path:
            _note_task(tasks, op)
        elif isinstance(op, Create) and wrote.is_fenced and tasks:
            whole = len(tasks[min(tasks)].assignments)
            found += len(decode_request(op.path, op.data).assignments) < whole
    return found


def _note_task(tasks: dict[str, TaskZnode], op: Create | Delete) -> None:
    """Note by path what is persisted, as far as it can be read."""
    tasks.pop(op.path, None)
    if isinstance(op, Create):
        with suppress(BadZnode):
            tasks[op.path] = decode_task(op.path, op.data)


def _count_heirs(history: History) -> int:
    """Count failovers that find the record of a broker."""
    changes = [(at, isinstance(op, Create)) for at, _, op in _find_below(history, FAILED_BROKERS)]
    found = 0
    for place, _ in iterate_failovers(history):
        found += sum(1 if came else -1 for at, came in changes if at < place) > 0
    return found


def _count_returns(history: History) -> int:
    """Count records that were removed as their broker was back."""
    return sum(
        isinstance(op, Delete) and parse_number(op.path.rpartition("/")[2]) in wrote.before.live
        for _, wrote, op in _find_below(history, FAILED_BROKERS)
    )


# -- how to get there


def _lose(now: Moment, draw: Draw, partitions: int = 1) -> Iterator[s.Step]:
    """Make a topic of two replicas each, and let one that has some of them die."""
    yield create(now, draw, 2, partitions=partitions)
    yield s.Die(get_assigned(now)[draw(2)])


def _find_away(now: Moment) -> int:
    """Return a broker that is down."""
    return next((broker for broker in now.brokers if broker not in now.up), now.brokers[0])


def reach_healing(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let a broker stay away for longer than the interval."""
    yield from _lose(now, draw, 1 + draw(2))
    if draw(2):
        yield s.Tick(now.failure_interval_ms // 2)
    yield s.Tick(now.failure_interval_ms)
    for number in range(2):
        yield from catch_up(now, (TOPIC, number))


def reach_return(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let a broker come back before the interval has passed, and perhaps go again."""
    yield from _lose(now, draw)
    yield s.Tick(now.failure_interval_ms // 2)
    away = _find_away(now)
    yield s.Return(away)
    if draw(2):
        yield s.Die(away)
    yield s.Tick(now.failure_interval_ms // 2)


def reach_queue(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let several tasks wait, and the broker come back or an operator do a part meanwhile."""
    yield s.CreateTopic(TOPIC, (now.brokers[:2],) * 4)
    yield s.Die(now.brokers[draw(2)])
    yield s.Tick(now.failure_interval_ms)
    away, last = _find_away(now), (TOPIC, 3)
    if draw(2):
        yield s.Return(away)
    else:
        (other,) = pick_others(now, draw, now.brokers[:2])
        yield s.Request(((last, tuple(other if b == away else b for b in now.brokers[:2])),))
        yield from catch_up(now, last)
    for number in range(4):
        yield from catch_up(now, (TOPIC, number))


def reach_operator(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let an operator persist tasks, needless and senseless ones among them."""
    yield create(now, draw, 2, partitions=2)
    first = get_assigned(now)
    other = pick_others(now, draw, first)
    target = ((first[0], *other), (first[0], first[0]), first)[draw(3)]
    there = ((TOPIC, 1), get_assigned(now, (TOPIC, 1)))
    yield s.SubmitTask(((KEY, target), there)[: 1 + draw(2)])
    yield s.SubmitTask((((TOPIC, 1), pick(now, draw, 2)),))
    yield from catch_up(now)
    yield from catch_up(now, (TOPIC, 1))


def reach_heir(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let the controller die while a broker is recorded, perhaps with some tasks persisted."""
    yield from _lose(now, draw, 2)
    if HOLD in now.capabilities and draw(2):
        yield s.Hold(draw(4))
        yield s.Tick(now.failure_interval_ms)
    yield from fail_over(draw)
    yield s.Resume()
    yield s.Tick(now.failure_interval_ms)
    for number in range(2):
        yield from catch_up(now, (TOPIC, number))


# -- the list


_HEALING: Final = "kip-46"
_AWAY: Final = frozenset({BROKERS, CLOCK})

SITUATIONS: Final = (
    Situation(
        "healed",
        "A broker stays away for longer than the failure interval.",
        ("heal.interval", "heal.generate.replaces-failed", "heal.target.live"),
        _count_generated,
        reach_healing,
        _AWAY,
        _HEALING,
    ),
    Situation(
        "back-in-time",
        "A broker comes back while the record of its failure stands.",
        ("heal.record.deleted-on-return",),
        _count_returns,
        reach_return,
        _AWAY,
        _HEALING,
    ),
    Situation(
        "tasks-waiting",
        "A task is persisted while another one waits or runs.",
        ("heal.task.one-at-a-time", "heal.task.in-order", "heal.cancel.enough-replicas"),
        _count_queues,
        reach_queue,
        _AWAY | {ISR},
        _HEALING,
    ),
    Situation(
        "operator-task",
        "An operator persists a task.",
        ("heal.cancel.automatic-only", "heal.task.refuse-duplicate"),
        _count_operators,
        reach_operator,
        frozenset({ISR}),
        _HEALING,
    ),
    Situation(
        "task-half-done",
        "A part of a task is there already when its turn comes.",
        ("heal.task.satisfied-skipped", "heal.cancel.enough-replicas"),
        _count_half_done,
        reach_operator,
        frozenset({ISR}),
        _HEALING,
    ),
    Situation(
        "record-found",
        "A new controller finds the record of a broker that is missed.",
        ("heal.failover.generated-again", "heal.record.first-failure"),
        _count_heirs,
        reach_heir,
        _AWAY | {KILL},
        _HEALING,
    ),
)
"""What has to come up where brokers that stay away are healed."""
