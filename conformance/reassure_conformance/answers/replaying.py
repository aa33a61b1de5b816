"""Replaying a run: its story told again to the same implementation, and its log judged again.

The two answer different questions. The story asks whether the implementation still does it; the log
asks whether the judge still says so of what was done then.
"""

import reprlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from reassure_conformance.adapter import AdapterDied, open_adapter
from reassure_conformance.adapter.driver import ServerGone
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.evidence import BadRun, judge_again, read_json
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.replication.brokers import BrokersRunner
from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.replication.tale import BrokersCase, parse_tale
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.gate.shortening import breaks
from reassure_conformance.gate.story import Story, read_story
from reassure_conformance.report.display import show_zxid
from reassure_conformance.report.document import (
    DIED,
    UNKNOWN,
    VACUOUS,
    VIOLATED,
    Document,
)
from reassure_conformance.report.supervise import HANG_S, note_alive, note_limit
from reassure_conformance.script import SUFFIX
from reassure_judge.verdicts import Violation
from reassure_spec.errors import Unavailable
from reassure_zookeeper.server import Server


@dataclass(slots=True)
class Replay:
    """What came of replaying a run."""

    directory: Path
    run: dict[str, Any]
    story: Story
    example: Example | None
    """The story told again; None where the adapter died."""
    logged: list[Violation]
    """What the judge says of the log that the run kept."""
    died: str
    trace: str
    """The traceback of an adapter that died, "" where none did."""
    seconds: float

    @property
    def clause(self) -> str:
        """The clause that the run found violated, "" where the implementation died."""
        return self.story.violates

    def told_again(self) -> bool:
        """Whether the story broke the same clause again."""
        return bool(self.clause) and self.example is not None and breaks(self.example, self.clause)

    def judged_again(self) -> bool:
        """Whether the judge finds the same clause broken in the kept log."""
        return any(violation.clause == self.clause for violation in self.logged)

    def verdict(self) -> str:
        """Return `violated` for the same violation, `vacuous` where it passed now."""
        if self.died:
            return UNKNOWN
        if self.told_again() or (self.example is not None and self.example.violations):
            return VIOLATED
        return VACUOUS

    def as_document(self) -> Document:
        """Return the document that is printed."""
        example = self.example
        found = example.violations if example else []
        return Document(
            "replay",
            self.verdict(),
            self.seconds,
            {
                "steps": example.effective_steps() if example else 0,
                "transactions": len(example.transactions) if example else 0,
                "violations": len(found),
                "logged_violations": len(self.logged),
            },
            seed=self.run["seed"],
            profile=self.run["profile"],
            readings=self.run["readings"],
            exit_code=Unavailable.exit_code if self.died else None,
            body={
                "clause": self.clause,
                "same_violation": self.told_again(),
                "same_in_log": self.judged_again(),
                "story": [s.format_step(step) for step in self.story.steps],
                "violations": [violation.as_dict() for violation in found],
                "died": self.died,
                "traceback": self.trace,
            },
        )

    def describe(self) -> Iterator[str]:
        """Yield the lines for people."""
        if self.died:
            yield f"{self.trace}ADAPTER-DIED {self.died}"
        elif self.told_again():
            yield f"same violation: {self.clause}"
        elif self.verdict() == VIOLATED and self.example is not None:
            was = self.clause or "the implementation's death"
            yield f"another violation: {self.example.violations[0].clause} (was {was})"
        else:
            yield f"passed now: {f'{self.clause} held' if self.clause else 'it did not die'}"
        if self.example is not None:
            for number, done in enumerate(self.example.done, start=1):
                note = f"  ({done.result}{': ' + done.why if done.why else ''})"
                yield f"  {number}. {s.format_step(done.step)}{note}"
            for violation in self.example.violations[:1]:
                yield f"  {violation.clause} at {show_zxid(violation.zxid)}: {violation.reason}"
        if self.clause:
            word = "shows the same violation" if self.judged_again() else "shows it no longer"
            yield f"The log that the run kept {word}."


@dataclass(slots=True)
class BrokersReplay:
    """What came of telling the tale of a failed run of brokers again."""

    clause: str
    """The clause that the run found violated."""
    result: BrokersResult

    def verdict(self) -> str:
        """Return `violated` for the same violation, `vacuous` where it passed now."""
        if self.result.died:
            return UNKNOWN
        return VACUOUS if self.result.failure is None else VIOLATED

    def as_document(self) -> Document:
        """Return the document that is printed."""
        document, failure = self.result.as_document(), self.result.failure
        document.verb, document.verdict = "replay", self.verdict()
        found = failure.told.violations if failure else ()
        document.body = {
            "clause": self.clause,
            "same_violation": failure is not None and failure.repeats,
            "story": list(failure.lines()) if failure else [],
            "violations": [violation.as_dict() for violation in found],
            "died": self.result.died,
            "traceback": self.result.trace,
        }
        return document

    def describe(self) -> Iterator[str]:
        """Yield the lines for people."""
        failure = self.result.failure
        if self.result.died:
            yield f"{self.result.trace}ADAPTER-DIED {self.result.died}"
        elif failure is None:
            yield f"passed now: {self.clause} held"
        else:
            same = "same violation" if failure.repeats else "another violation"
            yield f"{same}: {failure.violation.clause} (was {self.clause})"
            for number, step in enumerate(failure.lines(), start=1):
                yield f"  {number}. {step}"
            yield f"  {failure.violation.clause}: {failure.violation.reason}"


def replay(directory: Path) -> Replay | BrokersReplay:
    """Replay the failure or the death of a run directory, of controllers or of brokers.

    Raises BadRun where the directory holds no failure, ScenarioError, BadConnectable.
    """
    start = time.monotonic()
    story_file = directory / f"failure{SUFFIX}"
    run = read_run(directory)
    if not story_file.exists():
        story_file = directory / DIED
    if not story_file.exists():
        raise BadRun(f"{directory} holds no failure: nothing was violated or died in that run")
    if run["profile"] == REPLICATION:
        return _replay_brokers(run, parse_tale(story_file.read_text("utf-8"), str(story_file)))
    story = read_story(story_file)
    died_then = story_file.name == DIED
    logged = [] if died_then else judge_again(directory, run["profile"], run["readings"])
    adapter = open_adapter(
        run["connectable"],
        profile=run["profile"],
        readings=run["readings"],
        faults=tuple(run["faults"]),
    )
    example, died, trace = None, "", ""
    note_limit(HANG_S)
    with TemporaryDirectory(prefix="reassure-replay-") as folder:
        data_dir = Path(folder) / "zookeeper"
        with Server.start(data_dir) as server:
            try:
                with Harness(
                    server.hosts, server.log_dir, adapter, alive=note_alive, strict=run["strict"]
                ) as harness:
                    example = harness.tell(story)
                if harness.died is not None:
                    raise harness.died
            except (AdapterDied, ServerGone) as error:
                died, trace = str(error), getattr(error, "trace", "")
    note_limit(None)
    seconds = time.monotonic() - start
    return Replay(directory, run, story, example, logged, died, trace, seconds)


def _replay_brokers(run: Mapping[str, Any], tale: BrokersCase) -> BrokersReplay:
    settings = Settings(
        run["seed"],
        profile=REPLICATION,
        readings=run["readings"],
        faults=tuple(run["faults"]),
        strict=run["strict"],
    )
    with TemporaryDirectory(prefix="reassure-replay-") as folder:
        result = BrokersRunner(settings, Path(folder)).replay(tale)
    return BrokersReplay(tale.violates, result)


_KEPT: Final[Mapping[str, type]] = {
    "connectable": str,
    "profile": str,
    "readings": dict,
    "faults": list,
    "seed": int,
    "strict": bool,
}
"""What run.json must hold for a replay, and of which kind."""


def read_run(directory: Path) -> dict[str, Any]:
    """Return what run.json says of the run. Raises BadRun where something is missing or wrong."""
    path = directory / "run.json"
    run = {"strict": False, **read_json(path)}
    for name, kind in _KEPT.items():
        if not isinstance(run.get(name), kind):
            raise BadRun(
                f"{path}: {name} is {reprlib.repr(run.get(name))}, expected a {kind.__name__}; "
                "a run directory is made by `reassure test`"
            )
    return run
