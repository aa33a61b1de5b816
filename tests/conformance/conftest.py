"""Fixtures of the gate's tests: a harness on the shared server, one chroot prefix for each."""

import logging
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from reassure_conformance.adapter import Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_zookeeper.server import Server

_NUMBERS = count(1)

MakeHarness = Callable[..., Harness]


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Keep what the implementation warns of out of the test report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def make_harness(zookeeper_server: Server) -> Iterator[MakeHarness]:
    """Make harnesses on the shared server; they are closed at the end of the module.

    Their ZooKeeper clients draw random numbers in threads of their own, which Hypothesis takes
    amiss in whatever test it runs meanwhile.
    """
    made: list[Harness] = []

    def make(adapter: Adapter, *, strict: bool = False) -> Harness:
        prefix = f"/gate-{next(_NUMBERS)}"
        harness = Harness(
            zookeeper_server.hosts,
            zookeeper_server.log_dir,
            adapter,
            chroot_prefix=prefix,
            strict=strict,
        )
        made.append(harness)
        return harness

    yield make
    for harness in made:
        harness.close()


@pytest.fixture(scope="module")
def harness(make_harness: MakeHarness) -> Harness:
    """A harness over the bundled controller in the default profile."""
    return make_harness(Bundled())
