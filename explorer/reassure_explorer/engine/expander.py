"""What follows from packed states, by the diagrams of a model, in compiled kernels.

A kernel walks the diagrams for all states at once; what they do not know goes back to Python
(`learner`), once for each combination of values. Which states those are, and where they are kept,
is the matter of `derived`.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import kernels, sorting
from reassure_explorer.engine.diagrams import I64, LEAF, MISSING, YES, Arrays, Diagrams, grow
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.learner import Learner
from reassure_explorer.engine.orbits import make_tables
from reassure_explorer.engine.packing import Words
from reassure_explorer.engine.result import Budget
from reassure_explorer.engine.runs import (
    Run,
    Team,
    Visited,
    as_rows,
    make_run,
    merge,
    merge_all,
    sort_unique,
    stack,
    store_level,
)
from reassure_explorer.engine.symmetry import make_group

BUFFER_STATES: Final = 1 << 18
CHUNK: Final = 1024
CHUNK_LEARNING: Final = 64
"""States expanded at a time: few while there is much to learn, as paths learned come too late for
the rest of them."""
LEARNED_AT_ONCE: Final = 8
"""Misses looked at in Python before a kernel follows those of the rest that are known by then."""
CHUNKS_MISSED: Final = 16
"""Chunks whose misses have room where another thread learns: this one stays away from Python."""

Marks = npt.NDArray[np.bool_]
"""A truth for each state of a run."""


class Expander(Learner):
    """What the diagrams of one model make of states."""

    def __init__(self, model: Model, symmetry: bool = False, memory: Path | None = None) -> None:
        super().__init__(model, None if symmetry else memory)
        self.group = make_group(model) if symmetry else None
        self.tables = make_tables(self.group, self.layout)
        self.recent = self._make_recent()
        self.generated = 0
        self.seconds_learning = 0.0
        """Wall time of the model's own functions and of making paths of them."""
        self.hits: npt.NDArray[np.int64] = np.zeros(256, dtype=np.int64)
        self.unfinished: str | None = None
        self._started = time.perf_counter()
        self.budget = Budget()
        """How long states are expanded at most, from then on."""
        self._lock = threading.Lock()

    def _make_recent(self) -> Run:
        """Return room for states written lately, to leave repetitions out before sorting.

        What is there was written once and is never lost, so that leaving it out is exact; an
        initial state fills it.
        """
        first = np.array(self.layout.pack(self.model.initial_states[0]), dtype=np.uint64)
        recent: Run = np.tile(first, (1 << kernels.RECENT_BITS, 1))
        return recent.reshape(-1) if self.layout.words == 1 else recent

    def warm_kernels(self) -> float:
        """Compile the kernels, or load them from the cache; answer the seconds that took."""
        started = time.perf_counter()
        d, words = self.diagrams, self.layout.words
        run = make_run(words, 1)
        run[...] = 1
        merge_all([run.copy(), run.copy()], words)
        visited = Visited()
        visited.add(sort_unique(run.copy()))
        visited.subtract_from([run.copy()], words)
        sorting.find_place(as_rows(run), as_rows(run)[0])
        store_level(run).restore()
        nothing, misses = make_run(words, 0), np.empty((0, 2), dtype=np.int64)
        stuck = np.empty(0, dtype=np.bool_)
        rows, none = nothing.reshape(0, words), np.empty(0, dtype=np.int64)
        kernels.expand(
            nothing, 0, 1, d.roots, d.children, d.clear, d.put, d.more, d.widest,
            self.recent, nothing, misses, self.hits, stuck,
        )  # fmt: skip
        kernels.follow(
            nothing, misses, d.roots, d.children, d.clear, d.put, d.more, self.recent, nothing,
            self.hits, stuck,
        )  # fmt: skip
        kernels.judge(nothing, 0, 0, none, d.roots, d.children, none, misses)
        if len(self.functions) > len(self.checks) or self.group is not None:
            kernels.find_leaves(rows, d.roots, d.children)
        if self.group is not None:
            kernels.represent(rows, self.tables)
            kernels.permute(rows, self.tables, 0)
        return time.perf_counter() - started

    def expand(self, states: Run, stuck: Marks, *, alone: bool = True) -> tuple[list[Run], I64]:
        """Return the successors of states as runs, repetitions between runs included, and misses.

        `alone` says that no other thread expands states at the same time: paths are learned then
        as they are met, and no misses are left. `stuck`, by state, is made False where a state has
        a successor or was not expanded for lack of time; for misses `catch_up` does that.
        """
        count = len(self.instances)
        chunk, chunks = (CHUNK_LEARNING, 1) if alone else (CHUNK, CHUNKS_MISSED)
        misses = np.empty((chunks * CHUNK * count, 2), dtype=np.int64)
        d = self._get_arrays(alone=alone)
        hits = np.zeros(len(d.clear), dtype=np.int64)
        out = _Output(self, max(BUFFER_STATES, 4 * CHUNK * count))
        recent = self.recent if alone else self._copy_recent()
        later = [misses[:0]]
        start = taken = 0
        while start < len(states):
            if not out.has_room(chunk * count * d.widest):
                out.flush(chunk * count * d.widest)
                if self._is_too_late():
                    stuck[start:] = False
                    break
            start, written, steps, missed = kernels.expand(
                states, start, chunk, d.roots[:count], d.children, d.clear, d.put, d.more,
                d.widest, recent, out.states[out.filled :], misses[: chunks * chunk * count], hits,
                stuck,
            )  # fmt: skip
            out.filled += written
            taken += steps
            if not alone:
                later.append(misses[:missed].copy())
                continue
            chunk = CHUNK_LEARNING if missed else min(2 * chunk, CHUNK)
            if missed:
                steps, hits = self._resolve(states, misses[:missed], out, hits, stuck)
                taken += steps
        out.flush(0)
        with self._lock:
            self._count_steps(taken, hits)
        return out.runs, np.concatenate(later)

    def _copy_recent(self) -> Run:
        """Return a table of this thread's own.

        Two threads that wrote to one table could each see half of a state of several words.
        """
        with self._lock:
            return self.recent.copy()

    def _get_arrays(self, *, alone: bool) -> Arrays | Diagrams:
        if alone:
            return self.diagrams
        with self._lock:
            return self.diagrams.freeze()

    def _count_steps(self, taken: int, hits: I64) -> None:
        self.generated += taken
        self.hits = grow(self.hits, len(hits), 0)
        self.hits[: len(hits)] += hits

    def _resolve(
        self, states: Run, misses: I64, out: "_Output", hits: I64, stuck: Marks
    ) -> tuple[int, I64]:
        """Write the successors of states whose paths a kernel did not know; `misses` is used up.

        Answers the number of steps, and the hits with these added.
        """
        begun, d, rows, taken = time.perf_counter(), self.diagrams, as_rows(states), 0
        for start in range(0, len(misses), CHUNK_LEARNING):
            some = misses[start : start + CHUNK_LEARNING]
            while len(some):
                with self._lock:
                    for i, root in some[:LEARNED_AT_ONCE].tolist():
                        self.find_leaf(root, tuple(rows[i].tolist()))
                hits = grow(hits, len(d.clear), 0)
                if not out.has_room(len(some) * d.widest):
                    out.flush(len(some) * d.widest)
                with self._lock:
                    written, steps, left = kernels.follow(
                        states, some, d.roots, d.children, d.clear, d.put, d.more, self.recent,
                        out.states[out.filled :], hits, stuck,
                    )  # fmt: skip
                out.filled += written
                taken += steps
                some = some[:left]
        self.seconds_learning += time.perf_counter() - begun
        return taken, hits

    def catch_up(self, states: Run, misses: I64, stuck: Marks) -> list[Run]:
        """Return the successors that were left out when states were expanded, as runs."""
        if not len(misses):
            return []
        out = _Output(self, BUFFER_STATES)
        none = np.zeros(1, dtype=np.int64)
        steps, hits = self._resolve(states, misses, out, none, stuck)
        with self._lock:
            self._count_steps(steps, hits)
        out.flush(0)
        return out.runs

    def _is_too_late(self) -> bool:
        seconds = time.perf_counter() - self._started
        late = Budget(seconds=self.budget.seconds).find_limit(0, 0, seconds)
        if late is not None:  # otherwise another thread may have found it so meanwhile
            self.unfinished = late
        return late is not None

    def split(self, states: Run) -> tuple[Run, Run]:
        """Return the states within the constraint, and those outside."""
        if self.model.constraint is None:
            return states, states[:0]
        marks = self.mark(states, len(self.diagrams.names) - 1)
        return states[marks], states[~marks]

    def mark(self, states: Run, root: int) -> Marks:
        """Return of which states the function with this root is true."""
        rows = as_rows(states)
        d = self.diagrams
        leaves = kernels.find_leaves(rows, d.roots[root : root + 1], d.children)[:, 0]
        for i in np.flatnonzero(leaves == MISSING).tolist():
            leaves[i] = self.find_leaf(root, tuple(rows[i].tolist()))
        marks: Marks = leaves == LEAF - YES
        return marks

    def find_deadlock(self, stuck: Run) -> Words | None:
        """Return the first of some states without a successor that is not terminal, or None."""
        if self.model.terminal is not None and len(stuck):
            stuck = stuck[~self.mark(stuck, len(self.instances) + len(self.checks))]
        return tuple(as_rows(stuck)[0].tolist()) if len(stuck) else None

    def find_true(self, states: Run, checks: Sequence[int], team: Team) -> dict[int, Words]:
        """Return for each of some checks that is true somewhere the first state where it is."""
        if not checks or not len(states):
            return {}
        roots = np.array([len(self.instances) + c for c in checks], dtype=np.int64)
        ends = [len(states) * part // team.parts for part in range(team.parts + 1)]
        alone = team.parts == 1
        jobs = [partial(self._judge_part, states, roots, a, b, alone) for a, b in pairwise(ends)]
        parts = team.run(jobs)
        first: dict[int, Words] = {}
        for number, c in enumerate(checks):
            found = [int(part[number]) for part in parts if part[number] >= 0]
            if found:
                first[c] = tuple(as_rows(states)[min(found)].tolist())
        return first

    def _judge_part(self, level: Run, checks: I64, start: int, end: int, alone: bool) -> I64:
        """Return the first of some states in which each check is true, -1 where it is in none."""
        rows, d = as_rows(level), self._get_arrays(alone=alone)
        found = np.full(len(checks), -1, dtype=np.int64)
        misses = np.empty((CHUNK * len(checks), 2), dtype=np.int64)
        chunk = CHUNK_LEARNING
        while start < end:
            stop = min(start + chunk, end)
            missed = kernels.judge(level, start, stop, checks, d.roots, d.children, found, misses)
            start, chunk = stop, CHUNK_LEARNING if missed else min(2 * chunk, CHUNK)
            if missed:
                self._judge_misses(rows, checks, misses[:missed], found)
                d = self._get_arrays(alone=alone)
        return found

    def _judge_misses(self, rows: Run, checks: I64, misses: I64, found: I64) -> None:
        with self._lock:
            for i, c in misses.tolist():
                leaf = self.find_leaf(int(checks[c]), tuple(rows[i].tolist()))
                if leaf == LEAF - YES and (found[c] < 0 or i < found[c]):
                    found[c] = i

    def find_source(self, states: Run, words: Words) -> tuple[Words, int] | None:
        """Return the first of some states that leads to another one, and the root that does.

        None where none does, or where the paths of the states are not known.
        """
        d, rows = self.diagrams, as_rows(states)
        i, root = kernels.find_source(
            rows,
            np.array(words, dtype=np.uint64),
            d.roots[: len(self.instances)],
            d.children,
            d.clear,
            d.put,
            d.more,
            self.tables,
        )
        return None if i < 0 else (tuple(rows[i].tolist()), int(root))

    def count_by_action(self) -> tuple[Counter[str], Counter[str]]:
        """Return the steps taken by action, and by what was noted of them."""
        actions = Counter({action.name: 0 for action in self.model.actions})
        notes: Counter[str] = Counter()
        for leaf, times in enumerate(self.hits.tolist()):
            if times:
                root, noted = self.diagrams.leaves[leaf]
                actions[self.instances[root][0].name] += times
                for note in noted:
                    notes[note] += times
        return actions, notes


class _Output:
    """Successors that were written, put by as sorted runs whenever the room for them ends."""

    def __init__(self, engine: Expander, room: int) -> None:
        self._tables, self._words = engine.tables, engine.layout.words
        self.states = make_run(self._words, room)
        self.filled = 0
        self.runs: list[Run] = []

    def has_room(self, states: int) -> bool:
        """Whether so many more states can be written."""
        return self.filled + states <= len(self.states)

    def flush(self, room: int) -> None:
        """Put by what was written, and have room for so many states."""
        if self.filled:
            kernels.represent(as_rows(self.states[: self.filled]), self._tables)
            stack(self.runs, sort_unique(self.states[: self.filled]), lambda two: merge(*two))
        self.filled = 0
        if len(self.states) < room:
            self.states = make_run(self._words, room)
