"""Carries out the steps of a plan for many partitions at once: writes do not wait for each other.

What comes next for each of the plan's partitions stands together, and goes to ZooKeeper in one go:
a controller waits once for all of it and not once for each. ZooKeeper carries out what one session
asks for in order. The order of steps within a partition is the plan's: none is taken before the one
before it is answered. A conflict takes the rest of that partition's steps out, and no other's.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, takewhile
from math import inf
from typing import Any, Final

from reassure_controller.context import apply_step
from reassure_controller.effects import (
    DeleteReassignment,
    EnterPhase,
    PartitionEffect,
    Recheck,
    RememberMove,
    SendLeaderAndIsr,
    SendStopReplica,
    Step,
    WriteAssigned,
    list_keys,
)
from reassure_controller.engine import Conflict, PlanEngine, Uncertain
from reassure_controller.log_lines import about
from reassure_controller.session import Operation
from reassure_spec.znodes import PartitionKey

MAX_IN_FLIGHT: Final = 100
"""How many writes at most wait for their answers."""

_OfPartition = PartitionEffect | EnterPhase | RememberMove | Recheck
log = logging.getLogger("reassure_controller")


def interleave(plan: Iterable[Step]) -> list[Step]:
    """Return the steps of a plan, those that come next for each partition together.

    The steps of one partition keep their order. So do those that end reassignments, as the last one
    removes the znode above them all. What is about no partition stays behind all that was before.
    """
    ordered: list[Step] = []
    for are_of_partitions, steps in groupby(plan, lambda step: isinstance(step, _OfPartition)):
        together = list(steps)
        ordered += sorted(together, key=_Turns()) if are_of_partitions else together
    return ordered


def _bundle(group: Iterable[Any]) -> Iterable[list[Any]]:
    """Return the writes of a group that make one transaction each, in order.

    The assignments of one topic stand in one znode, so one write replaces them all: of two writes
    on their way the second could meet the version that somebody else gave in place of the first.
    """
    bundles: dict[object, list[Any]] = {}
    for step in group:
        one = step.topic if isinstance(step, WriteAssigned) else step.key
        bundles.setdefault((type(step), one), []).append(step)
    return bundles.values()


class _Turns:
    """Gives each step its place, asked in the order of the plan."""

    def __init__(self) -> None:
        self._turns: defaultdict[PartitionKey, float] = defaultdict(float)

    def __call__(self, step: Any) -> tuple[float, int]:
        turn: float = inf if isinstance(step, DeleteReassignment) else self._turns[step.key]
        self._turns[step.key] = turn + (not isinstance(step, EnterPhase | RememberMove))
        return turn, _rank(step)


_MEMORY, _READ, _WRITE, _MESSAGE = range(4)


def _rank(step: Step) -> int:
    """Within a turn memory goes first, then what asks ZooKeeper, then messages."""
    match step:
        case EnterPhase() | RememberMove():
            return _MEMORY
        case Recheck():
            return _READ
        case SendLeaderAndIsr() | SendStopReplica():
            return _MESSAGE
        case _:
            return _WRITE


def _go_together(one: Any, other: Any) -> bool:
    """Whether two steps ask ZooKeeper in the same way, each for a partition."""
    of_partitions = isinstance(one, _OfPartition) and isinstance(other, _OfPartition)
    return of_partitions and _rank(one) == _rank(other) in (_READ, _WRITE)


def _leave_parent(step: Any, key: PartitionKey | None) -> Any:
    """Return the step without the removal of what a partition's record stands below."""
    if key is None or not isinstance(step, DeleteReassignment) or step.topic != key[0]:
        return step
    return replace(step, with_parent=False)


class PipelinedEngine(PlanEngine):
    """Carries out plans for one controller during one term, with many writes on their way."""

    def load(self, plan: tuple[Step, ...]) -> None:
        """Replace whatever is left of the last plan."""
        super().load(tuple(interleave(plan)))

    def run(self, budget: int | None) -> None:
        """Carry out the plan; with a budget, as `PlanEngine` does. Raises what that raises.

        A conflict of one partition is raised when all else is done, so that `broken` has them all.
        """
        if budget is not None:
            super().run(budget)
            return
        first: Conflict | None = None
        while self._plan:
            failures = self._run_group(self._take_group())
            self.broken += [failure.effect for failure in failures]
            for failure in failures:
                if isinstance(failure, Uncertain):
                    raise failure
                first = first or failure
                self._leave_out(getattr(failure.effect, "key", None))
        self._say_states()
        if first is not None:
            raise first

    def _take_group(self) -> list[Any]:
        """Take the steps off the plan that can be on their way together, at least one."""
        group: list[Any] = [self._plan.popleft()]
        keys = {getattr(group[0], "key", None)}
        while self._plan and len(group) < MAX_IN_FLIGHT and _go_together(group[0], self._plan[0]):
            step: Any = self._plan[0]
            if step.key in keys:
                break
            keys.add(step.key)
            group.append(self._plan.popleft())
        return group

    def _run_group(self, group: list[Any]) -> list[Conflict | Uncertain]:
        """Carry out steps that can be on their way together; return what did not get through."""
        if len(group) == 1:
            try:
                self._run_step(group[0])
            except (Conflict, Uncertain) as broken:
                return [broken]
            return []
        if isinstance(group[0], Recheck):
            return list(self.find_broken(group))
        return self._write_all(group)

    def _write_all(self, group: list[Any]) -> list[Conflict | Uncertain]:
        """Write for many partitions; what does not get through together is tried one by one."""
        waiting = [self._begin_write(steps) for steps in _bundle(group)]
        failures: list[Conflict | Uncertain] = []
        alone: list[WriteAssigned] = []
        for steps, operations, answer in waiting:
            try:
                with about(**list_keys(steps[0])):
                    results = self._take_answer(steps[0], operations, answer)
            except (Conflict, Uncertain) as broken:
                if len(steps) > 1 and isinstance(broken, Conflict):
                    alone += steps
                    continue
                failures.append(broken)
                for step in steps[1:]:  # nobody knows what became of it
                    self._context.note_begun(step)
                    failures.append(Uncertain(step, str(broken)))
                continue
            for step in steps:
                apply_step(self._context, step, getattr(results[-1], "version", None))
                self.effects_run += 1
                self._tell(step)
        for step in alone:
            version = self._context.topic_versions[step.topic]
            failures += self._run_group([replace(step, version=version)])
        return failures

    def _begin_write(self, steps: list[Any]) -> tuple[list[Any], list[Operation], Any]:
        """Ask for writes that are one transaction: of one partition, or assignments of a topic."""
        for step in steps:
            log.debug("%s: %s", step.point, step)
            self._move(step)
            self._on_point(step.point)
        first, *more = steps
        if isinstance(first, WriteAssigned):
            first = replace(first, version=self._context.topic_versions[first.topic])
        operations = self._operations(first, *more)
        return steps, operations, self._submit(first, operations)

    def _leave_out(self, key: PartitionKey | None) -> None:
        """Take out what rests on a step that did not get through; None: it was of no partition."""
        steps: Iterator[Any] = takewhile(
            lambda step: key is not None and isinstance(step, _OfPartition), self._plan
        )
        self._plan = deque(_leave_parent(step, key) for step in steps if step.key != key)
