"""Replaying a run: its test case run again by the same implementation, and its log judged again.

The two answer different questions. The test case asks whether the implementation still does it; the
log asks whether the judge still says so of what was done then.
"""

import reprlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reassure_conformance.adapter import AdapterDied
from reassure_conformance.adapter.driver import ServerGone
from reassure_conformance.answers.case_run import open_bench
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.evidence import BadRun, judge_again, read_json
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.replication.brokers import BrokersRunner
from reassure_conformance.gate.replication.tale import BrokersCase, parse_tale
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.gate.shortening import breaks
from reassure_conformance.gate.story import Story, read_story
from reassure_conformance.report.display import show_zxid
from reassure_conformance.report.document import DIED, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_conformance.script import SUFFIX
from reassure_spec.errors import Unavailable

Replay = tuple[Document, list[str]]
"""What came of replaying a run, and the same as lines for people.

The verdict is `violated` for any violation, `vacuous` where it passed now.
"""


def replay(directory: Path) -> Replay:
    """Replay the failure or the death of a run directory, of controllers or of brokers.

    Raises BadRun where the directory holds no failure, ScenarioError, BadConnectable.
    """
    settings = read_settings(directory)
    found = (directory / f"failure{SUFFIX}", directory / DIED)
    place = next((each for each in found if each.exists()), None)
    if place is None:
        raise BadRun(f"{directory} holds no failure: nothing was violated or died in that run")
    if settings.profile == REPLICATION:
        return _replay_brokers(settings, parse_tale(place.read_text("utf-8"), str(place)))
    return _replay_controller(settings, read_story(place), directory)


def _replay_controller(settings: Settings, story: Story, directory: Path) -> Replay:
    start, clause = time.monotonic(), story.violates
    logged = judge_again(directory, settings.profile, settings.readings) if clause else []
    in_log = any(violation.clause == clause for violation in logged)
    example, died, trace = None, "", ""
    try:
        with (
            TemporaryDirectory(prefix="reassure-replay-") as folder,
            open_bench(settings, Path(folder)) as harness,
        ):
            example = harness.tell(story)
    except (AdapterDied, ServerGone) as error:
        died, trace = str(error), getattr(error, "trace", "")
    violations = example.violations if example else []
    same = example is not None and bool(clause) and breaks(example, clause)
    document = Document(
        "replay",
        UNKNOWN if died else VIOLATED if same or violations else VACUOUS,
        time.monotonic() - start,
        {
            "steps": example.effective_steps() if example else 0,
            "transactions": len(example.transactions) if example else 0,
            "violations": len(violations),
            "logged_violations": len(logged),
        },
        seed=settings.seed,
        profile=settings.profile,
        readings=settings.readings,
        exit_code=Unavailable.exit_code if died else None,
        body={
            "clause": clause,
            "same_violation": same,
            "same_in_log": in_log,
            "story": [s.format_step(step) for step in story.steps],
            "violations": [violation.as_dict() for violation in violations],
            "died": died,
            "traceback": trace,
        },
    )
    lines = [_compare(document, violations[0].clause if violations else "")]
    if example is not None:
        lines += _describe_example(example)
    if clause:
        word = "shows the same violation" if in_log else "no longer shows it"
        lines.append(f"The log that the run kept {word}.")
    return document, lines


def _replay_brokers(settings: Settings, tale: BrokersCase) -> Replay:
    with TemporaryDirectory(prefix="reassure-replay-") as folder:
        result = BrokersRunner(settings, Path(folder)).replay(tale)
    document, failure = result.as_document(), result.failure
    document.verb = "replay"
    document.verdict = UNKNOWN if result.died else VACUOUS if failure is None else VIOLATED
    document.body = {
        "clause": tale.violates,
        "same_violation": failure is not None and failure.repeats,
        "story": list(failure.lines()) if failure else [],
        "violations": [each.as_dict() for each in failure.told.violations] if failure else [],
        "died": result.died,
        "traceback": result.trace,
    }
    lines = [_compare(document, failure.violation.clause if failure else "")]
    if failure is not None:
        lines += (f"  {number}. {step}" for number, step in enumerate(failure.lines(), start=1))
        lines.append(f"  {failure.violation.clause}: {failure.violation.reason}")
    return document, lines


def _compare(document: Document, found: str) -> str:
    """Return in a line what came of it, the clause found or "", against what the run had found."""
    body = document.body
    clause = body["clause"]
    if body["died"]:
        return f"{body['traceback']}ADAPTER-DIED {body['died']}"
    if body["same_violation"]:
        return f"same violation: {clause}"
    if found:
        return f"another violation: {found} (before: {clause or 'the implementation died'})"
    return f"passed now: {f'{clause} held' if clause else 'it did not die'}"


def _describe_example(example: Example) -> Iterator[str]:
    for number, done in enumerate(example.done, start=1):
        note = f"  ({done.result}{': ' + done.why if done.why else ''})"
        yield f"  {number}. {s.format_step(done.step)}{note}"
    for violation in example.violations[:1]:
        yield f"  {violation.clause} at {show_zxid(violation.zxid)}: {violation.reason}"


_KEPT: Final[Mapping[str, type]] = {
    "connectable": str,
    "profile": str,
    "readings": dict,
    "faults": list,
    "seed": int,
    "strict": bool,
}
"""What run.json must hold for a replay, and of which kind."""


def read_settings(directory: Path) -> Settings:
    """Return what run.json says of the run. Raises BadRun where something is missing or wrong."""
    path = directory / "run.json"
    run = {"strict": False, **read_json(path)}
    for name, kind in _KEPT.items():
        if not isinstance(run.get(name), kind):
            raise BadRun(
                f"{path}: {name} is {reprlib.repr(run.get(name))}, expected a {kind.__name__}; "
                "a run directory is made by `reassure test`"
            )
    kept = {name: run[name] for name in _KEPT}
    return Settings(**{**kept, "faults": tuple(kept["faults"])})
