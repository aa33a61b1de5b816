"""Fixtures every room may use: one real ZooKeeper for the whole run."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def zookeeper_server() -> Iterator[object]:
    """One embedded ZooKeeper server shared by the tests of this run; use a chroot of your own."""
    from reassure_zookeeper.server import Server

    with Server.start() as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that makes scenario files expect what the model answers."""
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="write what the model answers into the scenario files",
    )
