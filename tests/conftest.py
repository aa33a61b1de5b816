"""Fixtures every room may use: one real ZooKeeper for the whole run."""

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def zookeeper_server() -> Iterator[object]:
    """One embedded ZooKeeper server shared by the tests of this run; use a chroot of your own."""
    from reassure_zookeeper.server import Server

    with Server.start() as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def no_client_is_left() -> Iterator[None]:
    """Fail where a module leaves a ZooKeeper client that goes on trying to connect.

    It takes from the random numbers that the whole process shares, which Hypothesis refuses in
    the tests that come later.
    """
    before = set(threading.enumerate())
    yield
    left = [one.name for one in set(threading.enumerate()) - before if "zk_loop" in one.name]
    assert not left, f"ZooKeeper clients that nobody closed: {left}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that makes scenario files expect what the model answers."""
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="write what the model answers into the scenario files",
    )
