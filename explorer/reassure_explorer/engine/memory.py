"""Paths that earlier explorations of the same model learned, kept on disk.

As machine code is, for a model's functions need not be asked again for what they said before. A
file is named for all that its paths depend on: the model's code and data (`origins`), the layout of
states, this engine, Python. It holds the diagrams, and the state from which each path was learned:
some of these the plain functions are asked about again.
"""

import hashlib
import os
import sys
import zipfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np

from reassure_explorer.engine.diagrams import Diagrams
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.packing import Words

MOST_FILES: Final = 64
"""The files used longest ago make room for new ones."""


def find_cache(kind: str) -> Path:
    """Return where things of a kind are kept for the user between runs; it need not exist yet."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return home / "reassure" / kind


@cache
def _digest_engine() -> str:
    """Return a digest of what makes paths of functions: the modules beside this one, and Python."""
    digest = hashlib.sha256(sys.version.encode())
    for file in sorted(files(__package__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def compute_key(model: Model, label: str) -> str:
    """Return what tells models apart: the names in a model, and a label for all the rest."""
    shape = [model.name, label]
    shape += [action.describe(parameter) for action, parameter in model.instances]
    shape += [check.name for check in model.checks]
    return hashlib.sha256("\n".join(shape).encode()).hexdigest()


class LearnedPaths:
    """The file of one model in a directory."""

    def __init__(self, directory: Path, key: str) -> None:
        """`key` tells models apart by all that their functions depend on."""
        name = hashlib.sha256(f"{key} {_digest_engine()}".encode()).hexdigest()
        self._place = directory / f"{name[:32]}.npz"

    def load(self, diagrams: Diagrams) -> list[tuple[int, Words]]:
        """Take the paths over, if there are any.

        Answers for each the root and the state that it was learned from.
        """
        try:
            with self._place.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                kept = dict(file)
        except (OSError, EOFError, ValueError, zipfile.BadZipFile):
            # Not there, or cut short when the machine stopped: it is written anew.
            return []
        os.utime(self._place)
        diagrams.restore(kept)
        return [(int(row[0]), tuple(row[1:])) for row in kept["witnesses"].tolist()]

    def save(self, diagrams: Diagrams, witnesses: list[tuple[int, Words]]) -> None:
        """Keep the paths; nothing where the directory cannot be written, as it is only a cache."""
        rows = np.array([(root, *words) for root, words in witnesses], dtype=np.uint64)
        fresh = self._place.with_suffix(f".{os.getpid()}")
        try:
            fresh.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("wb") as file:
                np.savez(file, **diagrams.keep(), witnesses=rows)
            fresh.replace(self._place)
            files = fresh.parent.glob("*.npz")
            for old in sorted(files, key=lambda place: -place.stat().st_mtime)[MOST_FILES:]:
                old.unlink(missing_ok=True)
        except OSError:
            fresh.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove the file: what it says contradicts the model."""
        self._place.unlink(missing_ok=True)
