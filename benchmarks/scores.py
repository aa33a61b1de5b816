"""How many mutants of the rules a run kills: by profile, by how much is run, by what is declared.

Each row is a run of its own with the bundled implementation: its test cases alone, a default run,
and default runs of an adapter that can do less. Behind a figure stands the verdict where it is not
*holds*. Controllers live in the virtual world, where a run takes less than a minute and a seed is a
run.

    python benchmarks/scores.py [SEED] [PROFILE...]
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from reassure_conformance.adapter import Description
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.world import REAL_WORLD, VIRTUAL_WORLD
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.gate.running import run
from reassure_mutation.table import find_worlds
from reassure_spec.readings import PROFILES

LESS = ("isr", "isr brokers kill")
"""What an adapter declares that can do less."""
HEADS = ("profile", "test cases alone", "default run", *LESS)


class Lesser(Bundled):
    """The bundled controller, of which little is declared."""

    def __init__(self, *, declared: str, **options: Any) -> None:
        super().__init__(**options)
        self._declared = frozenset(declared.split())

    def describe(self) -> Description:
        """Return what it can, and no more than is declared."""
        said = super().describe()
        return replace(said, capabilities=said.capabilities & self._declared)


def list_runs(seed: int, profile: str) -> Iterator[Settings]:
    """Yield what is run under a profile, in the order of the table."""
    world = REAL_WORLD if profile == REPLICATION else VIRTUAL_WORLD
    whole = Settings(seed, profile=profile, examples=300, world=world)
    yield replace(whole, examples=0, steps_min=0)
    yield whole
    for declared in LESS if profile != REPLICATION else ():
        yield replace(whole, connectable=f"direct:scores:Lesser?declared={declared}")


def score(settings: Settings) -> str:
    """Return what a run killed of what can be killed, and the verdict where it does not hold."""
    with tempfile.TemporaryDirectory() as scratch:
        result = run(settings, Path(scratch)).as_document()
    counts, verdict = result.counts, result.verdict
    said = f"{counts['mutants_killed']} of {counts['mutants']}"
    return said if verdict == "holds" else f"{said}, {verdict}"


def main() -> None:
    """Print a table for a page, a row for each profile."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    profiles = sys.argv[2:] or [each for each in PROFILES if find_worlds(each)]
    print("|", " | ".join(HEADS), "|")
    print("|---" * len(HEADS) + "|")
    for profile in profiles:
        cells = [f"`{profile}`", *map(score, list_runs(seed, profile))]
        print("|", " | ".join((*cells, *"-" * (len(HEADS) - len(cells)))), "|", flush=True)


if __name__ == "__main__":
    main()
