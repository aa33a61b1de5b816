"""The derived engine: the same answers as the plain one, many times faster, from the same model.

What a model's steps are it learns as it goes (`learner`). States are packed words in sorted runs
(`runs`); each level is the successors of the level before (`expander`), less what was seen.
Predecessors are not kept: a trace is found backwards, by looking in the level before for a state
that leads where the trace goes on. Every trace is then told forwards by the plain model, which must
agree. A state of every level is expanded plainly as well.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from reassure_explorer.engine import kernels
from reassure_explorer.engine.diagrams import NotDeterministic
from reassure_explorer.engine.expander import Expander
from reassure_explorer.engine.interface import DEADLOCK, DEADLOCKED, Model
from reassure_explorer.engine.orbits import SymmetryCheck
from reassure_explorer.engine.packing import EngineError, Words
from reassure_explorer.engine.result import STOPPED, Budget, ExploreResult, Trace, Violation
from reassure_explorer.engine.runs import (
    Run,
    StoredLevel,
    Team,
    Visited,
    as_rows,
    sort_unique,
    store_level,
)
from reassure_explorer.engine.symmetry import undo_permutations
from reassure_explorer.engine.values import count_values

PARALLEL_FROM: Final = 4096
"""A level with fewer states is not worth splitting between threads."""
COUNT_VALUES_TO: Final = 5_000_000
COMPARED_PER_LEVEL: Final = 1024
"""States of a level that are held against the group where there is symmetry."""
STUCK: Final = -1
"""Stands for deadlock among the numbers of checks."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an exploration stands after a level."""

    depth: int
    distinct: int
    generated: int
    frontier: int
    seconds: float


def explore_derived(
    model: Model,
    *,
    keep_going: bool = False,
    budget: Budget | None = None,
    threads: int = 1,
    progress: Callable[[Progress], None] | None = None,
    symmetry: bool = False,
    memory: Path | None = None,
) -> ExploreResult:
    """Visit every reachable state, or with `symmetry` one of each orbit.

    With `memory`, a directory, paths that earlier runs learned are taken from there and those
    learned now are added; not with `symmetry`, where the states that paths are learned from are
    compared.

    Raises RangeError when a value leaves its range, NotDeterministic for a model that depends on
    more than its fields, NotSymmetric for one that tells apart what it declares to be alike,
    EngineError when the engine contradicts the plain model.
    """
    engine = Engine(model, threads, symmetry, memory)
    return engine.run(keep_going=keep_going, budget=budget or Budget(), progress=progress)


class Engine(Expander):
    """Diagrams and states of one exploration. `run` may be called once."""

    def __init__(
        self,
        model: Model,
        threads: int = 1,
        symmetry: bool = False,
        memory: Path | None = None,
    ) -> None:
        super().__init__(model, symmetry, memory)
        self.threads = threads
        self.levels: list[StoredLevel] = []
        self.visited = Visited()
        self._compared = 0
        """Paths whose states were held against the group."""
        self._pool: ThreadPoolExecutor | None = None
        self._found: dict[int, tuple[int, Words]] = {}
        """For each check that is true somewhere the depth where it first is, and a state there."""
        self._peak_bytes = 0

    # Expanding -------------------------------------------------------------------------------

    def _next_level(self, frontier: Run) -> Run:
        """Return the states one step away that were never seen before."""
        team = self.visited.team = self._find_team(len(frontier))
        stuck = np.ones(len(frontier), dtype=np.bool_)
        if team.parts > 1:
            # One learns what the first parts lack while the others expand the next ones.
            parts = [np.array_split(each, team.parts) for each in (frontier, stuck)]
            pairs = list(zip(*parts, strict=True))
            made = team.start([partial(self.expand, a, b, alone=False) for a, b in pairs])
            runs = [
                run
                for (part, marks), (some, misses) in zip(pairs, made, strict=True)
                for run in (*some, *self.catch_up(part, misses, marks))
            ]
        else:
            runs, _ = self.expand(frontier, stuck)
        if STUCK not in self._found:
            words = self.find_deadlock(frontier[stuck])
            if words is not None:
                self._found[STUCK] = len(self.levels) - 1, words
        pending = sum(run.nbytes for run in runs)
        self._peak_bytes = max(self._peak_bytes, self.bytes + pending)
        return self.visited.subtract_from(runs, self.layout.words)

    def _find_team(self, states: int) -> Team:
        """Return who works on a level of so many states: threads where it is worth it."""
        if self.threads == 1 or states < PARALLEL_FROM:
            return Team()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        return Team(self._pool, self.threads)

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        self._pool, self.visited.team = None, Team()

    @property
    def bytes(self) -> int:
        """Memory in use for states."""
        return self.visited.bytes + sum(level.data.nbytes for level in self.levels)

    # Checking --------------------------------------------------------------------------------

    def _judge(self, level: Run, depth: int, *, outside: bool = False) -> None:
        """Look for broken invariants, and for goals within, among the new states of a depth."""
        pending = self._list_pending()
        if outside:
            pending = [c for c in pending if c < len(self.model.invariants)]
        for c, words in self.find_true(level, pending, self.visited.team).items():
            self._found[c] = (depth, words)

    def _list_pending(self) -> list[int]:
        """Return the checks that were true of no state so far."""
        return [c for c in range(len(self.checks)) if c not in self._found]

    def _check_against_plain(self, level: Run, checks: Sequence[int]) -> None:
        """Hold a state that is expanded against the plain functions. Raises EngineError.

        `checks` are those that matter: the ones that were true of no state so far.
        """
        first = len(self.instances)
        constraint = range(len(self.checks), len(self.functions))
        words = tuple(as_rows(level)[0].tolist())
        for root in (*range(first), *(first + c for c in (*checks, *constraint))):
            self.hold_against_plain(root, words, self.find_leaf(root, words))

    def _check_symmetric(self, level: Run, learned_from: list[tuple[int, Words]]) -> None:
        """Hold states of a level, and those that new paths were learned from, against the group.

        Raises NotSymmetric.
        """
        if self.group is None or len(self.group.permutations) == 1:
            return
        rows = as_rows(level)
        some = rows[:: max(1, -(-len(rows) // COMPARED_PER_LEVEL))]
        fresh = np.array([words for _, words in learned_from], dtype=np.uint64)
        fresh = fresh.reshape(-1, self.layout.words)
        SymmetryCheck(self, self.group, self.tables).compare(np.concatenate([some, fresh]))

    # Telling ---------------------------------------------------------------------------------

    def _tell(self, depth: int, words: Words) -> Trace:
        """Return a shortest trace to a state of that depth, as the plain model tells it.

        Raises EngineError where the plain model does not come to the same states.
        """
        way: list[tuple[int, Words]] = []
        for before in range(depth - 1, -1, -1):
            found = self.find_source(self.levels[before].restore(), words)
            if found is None:
                raise EngineError(f"nothing of depth {before} leads to {self.layout.unpack(words)}")
            way.append((found[1], words))
            words = found[0]
        if self.group is not None:
            orbits = [words, *(after for _, after in way[::-1])]
            return undo_permutations(self.group, [self.layout.unpack(orbit) for orbit in orbits])
        return self.retell(words, way[::-1])

    def _list_violations(self) -> list[Violation]:
        """Return what is broken, nearest first. Raises EngineError where plain it holds."""
        violations: list[Violation] = []
        for c, (depth, words) in sorted(self._found.items(), key=lambda item: item[1][0]):
            if c == STUCK:
                violations.append(Violation(DEADLOCK, DEADLOCKED, self._tell(depth, words)))
            elif c < len(self.model.invariants):
                trace, invariant = self._tell(depth, words), self.model.invariants[c]
                reason = invariant.explain(trace.last)
                if reason is None:
                    raise EngineError(f"plain {invariant.name} holds in {trace.last}")
                violations.append(Violation(invariant.name, reason, trace))
        return violations

    def _list_goals(self) -> dict[str, int | None]:
        """Return the depth at which each goal is reached, None where it is not."""
        first = len(self.model.invariants)
        reached = {g.name: self._found.get(first + n) for n, g in enumerate(self.model.goals)}
        return {name: None if at is None else at[0] for name, at in reached.items()}

    # The whole -------------------------------------------------------------------------------

    def run(
        self,
        *,
        keep_going: bool,
        budget: Budget,
        progress: Callable[[Progress], None] | None = None,
    ) -> ExploreResult:
        """Explore level by level and report."""
        try:
            return self._run(keep_going, budget, progress)
        except (EngineError, NotDeterministic):
            self.forget()
            self.check_unchanged()
            raise
        finally:
            self._close()

    def _run(
        self, keep_going: bool, budget: Budget, progress: Callable[[Progress], None] | None
    ) -> ExploreResult:
        compiling = self.warm_kernels()
        self._started, self.budget = time.perf_counter(), budget
        self.recall()
        frontier = self._enter(self._make_first())
        while True:
            distinct = sum(level.size for level in self.levels)
            seconds = time.perf_counter() - self._started
            if progress is not None:
                depth = len(self.levels) - 1
                progress(Progress(depth, distinct, self.generated, len(frontier), seconds))
            if self._is_broken() and not keep_going:
                self.unfinished = STOPPED
            elif len(frontier):
                self.unfinished = self.unfinished or budget.find_limit(
                    len(self.levels), distinct, seconds, self._peak_bytes
                )
            if self.unfinished is not None or not len(frontier):
                break
            self._check_against_plain(frontier, self._list_pending())
            fresh = self._next_level(frontier)
            if self._is_broken() and not keep_going:
                self.unfinished = STOPPED
            if self.unfinished is not None or not len(fresh):
                break
            frontier = self._enter(fresh)
        self.check_unchanged()
        report = self._report(distinct, compiling)
        self.keep()
        return report

    def _make_first(self) -> Run:
        packed = [self.layout.pack(state) for state in self.model.initial_states]
        first = np.array(packed, dtype=np.uint64).reshape(len(packed), self.layout.words)
        kernels.represent(first, self.tables)
        return sort_unique(first.reshape(-1) if self.layout.words == 1 else first)

    def _enter(self, fresh: Run) -> Run:
        """Take in new states and look at them.

        Returns those that are within the constraint: the new level.
        """
        depth, known = len(self.levels), len(self.origins)
        frontier, outside = self.split(fresh)
        learned_from = self.origins[self._compared : known]
        if len(outside):
            self.visited.add(outside)
            self._judge(outside, depth, outside=True)
            # Nothing is asked of these states but the invariants.
            known = len(self.origins)
        if not len(frontier):
            return frontier
        self.visited.add(frontier)
        self.levels.append(store_level(frontier))
        self._judge(frontier, depth)
        self._check_symmetric(frontier, learned_from + self.origins[known:])
        self._compared = len(self.origins)
        return frontier

    def _is_broken(self) -> bool:
        return any(c < len(self.model.invariants) for c in self._found)

    def _count_values(self, distinct: int) -> dict[str, int] | None:
        """Return the number of values of each field; None where there are very many states.

        None as well where one state stands for its orbit: its values are not all there are.
        """
        if distinct > COUNT_VALUES_TO or self.group is not None:
            return None
        return count_values(self.layout, (level.restore() for level in self.levels))

    def _report(self, distinct: int, compiling: float) -> ExploreResult:
        actions, notes = self.count_by_action()
        return ExploreResult(
            model=self.model.name,
            engine="derived",
            distinct=distinct,
            generated=self.generated,
            initial=len(self.model.initial),
            levels=tuple(level.size for level in self.levels),
            violations=tuple(self._list_violations()),
            goals=self._list_goals(),
            invariants=tuple(invariant.name for invariant in self.model.invariants),
            actions=dict(actions),
            notes=dict(notes),
            unfinished=self.unfinished,
            seconds=time.perf_counter() - self._started,
            seconds_compiling=compiling,
            plain_runs=self.diagrams.paths,
            bytes_per_state=max(self.bytes, self._peak_bytes) / distinct,
            details={
                "words": self.layout.words,
                "bits": self.layout.bits,
                "values": self._count_values(distinct),
                "seconds_learning": round(self.seconds_learning, 3),
                **({} if self.group is None else {"symmetry": self.group.as_json_dict()}),
            },
        )
