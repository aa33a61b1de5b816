"""Vectors: the scenarios as JSON lines, for implementations in any language.

`export_vectors` writes `scenarios.jsonl`, one scenario a line, and `manifest.json`, which says what
is in it. Each line has `area`, `name`, `why`, `profile`, `readings` (all of them, with the values
that the scenario runs under), `clauses`, `world`, and `steps`: a list of `{command, arguments,
expected}` of which the first makes the world. Every scenario is run before it is exported, so that
no vector says what the model does not.

The same scenarios give the same bytes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from reassure_conformance.report.document import get_version, write_text
from reassure_conformance.scenarios.scenario import (
    Scenario,
    compare,
    find_scenarios,
    read_scenario,
    run_scenario,
)
from reassure_spec.words import ScenarioError

FORMAT: Final = 1
"""Version of the format of lines and manifest; raised when a reader would have to change."""
LINES: Final = "scenarios.jsonl"
MANIFEST: Final = "manifest.json"


def make_vector(scenario: Scenario) -> dict[str, Any]:
    """Return one scenario as JSON values.

    Raises ScenarioError when the model does not answer what the scenario expects.
    """
    difference = compare(scenario, run_scenario(scenario))
    if difference:
        raise ScenarioError(f"{scenario.origin}: the model answers otherwise:\n{difference}")
    return {
        "area": scenario.area,
        "name": scenario.name,
        "why": " ".join(scenario.why),
        "profile": scenario.profile,
        "readings": scenario.readings.as_dict(),
        "clauses": list(scenario.clauses),
        "world": scenario.world,
        "steps": [
            {
                "command": block.command,
                "arguments": dict(block.arguments),
                "expected": None if block.expected is None else list(block.expected),
            }
            for block in scenario.blocks
        ],
    }


def _make_manifest(vectors: Sequence[dict[str, Any]], lines: str) -> dict[str, Any]:
    clauses = Counter(clause for vector in vectors for clause in vector["clauses"])
    return {
        "format": FORMAT,
        "version": get_version(),
        "files": [
            {
                "name": LINES,
                "vectors": len(vectors),
                "sha256": hashlib.sha256(lines.encode()).hexdigest(),
            }
        ],
        "areas": dict(sorted(Counter(vector["area"] for vector in vectors).items())),
        "profiles": dict(sorted(Counter(vector["profile"] for vector in vectors).items())),
        "worlds": dict(sorted(Counter(vector["world"] for vector in vectors).items())),
        "clauses": dict(sorted(clauses.items())),
    }


def export_vectors(out: Path, folder: Path | None = None) -> dict[str, Any]:
    """Write vectors and manifest of all scenarios into the directory `out`; return the manifest.

    `folder` holds the areas; without it the spec's own scenarios are taken. The directory is made
    if need be; files of the same name are replaced. Raises ScenarioError, OSError.
    """
    vectors = [make_vector(read_scenario(path)) for path in find_scenarios(folder)]
    lines = "".join(json.dumps(vector, sort_keys=True) + "\n" for vector in vectors)
    manifest = _make_manifest(vectors, lines)
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / LINES, lines)
    write_text(out / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return manifest
