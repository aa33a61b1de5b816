"""Sorted runs: how sets of packed states are kept, joined and taken from each other.

A run is an array of different states in ascending order: flat for states of one word, with a row a
state otherwise. Visited states are a stack of runs whose lengths at least halve from one to the
next, so that each state is copied only a few times. Levels are kept besides, as differences where
that is possible, to tell stories from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from reassure_explorer import kernels

Run = npt.NDArray[np.uint64]


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
        return states[: kernels.unique_word(states)].copy()
    kernels.sort_rows(states, np.empty_like(states))
    return states[: kernels.unique_row(states)].copy()


Allocate = Callable[[tuple[int, ...]], Run]
"""Makes room for a run of a shape."""


def _allocate(shape: tuple[int, ...]) -> Run:
    return np.empty(shape, dtype=np.uint64)


def merge(left: Run, right: Run, allocate: Allocate = _allocate) -> Run:
    """Return the union of two runs."""
    size = len(left) + len(right)
    out = allocate((size, *left.shape[1:]))
    made = (kernels.merge_word if left.ndim == 1 else kernels.merge_row)(left, right, out)
    return out if made == size else out[:made].copy()


def subtract(run: Run, known: Run) -> Run:
    """Return what of `run` is not in `known`; `run` is used up."""
    kept = (kernels.subtract_word if run.ndim == 1 else kernels.subtract_row)(run, known)
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


@dataclass(slots=True)
class Visited:
    """The states seen so far."""

    runs: list[Run] = field(default_factory=list)
    allocate: Allocate = _allocate

    def subtract_from(self, run: Run) -> Run:
        """Return what of a run has not been seen; the run is used up."""
        size = len(run)
        for known in reversed(self.runs):
            run = subtract(run, known)
        return run if len(run) == size else run.copy()

    def add(self, run: Run) -> None:
        """Take in a run of states that have not been seen."""
        self.add_any(run)

    def add_any(self, run: Run) -> None:
        """Take in a run some of whose states may be there already."""
        if len(run) == 0:
            return
        self.runs.append(run)
        while len(self.runs) > 1 and len(self.runs[-2]) < 2 * len(self.runs[-1]):
            last = self.runs.pop()
            self.runs.append(merge(self.runs.pop(), last, self.allocate))

    @property
    def bytes(self) -> int:
        """Memory in use, not counting mapped files."""
        return sum(run.nbytes for run in self.runs if not isinstance(run, np.memmap))


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
        kernels.unsqueeze_word(self.data, run)
        return run


def store_level(run: Run) -> StoredLevel:
    """Keep a run, as differences where its states are one word."""
    if run.ndim > 1:
        return StoredLevel(len(run), run, squeezed=False)
    room = np.empty(10 * len(run), dtype=np.uint8)
    made = kernels.squeeze_word(run, room)
    return StoredLevel(len(run), room[:made].copy(), squeezed=True)
