"""Fixtures every room may use: one real ZooKeeper for the whole run."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def zookeeper_server() -> Iterator[object]:
    """One embedded ZooKeeper server shared by the tests of this run; use a chroot of your own."""
    from reassure_zookeeper.server import Server

    with Server.start() as server:
        yield server
