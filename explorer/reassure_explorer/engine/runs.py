"""Sorted runs: how sets of packed states are kept, joined and taken from each other.

A run is an array of different states in ascending order: flat for states of one word, with a row a
state otherwise. Visited states are a stack of runs whose lengths at least halve from one to the
next, so that each state is copied only a few times. Levels are kept besides, as differences where
that is possible, to tell traces from.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from operator import call
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine import sorting

Run = npt.NDArray[np.uint64]
Result = TypeVar("Result")


def make_run(words: int, size: int) -> Run:
    """Return room for `size` states of so many words."""
    return np.empty(size if words == 1 else (size, words), dtype=np.uint64)


def as_rows(run: Run) -> Run:
    """Return a run with a row for each state, whatever its states are; nothing is copied."""
    return run.reshape(len(run), 1) if run.ndim == 1 else run


def sort_unique(states: Run) -> Run:
    """Sort states in place and return them without repetitions, as a copy of the right size."""
    if states.ndim == 1:
        states.sort()
        return states[: sorting.unique_word(states)].copy()
    sorting.sort_rows(states, np.empty_like(states))
    return states[: sorting.unique_row(states)].copy()


class Team:
    """Those who work side by side: one, or the threads of a pool."""

    def __init__(self, pool: ThreadPoolExecutor | None = None, threads: int = 1) -> None:
        self._pool = pool
        self.parts = 1 if pool is None else 4 * threads
        """Into how many parts large work is cut."""

    def run(self, jobs: Sequence[Callable[[], Result]]) -> list[Result]:
        """Return what the jobs answer, in their order."""
        return list(self.start(jobs))

    def start(self, jobs: Sequence[Callable[[], Result]]) -> Iterator[Result]:
        """Return what the jobs answer, in their order, as soon as it is there."""
        return map(call, jobs) if self._pool is None else self._pool.map(call, jobs)


def merge(left: Run, right: Run) -> Run:
    """Return the union of two runs."""
    size = len(left) + len(right)
    out: Run = np.empty((size, *left.shape[1:]), dtype=np.uint64)
    made = (sorting.merge_word if left.ndim == 1 else sorting.merge_row)(left, right, out)
    return out if made == size else out[:made].copy()


def subtract(run: Run, known: Run) -> Run:
    """Return what of `run` is not in `known`; `run` is used up."""
    kept = (sorting.subtract_word if run.ndim == 1 else sorting.subtract_row)(run, known)
    return run[:kept]


def merge_all(runs: list[Run], words: int) -> Run:
    """Return the union of runs, smallest first; the list is used up."""
    if not runs:
        return make_run(words, 0)
    runs.sort(key=len, reverse=True)
    while len(runs) > 1:
        merged = merge(runs.pop(), runs.pop())
        at = len(runs)
        while at > 0 and len(runs[at - 1]) < len(merged):
            at -= 1
        runs.insert(at, merged)
    return runs.pop()


def cut_runs(runs: list[Run], parts: int) -> list[list[Run]]:
    """Cut all runs at the same states into so many parts of about the same size.

    Each part holds a piece of every run; pieces share memory with the runs.
    """
    longest = as_rows(max(runs, key=len))
    if len(longest) == 0:
        return [runs]
    cuts = [longest[len(longest) * part // parts] for part in range(1, parts)]
    places = [
        [0, *(int(sorting.find_place(as_rows(run), cut)) for cut in cuts), len(run)] for run in runs
    ]
    return [
        [run[at[part] : at[part + 1]] for run, at in zip(runs, places, strict=True)]
        for part in range(parts)
    ]


def join_disjoint(runs: list[Run], team: Team) -> Run:
    """Return the union of two runs that have no state in common."""
    out: Run = np.empty((len(runs[0]) + len(runs[1]), *runs[0].shape[1:]), dtype=np.uint64)
    parts = cut_runs(runs, team.parts)
    ends = [0, *accumulate(len(left) + len(right) for left, right in parts)]
    kernel = sorting.merge_word if out.ndim == 1 else sorting.merge_row
    jobs = [
        partial(kernel, left, right, out[start:end])
        for (left, right), (start, end) in zip(parts, pairwise(ends), strict=True)
    ]
    team.run(jobs)
    return out


def stack(runs: list[Run], run: Run, join: Callable[[list[Run]], Run]) -> None:
    """Put a run upon others, and join the last two while lengths do not at least halve."""
    if len(run):
        runs.append(run)
    while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
        runs[-2:] = [join(runs[-2:])]


@dataclass(slots=True)
class Visited:
    """The states seen so far."""

    runs: list[Run] = field(default_factory=list)
    team: Team = field(default_factory=Team)

    def subtract_from(self, runs: list[Run], words: int) -> Run:
        """Return what of some runs has not been seen; the runs are used up."""
        if not runs:
            return make_run(words, 0)
        count = len(runs)

        def subtract_part(pieces: list[Run]) -> Run:
            run = merge_all(pieces[:count], words)
            for known in reversed(pieces[count:]):
                run = subtract(run, known)
            return run

        jobs = [
            partial(subtract_part, part) for part in cut_runs(runs + self.runs, self.team.parts)
        ]
        return np.concatenate(self.team.run(jobs))

    def add(self, run: Run) -> None:
        """Take in a run of states that have not been seen."""
        stack(self.runs, run, lambda runs: join_disjoint(runs, self.team))

    @property
    def bytes(self) -> int:
        """Memory in use."""
        return sum(run.nbytes for run in self.runs)


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """The states of one depth, as small as is cheap."""

    size: int
    data: npt.NDArray[Any]
    squeezed: bool

    def restore(self) -> Run:
        """Return the run."""
        if not self.squeezed:
            return self.data
        run = np.empty(self.size, dtype=np.uint64)
        sorting.unsqueeze_word(self.data, run)
        return run


def store_level(run: Run) -> StoredLevel:
    """Keep a run, as differences where its states are one word."""
    if run.ndim > 1:
        return StoredLevel(len(run), run, squeezed=False)
    room = np.empty(10 * len(run), dtype=np.uint8)
    made = sorting.squeeze_word(run, room)
    return StoredLevel(len(run), room[:made].copy(), squeezed=True)
