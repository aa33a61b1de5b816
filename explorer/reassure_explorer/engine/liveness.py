"""Liveness: that what is begun is settled in the end, where those who heal are treated fairly.

A run is *fair* when every fair action (one for each of its parameters) that stays possible for ever
is taken again and again. A model is *live* when every fair run comes to a settled state again and
again. It is not live exactly where unsettled states form a strongly connected component, a single
state that may stay as it is included, in which each fair action is either impossible somewhere or
taken within it. The counterexample is a lasso: a shortest way into the component and a cycle in it
that does justice to every fair action.

The whole graph is kept in memory, a few hundred bytes a state: scopes of some millions of states.
"""

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import graph_kernels
from reassure_explorer.engine.derived import Engine
from reassure_explorer.engine.diagrams import I32, I64
from reassure_explorer.engine.interface import Goal, Model, ModelError, end_anywhere
from reassure_explorer.engine.packing import EngineError
from reassure_explorer.engine.result import Budget, Trace, TraceStep, Verdict
from reassure_explorer.engine.runs import as_rows, merge_all

SETTLED: Final = "settled"
MOST_STATES: Final = 3_000_000


@dataclass(frozen=True, slots=True)
class Lasso:
    """A fair run that is never settled again: the stem once, the cycle for ever."""

    stem: Trace
    cycle: tuple[TraceStep, ...]
    """Leads from the end of the stem back to it; empty where the model just stays there."""


@dataclass(frozen=True, slots=True)
class LivenessResult:
    """Whether a model is live."""

    model: str
    distinct: int
    unsettled: int
    """States that are not settled."""
    lasso: Lasso | None
    unfinished: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Violated, unknown, or holds; vacuous where every state is settled."""
        if self.lasso is not None:
            return Verdict.VIOLATED
        if self.unfinished is not None:
            return Verdict.UNKNOWN
        return Verdict.HOLDS if self.unsettled else Verdict.VACUOUS


def check_liveness(model: Model, *, states: int = MOST_STATES) -> LivenessResult:
    """Check that every fair run of the model is settled again and again.

    More than `states` distinct states end in verdict unknown. Raises ModelError for a model that
    does not say what is settled.
    """
    if model.settled is None:
        raise ModelError(f"model {model.name} does not say what is settled; give it `settled`")
    if model.constraint is not None:
        raise ModelError(
            f"model {model.name} has a constraint, and fair runs would end where it cuts them off; "
            "write the bound into the actions to look at fair runs"
        )
    watched = replace(
        model, goals=(Goal(SETTLED, model.settled),), invariants=(), terminal=end_anywhere
    )
    engine = Engine(watched)
    result = engine.run(keep_going=True, budget=Budget(states=states))
    if result.unfinished is not None:
        return LivenessResult(model.name, result.distinct, 0, None, result.unfinished)
    return _Graph(engine).check(result.distinct)


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
        fair = [n for n, (action, _) in enumerate(engine.instances) if action.fair]
        self.fair: I32 = np.array(fair, dtype=np.int32)

    @property
    def starts(self) -> I32:
        """The rows of the initial states."""
        packed = {self.engine.layout.pack(state) for state in self.model.initial_states}
        rows = [i for i, row in enumerate(self.rows.tolist()) if tuple(row) in packed]
        return np.array(rows, dtype=np.int32)

    def unpack(self, row: int) -> Any:
        """Return the plain state of a row."""
        return self.engine.layout.unpack(tuple(self.rows[row].tolist()))

    def check(self, distinct: int) -> LivenessResult:
        rows = self.rows.reshape(-1) if self.engine.layout.words == 1 else self.rows
        unsettled = ~self.engine.mark(rows, self.count)
        component = graph_kernels.find_components(self.targets, unsettled)
        made = int(component.max(initial=-1)) + 1
        just = graph_kernels.judge_components(
            self.targets, component, self.fair, self.columns, made
        )
        bad = np.flatnonzero(just.all(axis=1))
        lasso = None if len(bad) == 0 else self._make_lasso(component, bad)
        return LivenessResult(self.model.name, distinct, int(unsettled.sum()), lasso)

    def _make_lasso(self, component: I32, bad: npt.NDArray[Any]) -> Lasso:
        ways = _Ways(self.targets, self.starts, np.ones(len(self.rows), dtype=np.bool_))
        entry = ways.find_nearest(np.isin(component, bad))
        start, stem = ways.walk_to(entry)
        steps = self._tell(start, stem)
        cycle = self._tell(entry, self._find_cycle(entry, component == component[entry]))
        return Lasso(Trace(self.unpack(start), steps), cycle)

    def _find_cycle(self, entry: int, inside: npt.NDArray[np.bool_]) -> list[int]:
        """Return columns that lead from a row back to it and do justice to every fair action."""
        taken: list[int] = []
        rows = [entry]
        for root in self.fair.tolist():
            own = range(self.columns[root], self.columns[root + 1])
            there = self.targets[:, own]
            if any(at in taken for at in own) or any((there[i] < 0).all() for i in rows):
                continue
            ways = _Ways(self.targets, np.array(rows[-1:], dtype=np.int32), inside)
            stays = (there >= 0) & inside[there]
            impossible, takes = inside & (there < 0).all(axis=1), inside & stays.any(axis=1)
            near = ways.find_nearest(impossible | takes)
            last = [own[int(np.argmax(stays[near]))]] if takes[near] else []
            way = ways.walk_to(near)[1] + last
            taken, rows = taken + way, rows + self._find_rows(rows[-1], way)
        ways = _Ways(self.targets, np.array(rows[-1:], dtype=np.int32), inside)
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


class _Ways:
    """The shortest ways from some rows to all others."""

    def __init__(self, targets: I32, starts: I32, allowed: npt.NDArray[np.bool_]) -> None:
        self.before, self.by, self.steps = graph_kernels.find_ways(targets, starts, allowed)

    def find_nearest(self, wanted: npt.NDArray[np.bool_]) -> int:
        """Return the wanted row that is fewest steps away."""
        far = np.iinfo(np.int32).max
        return int(np.argmin(np.where(wanted & (self.steps >= 0), self.steps, far)))

    def walk_to(self, row: int) -> tuple[int, list[int]]:
        """Return the row where a shortest way begins, and its columns."""
        columns: list[int] = []
        while self.steps[row] > 0:
            columns.append(int(self.by[row]))
            row = int(self.before[row])
        return row, columns[::-1]
