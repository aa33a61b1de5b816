"""Golden numbers: distinct states, steps and depth of the standard scopes, to their end.

They stand in `protocols/NAME/counts.toml`, by profile. A changed number is a changed model. Tests
pin the quick ones, `benchmarks/explorer_counts.py` all.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from reassure_spec.protocols import read_parts

Counts = tuple[int, int, int]


def _read_counts() -> Iterator[tuple[tuple[str, str], Counts]]:
    for _, tables in read_parts("reassure_explorer", "counts.toml"):
        for profile, scopes in tables.items():
            for name, (distinct, generated, depth) in scopes.items():
                yield (name, profile), (distinct, generated, depth)


COUNTS: Final[Mapping[tuple[str, str], Counts]] = dict(_read_counts())
"""By scope and profile."""
