"""Golden numbers: distinct states, steps and depth of the standard scopes, to their end.

They stand in `protocols/NAME/counts.toml`, by profile. A changed number is a changed model. Tests
pin the quick ones, `benchmarks/explorer_counts.py` all.
"""

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from reassure_spec.protocols import import_parts

Counts = tuple[int, int, int]


def _read_counts() -> Iterator[tuple[tuple[str, str], Counts]]:
    for folder in import_parts("reassure_explorer").values():
        file = files(folder) / "counts.toml"
        if file.is_file():
            for profile, scopes in tomllib.loads(file.read_text(encoding="utf-8")).items():
                for name, (distinct, generated, depth) in scopes.items():
                    yield (name, profile), (distinct, generated, depth)


COUNTS: Final[Mapping[tuple[str, str], Counts]] = MappingProxyType(dict(_read_counts()))
"""By scope and profile."""
