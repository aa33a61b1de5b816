"""What the verb `scenarios` answers: every scenario told to the model."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from reassure_conformance.gate import story
from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, VACUOUS, VIOLATED, Document
from reassure_conformance.scenarios.scenario import (
    Scenario,
    compare,
    find_scenarios,
    read_scenario,
    run_scenario,
)
from reassure_conformance.script import SUFFIX, read_script
from reassure_spec.words import ScenarioError

Progress = Callable[[str, int, int], None]


def name_scenario(scenario: Scenario) -> str:
    """Return the name by which a scenario is asked for: its area and its own."""
    return f"{scenario.area}/{scenario.name}"


def choose_scenarios(names: Sequence[str]) -> tuple[Scenario, ...]:
    """Return the scenarios that are asked for; all of the spec's where no name is given.

    A name is `area`, `area/name`, or the path of a file or of a folder of areas. Raises
    ScenarioError for one that there is not.
    """
    every = find_scenarios()
    chosen: dict[Path, None] = {} if names else dict.fromkeys(every)
    for name in names:
        path = Path(name)
        area, _, stem = name.rstrip("/").partition("/")
        found: Iterable[Path] = [
            each
            for each in every
            if each.parent.name == area and (not stem or each.stem == stem.removesuffix(SUFFIX))
        ]
        if not found and path.is_file():
            found = [path]
        elif not found and path.is_dir():
            found = find_scenarios(path)
        if not found:
            areas = ", ".join(sorted({each.parent.name for each in every}))
            raise ScenarioError(
                f"no scenario {name!r}; name an area ({areas}), a scenario as area/name, or a file"
            )
        chosen |= dict.fromkeys(found)
    return tuple(read_scenario(path) for path in chosen)


def check_files(names: Sequence[str]) -> Document:
    """Read files of scenarios and of stories; raise ScenarioError with all that is wrong."""
    wrong = []
    for name in names:
        try:
            script = read_script(Path(name))
            if script.world in story.WORLDS:
                story.read_story(Path(name), script.world)
            else:
                read_scenario(Path(name))
        except ScenarioError as error:
            wrong.append(str(error))
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return Document("scenarios", HOLDS, None, {"files": len(names)})


def scenarios_document(names: Sequence[str], progress: Progress) -> Document:
    """Tell the scenarios that are asked for and return what came of them.

    Raises ScenarioError.
    """
    start = time.monotonic()
    scenarios = choose_scenarios(names)
    passed, failures = [], []
    for number, scenario in enumerate(scenarios):
        name = name_scenario(scenario)
        progress(name, number, len(scenarios))
        difference = compare(scenario, run_scenario(scenario))
        if difference:
            clauses = list(scenario.clauses)
            failures.append({"scenario": name, "clauses": clauses, "difference": difference})
        else:
            passed.append(name)
    verdict = VIOLATED if failures else HOLDS if passed else VACUOUS
    counts = {"scenarios": len(scenarios), "passed": len(passed), "failed": len(failures)}
    body = {"told_to": "model", "passed": passed, "failures": failures}
    return Document("scenarios", verdict, time.monotonic() - start, counts, body=body)


def render_scenarios(document: Document) -> str:
    """Return the verdict and the sums, and the differences."""
    sums = display.say_counts(document.counts)
    told = f"told to the model in {document.seconds:.1f} s"
    lines = [display.paint(f"{document.verdict.upper()}, {told}: {sums}")]
    for failure in document.body["failures"]:
        lines.append(f"{failure['scenario']}:")
        lines += [f"  {line}" for line in failure["difference"].splitlines()]
    return "\n".join(lines)
