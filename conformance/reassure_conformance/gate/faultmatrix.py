"""The kill matrix: every planted fault against the gate, and which clause caught it.

A gate that never fails proves nothing. Each fault of the bundled controller, or of its brokers, is
switched on by itself, and stories and generated examples run until a clause is violated. The fault
is *killed* then; one that nothing catches *survives*, and so fails the matrix. `EXPECTED` says
which clauses are made for which fault; a kill by another clause counts, but is shown as unexpected.
Every clause binds here, a SHOULD as well: the question is whether the fault is seen, not how bad it
is.
"""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
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
    seed: int
    outcome: str
    """`killed`, `survived`, or `unknown` where the run could not say."""
    clause: str = ""
    """The clause that caught it."""
    expected: bool = False
    """Whether that is one of `EXPECTED`."""
    story: tuple[str, ...] = ()
    seconds: float = 0.0
    processor_s: float = 0.0
    """Processor time, of ZooKeeper as well: what it costs, whatever else the machine does."""
    examples: int = 0
    repeats: bool = False
    why: str = ""
    """Why the outcome is unknown."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return {
            "fault": self.fault,
            "seed": self.seed,
            "outcome": self.outcome,
            "clause": self.clause,
            "expected": self.expected,
            "steps": len(self.story),
            "story": list(self.story),
            "examples": self.examples,
            "repeats": self.repeats,
            "seconds": round(self.seconds, 3),
            "processor_s": round(self.processor_s, 3),
            "why": self.why,
        }


def summarise_kill(fault: str, seed: int, result: Outcome, seconds: float) -> Kill:
    """Return what a run with this fault says of it."""
    failure = result.failure
    if failure is None:
        outcome = UNSETTLED if result.died or result.unsettled else SURVIVED
        why = result.died or (f"{result.unsettled} times not settled" if result.unsettled else "")
        return Kill(fault, seed, outcome, seconds=seconds, examples=result.examples, why=why)
    clause = failure.violation.clause
    return Kill(
        fault,
        seed,
        KILLED,
        clause,
        clause in EXPECTED.get(fault, ()),
        failure.lines(),
        seconds,
        result.examples,
        failure.repeats,
    )


def _measure_processor_s() -> float:
    """Return what this process has used so far, and those that it started and that have ended."""
    used = map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def plant(fault: str, settings: Settings, directory: Path) -> Kill:
    """Switch on one fault and run until it is caught or the budget ends."""
    start, used = time.monotonic(), _measure_processor_s()
    chosen = replace(
        settings,
        connectable=BUNDLED,
        profile=PROFILES.get(fault, settings.profile),
        readings={**settings.readings, **READINGS.get(fault, {})},
        faults=(fault,),
        strict=True,
    )
    directory.mkdir(parents=True)
    result = run(chosen, directory)
    result.as_document().write(directory)
    kill = summarise_kill(fault, settings.seed, result, time.monotonic() - start)
    return replace(kill, processor_s=_measure_processor_s() - used)


def run_matrix(
    faults: Sequence[str],
    settings: Settings,
    directory: Path,
    progress: Progress = lambda *_: None,
    *,
    seeds: int = 1,
    workers: int = 1,
) -> list[Kill]:
    """Plant each fault at each of the seeds, in so many processes, and return what came of each.

    Each planting gets a run directory of its own below `directory`, `FAULT/SEED`.
    """
    plantings = [
        (fault, replace(settings, seed=seed), directory / fault / str(seed))
        for fault in faults
        for seed in range(settings.seed, settings.seed + seeds)
    ]
    kills: list[Kill] = []
    with ExitStack() as stack:
        planted: Iterable[Kill] = (plant(*planting) for planting in plantings)
        if workers > 1:
            pool = stack.enter_context(ProcessPoolExecutor(workers, get_context("spawn")))
            planted = pool.map(plant, *zip(*plantings, strict=True))
        for kill in planted:
            kills.append(kill)
            progress(f"{kill.fault}: {kill.outcome}", len(kills), len(plantings))
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
    """Return the numbers of the report. No fault is known to change nothing: `equivalent` is 0.

    A fault is killed where it is at every seed, and survives where it does at one.
    """
    outcomes: dict[str, set[str]] = {}
    for kill in kills:
        outcomes.setdefault(kill.fault, set()).add(kill.outcome)
    found = list(outcomes.values())
    survived = sum(SURVIVED in each for each in found)
    unknown = sum(UNSETTLED in each and SURVIVED not in each for each in found)
    return {
        "faults": len(found),
        "killed": len(found) - survived - unknown,
        "survived": survived,
        "equivalent": 0,
        "unknown": unknown,
        "unexpected": len({k.fault for k in kills if k.outcome == KILLED and not k.expected}),
        "steps_max": max((len(kill.story) for kill in kills), default=0),
    }


def matrix_document(
    faults: Sequence[str],
    settings: Settings,
    directory: Path,
    progress: Progress,
    *,
    seeds: int = 1,
    workers: int = 1,
) -> Document:
    """Run the matrix and return its document, which stands in the directory as well."""
    start = time.monotonic()
    kills = run_matrix(faults, settings, directory, progress, seeds=seeds, workers=workers)
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
    columns = ["fault", "seed", "outcome", "by clause", "expected", "steps", "seconds"]
    matrix = document.body["matrix"]
    rows = [
        [
            kill["fault"],
            kill["seed"],
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
