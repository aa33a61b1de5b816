"""The pytest plugin: a test for each story and each clause, of an implementation of one's own.

    pytest --reassure --reassure-implementation exec:./controller

or, in pytest's configuration, `reassure_implementation`, `reassure_profile`, `reassure_examples`.
The stories are told one after another on one ZooKeeper; what a test says of a story that fails is
the report of `reassure test --case`. The first clause that is asked for carries out a run, as
`reassure test` does it; each clause is what that run says of it. This module is loaded by every
pytest where reassure is installed, so it imports nothing else before it is asked for.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from reassure_conformance.gate.harness import Harness
    from reassure_conformance.gate.run_settings import Settings
    from reassure_conformance.gate.story import Story
    from reassure_conformance.report.cases import Case

OPTIONS: Final = {
    "implementation": "exec:./program or direct:package.module:Adapter (the bundled one)",
    "profile": "version of the rules",
    "examples": "how many examples the run generates for the clauses",
    "seed": "repeat the run with this seed",
}
"""What can be said on the command line, and in the configuration with `reassure_` before it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("reassure", "conformance of partition reassignment")
    group.addoption(
        "--reassure", action="store_true", help="Check an implementation against the clauses."
    )
    for name, what in OPTIONS.items():
        group.addoption(f"--reassure-{name}", help=what)
        parser.addini(f"reassure_{name}", f"for --reassure: {what}")


def _get(config: pytest.Config, name: str) -> str:
    return str(config.getoption(f"reassure_{name}") or config.getini(f"reassure_{name}"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the tests, before others choose among them by name."""
    if not config.getoption("--reassure"):
        return
    try:
        suite = Suite.from_parent(session, name="reassure", nodeid="reassure")
        items.extend(suite.collect())
    except ImportError as error:
        from reassure_conformance.cli.failing import describe_error

        raise pytest.UsageError(describe_error(error)) from error


class Suite(pytest.Collector):
    """All that is asked of one implementation, and what it is asked on."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each story of the profile, then one for each clause."""
        from reassure_conformance.gate.run_settings import REPLICATION
        from reassure_conformance.gate.story import shipped_stories
        from reassure_spec.clauses import clauses_of_profile

        profile = self.settings.profile
        for story in shipped_stories() if profile != REPLICATION else ():
            if story.is_for(profile):
                told = StoryItem.from_parent(self, name=f"story[{story.name}]")
                told.story = story
                yield told
        for clause in clauses_of_profile(profile):
            asked = ClauseItem.from_parent(self, name=f"clause[{clause.id}]")
            asked.clause = clause.id
            yield asked

    @cached_property
    def settings(self) -> "Settings":
        """What is asked for. Raises UsageError."""
        from reassure_conformance.gate.run_settings import BUNDLED, Settings
        from reassure_judge.protocols import check_driven
        from reassure_spec.errors import ReassureError
        from reassure_spec.profiles import DEFAULT_PROFILE

        examples, seed = _get(self.config, "examples") or "100", _get(self.config, "seed") or "0"
        profile = _get(self.config, "profile") or DEFAULT_PROFILE
        if not (examples.isdecimal() and seed.isdecimal()):
            raise pytest.UsageError(
                f"reassure: examples {examples!r}, seed {seed!r}: give numbers of 0 or more"
            )
        try:
            check_driven(profile)
        except (ReassureError, LookupError) as error:
            raise pytest.UsageError(f"reassure: {error}") from error
        return Settings(
            seed=int(seed),
            connectable=_get(self.config, "implementation") or BUNDLED,
            profile=profile,
            examples=int(examples),
            steps_min=0,
        )

    @cached_property
    def _stack(self) -> ExitStack:
        stack = ExitStack()
        self.addfinalizer(stack.close)
        return stack

    @cached_property
    def _directory(self) -> Path:
        return Path(self._stack.enter_context(TemporaryDirectory(prefix="reassure-")))

    @cached_property
    def harness(self) -> "Harness":
        """The implementation on a server on which stories are told. Raises BadConnectable."""
        from reassure_conformance.answers.case_run import open_bench

        return self._stack.enter_context(open_bench(self.settings, self._directory / "told"))

    @cached_property
    def report(self) -> Mapping[str, Any]:
        """The document of a run."""
        from reassure_conformance.gate.running import make_directory, run

        directory = make_directory(self._directory / "run", self.settings.seed)
        return run(self.settings, directory).as_document().as_dict()

    @cached_property
    def cases(self) -> "Mapping[str, Case]":
        """What the run says of each clause."""
        from reassure_conformance.report.cases import list_cases

        return {case.name: case for case in list_cases(self.report) if case.group == "clauses"}


class _Asked(pytest.Item):
    """Something that is asked of an implementation."""

    suite: Suite

    def __init__(self, *, name: str, parent: Suite, **more: Any) -> None:
        super().__init__(name, parent, **more)
        self.suite = parent

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return where this stands, for people."""
        return Path("reassure"), None, self.name


class StoryItem(_Asked):
    """One story, told to the implementation."""

    story: "Story"

    def runtest(self) -> None:
        """Tell the story; what could not be told at all is skipped."""
        from reassure_conformance.adapter import AdapterDied
        from reassure_conformance.adapter.driver import ServerGone
        from reassure_conformance.answers.case_run import CaseRun, describe_telling, render_telling
        from reassure_conformance.report.document import HOLDS, VACUOUS

        start = time.monotonic()
        telling, died, trace = CaseRun(self.suite.harness, self.story), "", ""
        try:
            telling.tell()
        except (AdapterDied, ServerGone) as error:
            died, trace = str(error), getattr(error, "trace", "")
        seconds = time.monotonic() - start
        settings = self.suite.settings
        told = describe_telling(settings, self.story, telling, seconds, died, trace).as_dict()
        if told["verdict"] == VACUOUS:
            pytest.skip("; ".join(sorted({each["why"] for each in told["told"] if each["why"]})))
        if told["verdict"] != HOLDS:
            pytest.fail(render_telling(told), pytrace=False)


class ClauseItem(_Asked):
    """One clause, as the run found it."""

    clause: str

    def runtest(self) -> None:
        """Look up what the run says of the clause; what is not asked is skipped."""
        from reassure_conformance.report.cases import FAILED, OPEN, SKIPPED, describe_clause

        case = self.suite.cases[self.clause]
        if case.outcome == SKIPPED:
            pytest.skip(case.message)
        if case.outcome in (FAILED, OPEN):
            again = f"seed {self.suite.settings.seed}"
            said = describe_clause(self.clause), case.message, *case.details, again
            pytest.fail("\n".join(said), pytrace=False)
