"""Fixtures of the gate's tests: a harness on the shared server, command lines and what they say."""

import html
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.adapter import Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.cli import run_command
from reassure_conformance.gate.harness import Harness
from reassure_zookeeper.server import Server

sys.path.insert(0, str(Path(__file__).parent))

_NUMBERS = count(1)

MakeHarness = Callable[..., Harness]


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Keep what the implementation warns of out of the test report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


HEAD = [
    "verb",
    "version",
    "verdict",
    "exit_code",
    "seconds",
    "seed",
    "profile",
    "readings",
    "counts",
]
"""What every document begins with."""


@pytest.fixture(scope="session")
def say() -> Callable[..., dict[str, Any]]:
    """What returns the one document that a command line prints."""

    def run(*arguments: object) -> dict[str, Any]:
        said: list[str] = []
        code = run_command([*map(str, arguments), "--format", "json"], said.append)
        document: dict[str, Any] = json.loads("\n".join(said))
        assert list(document)[: len(HEAD)] == HEAD
        assert document["exit_code"] == code
        return document

    return run


@pytest.fixture(scope="session")
def start_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """What runs a command line in a process; `path` is where it finds modules before others."""

    def run(
        *arguments: object, path: object = "", env: dict[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(filter(None, (str(path), *sys.path)))
        defaults = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        program = (sys.executable, "-c", "from reassure_conformance.cli import main; main()")
        return subprocess.run(
            [*program, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": paths, **(env or {})},
            timeout=240,
            **{**defaults, **options},
        )

    return run


@pytest.fixture
def ask_page(open_page: Callable[..., str], tmp_path: Path) -> Callable[[str, str], list[str]]:
    """What opens a page, and returns what a script that clicks around there puts into `said`."""

    def ask(page: str, script: str) -> list[str]:
        told = f"const said = []; {script} document.title = said.join('|');"
        found = re.search(r"<title>(.*?)</title>", open_page(page, tmp_path, told), re.DOTALL)
        assert found is not None
        return html.unescape(found.group(1)).split("|")

    return ask


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server for the runs of one module; each reads the whole log, which others would make long.

    Starting one takes as long as what is told to brokers on it.
    """
    with Server.start() as server:
        yield server


@pytest.fixture(scope="module")
def make_harness(zookeeper_server: Server) -> Iterator[MakeHarness]:
    """Make harnesses on the shared server; they are closed at the end of the module.

    Their ZooKeeper clients draw random numbers in threads of their own, which Hypothesis takes
    amiss in whatever test it runs meanwhile.
    """
    made: list[Harness] = []

    def make(adapter: Adapter, **options: Any) -> Harness:
        prefix = f"/gate-{next(_NUMBERS)}"
        harness = Harness(
            zookeeper_server.hosts,
            zookeeper_server.log_dir,
            adapter,
            chroot_prefix=prefix,
            **options,
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
