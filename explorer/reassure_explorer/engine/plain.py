"""The plain engine: breadth-first search over the model's own functions, made to be read.

It is slow and is the reference for every other engine. Levels are explored completely, one after
the other; invariants and goals are looked at in each new state, of those outside the constraint
the invariants only. A state that is expanded and leads nowhere is a deadlock unless it is terminal.
Where `keep_going` is off it stops after the first level in which something is broken.

With `symmetry` it goes on from one state of each orbit only (`symmetry`), and holds the rules
against each of these states: they must treat alike what was declared to be alike.
"""

import time
from collections import Counter
from typing import Any

from reassure_explorer.engine.interface import DEADLOCK, DEADLOCKED, Invariant, Model
from reassure_explorer.engine.result import (
    STOPPED,
    Budget,
    ExploreResult,
    Trace,
    TraceStep,
    Violation,
)
from reassure_explorer.engine.symmetry import check_symmetric, make_group, undo_permutations

Parent = tuple[Any, int] | None
"""The state before and the number of the action instance; None for an initial state."""


def explore_plain(
    model: Model,
    *,
    keep_going: bool = False,
    budget: Budget | None = None,
    symmetry: bool = False,
) -> ExploreResult:
    """Visit every reachable state, or with `symmetry` one of each orbit.

    Raises RangeError when a value leaves its range, NotSymmetric for a model that tells apart what
    it declares to be alike.
    """
    return _Search(model, keep_going, budget or Budget(), symmetry).run()


class _Search:
    def __init__(self, model: Model, keep_going: bool, budget: Budget, symmetry: bool) -> None:
        self.model, self.keep_going, self.budget = model, keep_going, budget
        self.group = make_group(model) if symmetry else None
        self.parents: dict[Any, Parent] = dict.fromkeys(map(self._represent, model.initial_states))
        self.levels: list[int] = []
        self.violations: dict[str, Violation] = {}
        self.goals: dict[str, int | None] = {goal.name: None for goal in model.goals}
        self.actions: Counter[str] = Counter({action.name: 0 for action in model.actions})
        self.notes: Counter[str] = Counter()
        self.unfinished: str | None = None
        self.started = time.perf_counter()

    def run(self) -> ExploreResult:
        fresh = list(self.parents)
        while fresh:
            frontier = [state for state in fresh if self.model.is_within(state)]
            depth = len(self.levels)
            self._look_for_violations(fresh)
            if frontier:
                self.levels.append(len(frontier))
                self._judge(frontier, depth)
            if self._stops() or not frontier:
                break
            seconds = time.perf_counter() - self.started
            self.unfinished = self.budget.find_limit(len(self.levels), sum(self.levels), seconds)
            if self.unfinished is not None:
                break
            fresh = self._expand(frontier)
            if self._stops():
                break
        return self._report()

    def _stops(self) -> bool:
        if self.violations and not self.keep_going:
            self.unfinished = STOPPED
            return True
        return False

    def _represent(self, state: Any) -> Any:
        return state if self.group is None else self.group.represent(state)

    def _expand(self, frontier: list[Any]) -> list[Any]:
        reached: list[Any] = []
        for state in frontier:
            possible = False
            for number, (action, parameter) in enumerate(self.model.list_instances(state)):
                for after, notes in self.model.take(state, action, parameter):
                    possible = True
                    self.notes.update(notes)
                    self.actions[action.name] += 1
                    after = self._represent(after)
                    if after not in self.parents:
                        self.parents[after] = (state, number)
                        reached.append(after)
            if not possible and DEADLOCK not in self.violations:
                self._look_at_end(state)
        return reached

    def _look_at_end(self, state: Any) -> None:
        if not self.model.is_terminal(state):
            self.violations[DEADLOCK] = Violation(DEADLOCK, DEADLOCKED, self._tell(state))

    def _judge(self, level: list[Any], depth: int) -> None:
        if self.group is not None:
            for state in level:
                check_symmetric(self.group, state)
        for goal in self.model.goals:
            if self.goals[goal.name] is None and any(map(goal.reached, level)):
                self.goals[goal.name] = depth

    def _look_for_violations(self, fresh: list[Any]) -> None:
        for invariant in self.model.invariants:
            if invariant.name not in self.violations:
                self._look_for(invariant, fresh)

    def _look_for(self, invariant: Invariant, level: list[Any]) -> None:
        for state in level:
            reason = invariant.explain(state)
            if reason is not None:
                trace = self._tell(state)
                reason = invariant.explain(trace.last) or reason
                self.violations[invariant.name] = Violation(invariant.name, reason, trace)
                return

    def _tell(self, state: Any) -> Trace:
        if self.group is not None:
            orbits = [state]
            while (parent := self.parents[orbits[-1]]) is not None:
                orbits.append(parent[0])
            return undo_permutations(self.group, orbits[::-1])
        steps: list[TraceStep] = []
        while (parent := self.parents[state]) is not None:
            action, parameter = self.model.list_instances(parent[0])[parent[1]]
            steps.append(TraceStep(action.name, parameter, action.describe(parameter), state))
            state = parent[0]
        return Trace(state, tuple(reversed(steps)))

    def _report(self) -> ExploreResult:
        return ExploreResult(
            model=self.model.name,
            engine="plain",
            distinct=sum(self.levels),
            generated=sum(self.actions.values()),
            initial=len(self.model.initial),
            levels=tuple(self.levels),
            violations=tuple(self.violations.values()),
            goals=self.goals,
            invariants=tuple(invariant.name for invariant in self.model.invariants),
            actions=dict(self.actions),
            notes=dict(self.notes),
            unfinished=self.unfinished,
            details={} if self.group is None else {"symmetry": self.group.as_json_dict()},
            seconds=time.perf_counter() - self.started,
        )
