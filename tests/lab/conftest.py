"""Fixtures of the lab's tests: clusters and audits, as the tests of those rooms have them."""

import gc
import warnings
from collections.abc import Iterator

import pytest

from ..controller.conftest import cluster, make_cluster, make_hands
from ..pipeline.conftest import audit, snapshot

__all__ = ["audit", "cluster", "make_cluster", "make_hands", "snapshot"]


@pytest.fixture(scope="module", autouse=True)
def sockets_of_stock_clients_are_gone() -> Iterator[None]:
    """Collect what stock clients leave open, or a later test is blamed for it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
