"""One story told to an implementation, and what the judge said at each step of it.

A story is one that comes with the package, by name, or a file
(`reassure_conformance.gate.story`). It is told on a server of its own.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from reassure_conformance.adapter import AdapterDied
from reassure_conformance.adapter.driver import SETTLE_TIMEOUT_S, ServerGone
from reassure_conformance.gate.base_runner import open_server
from reassure_conformance.gate.evidence import list_writes, name_sessions
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.harness import SKIPPED, Harness
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.story import Story, read_story, shipped_stories
from reassure_conformance.report import display
from reassure_conformance.report.cases import describe_death
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_conformance.report.own_faults import list_own_faults, say_own_fault
from reassure_conformance.script import SUFFIX
from reassure_conformance.supervise import note_alive, note_limit
from reassure_judge.verdicts import Violation
from reassure_spec.errors import Unavailable
from reassure_spec.words import ScenarioError


@dataclass(frozen=True, slots=True)
class Passage:
    """One step of a story that was told, with all that came of it."""

    step: str
    """The step as text; the beginning and the end of a story stand in brackets."""
    result: str
    """`ok`, `refused`, `unknown` or `skipped`."""
    why: str
    """Why it was skipped, "" where it was not."""
    writes: tuple[str, ...]
    """What was written meanwhile, a line for each transaction."""
    exercised: tuple[str, ...]
    """The clauses that it put to the test."""
    violations: tuple[Violation, ...]
    rested: bool
    """False where the cluster did not come to rest though nothing was held."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that the document prints."""
        return {
            "step": self.step,
            "result": self.result,
            "why": self.why,
            "writes": list(self.writes),
            "exercised": list(self.exercised),
            "violations": [violation.as_dict() for violation in self.violations],
            "rested": self.rested,
        }


@dataclass(slots=True)
class CaseRun:
    """A story that is told, step by step, to an implementation."""

    harness: Harness
    story: Story
    passages: list[Passage] = field(default_factory=list)
    _seen: int = 0
    """How many transactions of the example are in passages."""
    _exercised: Counter[str] = field(default_factory=Counter)
    _unsettled: int = 0

    def tell(self) -> Example:
        """Tell the story. Raises AdapterDied, ServerGone; what was told by then is kept."""
        self._exercised = self.harness.judge.exercised.copy()
        return self.harness.tell(self.story, self._look)

    def _look(self, example: Example) -> None:
        number, now = len(self.passages), self.harness.judge.exercised
        step, result, why = _BEGINNING, "ok", ""
        if number > len(example.done):
            step = _END
        elif number:
            done = example.done[number - 1]
            step, result, why = str(done.step), done.result, done.why
        fresh = example.transactions[self._seen :]
        names = name_sessions(example.transactions)
        self.passages.append(
            Passage(
                step,
                result,
                why,
                tuple(list_writes(fresh, names, example.chroot)),
                tuple(sorted(clause for clause in now if now[clause] > self._exercised[clause])),
                tuple(example.violations),
                example.unsettled == self._unsettled,
            )
        )
        self._seen = len(example.transactions)
        self._exercised = now.copy()
        self._unsettled = example.unsettled

    def exercised(self) -> frozenset[str]:
        """Return every clause that the story put to the test."""
        return frozenset(clause for each in self.passages for clause in each.exercised)

    def verdict(self) -> str:
        """Return the verdict on what was told."""
        if any(each.violations for each in self.passages):
            return VIOLATED
        if not all(each.rested for each in self.passages):
            return UNKNOWN
        done = [each for each in self.passages if each.result != SKIPPED]
        return HOLDS if len(done) > 2 and self.exercised() else VACUOUS


_BEGINNING: Final = "(the brokers and a controller are started)"
_END: Final = "(faults are undone, and leaders are asked to do what they should be able to do)"


def find_story(name: str, profile: str) -> Story:
    """Return the shipped story of this name, or that of a file.

    Raises ScenarioError for what there is not, with the names that are nearest.
    """
    path = Path(name)
    if path.is_file():
        return read_story(path)
    every = {story.name: story for story in shipped_stories()}
    found = every.get(path.name.removesuffix(SUFFIX))
    if found is None or path.parent != Path():
        near = get_close_matches(path.stem, every, n=3, cutoff=0.5) or sorted(
            each.name for each in every.values() if each.is_for(profile)
        )
        raise ScenarioError(f"no test case or file {name!r}; test cases are: {', '.join(near)}")
    return found


def list_possible(harness: Harness) -> list[Story]:
    """Return the shipped stories that an implementation can be told, by what it declares."""
    able, profile = harness.description.capabilities, harness.description.profile
    return [story for story in shipped_stories() if story.is_for(profile) and story.needs <= able]


@contextmanager
def open_bench(
    settings: Settings, directory: Path, *, settle_s: float = SETTLE_TIMEOUT_S
) -> Iterator[Harness]:
    """Open the implementation of these settings on a server of its own below a directory.

    Raises BadConnectable, AdapterDied, ServerGone, also for an adapter that dies at its end.
    """
    try:
        # The limit is the implementation's; how long the server takes to start is not its fault.
        data_dir = directory / "zookeeper"
        world = settings.make_world(data_dir)
        server = open_server(settings.connectable, data_dir, world=world)
        with server as (hosts, log_dir, home):
            note_limit(settings.hang_s)
            adapter = settings.open(world)
            harness = Harness(
                hosts,
                log_dir,
                adapter,
                home=home,
                alive=note_alive,
                strict=settings.strict,
                settle_s=settle_s,
                world=world,
            )
            with harness:
                yield harness
            if harness.died is not None:
                raise harness.died
    finally:
        note_limit(None)


def tell_document(settings: Settings, name: str, directory: Path) -> Document:
    """Tell one story to an implementation; return what came of each step."""
    start = time.monotonic()
    story = find_story(name, settings.profile)
    telling, died, trace = None, "", ""
    try:
        with open_bench(settings, directory) as harness:
            telling = CaseRun(harness, story)
            telling.tell()
    except (AdapterDied, ServerGone) as error:
        died, trace = str(error), getattr(error, "trace", "")
    return describe_telling(settings, story, telling, time.monotonic() - start, died, trace)


def describe_telling(
    settings: Settings,
    story: Story,
    telling: CaseRun | None,
    seconds: float,
    died: str = "",
    trace: str = "",
) -> Document:
    """Return what came of each step of a story, none where nobody was there to be told it."""
    harness = telling.harness if telling else None
    passages = telling.passages if telling else []
    violations = [found for each in passages[-1:] for found in each.violations]
    readings = harness.readings.as_dict() if harness else settings.readings
    broken = [found.clause for found in violations]
    return Document(
        "tell",
        UNKNOWN if died or telling is None else telling.verdict(),
        seconds,
        {
            "steps": len([each for each in passages if each.result != SKIPPED]),
            "skipped": len([each for each in passages if each.result == SKIPPED]),
            "clauses_exercised": len(telling.exercised()) if telling else 0,
            "violations": len(violations),
        },
        profile=settings.profile,
        readings=readings,
        exit_code=Unavailable.exit_code if died else None,
        body={
            "implementation": harness.description.as_dict() if harness else {},
            "story": story.name,
            "why": list(story.why),
            "told": [each.as_dict() for each in passages],
            "violations": [found.as_dict() for found in violations],
            "findings": list_own_faults(broken, settings.profile, readings, settings.readings),
            "died": died,
            "died_after": [str(step) for step in story.steps[: len(passages)]] if died else [],
            "traceback": trace,
        },
    )


def render_telling(report: Mapping[str, Any], width: int | None = None) -> str:
    """Return a story that was told, for people: the verdict, then what is wrong, then the story.

    Of each step it shows what was written and which clauses were put to the test first by it.
    """
    sums = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in report["counts"].items() if n)
    said = f"{report['verdict'].upper()} in {report['seconds']:.1f} s"
    first, *more = display.hang("", f"{said}: {sums}" if sums else said, width, "  ")
    lines = [display.paint(first), *more, "", *_describe_wrong(report, width)]
    about = ": ".join(filter(None, (report["story"], " ".join(report["why"]))))
    lines += [*display.hang("", about, width, "  "), ""]
    known: set[str] = set()
    for number, told in enumerate(report["told"]):
        answer = "" if told["result"] == "ok" else f"  [{told['result']}]"
        why = f" {told['why']}" if told["why"] else ""
        lines += display.hang(f"{number}. ", f"{told['step']}{answer}{why}", width)
        for write in told["writes"]:
            lines += display.hang("     ", write, width, "       ")
        if fresh := [clause for clause in told["exercised"] if clause not in known]:
            text = f"exercised here first: {', '.join(fresh)}"
            lines += display.hang("     ", text, width, "       ")
        known.update(told["exercised"])
        if not told["rested"]:
            lines.append("     not quiescent: settle answered false, though no process is held")
        lines += (f"     VIOLATED {violation['clause']}" for violation in told["violations"])
    return "\n".join(lines)


def _describe_wrong(report: Mapping[str, Any], width: int | None) -> Iterator[str]:
    """Yield every violation with its evidence, and what is known of an implementation that died."""
    for violation in report["violations"]:
        yield from display.describe_broken(violation["clause"], width)
        yield from display.describe_record(violation)
        yield ""
    for finding in report["findings"]:
        yield from display.hang("", say_own_fault(finding), width, "  ")
        yield ""
    if report["died"]:
        yield from display.hang("ADAPTER-DIED ", report["died"], width, "  ")
        yield from describe_death(report)
        yield ""
