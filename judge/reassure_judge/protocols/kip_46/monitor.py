"""Healing by the clock: what only whoever holds the implementation's time can judge.

Neither the failure interval nor the size of a task is in ZooKeeper, and the time in a record is by
the clock of whoever wrote it. Whoever drives the implementation hears its settings and lets its
time pass, so both can be judged.
"""

from collections.abc import Iterator
from typing import Final

from reassure_judge.cross_partition import NO_KEY
from reassure_judge.live_events import ClusterView, Event, TimePassed, Wrote
from reassure_judge.monitors import Driven, Monitor, Verdict, decide
from reassure_spec.clauses import clause
from reassure_spec.znodes import (
    BROKER_IDS,
    FAILED_BROKERS,
    REASSIGNMENT_TASKS,
    BadZnode,
    TaskZnode,
    decode_task,
    parse_number,
)
from reassure_zookeeper.transactions import CloseSession, Create, Delete, Transaction


class HealingMonitor(Monitor):
    """Follows the failures and tasks of one cluster by the time that is handed over."""

    def __init__(self, driven: Driven) -> None:
        super().__init__(driven)
        self._now_ms = 0
        """How much time has passed."""
        self._brokers = f"{driven.chroot}{BROKER_IDS}/"
        self._records = f"{driven.chroot}{FAILED_BROKERS}/"
        self._tasks = f"{driven.chroot}{REASSIGNMENT_TASKS}/"
        self._interval_ms = driven.failure_interval_ms
        self._most = driven.partitions_per_task
        self._missed: dict[int, int] = {}
        """By broker: when it went first since it was last known to be there, on this clock.

        A record that is planned in time and written late has the earlier time, and one that stands
        while its broker comes and goes unseen keeps it."""
        self._recorded: set[int] = set()

    def is_able(self) -> bool:
        """Whether the implementation's time is handed over."""
        return self.driven.has_clock

    def take(self, event: Event) -> Iterator[Verdict]:
        """Yield what a transaction puts to the test, or how it breaks that."""
        match event:
            case TimePassed(milliseconds):
                self._now_ms += milliseconds
            case Wrote(transaction, before) if transaction.error is None:
                yield from self._judge(transaction, before)

    @clause("heal.interval", "heal.generate.small-tasks")
    def _judge(self, transaction: Transaction, before: ClusterView) -> Iterator[Verdict]:
        """Yield the clauses that a transaction keeps, or how it breaks them."""
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
            self._missed.setdefault(broker, self._now_ms)
        elif broker not in self._recorded:
            self._missed.pop(broker, None)

    def _note_record(self, broker: int, *, made: bool, live: frozenset[int]) -> None:
        if made:
            self._recorded.add(broker)
            return
        self._recorded.discard(broker)
        if broker in live:
            self._missed.pop(broker, None)

    def _judge_task(self, path: str, data: bytes, before: ClusterView) -> Iterator[Verdict]:
        try:
            task = decode_task(path, data)
        except BadZnode:
            return  # the judge tells it
        if not task.automatic:
            return
        # What an implementation does not say of itself is not put to the test.
        if self._most:
            count = len(task.assignments)
            reason = f"{count} partitions, the limit is {self._most}"
            yield decide(NO_KEY, "heal.generate.small-tasks", count <= self._most or reason)
        replaced = _find_replaced(task, before) if self._interval_ms else frozenset()
        for broker in sorted(replaced & self._missed.keys()):
            away_ms = self._now_ms - self._missed[broker]
            reason = f"broker {broker} is away for {away_ms} ms of {self._interval_ms}"
            yield decide(NO_KEY, "heal.interval", away_ms >= self._interval_ms or reason)


def _find_replaced(task: TaskZnode, before: ClusterView) -> frozenset[int]:
    """Return the brokers that have a replica of a task's partitions and are to have none."""
    return frozenset(
        replica
        for key, target in task.assignments.items()
        if key in before.partitions
        for replica in before.partitions[key].assigned or ()
        if replica not in target
    )


MONITOR: Final = HealingMonitor
