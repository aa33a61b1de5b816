"""The kill matrix: every planted fault against the gate, and which clause caught it.

A gate that never fails proves nothing. Each fault of the bundled controller, or of its brokers, is
switched on by itself, and stories and generated examples run until a clause is violated. The fault
is *killed* then; one that nothing catches *survives*, and so fails the matrix. `EXPECTED` says
which clauses are made for which fault; a kill by another clause counts, but is shown as unexpected.
Every clause binds here, a SHOULD as well: the question is whether the fault is seen, not how bad it
is.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate.expected import EXPECTED, PROFILES, READINGS
from reassure_conformance.gate.running import BUNDLED, Outcome, Progress, Settings, run
from reassure_conformance.report.display import paint, render_table
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document

KILLED: Final = "killed"
SURVIVED: Final = "survived"
UNSETTLED: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Kill:
    """What came of one fault."""

    fault: str
    outcome: str
    """`killed`, `survived`, or `unknown` where the run could not say."""
    clause: str = ""
    """The clause that caught it."""
    expected: bool = False
    """Whether that is one of `EXPECTED`."""
    story: tuple[str, ...] = ()
    seconds: float = 0.0
    examples: int = 0
    repeats: bool = False
    why: str = ""
    """Why the outcome is unknown."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return {
            "fault": self.fault,
            "outcome": self.outcome,
            "clause": self.clause,
            "expected": self.expected,
            "steps": len(self.story),
            "story": list(self.story),
            "examples": self.examples,
            "repeats": self.repeats,
            "seconds": round(self.seconds, 3),
            "why": self.why,
        }


def summarise_kill(fault: str, result: Outcome, seconds: float) -> Kill:
    """Return what a run with this fault says of it."""
    failure = result.failure
    if failure is None:
        outcome = UNSETTLED if result.died or result.unsettled else SURVIVED
        why = result.died or (f"{result.unsettled} times not settled" if result.unsettled else "")
        return Kill(fault, outcome, seconds=seconds, examples=result.examples, why=why)
    clause = failure.violation.clause
    return Kill(
        fault,
        KILLED,
        clause,
        clause in EXPECTED.get(fault, ()),
        failure.lines(),
        seconds,
        result.examples,
        failure.repeats,
    )


def run_matrix(
    faults: Sequence[str],
    settings: Settings,
    directory: Path,
    progress: Progress = lambda *_: None,
) -> list[Kill]:
    """Switch on one fault after another and run until each is caught or the budget ends.

    Each gets a run directory of its own below `directory`.
    """
    kills: list[Kill] = []
    for fault in faults:
        start = time.monotonic()
        profile = PROFILES.get(fault, settings.profile)
        chosen = replace(
            settings,
            connectable=BUNDLED,
            profile=profile,
            readings={**settings.readings, **READINGS.get(fault, {})},
            faults=(fault,),
            strict=True,
        )
        below = directory / fault
        below.mkdir(parents=True)
        result = run(chosen, below)
        result.as_document().write(below)
        kills.append(summarise_kill(fault, result, time.monotonic() - start))
        progress(f"{fault}: {kills[-1].outcome}", len(kills), len(faults))
    return kills


def matrix_verdict(kills: Sequence[Kill]) -> str:
    """Return the verdict: a survivor violates, an unknown outcome leaves it unknown.

    Where no fault was planted nothing was put to the test.
    """
    outcomes = {kill.outcome for kill in kills}
    if not outcomes:
        return VACUOUS
    if SURVIVED in outcomes:
        return VIOLATED
    return UNKNOWN if UNSETTLED in outcomes else HOLDS


def matrix_counts(kills: Sequence[Kill]) -> dict[str, int]:
    """Return the numbers of the report. No fault is known to change nothing: `equivalent` is 0."""
    outcomes = [kill.outcome for kill in kills]
    return {
        "faults": len(kills),
        "killed": outcomes.count(KILLED),
        "survived": outcomes.count(SURVIVED),
        "equivalent": 0,
        "unknown": outcomes.count(UNSETTLED),
        "unexpected": sum(kill.outcome == KILLED and not kill.expected for kill in kills),
    }


def matrix_document(
    faults: Sequence[str], settings: Settings, directory: Path, progress: Progress
) -> Document:
    """Run the matrix and return its document, which stands in the directory as well."""
    start = time.monotonic()
    kills = run_matrix(faults, settings, directory, progress)
    document = Document(
        "faults",
        matrix_verdict(kills),
        time.monotonic() - start,
        matrix_counts(kills),
        seed=settings.seed,
        profile=settings.profile,
        readings=settings.readings,
        body={"matrix": [kill.as_dict() for kill in kills], "directory": str(directory)},
    )
    document.write(directory)
    return document


def render_matrix(document: Document, form: str, *, verbose: bool) -> str:
    """Return verdict and counts, then as a table the faults to look at; all with `verbose`."""
    columns = ["fault", "outcome", "by clause", "expected", "steps", "seconds"]
    matrix = document.body["matrix"]
    rows = [
        [
            kill["fault"],
            kill["outcome"],
            kill["clause"],
            "yes" if kill["expected"] else "no",
            kill["steps"],
            round(kill["seconds"], 1),
        ]
        for kill in matrix
        if verbose or kill["outcome"] != KILLED or not kill["expected"]
    ]
    counts = ", ".join(f"{name} {value}" for name, value in document.counts.items())
    parts = [paint(f"{document.verdict.upper()} in {document.seconds:.1f} s: {counts}")]
    if rows:
        parts += ["", render_table("Kill matrix", columns, rows, form).rstrip("\n")]
    if len(rows) < len(matrix):
        parts += ["", f"{len(matrix) - len(rows)} killed as expected; --verbose lists them."]
    return "\n".join(parts)
