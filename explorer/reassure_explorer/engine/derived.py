"""The derived engine: the same answers as the plain one, many times faster, from the same model.

What a model's steps are it learns as it goes (`expanding`). States are packed words in sorted runs
(`runs`); each level is the successors of the level before, less what was seen. Predecessors are not
kept: a trace is found backwards, by expanding the level before again until a state turns up that
leads where the trace goes on. Every trace is then told forwards by the plain model, which must
agree.
"""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from reassure_explorer.engine.checkpoint import Checkpoint, Saved
from reassure_explorer.engine.diagrams import NotDeterministic
from reassure_explorer.engine.expanding import STUCK, Expander
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.packing import EngineError, Words
from reassure_explorer.engine.result import STOPPED, Budget, ExploreResult, Trace
from reassure_explorer.engine.runs import Run, StoredLevel, Team, Visited, store_level
from reassure_explorer.engine.values import FieldValues

PARALLEL_FROM: Final = 4096
"""A level with fewer states is not worth splitting between threads."""
COUNT_VALUES_TO: Final = 5_000_000


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
    directory: Path | None = None,
    label: str = "",
    progress: Callable[[Progress], None] | None = None,
    symmetry: bool = False,
    memory: Path | None = None,
) -> ExploreResult:
    """Visit every reachable state, or with `symmetry` one of each orbit.

    With `directory` visited states are kept on disk, and an exploration that was stopped there goes
    on, unless the model changed; `label` tells apart what code and data do not. With `memory`,
    another directory, paths that earlier runs learned are taken from there and those learned now
    are added; not with `symmetry`, where the states that paths are learned from are compared.

    Raises RangeError when a value leaves its range, NotDeterministic for a model that depends on
    more than its fields, NotSymmetric for one that tells apart what it declares to be alike,
    EngineError when the engine contradicts the plain model.
    """
    engine = Engine(model, threads, directory, label, symmetry, memory)
    return engine.run(keep_going=keep_going, budget=budget or Budget(), progress=progress)


class Engine(Expander):
    """Diagrams and states of one exploration. `run` may be called once."""

    def __init__(
        self,
        model: Model,
        threads: int = 1,
        directory: Path | None = None,
        label: str = "",
        symmetry: bool = False,
        memory: Path | None = None,
    ) -> None:
        super().__init__(model, label, symmetry, memory)
        self.threads = threads
        self.checkpoint: Checkpoint | None = None
        if directory is not None:
            self.checkpoint = Checkpoint(directory, self.key, self.layout.words)
        self.levels: list[StoredLevel] = []
        self.visited = Visited()
        if self.checkpoint is not None:
            self.visited.allocate = self.checkpoint.allocate
        self._resumed = 0
        """Levels that were there when an exploration went on."""
        self._actions_before: Counter[str] = Counter()
        self._notes_before: Counter[str] = Counter()
        self._pool: ThreadPoolExecutor | None = None
        self._found: dict[int, tuple[int, Words]] = {}
        self._budget = Budget()
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
            made = team.start([partial(self.expand, a, alone=False, stuck=b) for a, b in pairs])
            runs = [
                run
                for (part, marks), (some, misses) in zip(pairs, made, strict=True)
                for run in (*some, *self._catch_up(part, misses, marks))
            ]
        else:
            runs, _ = self.expand(frontier, stuck=stuck)
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
        kept = (level.data for level in self.levels if not isinstance(level.data, np.memmap))
        return self.visited.bytes + sum(data.nbytes for data in kept)

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

    # The whole -------------------------------------------------------------------------------

    def _tell(self, depth: int, words: Words) -> Trace:
        return self.tell(words, depth, self._find_before)

    def _find_before(self, depth: int, words: Words) -> tuple[Words, int]:
        level = self.levels[depth].restore()
        if depth < self._resumed - 1:
            # Its paths were learned before the exploration was stopped.
            self.learn(level)
        found = self.find_source(level, words)
        if found is None:
            raise self.make_source_error(depth, words)
        return found

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
            if self._memory is not None:
                self._memory.forget()
            self._check_unchanged()
            raise
        finally:
            self._close()

    def _run(
        self, keep_going: bool, budget: Budget, progress: Callable[[Progress], None] | None
    ) -> ExploreResult:
        compiling = self._warm_kernels()
        self._started, self._budget, self._seconds = time.perf_counter(), budget, budget.seconds
        self._recall()
        frontier = self._resume()
        if frontier is None:
            frontier = self._enter(self._make_first())
        while True:
            distinct = sum(level.size for level in self.levels)
            if progress is not None:
                seconds = time.perf_counter() - self._started
                depth = len(self.levels) - 1
                progress(Progress(depth, distinct, self.generated, len(frontier), seconds))
            if self._is_broken() and not keep_going:
                self.unfinished = STOPPED
            elif len(frontier):
                self.unfinished = self.unfinished or self._find_limit(distinct)
            if self.unfinished is not None or not len(frontier):
                break
            self._check_against_plain(frontier, self._list_pending())
            fresh = self._next_level(frontier)
            if self._is_broken() and not keep_going:
                self.unfinished = STOPPED
            if self.unfinished is not None or not len(fresh):
                break
            frontier = self._enter(fresh)
        self._check_unchanged()
        report = self._report(distinct, compiling)
        if self._memory is not None and self.diagrams.paths:
            self._memory.save(self.diagrams, self._origins)
        return report

    def _enter(self, fresh: Run) -> Run:
        """Take in new states, look at them, and save them where there is a directory.

        Returns those that are within the constraint: the new level.
        """
        depth, witnesses = len(self.levels), len(self._witnesses)
        frontier, outside = self._split(fresh)
        if len(outside):
            self.visited.add(outside)
            self._judge(outside, depth, outside=True)
            # Nothing is asked of these states but the invariants.
            del self._witnesses[witnesses:]
        if not len(frontier):
            return frontier
        level = store_level(frontier)
        if self.checkpoint is not None:
            level = self.checkpoint.keep_level(len(self.levels), level)
        self.visited.add(frontier)
        self.levels.append(level)
        self._judge(frontier, depth)
        self._check_symmetric(frontier)
        if self.checkpoint is not None:
            self.checkpoint.save(self._make_saved(self.checkpoint.key))
        return frontier

    def _make_saved(self, key: str) -> Saved:
        actions, notes = self._count_all()
        return Saved(
            key,
            self.generated,
            [level.size for level in self.levels],
            [level.squeezed for level in self.levels],
            [level.data.nbytes for level in self.levels],
            [(c, depth, list(words)) for c, (depth, words) in self._found.items()],
            dict(actions),
            dict(notes),
        )

    def _resume(self) -> Run | None:
        """Return the last complete level of an exploration that was stopped, None for a new one."""
        loaded = None if self.checkpoint is None else self.checkpoint.load()
        if loaded is None:
            return None
        saved, levels = loaded
        self.generated, self.levels = saved.generated, list(levels)
        self._resumed = len(self.levels)
        self._found = {c: (depth, tuple(words)) for c, depth, words in saved.found}
        self._actions_before.update(saved.actions)
        self._notes_before.update(saved.notes)
        for level in levels:
            self.visited.add(level.restore())
        return levels[-1].restore()

    def _count_all(self) -> tuple[Counter[str], Counter[str]]:
        """Return what `_count` does, with the steps before the exploration was stopped."""
        actions, notes = self._count()
        actions.update(self._actions_before)
        notes.update(self._notes_before)
        return actions, notes

    def _is_broken(self) -> bool:
        return any(c < len(self.model.invariants) for c in self._found)

    def _find_limit(self, distinct: int) -> str | None:
        budget = self._budget
        if budget.depth is not None and len(self.levels) > budget.depth:
            return f"the budget of {budget.depth} steps is used up"
        if budget.states is not None and distinct >= budget.states:
            return f"the budget of {budget.states} states is used up"
        if budget.mebibytes is not None and self._peak_bytes >= budget.mebibytes << 20:
            return f"the budget of {budget.mebibytes} MiB is used up"
        self._is_too_late()
        return self.unfinished

    def _count_values(self, distinct: int) -> dict[str, int] | None:
        """Return the number of values of each field; None where there are very many states.

        None as well where one state stands for its orbit: its values are not all there are.
        """
        if distinct > COUNT_VALUES_TO or self.group is not None:
            return None
        values = FieldValues(self.layout)
        for level in self.levels:
            values.add(level.restore())
        return values.count()

    def _report(self, distinct: int, compiling: float) -> ExploreResult:
        actions, notes = self._count_all()
        return ExploreResult(
            model=self.model.name,
            engine="derived",
            distinct=distinct,
            generated=self.generated,
            initial=len(self.model.initial),
            levels=tuple(level.size for level in self.levels),
            violations=tuple(self.list_violations(self._found, self._tell)),
            goals=self.list_goals(self._found),
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


__all__ = ["Engine", "EngineError", "Progress", "explore_derived"]
