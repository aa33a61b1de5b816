"""The derived engine: the same answers as the plain one, many times faster, from the same model.

Nothing of the model is written twice. An action is run in Python, on a state that notes what is
read, only for a combination of values that has not been met before; the path it took goes into a
decision diagram (`diagrams`). A compiled kernel walks the diagrams for all other states. States are
packed words in sorted runs (`runs`); each level is the successors of the level before, less what
was seen. Predecessors are not kept: a trace is found backwards, by expanding the level before again
until a state turns up that leads where the trace goes on. Every trace is then told forwards by the
plain model, which must agree.

What is checked while it runs: paths must not contradict each other (`NotDeterministic`), each path
that is learned must come to what the plain function comes to in the same state, and some paths in
other states with the same values where they read; a state of every level is expanded plainly.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import graph_kernels, kernels
from reassure_explorer.engine.checkpoint import Checkpoint, Saved, compute_key
from reassure_explorer.engine.diagrams import (
    I64,
    LEAF,
    MISSING,
    YES,
    Arrays,
    Diagrams,
    NotDeterministic,
)
from reassure_explorer.engine.interface import Model, ModelError
from reassure_explorer.engine.memory import Memory
from reassure_explorer.engine.orbits import Comparison, make_tables
from reassure_explorer.engine.origins import NotTraceable, read_code, take_stock
from reassure_explorer.engine.packing import EngineError, Layout, Words
from reassure_explorer.engine.result import Budget, ExploreResult, Trace, TraceStep, Violation
from reassure_explorer.engine.runs import (
    Heap,
    Run,
    StoredLevel,
    Team,
    Visited,
    as_rows,
    make_run,
    merge_all,
    sort_unique,
    store_level,
)
from reassure_explorer.engine.symmetry import (
    make_group,
    undo_permutations,
)
from reassure_explorer.engine.tracing import (
    Recording,
    order_fields,
    trace_action,
    trace_check,
    watch_errors,
)
from reassure_explorer.engine.values import FieldValues

BUFFER_STATES: Final = 1 << 18
CHUNK: Final = 1024
CHUNK_LEARNING: Final = 64
"""States expanded at a time: few while there is much to learn, as paths learned come too late for
the rest of them."""
LEARNED_AT_ONCE: Final = 8
"""Misses looked at in Python before a kernel follows those of the rest that are known by then."""
CHUNKS_MISSED: Final = 16
"""Chunks whose misses have room where another thread learns: this one stays away from Python."""
CHECKED_PER_LEVEL: Final = 1
PROBED: Final = 512
"""For so many paths, and then for one in so many, the plain function has to come to the same in
another state, reachable or not, that differs in what the path did not read."""
PROBED_LATER: Final = 32
ASKED_AGAIN: Final = 32
"""Of the paths that an earlier run learned the first so many, and one in so many of all, are held
against the plain function again."""
COMPARED_PER_LEVEL: Final = 1024
"""States of a level that are held against the group where there is symmetry."""
PARALLEL_FROM: Final = 4096
"""A level with fewer states is not worth splitting between threads."""
COUNT_VALUES_TO: Final = 5_000_000
Outcome = bool | list[tuple[Words, tuple[str, ...]]]
"""What comes of a function in a state: the packed states after an action, each with the notes of
the step, in order; or the truth of a check."""


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


def warm_kernels(words: int) -> float:
    """Compile the kernels, or load them from the cache; answer the seconds that took."""
    started = time.perf_counter()
    run = make_run(words, 1)
    run[...] = 1
    merge_all([run.copy(), run.copy()], words)
    visited = Visited()
    visited.add(sort_unique(run.copy()))
    visited.subtract_from([run.copy()], words)
    kernels.find_place(as_rows(run), as_rows(run)[0])
    store_level(run).restore()
    return time.perf_counter() - started


class Engine:
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
        self.model, self.threads = model, threads
        self.layout = Layout(model, order_fields(model))
        self.group = make_group(model) if symmetry else None
        self.tables = make_tables(self.group, self.layout)
        self.instances = model.instances
        self._stock = take_stock(model)
        reading = read_code(self._stock)
        if reading.refusals:
            raise NotTraceable(f"model {model.name}: {'; '.join(reading.refusals)}")
        self._swallows = reading.swallows
        self._chance = Random(len(self.instances))
        label = f"{label} {self.layout.order} {symmetry}"
        key = compute_key(model, f"{label} {self._stock.compute_digest()}")
        self.checkpoint: Checkpoint | None = None
        if directory is not None:
            self.checkpoint = Checkpoint(directory, key, self.layout.words)
        self._memory = None if memory is None or symmetry else Memory(memory, key)
        self._origins: list[tuple[int, Words]] = []
        """The root of each path, and the state that it was learned from."""
        self.checks: tuple[Callable[[Any], bool], ...] = (
            *(_broken(invariant.find) for invariant in model.invariants),
            *(goal.reached for goal in model.goals),
        )
        constraints = () if model.constraint is None else (model.constraint,)
        self.functions = (*self.checks, *constraints)
        """The checks, and the constraint where there is one."""
        self.diagrams = Diagrams(self.layout, _name_roots(model), len(self.instances))
        self.levels: list[StoredLevel] = []
        self.visited = Visited()
        if self.checkpoint is not None:
            self.visited.allocate = self.checkpoint.allocate
        self.recent = self._make_recent()
        self.generated = 0
        self._resumed = 0
        """Levels that were there when an exploration went on."""
        self._actions_before: Counter[str] = Counter()
        self._notes_before: Counter[str] = Counter()
        self._pool: ThreadPoolExecutor | None = None
        self._plain: tuple[Words, Any] = ((), None)
        """The packed state that was unpacked last."""
        self.seconds_learning = 0.0
        """Wall time of the model's own functions and of making paths of them."""
        self._witnesses: list[Words] = []
        """States from which paths were learned since symmetry was last checked."""
        self.hits: npt.NDArray[np.int64] = np.zeros(256, dtype=np.int64)
        self.unfinished: str | None = None
        self._lock = threading.Lock()
        self._found: dict[int, tuple[int, Words]] = {}
        self._peak_bytes = 0

    def _make_recent(self) -> Run:
        """Return room for states written lately, to leave repetitions out before sorting.

        What is there was written once and is never lost, so that leaving it out is exact; an
        initial state fills it.
        """
        first = np.array(self.layout.pack(self.model.initial_states[0]), dtype=np.uint64)
        recent: Run = np.tile(first, (1 << kernels.RECENT_BITS, 1))
        return recent.reshape(-1) if self.layout.words == 1 else recent

    def _warm_kernels(self) -> float:
        """Compile the kernels that walk diagrams, or load them; answer the seconds all took."""
        started = time.perf_counter()
        warm_kernels(self.layout.words)
        d, words = self.diagrams, self.layout.words
        nothing, misses = make_run(words, 0), np.empty((0, 2), dtype=np.int64)
        rows, none = nothing.reshape(0, words), np.empty(0, dtype=np.int64)
        kernels.expand(
            nothing, 0, 1, d.roots, d.children, d.clear, d.put, d.more, d.widest,
            self.recent, nothing, misses, self.hits,
        )  # fmt: skip
        kernels.follow(
            nothing, misses, d.roots, d.children, d.clear, d.put, d.more, self.recent, nothing,
            self.hits,
        )  # fmt: skip
        kernels.judge(nothing, 0, 0, none, d.roots, d.children, none, misses)
        if self.model.constraint is not None:
            graph_kernels.mark(rows, 0, d.children)
        if self.group is not None:
            kernels.represent(rows, self.tables)
            kernels.permute(rows, self.tables, 0)
            kernels.find_leaves(rows, d.roots, d.children)
        return time.perf_counter() - started

    # Learning --------------------------------------------------------------------------------

    def _trace(self, root: int, words: Words) -> Recording:
        if root < len(self.instances):
            return trace_action(self.layout, *self.instances[root], words)
        return trace_check(self.layout, self.functions[root - len(self.instances)], words)

    def find_leaf(self, root: int, words: Words) -> int:
        """Return the leaf that a state comes to, asking the plain function where it is not known.

        Raises NotDeterministic.
        """
        leaf = self.diagrams.walk(root, words)
        if leaf != MISSING:
            return leaf
        if self.group is not None:
            self._witnesses.append(words)
        self._origins.append((root, words))
        path = self._trace_or_fail(root, words)
        leaf = self.diagrams.learn(root, path)
        self._hold_against_plain(root, words, leaf)
        if self._swallows:
            self._compare_errors(root, words)
        if self.diagrams.paths <= PROBED or self.diagrams.paths % PROBED_LATER == 0:
            read = self.diagrams.list_cells(root, words)
            other = self.layout.draw_unread(words, read, self._chance)
            self._hold_against_plain(root, other, leaf)
        return leaf

    def _recall(self) -> None:
        """Take over the paths that earlier runs learned. Raises EngineError where one is wrong."""
        if self._memory is not None:
            self._origins = self._memory.load(self.diagrams)
            for root, words in self._origins[:ASKED_AGAIN] + self._origins[::ASKED_AGAIN]:
                self._hold_against_plain(root, words, self.diagrams.walk(root, words))

    def _compare_errors(self, root: int, words: Words) -> None:
        """Run both once more, and look at the errors. Raises NotTraceable where they differ."""
        with watch_errors() as ours:
            self._trace(root, words)
        with watch_errors() as plain:
            self._ask_plain(root, words)
        if ours != plain:
            raise NotTraceable(
                f"model {self.model.name}: {self.diagrams.names[root]} in {self._unpack(words)} "
                f"caught {ours or 'nothing'} when it was traced, and {plain or 'nothing'} when it "
                "was not: something takes a real tuple or set only. Copy the field first: "
                "`tuple(state.field)`, `frozenset(state.field)`"
            )

    def _trace_or_fail(self, root: int, words: Words) -> Recording:
        """Return the path of a state. Where the plain function fails as well its failure counts."""
        try:
            return self._trace(root, words)
        except Exception as problem:
            self._ask_plain(root, words)
            told = self._describe_difference(root, words, repr(problem), "nothing wrong")
            raise EngineError(told) from problem

    def _unpack(self, words: Words) -> Any:
        """Return the plain state; most are asked for several times in a row."""
        if words != self._plain[0]:
            self._plain = words, self.layout.unpack(words)
        return self._plain[1]

    def _ask_plain(self, root: int, words: Words) -> Outcome:
        """Return what the plain function comes to.

        Raises whatever it raises, and EngineError for a value that is another once it was packed.
        """
        state = self._unpack(words)
        if root >= len(self.instances):
            return bool(self.functions[root - len(self.instances)](state))
        whence = partial(self.diagrams.names.__getitem__, root)
        answers = self.model.ask(state, *self.instances[root])
        if not answers:
            return []
        if len(answers) == 1:
            ((after, notes),) = answers
            return [(self.layout.repack(words, state, after, whence), notes)]
        return sorted((self.layout.repack(words, state, a, whence), notes) for a, notes in answers)

    def _read_leaf(self, root: int, words: Words, leaf: int) -> Outcome:
        """Return what a leaf says of a state, as `_ask_plain` does."""
        if root >= len(self.instances):
            return leaf == LEAF - YES
        d, chain = self.diagrams, self.diagrams.list_chain(leaf)
        return sorted((d.apply(number, words), d.leaves[number][1]) for number in chain)

    def _hold_against_plain(self, root: int, words: Words, leaf: int) -> None:
        """Run the plain function on a state as well. Raises EngineError where it differs."""
        ours = self._read_leaf(root, words, leaf)
        try:
            expected = self._ask_plain(root, words)
        except EngineError:
            raise
        except Exception as problem:
            told = self._describe_difference(root, words, self._tell_outcome(ours), repr(problem))
            raise EngineError(told) from problem
        if ours != expected:
            outcomes = self._tell_outcome(ours), self._tell_outcome(expected)
            raise EngineError(self._describe_difference(root, words, *outcomes))

    def _tell_outcome(self, outcome: Outcome) -> str:
        if isinstance(outcome, bool):
            return str(outcome)
        ways = []
        for words, notes in outcome:
            after = str(self.layout.unpack(words))
            ways.append(f"{after}, noting {', '.join(notes)}" if notes else after)
        return " or ".join(ways) or "not possible"

    def _describe_difference(self, root: int, words: Words, ours: str, plain: str) -> str:
        return (
            f"model {self.model.name}: {self.diagrams.names[root]} in {self._unpack(words)}: plain "
            f"says {plain}, derived says {ours}. Either the function depends on more than what it "
            "is given (a global, the order of a set, the identity of a value), or it uses a field "
            "in a way that a traced state answers differently from a plain one"
        )

    # Expanding -------------------------------------------------------------------------------

    def expand(self, states: Run, *, alone: bool = True) -> tuple[list[Run], I64]:
        """Return the successors of states as runs, repetitions between runs included, and misses.

        `alone` says that no other thread expands states at the same time: paths are learned then
        as they are met, and no misses are left.
        """
        count = len(self.instances)
        chunk, chunks = (CHUNK_LEARNING, 1) if alone else (CHUNK, CHUNKS_MISSED)
        misses = np.empty((chunks * CHUNK * count, 2), dtype=np.int64)
        d = self._get_arrays(alone=alone)
        hits = np.zeros(len(d.clear), dtype=np.int64)
        out = _Output(self, max(BUFFER_STATES, 4 * CHUNK * count))
        # Two threads that wrote to one table could each see half of a state of several words.
        recent = self.recent if alone else self.recent.copy()
        later = [misses[:0]]
        start = taken = 0
        while start < len(states):
            if not out.has_room(chunk * count * d.widest):
                out.flush(chunk * count * d.widest)
                if self._is_too_late():
                    break
            start, written, steps, missed = kernels.expand(
                states, start, chunk, d.roots[:count], d.children, d.clear, d.put, d.more,
                d.widest, recent, out.states[out.filled :], misses[: chunks * chunk * count], hits,
            )  # fmt: skip
            out.filled += written
            taken += steps
            if not alone:
                later.append(misses[:missed].copy())
                continue
            chunk = CHUNK_LEARNING if missed else min(2 * chunk, CHUNK)
            if missed:
                steps, hits = self._resolve(states, misses[:missed], out, hits)
                taken += steps
        out.flush(0)
        with self._lock:
            self._count_steps(taken, hits)
        return out.runs.runs, np.concatenate(later)

    def _get_arrays(self, *, alone: bool) -> Arrays | Diagrams:
        if alone:
            return self.diagrams
        with self._lock:
            return self.diagrams.freeze()

    def _count_steps(self, taken: int, hits: I64) -> None:
        self.generated += taken
        self.hits = _grow(self.hits, len(hits))
        self.hits[: len(hits)] += hits

    def _resolve(self, states: Run, misses: I64, out: "_Output", hits: I64) -> tuple[int, I64]:
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
                hits = _grow(hits, len(d.clear))
                if not out.has_room(len(some) * d.widest):
                    out.flush(len(some) * d.widest)
                written, steps, left = kernels.follow(
                    states, some, d.roots, d.children, d.clear, d.put, d.more, self.recent,
                    out.states[out.filled :], hits,
                )  # fmt: skip
                out.filled += written
                taken += steps
                some = some[:left]
        self.seconds_learning += time.perf_counter() - begun
        return taken, hits

    def _catch_up(self, states: Run, misses: I64) -> list[Run]:
        """Return the successors that were left out when states were expanded, as runs."""
        if not len(misses):
            return []
        out = _Output(self, BUFFER_STATES)
        self._count_steps(*self._resolve(states, misses, out, np.zeros(1, dtype=np.int64)))
        out.flush(0)
        return out.runs.runs

    def _is_too_late(self) -> bool:
        seconds = self._budget.seconds
        if seconds is not None and time.perf_counter() - self._started > seconds:
            self.unfinished = f"the budget of {seconds} s is used up"
            return True
        return False

    def _next_level(self, frontier: Run) -> Run:
        """Return the states one step away that were never seen before."""
        team = self.visited.team = self._find_team(len(frontier))
        if team.parts > 1:
            # One learns what the first parts lack while the others expand the next ones.
            parts = np.array_split(frontier, team.parts)
            made = team.start([partial(self.expand, part, alone=False) for part in parts])
            runs = [
                run
                for part, (some, misses) in zip(parts, made, strict=True)
                for run in (*some, *self._catch_up(part, misses))
            ]
        else:
            runs, _ = self.expand(frontier)
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

    def _split(self, states: Run) -> tuple[Run, Run]:
        """Return the states within the constraint, and those outside."""
        if self.model.constraint is None:
            return states, states[:0]
        root, rows = len(self.diagrams.names) - 1, as_rows(states)
        marks = graph_kernels.mark(rows, self.diagrams.roots[root], self.diagrams.children)
        for i in np.flatnonzero(marks == 2).tolist():
            marks[i] = self.find_leaf(root, tuple(rows[i].tolist())) == LEAF - YES
        return states[marks == 1], states[marks == 0]

    def _judge(self, level: Run, depth: int, *, outside: bool = False) -> None:
        """Look for broken invariants, and for goals within, among the new states of a depth."""
        first = len(self.instances)
        pending = self._list_pending()
        if outside:
            pending = [c for c in pending if c < len(self.model.invariants)]
        if not pending:
            return
        checks = np.array([first + c for c in pending], dtype=np.int64)
        team = self.visited.team
        ends = [len(level) * part // team.parts for part in range(team.parts + 1)]
        alone = team.parts == 1
        jobs = [partial(self._judge_part, level, checks, a, b, alone) for a, b in pairwise(ends)]
        parts = team.run(jobs)
        for number, c in enumerate(pending):
            found = [int(part[number]) for part in parts if part[number] >= 0]
            if found:
                self._found[c] = (depth, tuple(as_rows(level)[min(found)].tolist()))

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

    def _check_against_plain(self, level: Run) -> None:
        """Hold a few states that are expanded against the plain functions. Raises EngineError."""
        first = len(self.instances)
        constraint = range(len(self.checks), len(self.functions))
        roots = [*range(first), *(first + c for c in (*self._list_pending(), *constraint))]
        rows = as_rows(level)
        step = max(1, len(rows) // CHECKED_PER_LEVEL)
        for row in rows[::step][:CHECKED_PER_LEVEL]:
            words = tuple(row.tolist())
            for root in roots:
                self._hold_against_plain(root, words, self.find_leaf(root, words))

    def _list_pending(self) -> list[int]:
        """Return the checks that were true of no state so far."""
        return [c for c in range(len(self.checks)) if c not in self._found]

    def _check_symmetric(self, level: Run) -> None:
        """Hold states of a level, and those that new paths were learned from, against the group.

        Raises NotSymmetric.
        """
        if self.group is None or len(self.group.permutations) == 1:
            return
        rows = as_rows(level)
        some = rows[:: -(-len(rows) // COMPARED_PER_LEVEL)]
        fresh = np.array(self._witnesses, dtype=np.uint64).reshape(-1, self.layout.words)
        Comparison(self, self.group).compare(np.concatenate([some, fresh]))
        self._witnesses.clear()

    # Telling ---------------------------------------------------------------------------------

    def tell(self, depth: int, words: Words) -> Trace:
        """Return a shortest trace to a state of that depth, as the plain model tells it.

        Raises EngineError where the plain model does not come to the same states.
        """
        way: list[tuple[int, Words]] = []
        d, count = self.diagrams, len(self.instances)
        for before in range(depth - 1, -1, -1):
            level = self.levels[before].restore()
            if before < self._resumed - 1:
                self._learn_level(level)
            rows = as_rows(level)
            i, root = kernels.find_source(
                rows,
                np.array(words, dtype=np.uint64),
                d.roots[:count],
                d.children,
                d.clear,
                d.put,
                d.more,
                self.tables,
            )
            if i < 0:
                raise EngineError(f"nothing of depth {before} leads to {self.layout.unpack(words)}")
            way.append((int(root), words))
            words = tuple(rows[i].tolist())
        if self.group is not None:
            orbits = [words, *(after for _, after in way[::-1])]
            return undo_permutations(self.group, [self.layout.unpack(orbit) for orbit in orbits])
        return self._retell(words, way[::-1])

    def _learn_level(self, level: Run) -> None:
        """Learn the paths of a level that was expanded before the exploration was stopped."""
        generated, hits = self.generated, self.hits.copy()
        self.expand(level)
        self.generated, self.hits = generated, hits

    def _retell(self, first: Words, way: list[tuple[int, Words]]) -> Trace:
        initial, before = self.layout.unpack(first), first
        steps: list[TraceStep] = []
        for root, words in way:
            action, parameter = self.instances[root]
            expected = self._ask_plain(root, before)
            if isinstance(expected, bool) or words not in (after for after, _ in expected):
                outcomes = self._tell_outcome([(words, ())]), self._tell_outcome(expected)
                raise EngineError(self._describe_difference(root, before, *outcomes))
            before, state = words, self.layout.unpack(words)
            steps.append(TraceStep(action.name, parameter, action.describe(parameter), state))
        return Trace(initial, tuple(steps))

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
            if self._memory is not None:
                self._memory.forget()
            self._check_unchanged()
            raise
        finally:
            self._close()

    def _check_unchanged(self) -> None:
        """Raise NotTraceable where the model's functions changed what they look at."""
        changed = self._stock.find_difference(take_stock(self.model))
        if changed is not None:
            raise NotTraceable(
                f"model {self.model.name}: {changed}, is not what it was before the model ran. An "
                "action depends on nothing but its state and parameter, and changes nothing else: "
                "keep it in a field"
            )

    def _run(
        self, keep_going: bool, budget: Budget, progress: Callable[[Progress], None] | None
    ) -> ExploreResult:
        compiling = self._warm_kernels()
        self._started, self._budget = time.perf_counter(), budget
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
                self.unfinished = "stopped at the first level with a violation"
            elif len(frontier):
                self.unfinished = self.unfinished or self._find_limit(distinct)
            if self.unfinished is not None or not len(frontier):
                break
            self._check_against_plain(frontier)
            fresh = self._next_level(frontier)
            if self.unfinished is not None or not len(fresh):
                break
            frontier = self._enter(fresh)
        self._check_unchanged()
        report = self._report(distinct, compiling)
        if self._memory is not None and self.diagrams.paths:
            self._memory.save(self.diagrams, self._origins)
        return report

    def _make_first(self) -> Run:
        packed = [self.layout.pack(state) for state in self.model.initial_states]
        first = np.array(packed, dtype=np.uint64).reshape(len(packed), self.layout.words)
        kernels.represent(first, self.tables)
        return sort_unique(first.reshape(-1) if self.layout.words == 1 else first)

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
        actions, notes = self._count()
        return Saved(
            key,
            self.generated,
            [level.size for level in self.levels],
            [level.squeezed for level in self.levels],
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

    def _count(self) -> tuple[Counter[str], Counter[str]]:
        """Return the steps taken by action, and by what was noted of them."""
        actions = Counter({action.name: 0 for action in self.model.actions})
        actions.update(self._actions_before)
        notes = Counter(self._notes_before)
        for leaf, times in enumerate(self.hits.tolist()):
            if times:
                root, noted = self.diagrams.leaves[leaf]
                actions[self.instances[root][0].name] += times
                for note in noted:
                    notes[note] += times
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
        invariants, goals = self.model.invariants, self.model.goals
        violations: list[Violation] = []
        for c, (depth, words) in sorted(self._found.items(), key=lambda item: item[1][0]):
            if c < len(invariants):
                trace = self.tell(depth, words)
                reason = invariants[c].find(trace.last)
                if reason is None:
                    raise EngineError(f"plain {invariants[c].name} holds in {trace.last}")
                violations.append(Violation(invariants[c].name, reason, trace))
        reached = {g.name: self._found.get(len(invariants) + n) for n, g in enumerate(goals)}
        actions, notes = self._count()
        return ExploreResult(
            model=self.model.name,
            engine="derived",
            distinct=distinct,
            generated=self.generated,
            initial=len(self.model.initial),
            levels=tuple(level.size for level in self.levels),
            violations=tuple(violations),
            goals={name: None if at is None else at[0] for name, at in reached.items()},
            invariants=tuple(invariant.name for invariant in invariants),
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


def _grow(hits: I64, size: int) -> I64:
    return np.concatenate([hits, np.zeros(max(0, size - len(hits)), dtype=np.int64)])


class _Output:
    """Successors that were written, put by as sorted runs whenever the room for them ends."""

    def __init__(self, engine: Engine, room: int) -> None:
        self._tables, self._words = engine.tables, engine.layout.words
        self.states = make_run(self._words, room)
        self.filled = 0
        self.runs = Heap()

    def has_room(self, states: int) -> bool:
        """Whether so many more states can be written."""
        return self.filled + states <= len(self.states)

    def flush(self, room: int) -> None:
        """Put by what was written, and have room for so many states."""
        if self.filled:
            kernels.represent(as_rows(self.states[: self.filled]), self._tables)
            self.runs.add(sort_unique(self.states[: self.filled]))
        self.filled = 0
        if len(self.states) < room:
            self.states = make_run(self._words, room)


def _name_roots(model: Model) -> list[str]:
    """Return the names of a model's action instances, checks and constraint, for messages."""
    names = [action.describe(parameter) for action, parameter in model.instances]
    names += [f"check {check.name}" for check in model.checks]
    return names if model.constraint is None else [*names, "the constraint"]


def _broken(find: Callable[[Any], str | None]) -> Callable[[Any], bool]:
    return lambda state: find(state) is not None


__all__ = ["Engine", "EngineError", "ModelError", "Progress", "explore_derived", "warm_kernels"]
