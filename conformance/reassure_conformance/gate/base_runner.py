"""The life of a run, whatever is driven: saved failures, shipped test cases, generated ones."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol

from reassure_conformance.adapter import AdapterDied
from reassure_conformance.adapter.driver import Driver, ServerGone
from reassure_conformance.adapter.remote import RemotePlace
from reassure_conformance.adapter.world import REAL, VirtualWorld, World
from reassure_conformance.gate.discrimination import Score
from reassure_conformance.gate.events import CoverageGoal
from reassure_conformance.gate.goals import find_unreached
from reassure_conformance.gate.laps import Laps
from reassure_conformance.gate.run_outcome import Failure, OneTold, RunOutcome
from reassure_conformance.gate.run_settings import COVERED, MISSING, Progress, Settings
from reassure_conformance.gate.shortening import minimise
from reassure_conformance.gate.story import (
    CLUSTER,
    Story,
    format_story,
    read_folder,
    shipped_stories,
)
from reassure_conformance.report.document import get_version, write_text
from reassure_conformance.script import SUFFIX
from reassure_judge.verdicts import Violation, count_broken, summarise
from reassure_mutation.score import Scorer
from reassure_zookeeper.server import Server

SHORTEN_S: Final = 20.0
"""How long a failing story may be made shorter."""


class Judged(Protocol):
    """What was judged in a run."""

    @property
    def exercised(self) -> Mapping[str, int]:
        """How often each clause was put to the test."""

    @property
    def undecided(self) -> Mapping[str, int]:
        """How often the evidence left open whether it holds."""


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


class Runner(ABC, Generic[OneTold]):
    """Carries out one run on a server of its own, or on one that others have used before.

    What is driven, how a story is told to it and what counts as a failure say those who derive
    from this.
    """

    story_world: ClassVar[str] = CLUSTER
    """The world of the stories that are told."""
    result: RunOutcome
    """What came of the run so far; it is there once the run is open."""
    driver: Driver
    scorer: Scorer
    laps: Laps

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
    def carry_out(self, story: Story) -> OneTold:
        """Tell a story; return what came of it."""

    def list_broken(self, told: OneTold) -> Sequence[Violation]:
        """Return what counts as a failure of what came of a story."""
        return told.violations

    def add_up(self, told: OneTold) -> None:
        """Add up what came of a story that counts."""

    def forget(self, told: OneTold) -> None:
        """Do away with what came of a story that is of no more use."""

    @abstractmethod
    def generate(self, most: int, deadline: float) -> Failure[OneTold] | None:
        """Generate so many examples, until then; return what one of them violates."""

    @abstractmethod
    def keep_evidence(self, found: Failure[OneTold]) -> Failure[OneTold]:
        """Keep what happened where a person finds it, in place of what was kept before."""

    @abstractmethod
    def sum_up(self) -> None:
        """Put into the result what is known by now of every clause and coverage goal."""

    def list_shipped(self) -> Sequence[Story]:
        """Return the stories that come with the package and are for this run."""
        return list(shipped_stories(self.story_world))

    def find_failure(
        self, story: Story, told: OneTold, clause: str = ""
    ) -> Failure[OneTold] | None:
        """Return the first failure in what came of a story; by a clause that is to be it again."""
        broken = [v for v in self.list_broken(told) if clause in ("", v.clause)]
        if not broken:
            return None
        return Failure(story.with_steps(told.carried_out), told, broken[0], repeats=bool(clause))

    def tell(self, story: Story) -> Failure[OneTold] | None:
        """Tell a story and add up what came of it; return what it violates."""
        told = self.carry_out(story)
        self.add_up(told)
        return self.find_or_forget(story, told)

    def retell(self, story: Story, clause: str) -> Failure[OneTold] | None:
        """Tell a story once more; return the failure where it breaks the clause again."""
        return self.find_or_forget(story, self.carry_out(story), clause)

    def find_or_forget(
        self, story: Story, told: OneTold, clause: str = ""
    ) -> Failure[OneTold] | None:
        """Return the failure in what came of a story, which is forgotten where there is none."""
        found = self.find_failure(story, told, clause)
        if found is None:
            self.forget(told)
        return found

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

    def replay(self, story: Story) -> OneTold | None:
        """Tell one story alone, as it is; return what came of it, None where it could not be told.

        What it breaks first, or the clause that it is known to violate, is the failure of the
        result. Raises what `run` raises.
        """
        told, start = None, self.world.monotonic()
        with self.open():
            try:
                told = self.carry_out(story)
                self.add_up(told)
                found = self.find_failure(story, told, story.violates)
                found = found or self.find_failure(story, told)
                self.result.failure = found and replace(found, story=story)
            except (AdapterDied, ServerGone) as error:
                self.bury(error)
        self.result.seconds = self.world.monotonic() - start
        return told

    def _find_failures(self, start: float) -> Iterator[Failure[OneTold]]:
        settings, passed = self.settings, []
        for case in self._read_saved():
            found = self._tell(case)
            if found is not None:
                yield found
            passed.append(case.name)
        self.passed = tuple(passed)
        shipped = self.list_shipped() if settings.with_stories else ()
        shipped = shipped[: settings.stories_max or None]
        for number, case in enumerate(shipped):
            self.progress("stories", number, len(shipped))
            found = self._tell(case)
            if found is not None:
                yield found
        most = sys.maxsize if settings.until else settings.examples
        found = self.generate(most, start + settings.seconds_max) if most else None
        if found is not None:
            yield found

    def _tell(self, case: Story) -> Failure[OneTold] | None:
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

    def fail(self, found: Failure[OneTold]) -> None:
        """Keep the failure, then make its story short and keep that."""
        kept = self.keep(found)
        self.progress("shrinking", 0, 0)
        clause, monotonic = found.violation.clause, self.world.monotonic
        until = monotonic() + min(SHORTEN_S, 2 * self.settings.shrink_s)
        for shorter in minimise(
            kept.story,
            lambda story: self.retell(story, clause),
            is_over=lambda: monotonic() > until,
        ):
            kept = self.keep(shorter)
        self.result.failure = kept
        self._save(kept)

    def keep(self, found: Failure[OneTold]) -> Failure[OneTold]:
        """Write what a person and a replay need, in place of a longer telling of the same."""
        story = replace(found.story, name="failure", violates=found.violation.clause)
        kept = self.keep_evidence(replace(found, story=story))
        write_text(self.directory / f"failure{SUFFIX}", format_story(story))
        self.write("failure.json", kept.as_dict())
        return kept

    def _read_saved(self) -> Iterator[Story]:
        """Yield the saved failures."""
        folder = self.settings.failures
        return read_folder(Path(folder), self.story_world) if folder else iter(())

    def _save(self, found: Failure[OneTold]) -> None:
        """Put the story beside the saved failures, unless it is one of them."""
        if not self.settings.failures:
            return
        if not any(case.steps == found.story.steps for case in self._read_saved()):
            name = f"{found.violation.clause}-{self.settings.seed}{SUFFIX}"
            write_text(Path(self.settings.failures) / name, format_story(found.story))

    def conclude(
        self,
        goals: Sequence[CoverageGoal],
        reached: Mapping[str, int],
        judged: Judged,
        broken: Iterable[Violation],
        situations: Callable[[], Iterable[Any]],
    ) -> None:
        """Put the verdicts into the result, of what was judged and broken, and the score.

        `goals` are those that could be reached; `situations` takes what the mutants were not asked
        of by now.
        """
        result = self.result
        result.reached = {goal.name: reached[goal.name] for goal in goals}
        unreached = find_unreached(goals, result.reached)
        violations = result.failure.told.violations if result.failure else ()
        result.clauses = summarise(
            result.profile,
            {clause: n for clause, n in judged.exercised.items() if clause not in unreached},
            count_broken((*violations, *broken)),
            undecided=judged.undecided,
            settled=True,
            strict=self.settings.strict,
        )
        if result.failure is None:
            result.score = Score.of(self.scorer, situations(), result.capabilities)
            result.clauses = result.score.mark(result.clauses)
        result.clause_seconds = self.laps.as_dict(result.clauses)

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
