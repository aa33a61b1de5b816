"""One run as several: processes with servers and seeds of their own, and one result of them all.

Each worker is a `reassure test` in a directory of its own below that of the run, `worker-N`, so
that it is watched over, kept and repeated like any other, and ends with whoever began it. The first
runs the test cases, all generate. The file `stop` ends all of them in good order: a worker that
found a violation makes it, and where the run goes on until everything is covered, who waits for
them, as soon as each clause was exercised by one of them.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate.run_settings import COVERED, MISSING, Settings
from reassure_conformance.report.document import (
    RESULT,
    UNKNOWN,
    VACUOUS,
    VIOLATED,
    Document,
    worst,
)
from reassure_judge.verdicts import ClauseVerdict, merge_verdicts
from reassure_spec.errors import Unavailable

STRIDE: Final = 1_000_003
"""What a worker's seed is beyond that of the worker before it."""
STOP: Final = "stop"
"""The file that ends every worker."""
PROGRAM: Final = (sys.executable, "-c", "from reassure_conformance.cli import main; main()")
"""What carries out a command line of ours, wherever its packages lie."""
# Ends the command that follows when the pipe at its input ends: who began it is gone then.
_GUARD: Final = """
exec 3<&0 </dev/null
"$@" 3<&- &
run=$!
{ read -r word; kill "$run"; } <&3 3<&- &
lifeline=$!
exec 3<&-
wait "$run"; code=$?
kill "$lifeline" 2>/dev/null
exit "$code"
"""
_LOOK_S: Final = 0.2
_SUMMED: Final = frozenset(
    {
        *("examples", "steps", "transactions", "stories", "refused", "skipped", "unsettled"),
        *("not_followed", "observations", "records", "acknowledged"),
    }
)


class WorkerEnded(Unavailable):
    """A worker ended without a result."""


def spell_run(settings: Settings, directory: Path) -> list[str]:
    """Return the command line of `reassure test` for these settings."""
    return [
        "test",
        *("--implementation", settings.connectable, "--profile", settings.profile),
        *(f"--reading={name}={value}" for name, value in settings.readings.items()),
        *(f"--fault={fault}" for fault in settings.faults),
        *("--seed", str(settings.seed), "--out", str(directory)),
        *("--examples", str(settings.examples), "--steps", str(settings.steps_min)),
        *("--seconds", str(settings.seconds_max), "--hang-after", str(settings.hang_s)),
        *("--world", settings.world),
        *(("--until", settings.until) if settings.until else ()),
        *(("--stop-at", settings.stop_at) if settings.stop_at else ()),
        *(("--failures", settings.failures) if settings.failures else ()),
        *("--require", "all" if settings.require_all else "declared"),
        *(() if settings.with_stories else ("--no-stories",)),
        *(("--strict",) if settings.strict else ()),
    ]


def share(settings: Settings, workers: int, directory: Path) -> list[Settings]:
    """Return what each worker is asked to do."""
    return [
        replace(
            settings,
            seed=settings.seed + number * STRIDE,
            examples=-(-settings.examples // workers),
            steps_min=-(-settings.steps_min // workers),
            with_stories=settings.with_stories and number == 0,
            stop_at=str(directory / STOP),
        )
        for number in range(workers)
    ]


def run_together(
    settings: Settings,
    workers: int,
    directory: Path,
    progress: Callable[[str, int, int], None],
) -> Document:
    """Carry out one run in several processes. Raises WorkerEnded."""
    start = time.monotonic()
    places, running = [], []
    try:
        for number, one in enumerate(share(settings, workers, directory), start=1):
            places.append(directory / f"worker-{number}")
            with (directory / f"worker-{number}.txt").open("w", encoding="utf-8") as said:
                command = *PROGRAM, *spell_run(one, places[-1])
                running.append(
                    subprocess.Popen(
                        ["/bin/sh", "-c", _GUARD, "guard", *command],
                        stdin=subprocess.PIPE,
                        stdout=said,
                        stderr=said,
                    )
                )
        while any(process.poll() is None for process in running):
            count = sum(process.returncode is not None for process in running)
            progress("workers that have ended", count, workers)
            if settings.until == COVERED and find_missing(places) == []:
                (directory / STOP).touch()
            time.sleep(_LOOK_S)
    finally:
        for process in running:
            process.communicate()  # closes the pipe, and waits
    results = [
        read_result(place, process.returncode)
        for place, process in zip(places, running, strict=True)
    ]
    return merge(settings, results, time.monotonic() - start)


def find_missing(places: Sequence[Path]) -> list[str] | None:
    """Return what no worker has put to the test so far, None before one has told of itself."""
    files = [place / MISSING for place in places]
    told = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
    return _in_all(told) if told else None


def read_result(place: Path, code: int) -> Mapping[str, Any]:
    """Return the document of a worker. Raises WorkerEnded with what it said where there is none."""
    if not (place / RESULT).is_file():
        said = place.with_suffix(".txt").read_text(encoding="utf-8").strip()
        raise WorkerEnded(
            f"{place.name} ended with exit code {code} and no result; its output:\n{said}"
        )
    found: Mapping[str, Any] = json.loads((place / RESULT).read_text(encoding="utf-8"))
    return found


def merge(settings: Settings, results: Sequence[Mapping[str, Any]], seconds: float) -> Document:
    """Return the one document of a run that several workers carried out.

    A clause is put to the test where it was by any of them. What tells a failure is that of the
    first worker that has one, its directory too: that is what is replayed.
    """
    shown = next((each for each in results if each["verdict"] == VIOLATED), results[0])
    shown = next((each for each in results if each["died"]), shown) if not shown["story"] else shown
    missing = _in_all([each["not_exercised"] for each in results])
    counts = _merge_counts(results, len(missing))
    stale = sorted({name for each in results for name in each["stale"]})
    found = [VACUOUS] if missing or stale else []
    found += [each["verdict"] for each in results if each["verdict"] in (VIOLATED, UNKNOWN)]
    not_asked = _in_all([each["not_asked"] for each in results])
    return Document(
        "run",
        worst(found),
        seconds,
        counts,
        seed=settings.seed,
        profile=shown["profile"],
        readings=shown["readings"],
        exit_code=Unavailable.exit_code if shown["died"] and VIOLATED not in found else None,
        body={
            **{name: value for name, value in shown.items() if name not in _HEAD},
            "steps": counts["steps"],
            "clauses": [each.as_dict() for each in _merge_clauses(results)],
            "clause_seconds": add_seconds(each["clause_seconds"] for each in results),
            "not_exercised": missing,
            "not_asked": {clause: shown["not_asked"][clause] for clause in not_asked},
            "lacking": {
                needs: left
                for needs, clauses in shown["lacking"].items()
                if (left := [clause for clause in clauses if clause in not_asked])
            },
            "not_followed": [record for each in results for record in each["not_followed"]],
            **_merge_asides(results),
            **_merge_score(results),
            "meetings": _merge_meetings(results),
            "unsettled": sum(each["unsettled"] for each in results),
            "stale": stale,
            "situations": [
                {**each, "reached": _add(result["situations"][at]["reached"] for result in results)}
                for at, each in enumerate(shown["situations"])
            ],
            "workers": [
                {name: each[name] for name in ("seed", "verdict", "exit_code", "directory")}
                for each in results
            ],
        },
    )


def add_seconds(each: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return by clause the seconds of all runs.

    >>> add_seconds([{"a.b": 1.0}, {"a.b": 0.5, "c.d": 2.0}])
    {'a.b': 1.5, 'c.d': 2.0}
    """
    total = Counter[str]()
    for one in each:
        total.update(one)
    return {clause: round(seconds, 3) for clause, seconds in sorted(total.items())}


def _merge_asides(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the first of each clause that was broken and counts for no verdict, if it was kept."""
    asides: dict[str, Any] = {}
    for each in (aside for result in results for aside in result.get("asides", ())):
        asides.setdefault(each["violation"]["clause"], each)
    return {"asides": list(asides.values())} if asides else {}


def _merge_meetings(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what met, and how often in all workers."""
    every = zip(*(each.get("meetings", ()) for each in results), strict=True)
    return [{**same[0], "reached": sum(each["reached"] for each in same)} for same in every]


def _merge_score(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mutants that survive the states of every worker, if all of them were scored."""
    if not all(each["mutants"] for each in results):
        return {"mutants": {}, "survivors": []}
    alive = set(_in_all([[mutant["name"] for mutant in each["survivors"]] for each in results]))
    return {
        "mutants": results[0]["mutants"],
        "survivors": [each for each in results[0]["survivors"] if each["name"] in alive],
    }


_OPEN: Final = frozenset({UNKNOWN, "not exercised"})
_HEAD: Final = frozenset(
    {"verb", "version", "verdict", "exit_code", "seconds", "seed", "profile", "readings", "counts"}
) | {"schema"}


def _in_all(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return what stands in each of the lists, in the order of the first."""
    return [name for name in lists[0] if all(name in each for each in lists[1:])]


def _add(numbers: Iterator[int | None]) -> int | None:
    """Return the sum, None where there is nothing to add."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _merge_counts(results: Sequence[Mapping[str, Any]], missing: int) -> dict[str, int]:
    every = [each["counts"] for each in results]
    counts = {
        name: sum(each[name] for each in every) if name in _SUMMED else value
        for name, value in every[0].items()
    }
    counts["clauses_required"] = max(each["clauses_required"] for each in every)
    counts["clauses_exercised"] = counts["clauses_required"] - missing
    if "mutants" in counts:
        score = _merge_score(results)
        counts["mutants"] = sum(score["mutants"].values())
        counts["mutants_killed"] = counts["mutants"] - len(score["survivors"])
    if "meetings" in counts:
        counts["meetings_reached"] = sum(1 for m in _merge_meetings(results) if m["reached"])
    reached = zip(*(each["situations"] for each in results), strict=True)
    counts["situations_reached"] = sum(any(one["reached"] for one in same) for same in reached)
    return counts


def _merge_clauses(results: Sequence[Mapping[str, Any]]) -> Iterator[ClauseVerdict]:
    for same in zip(*(each["clauses"] for each in results), strict=True):
        verdicts = [ClauseVerdict(**clause) for clause in same]
        # What one could not decide or never saw, another may have settled.
        yield merge_verdicts([each for each in verdicts if each.verdict not in _OPEN] or verdicts)
