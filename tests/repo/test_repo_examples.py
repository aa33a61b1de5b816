"""The examples in docstrings hold."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts[1:]).removesuffix(".__init__")
    for path in sorted(ROOT.glob("*/reassure_*/**/*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    """What a docstring shows is what comes out."""
    found = doctest.testmod(import_module(name))
    assert found.attempted and found.failed == 0
