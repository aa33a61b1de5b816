"""What the derived engine knows of a model's steps, and what follows from states by it.

Nothing of the model is written twice. An action is run in Python, on a state that notes what is
read, only for a combination of values that has not been met before; the path it took goes into a
decision diagram (`diagrams`). A compiled kernel walks the diagrams for all other states.

What is checked while it runs: paths must not contradict each other (`NotDeterministic`), each path
that is learned must come to what the plain function comes to in the same state, and some paths in
other states with the same values where they read; a state of every level is expanded plainly.

Which states those are, and where they are kept, is the matter of `derived`.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import graph_kernels, kernels, sorting
from reassure_explorer.engine.checkpoint import compute_key
from reassure_explorer.engine.diagrams import I64, LEAF, MISSING, YES, Arrays, Diagrams
from reassure_explorer.engine.interface import DEADLOCK, DEADLOCKED, Model
from reassure_explorer.engine.memory import Memory
from reassure_explorer.engine.orbits import Comparison, make_tables
from reassure_explorer.engine.origins import NotTraceable, read_code, take_stock
from reassure_explorer.engine.packing import EngineError, Layout, Words
from reassure_explorer.engine.result import Trace, TraceStep, Violation
from reassure_explorer.engine.runs import (
    Heap,
    Run,
    Team,
    Visited,
    as_rows,
    make_run,
    merge_all,
    sort_unique,
    store_level,
)
from reassure_explorer.engine.symmetry import make_group, undo_permutations
from reassure_explorer.engine.tracing import (
    Recording,
    order_fields,
    trace_action,
    trace_check,
    watch_errors,
)

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


Marks = npt.NDArray[np.bool_]
"""A truth for each state of a run."""
STUCK: Final = -1
"""Stands for deadlock among the numbers of checks."""
Found = Mapping[int, tuple[int, Words]]
"""For each check that is true somewhere the depth where it first is, and a state there."""


class Lesson(NamedTuple):
    """A path that was learned: of which root, in which state."""

    root: int
    words: Words
    path: Recording


Outcome = bool | list[tuple[Words, tuple[str, ...]]]
"""What comes of a function in a state: the packed states after an action, each with the notes of
the step, in order; or the truth of a check."""


def warm_kernels(words: int) -> float:
    """Compile the kernels, or load them from the cache; answer the seconds that took."""
    started = time.perf_counter()
    run = make_run(words, 1)
    run[...] = 1
    merge_all([run.copy(), run.copy()], words)
    visited = Visited()
    visited.add(sort_unique(run.copy()))
    visited.subtract_from([run.copy()], words)
    sorting.find_place(as_rows(run), as_rows(run)[0])
    store_level(run).restore()
    return time.perf_counter() - started


class Expander:
    """Diagrams of one model, and what they make of states."""

    def __init__(
        self,
        model: Model,
        label: str = "",
        symmetry: bool = False,
        memory: Path | None = None,
    ) -> None:
        self.model = model
        # Before anything runs that could change what the model looks at.
        self._stock = take_stock(model)
        self.layout = Layout(model, order_fields(model))
        self.group = make_group(model) if symmetry else None
        self.tables = make_tables(self.group, self.layout)
        self.instances = model.instances
        reading = read_code(self._stock)
        if reading.refusals:
            raise NotTraceable(f"model {model.name}: {'; '.join(reading.refusals)}")
        self._swallows = reading.swallows
        self._chance = Random(len(self.instances))
        label = f"{label} {self.layout.order} {symmetry}"
        self.key = compute_key(model, f"{label} {self._stock.compute_digest()}")
        """What tells this model, with its code and data, from any other."""
        self._memory = None if memory is None or symmetry else Memory(memory, self.key)
        self._origins: list[tuple[int, Words]] = []
        """The root of each path, and the state that it was learned from."""
        self.lessons: list[Lesson] = []
        """The paths that were learned here, and not taken over from elsewhere."""
        self.checks: tuple[Callable[[Any], bool], ...] = (
            *(_broken(invariant.explain) for invariant in model.invariants),
            *(goal.reached for goal in model.goals),
        )
        others = (model.terminal, model.constraint)
        self.functions = (*self.checks, *(each for each in others if each is not None))
        """The checks, and `terminal` and the constraint where there are such."""
        self.diagrams = Diagrams(self.layout, _name_roots(model), len(self.instances))
        self.recent = self._make_recent()
        self.generated = 0
        self._plain: tuple[Words, Any] = ((), None)
        """The packed state that was unpacked last."""
        self.seconds_learning = 0.0
        """Wall time of the model's own functions and of making paths of them."""
        self._witnesses: list[Words] = []
        """States from which paths were learned since symmetry was last checked."""
        self.hits: npt.NDArray[np.int64] = np.zeros(256, dtype=np.int64)
        self.unfinished: str | None = None
        self._started = time.perf_counter()
        self._seconds: float | None = None
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

    def _warm_kernels(self) -> float:
        """Compile the kernels that walk diagrams, or load them; answer the seconds all took."""
        started = time.perf_counter()
        warm_kernels(self.layout.words)
        d, words = self.diagrams, self.layout.words
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
        if len(self.functions) > len(self.checks):
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
        self.lessons.append(Lesson(root, words, path))
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

    def take_over(self, lessons: Iterable[Lesson]) -> None:
        """Add paths that another process learned of the same model. Raises NotDeterministic."""
        for root, words, path in lessons:
            if self.diagrams.walk(root, words) == MISSING:
                self.diagrams.learn(root, path)
                self._origins.append((root, words))

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

    def expand(
        self, states: Run, *, alone: bool = True, stuck: Marks | None = None
    ) -> tuple[list[Run], I64]:
        """Return the successors of states as runs, repetitions between runs included, and misses.

        `alone` says that no other thread expands states at the same time: paths are learned then
        as they are met, and no misses are left. `stuck`, by state, is made False where a state has
        a successor or was not expanded for lack of time; for misses `_catch_up` does that.
        """
        stuck = np.ones(len(states), dtype=np.bool_) if stuck is None else stuck
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
        return out.runs.runs, np.concatenate(later)

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
        self.hits = _grow(self.hits, len(hits))
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
                hits = _grow(hits, len(d.clear))
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

    def _catch_up(self, states: Run, misses: I64, stuck: Marks) -> list[Run]:
        """Return the successors that were left out when states were expanded, as runs."""
        if not len(misses):
            return []
        out = _Output(self, BUFFER_STATES)
        none = np.zeros(1, dtype=np.int64)
        steps, hits = self._resolve(states, misses, out, none, stuck)
        with self._lock:
            self._count_steps(steps, hits)
        out.flush(0)
        return out.runs.runs

    def _is_too_late(self) -> bool:
        seconds = self._seconds
        if seconds is not None and time.perf_counter() - self._started > seconds:
            self.unfinished = f"the budget of {seconds} s is used up"
            return True
        return False

    def _split(self, states: Run) -> tuple[Run, Run]:
        """Return the states within the constraint, and those outside."""
        if self.model.constraint is None:
            return states, states[:0]
        marks = self._mark(states, len(self.diagrams.names) - 1)
        return states[marks], states[~marks]

    def _mark(self, states: Run, root: int) -> Marks:
        """Return of which states the function with this root is true."""
        rows = as_rows(states)
        marks = graph_kernels.mark(rows, self.diagrams.roots[root], self.diagrams.children)
        for i in np.flatnonzero(marks == 2).tolist():
            marks[i] = self.find_leaf(root, tuple(rows[i].tolist())) == LEAF - YES
        found: Marks = marks == 1
        return found

    def find_deadlock(self, stuck: Run) -> Words | None:
        """Return the first of some states without a successor that is not terminal, or None."""
        if self.model.terminal is not None and len(stuck):
            stuck = stuck[~self._mark(stuck, len(self.instances) + len(self.checks))]
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

    def _check_against_plain(self, level: Run, checks: Sequence[int]) -> None:
        """Hold a few states that are expanded against the plain functions. Raises EngineError.

        `checks` are those that matter: the ones that were true of no state so far.
        """
        first = len(self.instances)
        constraint = range(len(self.checks), len(self.functions))
        roots = [*range(first), *(first + c for c in (*checks, *constraint))]
        rows = as_rows(level)
        step = max(1, len(rows) // CHECKED_PER_LEVEL)
        for row in rows[::step][:CHECKED_PER_LEVEL]:
            words = tuple(row.tolist())
            for root in roots:
                self._hold_against_plain(root, words, self.find_leaf(root, words))

    def _check_symmetric(self, level: Run) -> None:
        """Hold states of a level, and those that new paths were learned from, against the group.

        Raises NotSymmetric.
        """
        if self.group is None or len(self.group.permutations) == 1:
            return
        rows = as_rows(level)
        some = rows[:: max(1, -(-len(rows) // COMPARED_PER_LEVEL))]
        fresh = np.array(self._witnesses, dtype=np.uint64).reshape(-1, self.layout.words)
        Comparison(self, self.group).compare(np.concatenate([some, fresh]))
        self._witnesses.clear()

    # Telling ---------------------------------------------------------------------------------

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

    def learn(self, states: Run) -> None:
        """Learn the paths of some states, without counting their steps again."""
        generated, hits = self.generated, self.hits.copy()
        self.expand(states)
        self.generated, self.hits = generated, hits

    def tell(
        self, words: Words, depth: int, find_before: Callable[[int, Words], tuple[Words, int]]
    ) -> Trace:
        """Return a shortest trace to a state of that depth, as the plain model tells it.

        `find_before` answers a state of a depth that leads to another one, and the root that does.
        Raises EngineError where the plain model does not come to the same states.
        """
        way: list[tuple[int, Words]] = []
        for before in range(depth - 1, -1, -1):
            source, root = find_before(before, words)
            way.append((root, words))
            words = source
        if self.group is not None:
            orbits = [words, *(after for _, after in way[::-1])]
            return undo_permutations(self.group, [self.layout.unpack(orbit) for orbit in orbits])
        return self._retell(words, way[::-1])

    def make_source_error(self, depth: int, words: Words) -> EngineError:
        """Return the error for a state that nothing of the depth before leads to."""
        return EngineError(f"nothing of depth {depth} leads to {self.layout.unpack(words)}")

    def list_violations(self, found: Found, tell: Callable[[int, Words], Trace]) -> list[Violation]:
        """Return what is broken, nearest first. Raises EngineError where plain it holds."""
        violations: list[Violation] = []
        for c, (depth, words) in sorted(found.items(), key=lambda item: item[1][0]):
            if c == STUCK:
                violations.append(Violation(DEADLOCK, DEADLOCKED, tell(depth, words)))
            elif c < len(self.model.invariants):
                trace, invariant = tell(depth, words), self.model.invariants[c]
                reason = invariant.explain(trace.last)
                if reason is None:
                    raise EngineError(f"plain {invariant.name} holds in {trace.last}")
                violations.append(Violation(invariant.name, reason, trace))
        return violations

    def list_goals(self, found: Found) -> dict[str, int | None]:
        """Return the depth at which each goal is reached, None where it is not."""
        first = len(self.model.invariants)
        reached = {g.name: found.get(first + n) for n, g in enumerate(self.model.goals)}
        return {name: None if at is None else at[0] for name, at in reached.items()}

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

    def _check_unchanged(self) -> None:
        """Raise NotTraceable where the model's functions changed what they look at."""
        changed = self._stock.find_difference(take_stock(self.model))
        if changed is not None:
            raise NotTraceable(
                f"model {self.model.name}: {changed}, is not what it was before the model ran. An "
                "action depends on nothing but its state and parameter, and changes nothing else: "
                "keep it in a field"
            )

    def _make_first(self) -> Run:
        packed = [self.layout.pack(state) for state in self.model.initial_states]
        first = np.array(packed, dtype=np.uint64).reshape(len(packed), self.layout.words)
        kernels.represent(first, self.tables)
        return sort_unique(first.reshape(-1) if self.layout.words == 1 else first)

    def _count(self) -> tuple[Counter[str], Counter[str]]:
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


def _grow(hits: I64, size: int) -> I64:
    return np.concatenate([hits, np.zeros(max(0, size - len(hits)), dtype=np.int64)])


class _Output:
    """Successors that were written, put by as sorted runs whenever the room for them ends."""

    def __init__(self, engine: Expander, room: int) -> None:
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
    others = (("`terminal`", model.terminal), ("the constraint", model.constraint))
    return names + [name for name, function in others if function is not None]


def _broken(find: Callable[[Any], str | None]) -> Callable[[Any], bool]:
    return lambda state: find(state) is not None
