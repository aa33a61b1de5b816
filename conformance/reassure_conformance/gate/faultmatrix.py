"""The kill matrix: every planted fault against the gate, and which clause caught it.

A gate that never fails proves nothing. Each fault of the bundled controller, or of its brokers, is
planted by itself, and stories and generated examples run until a clause is violated. The fault is
*killed* then; one that nothing catches *survives*, and so fails the matrix. One whose text does not
stand in the controller any more cannot be planted: it is *gone*, which is an error of the
catalogue. The catalogue (`reassure_conformance.mutants`) says which clauses are made for which
fault; a kill by another clause counts, but is shown as unexpected.
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

from reassure_conformance.gate.run_outcome import RunOutcome
from reassure_conformance.gate.run_settings import BUNDLED, Progress, Settings
from reassure_conformance.gate.running import run
from reassure_conformance.mutants import load_mutants
from reassure_conformance.mutants.exchange import StalePatch, prepare
from reassure_conformance.report.display import paint, render_table, say_counts
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_spec.errors import BadConfiguration
from reassure_zookeeper.server import Server

KILLED: Final = "killed"
SURVIVED: Final = "survived"
UNSETTLED: Final = "unknown"
GONE: Final = "gone"
PER_SERVER: Final = 8
"""How many are planted one after another on the same ZooKeeper, which takes as long to start as
many a fault lives; its log grows with each, and is read from the beginning by each."""

Planting = tuple[str, Settings, Path]
"""A fault, what is asked of its run, and the directory of that."""


@dataclass(frozen=True, slots=True)
class MutantKill:
    """What came of one fault."""

    fault: str
    seed: int
    outcome: str
    """`killed`, `survived`, `unknown` where the run could not say, or `gone` where the
    fault cannot be planted any more."""
    clause: str = ""
    """The clause that caught it."""
    expected: bool = False
    """Whether that is one that is made for the fault."""
    story: tuple[str, ...] = ()
    seconds: float = 0.0
    examples: int = 0
    repeats: bool = False
    why: str = ""
    """Why the outcome is `unknown` or `gone`."""

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
            "why": self.why,
        }


def summarise_kill(fault: str, seed: int, result: RunOutcome, seconds: float) -> MutantKill:
    """Return what a run with this fault says of it."""
    failure = result.failure
    if failure is None:
        outcome = UNSETTLED if result.died or result.unsettled else SURVIVED
        why = result.died or (f"{result.unsettled} times not settled" if result.unsettled else "")
        return MutantKill(fault, seed, outcome, seconds=seconds, examples=result.examples, why=why)
    clause = failure.violation.clause
    return MutantKill(
        fault,
        seed,
        KILLED,
        clause,
        clause in load_mutants()[fault].clauses,
        failure.story.lines(),
        seconds,
        result.examples,
        failure.repeats,
    )


def _measure_processor_s() -> float:
    """Return what this process has used so far, and those that it started and that have ended."""
    used = map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def plant(
    fault: str, settings: Settings, directory: Path, server: Server | None = None
) -> MutantKill:
    """Plant one fault and run until it is caught or the budget ends.

    The run has the server for itself meanwhile, or starts one.
    """
    start = time.monotonic()
    mutant = load_mutants()[fault]
    try:
        prepare(mutant.patches)
    except StalePatch as stale:
        return MutantKill(fault, settings.seed, GONE, why=str(stale))
    chosen = replace(
        settings,
        connectable=BUNDLED,
        profile=mutant.profile or settings.profile,
        readings={**settings.readings, **mutant.readings},
        faults=(fault,),
        strict=True,
    )
    directory.mkdir(parents=True)
    result = run(chosen, directory, server=server)
    result.as_document().write(directory)
    return summarise_kill(fault, settings.seed, result, time.monotonic() - start)


def _plant_several(plantings: Sequence[Planting]) -> list[MutantKill]:
    """Plant one after another, all on the same server."""
    with Server.start() as server:
        return [plant(*planting, server) for planting in plantings]


def run_matrix(
    faults: Sequence[str],
    settings: Settings,
    directory: Path,
    progress: Progress = lambda *_: None,
    *,
    seeds: int = 1,
    workers: int = 1,
) -> list[MutantKill]:
    """Plant each fault at each of the seeds, in so many processes, and return what came of each.

    Each planting gets a run directory of its own below `directory`, `FAULT/SEED`.
    """
    plantings = [
        (fault, replace(settings, seed=seed), directory / fault / str(seed))
        for fault in faults
        for seed in range(settings.seed, settings.seed + seeds)
    ]
    kills: list[MutantKill] = []
    with ExitStack() as stack:
        shares = [plantings[at : at + PER_SERVER] for at in range(0, len(plantings), PER_SERVER)]
        planted: Iterable[list[MutantKill]] = map(_plant_several, shares)
        if workers > 1:
            pool = stack.enter_context(ProcessPoolExecutor(workers, get_context("spawn")))
            planted = pool.map(_plant_several, shares)
        for share in planted:
            kills += share
            progress(f"up to {share[-1].fault}", len(kills), len(plantings))
    return kills


def matrix_verdict(kills: Sequence[MutantKill]) -> str:
    """Return the verdict: a survivor violates; a fault of which nobody can tell leaves it unknown.

    Where no fault was planted nothing was put to the test.
    """
    outcomes = {kill.outcome for kill in kills}
    if not outcomes:
        return VACUOUS
    if SURVIVED in outcomes:
        return VIOLATED
    return UNKNOWN if outcomes & {UNSETTLED, GONE} else HOLDS


def matrix_counts(kills: Sequence[MutantKill]) -> dict[str, int]:
    """Return the numbers of the report. No fault is known to change nothing: `equivalent` is 0.

    A fault is killed where it is at every seed, and survives where it does at one.
    """
    outcomes: dict[str, set[str]] = {}
    for kill in kills:
        outcomes.setdefault(kill.fault, set()).add(kill.outcome)
    found = list(outcomes.values())
    survived = sum(SURVIVED in each for each in found)
    unknown = sum(UNSETTLED in each and SURVIVED not in each for each in found)
    gone = sum(GONE in each and each.isdisjoint({SURVIVED, UNSETTLED}) for each in found)
    return {
        "faults": len(found),
        "killed": len(found) - survived - unknown - gone,
        "survived": survived,
        "equivalent": 0,
        "unknown": unknown,
        "gone": gone,
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
    """Run the matrix and return its document, which stands in the directory as well.

    A fault that is gone is an error of the catalogue, and has the exit code of one.
    """
    start, used = time.monotonic(), _measure_processor_s()
    kills = run_matrix(faults, settings, directory, progress, seeds=seeds, workers=workers)
    document = Document(
        "faults",
        matrix_verdict(kills),
        time.monotonic() - start,
        matrix_counts(kills),
        seed=settings.seed,
        profile=settings.profile,
        readings=settings.readings,
        exit_code=BadConfiguration.exit_code if any(k.outcome == GONE for k in kills) else None,
        body={
            "matrix": [kill.as_dict() for kill in kills],
            "processor_s": round(_measure_processor_s() - used, 3),
            "directory": str(directory),
        },
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
    took = f"{document.verdict.upper()} in {document.seconds:.1f} s"
    parts = [paint(f"{took}: {say_counts(document.counts)}")]
    gone = {kill["fault"]: kill["why"] for kill in matrix if kill["outcome"] == GONE}
    parts += [f"\nERROR {fault}: {why}" for fault, why in gone.items()]
    if rows:
        parts += ["", render_table("Kill matrix", columns, rows, form).rstrip("\n")]
    if len(rows) < len(matrix):
        parts += ["", f"{len(matrix) - len(rows)} killed as expected; --verbose lists them."]
    return "\n".join(parts)
