"""Releases of Apache Kafka against the clauses: what holds, is broken, or was not put to the test.

`python benchmarks/kafka_matrix.py 3.9.1 2.3.1 > docs/kafka-matrix.md` drives each of them by the
same test cases and makes the page. A clause that is known to be broken does not end a run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reassure_spec.bugs import load_bugs

ABOUT: Final = """# Releases of Apache Kafka, clause by clause

Each release was driven by {stories} test cases ([how](kafka.md)), and what it wrote was judged. A
number says how often a clause was put to the test and kept; **n broken** how often it was not, with
the bugs of which that can be the shape. Where nothing stands it was not put to the test. Clauses
that no release put to the test are not listed.
Made by `python benchmarks/kafka_matrix.py {versions} > docs/kafka-matrix.md`.
"""
OWN: Final = {
    "assigned.no-duplicates": "a target that names a replica twice",
    "shipped.assignment.lists-within": "a target of no replica",
}
"""What is broken and has no number, by clause."""
Run = Mapping[str, Any]


def list_known() -> dict[str, str]:
    """Return the clauses that bugs of Kafka break, each with the bugs."""
    found: dict[str, list[str]] = {clause: [words] for clause, words in OWN.items()}
    for bug in load_bugs():
        for clause in bug.clauses:
            found.setdefault(clause, []).append(bug.id)
    return {clause: ", ".join(dict.fromkeys(bugs)) for clause, bugs in found.items()}


def drive(version: str, stories: int, known: Mapping[str, str], folder: Path) -> Run:
    """Return what came of a run against a release."""
    file = folder / "known.txt"
    file.write_text("".join(f"flaky {clause} {bugs}\n" for clause, bugs in known.items()))
    out = folder / version
    bounded = ("--stories", str(stories), "--examples", "0", "--seed", "7", "--known", str(file))
    asked = ("test", "-i", f"kafka:{version}", *bounded, "--out", str(out), "--format", "json")
    command = (Path(sys.executable).with_name("reassure"), *asked)
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    try:
        result: Run = json.loads(said.stdout)
    except ValueError:
        sys.exit(f"Kafka {version} could not be driven: {said.stderr or said.stdout}")
    sys.stderr.write(f"{version}: {result['verdict']}, {result['counts']}\n")
    return result


def show(clause: str, run: Run, known: Mapping[str, str]) -> str:
    """Return a cell of the table."""
    found = next((each for each in run["clauses"] if each["id"] == clause), None)
    broken = sum(each["seen"] for each in run["known"] if each["name"] == clause)
    broken += sum(each["clause"] == clause for each in run["violations"])
    if broken:
        return f"**{broken} broken**: {known.get(clause, 'not known')}"
    return str(found["exercised"] or "") if found else ""


def render(runs: Mapping[str, Run], known: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the page's tables."""
    titles: Sequence[str] = list(runs)
    yield "| | " + " | ".join(titles) + " |"
    yield "|---|" + "---|" * len(titles)
    for name in ("profile", "verdict"):
        yield f"| {name} | " + " | ".join(str(run[name]) for run in runs.values()) + " |"
    for name in ("stories", "transactions", "unsettled"):
        yield (
            f"| {name} | " + " | ".join(f"{run['counts'][name]:,}" for run in runs.values()) + " |"
        )
    clauses = sorted({each["id"] for run in runs.values() for each in run["clauses"]})
    for clause in clauses:
        cells = [show(clause, run, known) for run in runs.values()]
        if any(cells):
            yield f"| `{clause}` | " + " | ".join(cells) + " |"


def main() -> None:
    """Drive the releases and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--stories", type=int, default=14)
    asked = parser.parse_args()
    known = list_known()
    with tempfile.TemporaryDirectory(prefix="reassure-matrix-") as folder:
        runs = {each: drive(each, asked.stories, known, Path(folder)) for each in asked.versions}
    versions = " ".join(asked.versions)
    sys.stdout.write(ABOUT.format(stories=asked.stories, versions=versions) + "\n")
    sys.stdout.write("\n".join(render(runs, known)) + "\n")


if __name__ == "__main__":
    main()
