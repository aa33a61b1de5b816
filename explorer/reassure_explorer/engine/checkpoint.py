"""Explorations on disk: visited states outside memory, and levels to go on from after a stop.

A directory holds a file for each complete level and `progress.json`, which is replaced as a whole
after each level. An exploration that was killed goes on from its last complete level. The runs of
visited states are mapped files without a name, which the system writes out when it needs the memory
and removes when the process ends; they are made anew from the levels on resuming.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.runs import Run, StoredLevel
from reassure_spec.errors import BadUsage

_PROGRESS = "progress.json"
_AFRESH = "empty the directory and start afresh"


class ForeignCheckpoint(BadUsage):
    """A directory that holds the checkpoint of another exploration, or none that can be read."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What is known besides the states, after a complete level."""

    key: str
    generated: int
    sizes: list[int]
    squeezed: list[bool]
    bytes: list[int]
    """Length of the file of each level."""
    found: list[tuple[int, int, list[int]]]
    """For each check that was true: its number, the depth and the packed state."""
    actions: dict[str, int]
    notes: dict[str, int]


def compute_key(model: Model, label: str) -> str:
    """Return what tells explorations apart: the names in a model, and a label for all the rest."""
    shape = [model.name, label]
    shape += [action.describe(parameter) for action, parameter in model.instances]
    shape += [check.name for check in model.checks]
    return hashlib.sha256("\n".join(shape).encode()).hexdigest()


class Checkpoint:
    """The directory of one exploration."""

    def __init__(self, directory: Path, key: str, words: int) -> None:
        self.directory, self.key, self.words = directory, key, words
        self._made = 0
        directory.mkdir(parents=True, exist_ok=True)

    def allocate(self, shape: tuple[int, ...]) -> Run:
        """Return room for a run of visited states, outside memory where need be."""
        self._made += 1
        place = self.directory / f"visited-{os.getpid()}-{self._made}"
        run: Run = np.memmap(place, dtype=np.uint64, mode="w+", shape=shape)
        place.unlink()
        return run

    def _get_place(self, depth: int) -> Path:
        return self.directory / f"level-{depth:04}"

    def keep_level(self, depth: int, level: StoredLevel) -> StoredLevel:
        """Write a level and return it as a mapped file."""
        level.data.tofile(self._get_place(depth))
        return self._open_level(depth, level.size, level.squeezed, level.data.nbytes)

    def _open_level(self, depth: int, size: int, squeezed: bool, length: int) -> StoredLevel:
        place = self._get_place(depth)
        data: npt.NDArray[Any]
        try:
            data = np.memmap(place, dtype=np.uint8 if squeezed else np.uint64, mode="r")
        except (OSError, ValueError) as problem:
            raise ForeignCheckpoint(f"{place} cannot be read: {problem}; {_AFRESH}") from None
        if data.nbytes != length:
            raise ForeignCheckpoint(
                f"{place} has {data.nbytes} bytes where {length} were written; {_AFRESH}"
            )
        return StoredLevel(size, data if squeezed else data.reshape(-1, self.words), squeezed)

    def save(self, saved: Saved) -> None:
        """Replace what is known, once the last level is written."""
        fresh = self.directory / f"{_PROGRESS}.new"
        fresh.write_text(json.dumps(asdict(saved)), encoding="utf-8")
        fresh.replace(self.directory / _PROGRESS)

    def load(self) -> tuple[Saved, Sequence[StoredLevel]] | None:
        """Return where an exploration stopped, None where none began here.

        Raises ForeignCheckpoint for another exploration's directory.
        """
        place = self.directory / _PROGRESS
        if not place.exists():
            return None
        try:
            saved = Saved(**json.loads(place.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as problem:
            raise ForeignCheckpoint(f"{place} cannot be read: {problem}; {_AFRESH}") from None
        if saved.key != self.key:
            raise ForeignCheckpoint(
                f"{place} belongs to another model, scope or choice of readings, or to this one "
                "before its code or data changed; take another directory, or empty this one"
            )
        levels = zip(saved.sizes, saved.squeezed, saved.bytes, strict=True)
        return saved, [self._open_level(depth, *level) for depth, level in enumerate(levels)]
