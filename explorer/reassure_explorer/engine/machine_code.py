"""Where machine code of the kernels is kept: in the user's cache, by what it was made of.

Numba goes by the path of a source file, and each checkout would compile for itself. So a folder is
named for the text of the kernels, and whoever has the same text finds the same machine code.
"""

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numba

from reassure_explorer.engine.memory import find_cache

_SOURCES: Final = ("graph_kernels.py", "kernels.py", "sorting.py")
"""Each may hold functions that are compiled into those of the others."""


@cache
def _digest_sources() -> str:
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update(files(__package__).joinpath(name).read_bytes())
    return digest.hexdigest()


@cache
def find_place() -> Path:
    """Return a folder that can be written: in the user's cache, or for this session only."""
    config: Any = numba.config
    home = Path(config.CACHE_DIR) if config.CACHE_DIR else find_cache("numba")
    place = home / f"kernels-{_digest_sources()[:32]}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError:
        place = Path(tempfile.mkdtemp(prefix="reassure-numba-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


class Locator:
    """Tells numba where machine code of a function is kept, and what it was made of."""

    def __init__(self, line: int) -> None:
        self._line = line

    @classmethod
    def from_function(cls, function: Callable[..., Any], _: str) -> "Locator":
        """Return what knows the place for one function."""
        return cls(function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        find_place().mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(find_place())

    def get_source_stamp(self) -> str:
        """Return what machine code must have been made of to be used."""
        return _digest_sources()

    def get_disambiguator(self) -> str:
        """Return what tells apart functions of one name."""
        return str(self._line)


@contextmanager
def kept_by_text() -> Iterator[None]:
    """Let numba ask `Locator` about the functions that it is given meanwhile."""
    config: Any = numba.config
    before = getattr(config, "CACHE_LOCATOR_CLASSES", "")
    config.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__}"
    try:
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES = before
