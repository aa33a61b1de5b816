"""The derived engine on many machines: one exploration, cut into slices by the hash of the state.

Level by level as in one process (`derived`), and with the same answers: counts, verdicts, the very
same traces. What is done for a slice `slices` says; here it is only seen to that it is done, by
whatever carries out tasks elsewhere (`Spread`), and small levels are done here. States stay in
files: here come counts, names of files, and for each trace one state for each step.

After each level what is known is written, so that an exploration that was stopped goes on from its
last complete level.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from reassure_explorer.engine.checkpoint import ForeignCheckpoint
from reassure_explorer.engine.derived import COUNT_VALUES_TO, Progress
from reassure_explorer.engine.diagrams import NotDeterministic
from reassure_explorer.engine.expanding import Expander
from reassure_explorer.engine.loading import Source
from reassure_explorer.engine.memory import Memory
from reassure_explorer.engine.packing import EngineError, Words
from reassure_explorer.engine.result import Budget, ExploreResult, Trace
from reassure_explorer.engine.slices import (
    Expand,
    Expanded,
    Failed,
    FindBefore,
    Learned,
    Seen,
    Slicer,
    Stored,
    TakeIn,
    Taken,
    Task,
    Work,
    carry_out,
    forget_slicer,
    get_slicer,
)
from reassure_explorer.engine.values import FieldValues

ALONE_TO: Final = 1 << 14
"""States up to which a step is not worth sending."""
_PROGRESS: Final = "progress.json"
_OWN: Final = ("level-*", "outside-*", "seen-*", "spill-*")

Spread = Callable[[Sequence[Task]], Sequence[Any]]
"""Carries out tasks elsewhere (`slices.carry_out`), all of them, and answers in their order."""


@dataclass(slots=True)
class Known:
    """What is known after a complete level, besides what lies in files."""

    key: str
    slices: int
    levels: list[list[Stored]] = field(default_factory=list)
    """By depth and slice."""
    stacks: list[list[Stored]] = field(default_factory=list)
    """For each slice all states seen (`TakeIn`)."""
    generated: int = 0
    found: dict[int, tuple[int, Words]] = field(default_factory=dict)
    """For each check that was true of a state the depth, and the state."""
    actions: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    paths: int = 0
    """Paths learned, by all processes together."""

    @property
    def distinct(self) -> int:
        """States within the constraint."""
        return sum(stored.size for level in self.levels for stored in level)

    def list_files(self) -> dict[str, int]:
        """Return the files that are needed, with the states in them."""
        return {s.name: s.size for group in (*self.levels, *self.stacks) for s in group}


def read_known(place: Path) -> Known | None:
    """Return what was written, None where nothing was. Raises ForeignCheckpoint."""
    if not place.exists():
        return None
    try:
        known = Known(**json.loads(place.read_text(encoding="utf-8")))
        known.levels, known.stacks = (
            [[Stored(*stored) for stored in group] for group in groups]
            for groups in (known.levels, known.stacks)
        )
        known.found = {int(c): (d, tuple(words)) for c, (d, words) in known.found.items()}
    except (ValueError, TypeError, AttributeError) as problem:
        raise ForeignCheckpoint(f"{place} cannot be read: {problem}; start afresh") from None
    return known


def explore_sliced(
    source: Source,
    spread: Spread,
    directory: Path,
    slices: int,
    *,
    keep_going: bool = False,
    budget: Budget | None = None,
    label: str = "",
    progress: Callable[[Progress], None] | None = None,
    symmetry: bool = False,
    memory: Path | None = None,
    alone_to: int | None = None,
) -> ExploreResult:
    """Visit every reachable state, or with `symmetry` one of each orbit, by tasks that are spread.

    All who carry out tasks find the same files in `directory`. An exploration of the same model
    that was stopped there goes on, with as many slices as it was begun with. The options are those
    of `explore_derived`; a budget of memory is one of bytes in the directory. Levels of up to
    `alone_to` states (`ALONE_TO`) are done in this process.

    Raises what `explore_derived` does, OtherModel where a worker makes another model of `source`,
    and whatever `spread` raises.
    """
    model = source.make()
    key = Expander(model, label, symmetry).key
    work = Work(source, directory.absolute(), slices, key, label, symmetry, memory is not None)
    try:
        search = _Search(work, spread, ALONE_TO if alone_to is None else alone_to, memory)
        return search.run(keep_going, budget or Budget(), progress)
    finally:
        forget_slicer()


class _Search:
    """One exploration. `run` may be called once."""

    def __init__(self, work: Work, spread: Spread, alone_to: int, memory: Path | None) -> None:
        self.work, self.spread, self.alone_to = work, spread, alone_to
        work.paths.mkdir(parents=True, exist_ok=True)
        self.memory = None if memory is None or work.symmetry else Memory(memory, work.key)
        if self.memory is not None:
            self.memory.copy_to(work.paths)
        self.slicer: Slicer = get_slicer(work)
        self.model = self.slicer.model
        self.known = Known(work.key, work.slices, stacks=[[] for _ in range(work.slices)])
        self.unfinished: str | None = None
        self.started = time.perf_counter()
        self.seconds_learning = 0.0
        self.sent = 0
        """Steps that were done elsewhere."""
        self.peak_states = 0
        """Most states that were in files at a time, those in several counted as often."""

    def run(
        self, keep_going: bool, budget: Budget, progress: Callable[[Progress], None] | None
    ) -> ExploreResult:
        """Explore level by level and report."""
        try:
            self._explore(keep_going, budget, progress)
            result = self._report()
        except (EngineError, NotDeterministic):
            if self.memory is not None:
                self.memory.forget()
            raise
        if self.memory is not None and self.known.paths:
            self.slicer.begin()
            self.slicer.save_to(self.memory)
        return result

    def _explore(
        self, keep_going: bool, budget: Budget, progress: Callable[[Progress], None] | None
    ) -> None:
        frontier = self._resume()
        if not frontier:
            self.slicer.begin()
            first = self.slicer.deal(self.slicer.make_first())
            frontier = self._take_in([first])
        while True:
            known = self.known
            if progress is not None:
                seconds, depth = time.perf_counter() - self.started, len(known.levels) - 1
                at = Progress(depth, known.distinct, known.generated, frontier, seconds)
                progress(at)
            if any(c < len(self.model.invariants) for c in known.found) and not keep_going:
                self.unfinished = "stopped at the first level with a violation"
            elif frontier:
                self.unfinished = self._find_limit(budget)
            if self.unfinished is not None or not frontier:
                return
            spills = self._expand(budget)
            if self.unfinished is not None or not any(s.size for spill in spills for s in spill):
                return
            frontier = self._take_in(spills)

    def _find_limit(self, budget: Budget) -> str | None:
        known, seconds = self.known, time.perf_counter() - self.started
        if budget.depth is not None and len(known.levels) > budget.depth:
            return f"the budget of {budget.depth} steps is used up"
        if budget.states is not None and known.distinct >= budget.states:
            return f"the budget of {budget.states} states is used up"
        if budget.mebibytes is not None and self._peak_bytes >= budget.mebibytes << 20:
            return f"the budget of {budget.mebibytes} MiB is used up"
        if budget.seconds is not None and seconds > budget.seconds:
            return f"the budget of {budget.seconds} s is used up"
        return None

    @property
    def _peak_bytes(self) -> int:
        return self.peak_states * self.slicer.layout.words * np.uint64().nbytes

    # Steps -----------------------------------------------------------------------------------

    def _carry_out(self, tasks: Sequence[Task], states: int) -> Sequence[Any]:
        """Return what came of tasks, in their order. Raises the first error that one came to."""
        if states <= self.alone_to:
            answers: Sequence[Any] = [carry_out(task) for task in tasks]
        else:
            self.sent += 1
            answers = self.spread(tasks)
        for answer in answers:
            if isinstance(answer, Failed):
                raise answer.error
        return answers

    def _list_pending(self) -> tuple[int, ...]:
        return tuple(c for c in range(len(self.slicer.checks)) if c not in self.known.found)

    def _expand(self, budget: Budget) -> list[tuple[Stored, ...]]:
        """Write the successors of the last level; answer the files, each as its parts by slice."""
        known, left = self.known, budget.seconds
        if left is not None:
            left -= time.perf_counter() - self.started
        level = [stored for stored in known.levels[-1] if stored.size]
        pending = self._list_pending()
        tasks = [Expand(self.work, stored, pending, left) for stored in level]
        spills: list[tuple[Stored, ...]] = []
        for answer in self._carry_out(tasks, sum(stored.size for stored in level)):
            made: Expanded = answer
            spills += made.spills
            known.generated += made.generated
            _add(known.actions, made.actions)
            _add(known.notes, made.notes)
            self._count_learned(made.learned)
            if made.late is not None:
                # What a task was given was what was left; the whole is what is told.
                self.unfinished = f"the budget of {budget.seconds} s is used up"
        return spills

    def _take_in(self, spills: Sequence[tuple[Stored, ...]]) -> int:
        """Find out what is new, save what is known then, and answer the size of the new level."""
        known, pending = self.known, self._list_pending()
        parts = [
            [spill[at] for spill in spills if spill[at].size] for at in range(self.work.slices)
        ]
        busy = [at for at, part in enumerate(parts) if part]
        tasks = [
            TakeIn(self.work, tuple(parts[at]), tuple(known.stacks[at]), pending) for at in busy
        ]
        successors = sum(stored.size for part in parts for stored in part)
        level = [Stored("", 0)] * self.work.slices
        found: dict[int, list[Seen]] = {}
        for at, answer in zip(busy, self._carry_out(tasks, successors), strict=True):
            taken: Taken = answer
            level[at], known.stacks[at] = taken.level, list(taken.stack)
            for c, seen in taken.found.items():
                found.setdefault(c, []).append(seen)
            self._count_learned(taken.learned)
        depth, frontier = len(known.levels), sum(stored.size for stored in level)
        known.found |= {c: (depth, min(seen).words) for c, seen in found.items()}
        if frontier:
            known.levels.append(level)
            self._save()
        stored = sum(known.list_files().values())
        self.peak_states = max(self.peak_states, stored + successors)
        return frontier

    def _count_learned(self, learned: Learned) -> None:
        self.known.paths += learned.paths
        self.seconds_learning += learned.seconds

    # On disk ---------------------------------------------------------------------------------

    def _save(self) -> None:
        """Replace what is known, and remove the files that are not needed any more."""
        directory = self.work.directory
        known = {entry.name: getattr(self.known, entry.name) for entry in fields(Known)}
        fresh = directory / f"{_PROGRESS}.new"
        fresh.write_text(json.dumps(known), encoding="utf-8")
        fresh.replace(directory / _PROGRESS)
        needed = self.known.list_files()
        for pattern in _OWN:
            for place in directory.glob(pattern):
                if place.name not in needed:
                    place.unlink(missing_ok=True)

    def _resume(self) -> int:
        """Take up where an exploration was stopped; answer the size of its last level, 0 for none.

        Raises ForeignCheckpoint for another exploration's directory.
        """
        place = self.work.directory / _PROGRESS
        known = read_known(place)
        if known is None:
            return 0
        if known.key != self.work.key:
            raise ForeignCheckpoint(
                f"{place} belongs to another model, scope or choice of readings, or to this one "
                "before its code or data changed; take another directory, or empty this one"
            )
        self.known = known
        self.work = replace(self.work, slices=known.slices)
        self.slicer = get_slicer(self.work)
        return sum(stored.size for stored in known.levels[-1])

    # The report ------------------------------------------------------------------------------

    def _tell(self, depth: int, words: Words) -> Trace:
        return self.slicer.tell(words, depth, self._find_before)

    def _find_before(self, depth: int, words: Words) -> tuple[Words, int]:
        level = [stored for stored in self.known.levels[depth] if stored.size]
        tasks = [FindBefore(self.work, stored, words) for stored in level]
        answers = self._carry_out(tasks, sum(stored.size for stored in level))
        found: list[tuple[Words, int]] = [answer for answer in answers if answer is not None]
        if not found:
            raise self.slicer.make_source_error(depth, words)
        # The least state, as in one process, so that the trace is the same.
        return min(found)

    def _count_values(self) -> dict[str, int] | None:
        """Return the number of values of each field; None where `derived` answers None."""
        if self.known.distinct > COUNT_VALUES_TO or self.slicer.group is not None:
            return None
        values = FieldValues(self.slicer.layout)
        for level in self.known.levels:
            for stored in level:
                values.add(self.slicer.open(stored))
        return values.count()

    def _report(self) -> ExploreResult:
        known, model, slicer = self.known, self.model, self.slicer
        violations = slicer.list_violations(known.found, self._tell)
        return ExploreResult(
            model=model.name,
            engine="derived",
            distinct=known.distinct,
            generated=known.generated,
            initial=len(model.initial),
            levels=tuple(sum(stored.size for stored in level) for level in known.levels),
            violations=tuple(violations),
            goals=slicer.list_goals(known.found),
            invariants=tuple(invariant.name for invariant in model.invariants),
            actions={action.name: known.actions.get(action.name, 0) for action in model.actions},
            notes=dict(known.notes),
            unfinished=self.unfinished,
            seconds=time.perf_counter() - self.started,
            seconds_compiling=slicer.seconds_compiling,
            plain_runs=known.paths,
            bytes_per_state=self._peak_bytes / known.distinct,
            details={
                "words": slicer.layout.words,
                "bits": slicer.layout.bits,
                "values": self._count_values(),
                "seconds_learning": round(self.seconds_learning, 3),
                "slices": self.work.slices,
                "steps_sent": self.sent,
                **({} if slicer.group is None else {"symmetry": slicer.group.as_json_dict()}),
            },
        )


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, times in more.items():
        counts[name] = counts.get(name, 0) + times
