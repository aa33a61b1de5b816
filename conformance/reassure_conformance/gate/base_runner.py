"""The life of a run, whatever is driven: saved failures, shipped test cases, generated ones."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from reassure_conformance.adapter import AdapterDied
from reassure_conformance.adapter.driver import Driver, ServerGone
from reassure_conformance.adapter.remote import RemotePlace
from reassure_conformance.adapter.world import REAL, VirtualWorld, World
from reassure_conformance.gate.run_outcome import FailedCase, Failure, RunOutcome
from reassure_conformance.gate.run_settings import COVERED, MISSING, Progress, Settings
from reassure_conformance.report.document import get_version, write_text
from reassure_conformance.script import SUFFIX
from reassure_zookeeper.server import Server

OneCase = TypeVar("OneCase", bound=FailedCase)
Found = TypeVar("Found", bound=Failure)


@contextmanager
def open_server(
    connectable: str, data_dir: Path, server: Server | None = None, world: World = REAL
) -> Iterator[tuple[str, Path | None, str | None]]:
    """Yield a server's address and log directory, and the chroot in which a controller runs.

    The server of a `zk:` connectable is somebody else's; others get the one that is given, or one
    of their own; a virtual world is its own server. Raises BadConnectable and the server's errors.
    """
    if isinstance(world, VirtualWorld):
        yield world.hosts, world.log_dir, None
        return
    if server is not None:
        yield server.hosts, server.log_dir, None
        return
    if connectable.startswith("zk:"):
        place = RemotePlace(connectable)
        yield place.hosts, place.log_dir, place.chroot
        return
    with Server.start(data_dir) as server:
        yield server.hosts, server.log_dir, None


class Runner(ABC, Generic[OneCase, Found]):
    """Carries out one run on a server of its own, or on one that others have used before.

    What is driven, how a test case is told to it and what counts as a failure say those who derive
    from this.
    """

    result: RunOutcome
    """What came of the run so far; it is there once the run is open."""
    driver: Driver

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        progress: Progress = lambda *_: None,
        server: Server | None = None,
    ) -> None:
        self.settings = settings
        self.directory = directory
        self.progress = progress
        self.server = server
        self.world = settings.make_world(directory / "zookeeper")
        self.passed: tuple[str, ...] = ()
        """Saved failures that did not fail."""

    @abstractmethod
    def open(self) -> AbstractContextManager[None]:
        """Start what is driven, and begin the result."""

    @abstractmethod
    def read_saved(self, folder: Path) -> Iterable[OneCase]:
        """Yield the saved failures of a folder."""

    @abstractmethod
    def list_shipped(self) -> Sequence[OneCase]:
        """Return the test cases that come with the package and are for this run."""

    @abstractmethod
    def tell(self, case: OneCase) -> Found | None:
        """Carry out a test case; return what it violates."""

    @abstractmethod
    def generate(self, most: int, deadline: float) -> Found | None:
        """Generate so many examples, until then; return what one of them violates."""

    @abstractmethod
    def keep(self, found: Found) -> Found:
        """Write what a person and a replay need, in place of a longer telling of the same."""

    @abstractmethod
    def shorten(self, found: Found) -> Iterator[Found]:
        """Yield failures with shorter and shorter test cases, the shortest last."""

    @abstractmethod
    def sum_up(self) -> None:
        """Put into the result what is known by now of every clause and coverage goal."""

    def bury(self, error: AdapterDied | ServerGone) -> None:
        """Note why the run cannot go on."""
        self.result.died, self.result.trace = str(error), getattr(error, "trace", "")

    def run(self) -> RunOutcome:
        """Carry out the run and write its directory.

        Raises BadConnectable and the server's own errors where nothing could be started; an
        adapter that dies later is a result.
        """
        start = self.world.monotonic()
        self.write("run.json", {"version": get_version(), **self.settings.as_dict()})
        with self.open():
            try:
                found = next(self._find_failures(start), None)
                if found is not None:
                    self.fail(found)
            except (AdapterDied, ServerGone) as error:
                self.bury(error)
            self.sum_up()
            seconds = self.world.monotonic() - start
            clock = {name: float(value) for name, value in sorted(self.driver.clock.items())}
            clock["generation"] = max(0.0, seconds - sum(clock.values()))
            self.result.seconds, self.result.clock = seconds, clock
        return self.result

    def _find_failures(self, start: float) -> Iterator[Found]:
        settings, passed = self.settings, []
        for case in self.read_saved(Path(settings.failures)) if settings.failures else ():
            found = self._tell(case)
            if found is not None:
                yield found
            passed.append(case.name)
        self.passed = tuple(passed)
        shipped = self.list_shipped() if settings.with_stories else ()
        for number, case in enumerate(shipped):
            self.progress("stories", number, len(shipped))
            found = self._tell(case)
            if found is not None:
                yield found
        most = sys.maxsize if settings.until else settings.examples
        found = self.generate(most, start + settings.seconds_max) if most else None
        if found is not None:
            yield found

    def _tell(self, case: OneCase) -> Found | None:
        self.result.stories += 1
        return self.tell(case)

    def is_over(self) -> bool:
        """Whether nothing more is to be generated, coverage being there or somebody saying so."""
        if self.settings.is_stopped():
            return True
        if self.settings.until != COVERED:
            return False
        self.sum_up()
        wanted = self.list_wanted()
        note_missing(self.directory, wanted)
        return not wanted

    def list_wanted(self) -> Sequence[str]:
        """Return what generation goes on for, with `until` COVERED."""
        return self.result.missing()

    def fail(self, found: Found) -> None:
        """Keep the failure, then make its test case short and keep that."""
        kept = self.keep(found)
        self.progress("shrinking", 0, 0)
        for shorter in self.shorten(kept):
            kept = self.keep(shorter)
        self.result.failure = kept
        self._save(kept)

    def _save(self, found: Found) -> None:
        """Put the test case beside the saved failures, unless it is one of them."""
        if not self.settings.failures:
            return
        folder = Path(self.settings.failures)
        if not any(case.steps == found.case.steps for case in self.read_saved(folder)):
            name = f"{found.violation.clause}-{self.settings.seed}{SUFFIX}"
            write_text(folder / name, found.format())

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a document into the directory of the run."""
        write_text(self.directory / name, json.dumps(value, indent=2) + "\n")

    def make_prefix(self, begin: str) -> str:
        """Return what the chroots of the run begin with: no other run on a shared server has it.

        Those who share one differ in faults or seeds.
        """
        if self.server is None:
            return begin
        return "-".join((begin, *self.settings.faults, str(self.settings.seed)))


def note_missing(directory: Path, missing: Sequence[str]) -> None:
    """Write down what is not put to the test yet; whoever reads meanwhile reads all of it."""
    fresh = directory / f"{MISSING}.new"
    write_text(fresh, json.dumps(list(missing)) + "\n")
    fresh.replace(directory / MISSING)
