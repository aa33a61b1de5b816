"""A campaign: many runs, each with a seed of its own, wherever there is a core; one result of all.

Each is a whole `reassure test`, with a server of its own and a directory below the campaign's, so
that what it finds is repeated from there. Only the first tells the stories. What a run has begun
ends with the campaign. A run that could not be carried out, or was not begun in time, is told, and
leaves the campaign unknown: it looked at fewer seeds than it was asked for.
"""

import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from reassure_conformance.answers.workers import (
    PROGRAM,
    STRIDE,
    WorkerEnded,
    merge,
    read_result,
    spell_run,
)
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.report.document import UNKNOWN, VIOLATED, Document, worst

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


@dataclass(frozen=True, slots=True)
class Charge:
    """One run of a campaign."""

    number: int
    settings: Settings
    directory: Path
    ends: float
    """When it is not begun any more, in seconds of the clock."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of one run."""

    seed: int
    result: Mapping[str, Any] | None
    """Its document, None where there is none."""
    reason: str = ""
    """Why there is none."""


Spread = Callable[[Sequence[Charge]], Sequence[Carried]]
"""Sees to it that runs are carried out (`carry_out`), all of them."""


def carry_out(charge: Charge) -> Carried:
    """Carry out one run, unless it is too late."""
    seed = charge.settings.seed
    if time.time() > charge.ends:
        return Carried(seed, None, "not begun in time")
    # A directory of an earlier campaign may be there.
    place = charge.directory / f"run-{charge.number}-{uuid.uuid4().hex[:8]}"
    with place.with_suffix(".txt").open("w", encoding="utf-8") as said:
        run = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", *PROGRAM, *spell_run(charge.settings, place)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
        )
        with run:  # an exception closes the pipe before it waits
            code = run.wait()
    try:
        return Carried(seed, read_result(place, code))
    except WorkerEnded as error:
        return Carried(seed, None, str(error))


@contextmanager
def spread_here(workers: int) -> Iterator[Spread]:
    """Carry out so many runs at a time on this machine."""
    with ThreadPoolExecutor(workers) as pool:
        yield lambda charges: list(pool.map(carry_out, charges))


def make_charges(settings: Settings, count: int, directory: Path, within_s: float) -> list[Charge]:
    """Return the runs of a campaign."""
    ends = time.time() + within_s
    return [
        Charge(
            number + 1,
            replace(
                settings,
                seed=settings.seed + number * STRIDE,
                with_stories=settings.with_stories and number == 0,
            ),
            directory.absolute(),
            ends,
        )
        for number in range(count)
    ]


def run_campaign(
    settings: Settings, count: int, directory: Path, within_s: float, spread: Spread
) -> Document:
    """Carry out so many runs; answer their one document, as `workers.merge` makes it.

    What tells a failure is that of the shortest story. No run is begun after `within_s`. Raises
    WorkerEnded where none came to a result.
    """
    start = time.monotonic()
    carried = spread(make_charges(settings, count, directory, within_s))
    return sum_up(settings, carried, time.monotonic() - start)


def sum_up(settings: Settings, carried: Sequence[Carried], seconds: float) -> Document:
    """Return the document of a campaign. Raises WorkerEnded where there is no result at all."""
    results = [each.result for each in carried if each.result is not None]
    left_out = [each for each in carried if each.result is None]
    if not results:
        raise WorkerEnded(f"no run came to a result; the first: {left_out[0].reason}")
    shortest = sorted(
        results, key=lambda each: (each["verdict"] != VIOLATED, len(each["story"]), each["seed"])
    )
    merged = merge(settings, shortest, seconds)
    verdict = worst([merged.verdict, UNKNOWN]) if left_out else merged.verdict
    return replace(
        merged,
        verdict=verdict,
        counts={**merged.counts, "runs": len(carried), "runs_left_out": len(left_out)},
        body={
            **merged.body,
            "workers": sorted(merged.body["workers"], key=lambda each: int(each["seed"])),
            "left_out": [{"seed": each.seed, "reason": each.reason} for each in left_out],
        },
    )
