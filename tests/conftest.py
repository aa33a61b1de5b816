"""Fixtures every room may use: one real ZooKeeper for the whole run."""

import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings

# How long a draw takes is a matter of what else the machine does.
settings.register_profile(
    "any-machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


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


def pytest_configure() -> None:
    """Let interrupts reach what tests start, also where a shell began them in the background."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


SLOW_LEFT_OUT = pytest.StashKey[int]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow, of the cases of a test that is marked `sampled(n)`, all but each n-th."""
    cases: Counter[str] = Counter()
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.args[0]:
                item.add_marker("slow")
            cases[test] += 1


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the slow tests that `-m "not slow"` leaves out."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow and "not slow" in slow[0].config.option.markexpr:
        stash = slow[0].config.stash
        stash[SLOW_LEFT_OUT] = stash.get(SLOW_LEFT_OUT, 0) + len(slow)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the count from a process of pytest-xdist to the one that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["slow_left_out"] = session.config.stash.get(SLOW_LEFT_OUT, 0)


class Worker(Protocol):
    """A process of pytest-xdist, as the one that prints knows it."""

    config: pytest.Config
    workeroutput: dict[str, int]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Worker) -> None:
    """Take the count from a process; each of them leaves the same tests out."""
    if hasattr(node, "workeroutput"):  # one that crashed has none
        node.config.stash[SLOW_LEFT_OUT] = node.workeroutput["slow_left_out"]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how many slow tests were left out, and how to run them."""
    if left_out := config.stash.get(SLOW_LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{left_out} slow tests were left out; `make test-all` runs them too"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that makes scenario files expect what the model answers."""
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="write what the model answers into the scenario files",
    )


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)


class OpenPage(Protocol):
    """Opens a page from disk in a browser."""

    def __call__(self, page: str, folder: Path, script: str = "", address: str = "") -> str:
        """Return the document as the browser has it once the page and a script have run."""


@pytest.fixture(scope="session")
def open_page() -> OpenPage:
    """What opens pages in a browser, where nothing may be wrong by the browser's console.

    Without a browser the tests that ask for it are skipped.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"needs a browser ({', '.join(BROWSERS)}); `make browser` installs one")

    def open_it(page: str, folder: Path, script: str = "", address: str = "") -> str:
        path = folder / "page.html"
        # A block of its own, so that its names are not the page's.
        clicks = f"<script>{{ {script} }}</script></body>"
        path.write_text(page.replace("</body>", clicks), encoding="utf-8")
        command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
        url = f"{path.as_uri()}{address}"
        answer = subprocess.run(
            [*command, url], capture_output=True, text=True, timeout=120, check=True
        )
        assert ":CONSOLE" not in answer.stderr, answer.stderr
        return answer.stdout

    return open_it
