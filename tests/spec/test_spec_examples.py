"""The examples in docstrings hold."""

import doctest
from importlib import import_module
from pkgutil import walk_packages

import pytest

import reassure_spec

MODULES = [each.name for each in walk_packages(reassure_spec.__path__, "reassure_spec.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    """What a docstring shows is what comes out."""
    assert doctest.testmod(import_module(name)).failed == 0
