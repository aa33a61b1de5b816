"""How often Python looks for objects that hold each other and are held by nobody else."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ALLOCATIONS: Final = 200_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for cycles rarely: long histories leave none behind, and many objects."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
