"""Fixtures of the lab's tests: clusters and audits, as the tests of those rooms have them."""

from ..controller.conftest import cluster, make_cluster, make_hands
from ..pipeline.conftest import audit, snapshot

__all__ = ["audit", "cluster", "make_cluster", "make_hands", "snapshot"]
