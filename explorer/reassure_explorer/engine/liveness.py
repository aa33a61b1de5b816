"""Liveness: what every fair run comes to, and lassos for what it need not come to.

A run is *fair* when every weakly fair action (one for each of its parameters) that stays possible
for ever, and every strongly fair one that is possible again and again, is taken again and again. A
run may stay for ever where no fair action is possible. A property is broken exactly where a run can
come, from a state that awaits it and by states that do not fulfil it, into a strongly connected
component of such states that does justice to every fair action. The counterexample is a lasso: a
shortest way into the component and a cycle in it that does the same.

The whole graph is kept in memory, a few hundred bytes a state: scopes of some millions of states.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, count
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import graph_kernels
from reassure_explorer.engine.derived import Engine
from reassure_explorer.engine.diagrams import I32, I64
from reassure_explorer.engine.interface import Goal, Model, ModelError, end_anywhere
from reassure_explorer.engine.packing import EngineError
from reassure_explorer.engine.result import Budget, Trace, TraceStep, Verdict, find_worst
from reassure_explorer.engine.runs import as_rows, merge_all
from reassure_explorer.engine.temporal import (
    ALWAYS_EVENTUALLY,
    EVENTUALLY,
    EVENTUALLY_ALWAYS,
    LEADS_TO,
    Temporal,
)

MOST_STATES: Final = 3_000_000
Rows = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Lasso:
    """A fair run in which something never comes about: the stem once, the cycle for ever."""

    stem: Trace
    cycle: tuple[TraceStep, ...]
    """Leads from the end of the stem back to it; empty where the model just stays there."""


@dataclass(frozen=True, slots=True)
class TemporalResult:
    """Whether a property holds of every fair run."""

    name: str
    form: str
    pending: int
    """States in which a run may be that still awaits it."""
    lasso: Lasso | None

    @property
    def verdict(self) -> Verdict:
        """Violated or holds; vacuous where nothing ever awaits it."""
        if self.lasso is not None:
            return Verdict.VIOLATED
        return Verdict.HOLDS if self.pending else Verdict.VACUOUS


@dataclass(frozen=True, slots=True)
class LivenessResult:
    """Whether a model is live."""

    model: str
    distinct: int
    properties: tuple[TemporalResult, ...]
    unfinished: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of a property; unknown where a budget ended."""
        if self.unfinished is not None:
            return Verdict.UNKNOWN
        return find_worst(found.verdict for found in self.properties)

    @property
    def lasso(self) -> Lasso | None:
        """The lasso of the first property that is broken."""
        return next((found.lasso for found in self.properties if found.lasso is not None), None)


def check_liveness(model: Model, *, states: int = MOST_STATES) -> LivenessResult:
    """Check that every fair run of the model has its temporal properties.

    More than `states` distinct states end in verdict unknown. Raises ModelError for a model that
    has none.
    """
    if not model.temporal:
        raise ModelError(
            f"model {model.name} does not say what must come about; give it `temporal`"
        )
    if model.constraint is not None:
        raise ModelError(
            f"model {model.name} has a constraint, and fair runs would end where it cuts them off; "
            "write the bound into the actions to look at fair runs"
        )
    kinds = [kind for each in model.temporal for kind in (each.wanted, each.when) if kind]
    goals = tuple(Goal(str(number), kind) for number, kind in enumerate(kinds))
    watched = replace(model, goals=goals, temporal=(), invariants=(), terminal=end_anywhere)
    engine = Engine(watched)
    result = engine.run(keep_going=True, budget=Budget(states=states))
    if result.unfinished is not None:
        return LivenessResult(model.name, result.distinct, (), result.unfinished)
    graph, numbers = _Graph(engine), count()
    checked = [graph.check(each, numbers) for each in model.temporal]
    return LivenessResult(model.name, result.distinct, tuple(checked))


class _Graph:
    """The whole state graph, and which of its states and components are as they should be.

    States are sorted rows, with the successors of each by each action instance.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine, self.model = engine, engine.model
        self.count = len(engine.instances)
        levels = [level.restore() for level in engine.levels]
        self.rows = as_rows(merge_all(levels, engine.layout.words))
        d = engine.diagrams
        self.columns: I64 = np.concatenate([[0], np.cumsum(d.count_widths())]).astype(np.int64)
        """For each action instance its first column among the targets, and where the last ends."""
        self.owners: I64 = np.repeat(np.arange(self.count), np.diff(self.columns))
        """The action instance of each column."""
        self.targets: I32 = graph_kernels.link(
            self.rows, d.roots[: self.count], d.children, d.clear, d.put, d.more, self.columns
        )
        assert self.targets.min(initial=0) >= -1, "the exploration missed a successor"
        fair = [n for n, (act, _) in enumerate(engine.instances) if act.fair or act.strong]
        self.fair: I32 = np.array(fair, dtype=np.int32)
        self.strong: Rows = np.array([engine.instances[n][0].strong for n in fair], dtype=np.bool_)

    @cached_property
    def starts(self) -> Rows:
        """Which rows are initial states."""
        packed = {self.engine.layout.pack(state) for state in self.model.initial_states}
        return np.array([tuple(row) in packed for row in self.rows.tolist()], dtype=np.bool_)

    def unpack(self, row: int) -> Any:
        """Return the plain state of a row."""
        return self.engine.layout.unpack(tuple(self.rows[row].tolist()))

    @cached_property
    def _way(self) -> "_Ways":
        """The shortest ways from the initial states."""
        return _find_ways(self.targets, np.where(self.starts, 0, -1), np.ones_like(self.starts))

    def _mark(self, goal: int) -> Rows:
        """Return of which rows a goal is true."""
        rows = self.rows.reshape(-1) if self.engine.layout.words == 1 else self.rows
        marks: Rows = self.engine.mark(rows, self.count + goal).astype(np.bool_)
        return marks

    def check(self, temporal: Temporal, goals: Iterator[int]) -> TemporalResult:
        """Check a property; `goals` goes on with the number of its `wanted`, then of its `when`."""
        starts, unmet = self.starts, ~self._mark(next(goals))
        asked = starts if temporal.when is None else self._mark(next(goals))
        allowed = np.ones_like(unmet) if temporal.form == EVENTUALLY_ALWAYS else unmet
        awaits = {
            ALWAYS_EVENTUALLY: unmet,
            EVENTUALLY: unmet & starts,
            LEADS_TO: unmet & asked,
            EVENTUALLY_ALWAYS: starts,
        }[temporal.form]
        pending = _find_ways(self.targets, np.where(awaits, self._way.steps, -1), allowed)
        reached = pending.steps >= 0
        component, bad = self._find_fair(reached, unmet)
        lasso = None
        if len(bad):
            entry = pending.find_nearest(np.isin(component, bad) & unmet)
            awaiting, later = pending.walk_to(entry)
            start, sooner = self._way.walk_to(awaiting)
            cycle = self._find_cycle(entry, component == component[entry])
            stem = Trace(self.unpack(start), self._tell(start, sooner + later))
            lasso = Lasso(stem, self._tell(entry, cycle))
        return TemporalResult(temporal.name, temporal.form, int((reached & unmet).sum()), lasso)

    def _find_fair(self, allowed: Rows, unmet: Rows) -> tuple[I32, npt.NDArray[Any]]:
        """Return components of allowed rows, and the numbers of those that a fair run can stay in.

        Only those count that hold a row where what is wanted is not met.
        """
        while True:
            component = graph_kernels.find_components(self.targets, allowed)
            made = int(component.max(initial=-1)) + 1
            taken, idle, possible = graph_kernels.judge_components(
                self.targets, component, self.fair, self.columns, made
            )
            weak, strong = taken | idle, taken | ~possible
            counts = np.zeros(made, dtype=np.bool_)
            counts[component[allowed & unmet]] = True
            bad = np.flatnonzero(counts & np.where(self.strong, strong, weak).all(axis=1))
            # What does justice to all but strongly fair actions may hold a smaller component that
            # does so to all: one of the states where those actions are impossible.
            hopeful = counts & weak.all(axis=1)
            if len(bad) or not hopeful.any():
                return component, bad
            allowed = np.logical_and(allowed, hopeful[component])
            for number in np.flatnonzero(self.strong).tolist():
                there = self._look_where_possible(self.fair[number])
                allowed &= ~(there & ~strong[component, number])

    def _look_where_possible(self, root: int) -> Rows:
        own = self.targets[:, self.columns[root] : self.columns[root + 1]]
        found: Rows = np.any(own >= 0, axis=1)
        return found

    def _find_cycle(self, entry: int, inside: Rows) -> list[int]:
        """Return columns that lead from a row back to it and do justice to every fair action."""
        taken: list[int] = []
        rows = [entry]
        for root, is_strong in zip(self.fair.tolist(), self.strong.tolist(), strict=True):
            own = range(self.columns[root], self.columns[root + 1])
            there, possible = self.targets[:, own], inside & self._look_where_possible(root)
            # Strongly fair: to be impossible now and then is not enough.
            enough = inside & ~possible & ~(is_strong & possible.any())
            if any(at in taken for at in own) or enough[rows].any():
                continue
            ways = _find_ways(self.targets, _start_at(rows[-1], inside), inside)
            stays = (there >= 0) & inside[there]
            takes = inside & stays.any(axis=1)
            near = ways.find_nearest(enough | takes)
            last = [own[int(np.argmax(stays[near]))]] if takes[near] else []
            way = ways.walk_to(near)[1] + last
            taken, rows = taken + way, rows + self._find_rows(rows[-1], way)
        ways = _find_ways(self.targets, _start_at(rows[-1], inside), inside)
        return taken + ways.walk_to(entry)[1]

    def _find_rows(self, row: int, columns: list[int]) -> list[int]:
        follow = accumulate(columns, lambda at, c: int(self.targets[at, c]), initial=row)
        return list(follow)[1:]

    def _tell(self, row: int, columns: list[int]) -> tuple[TraceStep, ...]:
        """Return the steps that columns stand for; the plain model must take them as well."""
        steps: list[TraceStep] = []
        before = self.unpack(row)
        for column, after in zip(columns, self._find_rows(row, columns), strict=True):
            action, parameter = self.engine.instances[self.owners[column]]
            state = self.unpack(after)
            if state not in (found for found, _ in self.model.take(before, action, parameter)):
                raise EngineError(
                    f"{action.describe(parameter)} does not lead from {before} to {state}"
                )
            steps.append(TraceStep(action.name, parameter, action.describe(parameter), state))
            before = state
        return tuple(steps)


def _start_at(row: int, rows: Rows) -> I64:
    return np.where(np.arange(len(rows)) == row, 0, -1)


@dataclass(frozen=True, slots=True)
class _Ways:
    """The shortest ways from some rows to all others."""

    before: I32
    by: I32
    steps: I32
    """How long the way is, with that by which its first row was reached; -1 where there is none."""

    def find_nearest(self, wanted: Rows) -> int:
        """Return the wanted row that is fewest steps away."""
        far = np.iinfo(np.int32).max
        return int(np.argmin(np.where(wanted & (self.steps >= 0), self.steps, far)))

    def walk_to(self, row: int) -> tuple[int, list[int]]:
        """Return the row where a shortest way begins, and its columns."""
        columns: list[int] = []
        while self.before[row] >= 0:
            columns.append(int(self.by[row]))
            row = int(self.before[row])
        return row, columns[::-1]


def _find_ways(targets: I32, starts: Any, allowed: Rows) -> _Ways:
    """Search through allowed rows from those to which `starts` has the steps (-1 for others)."""
    return _Ways(*graph_kernels.find_ways(targets, starts.astype(np.int32), allowed))
