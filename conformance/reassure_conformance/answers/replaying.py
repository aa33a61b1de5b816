"""Replaying a run: its test case run again by the same implementation, and its log judged again.

The two answer different questions. The test case asks whether the implementation still does it; the
log asks whether the judge still says so of what was done then.
"""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reassure_conformance.gate.evidence import BadRun, judge_again, read_json
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.gate.running import make_runner
from reassure_conformance.gate.story import BROKERS, CLUSTER, read_story
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
    is_of_brokers = settings.profile == REPLICATION
    story = read_story(place, BROKERS if is_of_brokers else CLUSTER)
    clause = story.violates
    logged = None
    if clause and not is_of_brokers:  # the logs of brokers are audited
        logged = judge_again(directory, settings.profile, settings.readings)
    with (
        TemporaryDirectory(prefix="reassure-replay-") as folder,
        make_runner(settings, Path(folder)) as runner,
    ):
        told = runner.replay(story)
    outcome = runner.result
    failure = outcome.failure
    violations = failure.told.violations if failure else ()
    document = Document(
        "replay",
        UNKNOWN if outcome.died else VACUOUS if failure is None else VIOLATED,
        outcome.seconds,
        {
            "steps": 0 if told is None else len(told.carried_out),
            "violations": len(violations),
            "logged_violations": len(logged or ()),
        },
        seed=settings.seed,
        profile=settings.profile,
        readings=settings.readings,
        exit_code=Unavailable.exit_code if outcome.died else None,
        body={
            "clause": clause,
            "same_violation": failure is not None and failure.repeats,
            **({} if logged is None else {"same_in_log": clause in {v.clause for v in logged}}),
            "story": list(story.lines()),
            "violations": [violation.as_dict() for violation in violations],
            "died": outcome.died,
            "traceback": outcome.trace,
        },
    )
    lines = [_compare(document, failure.violation.clause if failure else "")]
    steps = () if told is None else told.list_told()
    lines += [f"  {number}. {step}" for number, step in enumerate(steps, start=1)]
    if failure is not None:
        broken = failure.violation
        where = f" at {show_zxid(broken.zxid)}" if broken.zxid > 0 else ""
        lines.append(f"  {broken.clause}{where}: {broken.reason}")
    if logged is not None:
        word = "shows the same violation" if document.body["same_in_log"] else "no longer shows it"
        lines.append(f"The log that the run kept {word}.")
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
