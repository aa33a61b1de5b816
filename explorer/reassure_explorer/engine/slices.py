"""A slice of an exploration: the states whose hash falls to it, and what one worker does for them.

An exploration that is cut into slices keeps nothing in memory between two steps: whatever process
has the next task of a slice finds all of it in files of one directory, which every worker sees.

* `Expand` takes the states of a slice in one level and writes their successors, each to the part
  of a file that is for the slice of its own hash.
* `TakeIn` gathers what all have written for one slice, leaves out what was seen before, looks at
  the rest, and writes it: the slice of the next level.
* `FindBefore` looks among the states of a slice for one that leads to a given one.

Files are sorted runs (`runs`). A task reads files that are complete and writes files under names
that nobody else has; its answer names them. So a task may be done twice, or half, or by two at
once: only what an answer names is ever read, and either answer is right. A file that no answer
names is removed later.

Memory does not grow with a slice: what is sorted, merged or expanded at a time has a bound, and
files are mapped. Those of what was seen before are a stack whose lengths at least halve, as in
memory, of which the newest is the level itself.

Each process learns the model's paths for itself (`expanding`), keeps them for its next task, and
leaves them in the directory for the others, so that one that takes the place of a dead one knows
what that knew.
"""

import pickle
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from reassure_explorer.engine import kernels
from reassure_explorer.engine.checkpoint import ForeignCheckpoint
from reassure_explorer.engine.expanding import Expander
from reassure_explorer.engine.interface import ModelError
from reassure_explorer.engine.loading import Source, blame
from reassure_explorer.engine.memory import Memory
from reassure_explorer.engine.packing import Words
from reassure_explorer.engine.runs import (
    Run,
    Team,
    cut_runs,
    join_disjoint,
    make_run,
    merge_all,
    subtract,
)
from reassure_spec.errors import ReassureError

PIECE: Final = 1 << 18
"""States that are expanded at a time."""
SPILLED_FROM: Final = 1 << 22
"""Successors that are kept in memory before they are written."""
PART: Final = 1 << 22
"""Successors that are gathered at a time."""
_WORD: Final = 8
_LEARNED: Final = ".paths"


class OtherModel(ModelError):
    """A worker makes another model of what it was told than the others do."""


@dataclass(frozen=True, slots=True)
class Work:
    """What every task of one exploration has to know."""

    source: Source
    directory: Path
    """Where all workers find the same files."""
    slices: int
    key: str
    """What tells the model, with its code and data, from any other."""
    label: str = ""
    symmetry: bool = False
    remembers: bool = False
    """Whether paths of earlier explorations lie in the directory."""

    def name_alike(self) -> tuple[str, Path, int]:
        """Return what two works of one exploration have in common, and others not."""
        return self.key, self.directory, self.slices

    @property
    def paths(self) -> Path:
        """Where what was learned lies."""
        return self.directory / "paths"


class Stored(NamedTuple):
    """A sorted run of states in a file."""

    name: str
    size: int
    start: int = 0
    """States in the file before it."""


class Seen(NamedTuple):
    """A state in which a check is true. The least of several is the one that is told."""

    inside: bool
    """Whether it is within the constraint."""
    words: Words


@dataclass(frozen=True, slots=True)
class Learned:
    """What a process learned in a task."""

    paths: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Expanded:
    """What came of `Expand`."""

    spills: tuple[tuple[Stored, ...], ...]
    """Files of successors, each as its parts by slice."""
    generated: int
    actions: Mapping[str, int]
    notes: Mapping[str, int]
    late: str | None
    """Why not all states were expanded."""
    learned: Learned


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of `TakeIn`."""

    level: Stored
    """The new states within the constraint."""
    outside: int
    """New states outside."""
    stack: tuple[Stored, ...]
    """All states seen, the longest run first."""
    found: Mapping[int, Seen]
    """For each check that is true of a new state the least such state."""
    learned: Learned


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that is not the worker's: to be raised where the exploration was begun."""

    error: ReassureError


class Slicer(Expander):
    """The diagrams of one process, and its hands on the files."""

    def __init__(self, work: Work) -> None:
        super().__init__(
            work.source.make(),
            work.label,
            work.symmetry,
            work.paths if work.remembers else None,
        )
        if self.key != work.key:
            raise OtherModel(
                f"model {self.model.name} is not the same on a worker: its code or data differs "
                "from what it was begun with; give all workers the same installation and "
                "the same files, and name no constant in the model that is another in each process"
            )
        self.work = work
        self.seconds_compiling = self._warm_kernels()
        kernels.deal(
            make_run(self.layout.words, 0), self._make_counts(), make_run(self.layout.words, 0)
        )
        self._recall()
        self._known: set[str] = set()
        """Files of paths that were taken over."""

    def _make_counts(self) -> Any:
        return np.zeros(self.work.slices, dtype=np.int64)

    # Files -----------------------------------------------------------------------------------

    def open(self, stored: Stored) -> Run:
        """Return a run. Raises ForeignCheckpoint where the file is not what was written."""
        words = self.layout.words
        shape = (stored.size,) if words == 1 else (stored.size, words)
        if stored.size == 0:
            return make_run(words, 0)
        place = self.work.directory / stored.name
        try:
            # Writable for kernels, which are compiled for that; what they write stays in memory.
            mapped: Run = np.memmap(
                place, np.uint64, mode="c", offset=stored.start * words * _WORD, shape=shape
            )
        except ValueError as problem:
            raise ForeignCheckpoint(
                f"{place} is shorter than what was written there ({problem}); start afresh in "
                "another directory"
            ) from None
        return np.asarray(mapped)

    def make_name(self, what: str) -> str:
        """Return the name of a new file, which nobody else has."""
        return f"{what}-{uuid.uuid4().hex}"

    def deal(self, run: Run) -> tuple[Stored, ...]:
        """Write a run, each state to the part for the slice of its hash; answer the parts."""
        counts, dealt = self._make_counts(), np.empty_like(run)
        kernels.deal(run, counts, dealt)
        name = self.make_name("spill")
        dealt.tofile(self.work.directory / name)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return tuple(
            Stored(name, size, start)
            for size, start in zip(counts.tolist(), starts.tolist(), strict=True)
        )

    def join(self, stack: list[Stored], fresh: Stored) -> None:
        """Put a run that has nothing in common with the others on a stack."""
        if fresh.size == 0:
            return
        stack.append(fresh)
        while len(stack) > 1 and stack[-2].size < 2 * stack[-1].size:
            runs = [self.open(stored) for stored in stack[-2:]]
            name = self.make_name("seen")
            place = self.work.directory / name

            def allocate(shape: tuple[int, ...], place: Path = place) -> Run:
                made: Run = np.memmap(place, np.uint64, mode="w+", shape=shape)
                return made

            joined: Any = join_disjoint(runs, allocate, Team())
            joined.flush()
            stack[-2:] = [Stored(name, len(joined))]

    # Tasks -----------------------------------------------------------------------------------

    def begin(self, seconds: float | None = None) -> None:
        """Forget what belongs to the task before, and take over what others learned."""
        # What stands there may be of a task that was not done to its end.
        self.recent = self._make_recent()
        self.generated, self.hits = 0, np.zeros(256, dtype=np.int64)
        self.unfinished, self._started, self._seconds = None, time.perf_counter(), seconds
        self.seconds_learning = 0.0
        self.lessons.clear()
        for place in self.work.paths.glob(f"*{_LEARNED}"):
            if place.name not in self._known:
                self._known.add(place.name)
                self.take_over(pickle.loads(place.read_bytes()))

    def end(self) -> Learned:
        """Hold what was learned against the symmetry, and leave it for the others."""
        if not self.lessons:
            return Learned()
        self._check_symmetric(make_run(self.layout.words, 0))
        self._check_unchanged()
        name = self.make_name("learned")
        fresh = self.work.paths / name
        fresh.write_bytes(pickle.dumps(self.lessons))
        fresh.rename(fresh.with_suffix(_LEARNED))
        self._known.add(f"{name}{_LEARNED}")
        return Learned(len(self.lessons), self.seconds_learning)

    def count_steps(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the steps of this task by action, and by what was noted of them."""
        actions, notes = self._count()
        return dict(actions), dict(notes)

    def expand_pieces(self, states: Run) -> Iterator[Run]:
        """Yield the successors of states as sorted runs of a bounded size, or nearly."""
        pending: list[Run] = []
        for start in range(0, len(states), PIECE):
            runs, _ = self.expand(states[start : start + PIECE])
            pending += runs
            if sum(map(len, pending)) > SPILLED_FROM:
                yield merge_all(pending, self.layout.words)
                pending = []
            if self.unfinished is not None:
                break
        if pending:
            yield merge_all(pending, self.layout.words)

    def make_first(self) -> Run:
        """Return the initial states as a run."""
        return self._make_first()

    def save_to(self, memory: Memory) -> None:
        """Keep all that is known for later explorations."""
        memory.save(self.diagrams, self._origins)

    def look_at_some(self, states: Run, checks: Sequence[int]) -> None:
        """Hold a few states against the plain functions. Raises EngineError."""
        self._check_against_plain(states[:PIECE], checks)

    def gather(self, spills: Sequence[Stored], stack: Sequence[Stored]) -> Iterator[Run]:
        """Yield what of some runs is not in others, in ascending order."""
        words = self.layout.words
        runs, seen = [self.open(each) for each in spills], [self.open(each) for each in stack]
        parts = -(-sum(map(len, runs)) // PART)
        for pieces in cut_runs(runs + seen, parts, max(runs, key=len)):
            # A copy: what is taken out of a mapped file would stay in memory as long as the file.
            fresh = merge_all([piece.copy() for piece in pieces[: len(runs)]], words)
            for known in reversed(pieces[len(runs) :]):
                fresh = subtract(fresh, known)
            yield fresh

    def look(self, fresh: Run, checks: Sequence[int], found: dict[int, Seen]) -> tuple[Run, Run]:
        """Look at new states; return those within the constraint and those outside.

        `found` takes for each check that is true the first such state, preferably one outside.
        """
        inside, outside = self._split(fresh)
        before = len(self._witnesses)
        pending = [c for c in checks if c < len(self.model.invariants)]
        pending = [c for c in pending if c not in found or found[c].inside]
        for c, words in self.find_true(outside, pending, Team()).items():
            found[c] = Seen(False, words)
        # Nothing is asked of these states but the invariants.
        del self._witnesses[before:]
        pending = [c for c in checks if c not in found]
        for c, words in self.find_true(inside, pending, Team()).items():
            found[c] = Seen(True, words)
        self._check_symmetric(inside)
        return inside, outside

    def find_before(self, states: Run, words: Words) -> tuple[Words, int] | None:
        """Return the first of some states that leads to another one, and the root that does."""
        for start in range(0, len(states), PIECE):
            piece = states[start : start + PIECE]
            self.learn(piece)
            found = self.find_source(piece, words)
            if found is not None:
                return found
        return None


class Task(Protocol):
    """Something to be done for one slice."""

    @property
    def work(self) -> Work:
        """What all tasks have to know."""

    def carry_out(self, slicer: Slicer) -> Any:
        """Do it, and answer what came of it."""


@dataclass(frozen=True, slots=True)
class Expand:
    """Write the successors of the states of a slice."""

    work: Work
    level: Stored
    checks: tuple[int, ...]
    """Those that were true of no state so far."""
    seconds: float | None = None
    """How long that may take."""

    def carry_out(self, slicer: Slicer) -> Expanded:
        """Do it."""
        slicer.begin(self.seconds)
        states = slicer.open(self.level)
        slicer.look_at_some(states, self.checks)
        spills = tuple(slicer.deal(run) for run in slicer.expand_pieces(states))
        learned = slicer.end()
        actions, notes = slicer.count_steps()
        return Expanded(spills, slicer.generated, actions, notes, slicer.unfinished, learned)


@dataclass(frozen=True, slots=True)
class TakeIn:
    """Find out which successors are new in a slice."""

    work: Work
    spills: tuple[Stored, ...]
    stack: tuple[Stored, ...]
    checks: tuple[int, ...]

    def carry_out(self, slicer: Slicer) -> Taken:
        """Do it."""
        slicer.begin()
        found: dict[int, Seen] = {}
        names, sizes = [slicer.make_name("level"), slicer.make_name("outside")], [0, 0]
        first, second = (self.work.directory / name for name in names)
        with first.open("wb") as level, second.open("wb") as outside:
            for fresh in slicer.gather(self.spills, self.stack):
                for at, run in enumerate(slicer.look(fresh, self.checks, found)):
                    run.tofile((level, outside)[at])
                    sizes[at] += len(run)
        within, beyond = map(Stored, names, sizes)
        stack = list(self.stack)
        slicer.join(stack, beyond)
        slicer.join(stack, within)
        return Taken(within, beyond.size, tuple(stack), found, slicer.end())


@dataclass(frozen=True, slots=True)
class FindBefore:
    """Find a state of a slice that leads to another one, and the root that does."""

    work: Work
    level: Stored
    words: Words

    def carry_out(self, slicer: Slicer) -> tuple[Words, int] | None:
        """Do it."""
        slicer.begin()
        found = slicer.find_before(slicer.open(self.level), self.words)
        slicer.end()
        return found


@dataclass(slots=True)
class _Process:
    """What a process keeps from one task to the next."""

    slicer: Slicer | None = None


_PROCESS: Final = _Process()


def get_slicer(work: Work) -> Slicer:
    """Return the diagrams of this process, which are made for its first task."""
    known = _PROCESS.slicer
    if known is None or known.work.name_alike() != work.name_alike():
        _PROCESS.slicer = None
        known = _PROCESS.slicer = Slicer(work)
    return known


def forget_slicer() -> None:
    """Let go of the diagrams of this process."""
    _PROCESS.slicer = None


def carry_out(task: Task) -> Any:
    """Carry out a task in this process; answers `Failed` where it is the model that went wrong."""
    slicer = None
    try:
        slicer = get_slicer(task.work)
        return task.carry_out(slicer)
    except ReassureError as error:
        return Failed(error)
    except Exception as error:
        reference = task.work.source.reference
        blamed = reference and slicer and blame(reference, slicer.model, error)
        if not blamed:
            raise
        return Failed(blamed)
