"""Golden numbers: distinct states, steps and depth of the standard scopes, to their end.

A changed number is a changed model. Tests pin the quick ones, `benchmarks/explorer_counts.py` all.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Counts = tuple[int, int, int]

COUNTS: Final[Mapping[tuple[str, str], Counts]] = MappingProxyType({})
"""By scope and profile."""
