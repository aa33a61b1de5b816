"""What the verb `scenarios` answers: every scenario told to the model, or to the controller."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

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
from reassure_conformance.scenarios.told_scenario import Outcome
from reassure_conformance.script import SUFFIX, read_script
from reassure_spec.words import ScenarioError

Progress = Callable[[str, int, int], None]

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"


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
            if script.world == story.WORLD:
                story.read_story(Path(name))
            else:
                read_scenario(Path(name))
        except ScenarioError as error:
            wrong.append(str(error))
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return Document("scenarios", HOLDS, None, {"files": len(names)})


def tell_model(scenarios: Sequence[Scenario], progress: Progress) -> tuple[Outcome, ...]:
    """Tell scenarios to the model. Raises ScenarioError."""
    outcomes = []
    for number, scenario in enumerate(scenarios):
        progress(name_scenario(scenario), number, len(scenarios))
        found = run_scenario(scenario)
        outcomes.append(Outcome(scenario, found=found, difference=compare(scenario, found)))
    return tuple(outcomes)


def tell_live(
    scenarios: Sequence[Scenario], faults: tuple[str, ...], progress: Progress
) -> tuple[Outcome, ...]:
    """Tell scenarios to the controller on a server of their own.

    Raises UnknownFault, AdapterDied, ServerGone, ServerError, JavaError.
    """
    from reassure_conformance.scenarios.live import LiveServer

    outcomes = []
    with _quiet(), LiveServer.start(faults) as server:
        for number, scenario in enumerate(scenarios):
            progress(name_scenario(scenario), number, len(scenarios))
            outcomes.append(server.tell(scenario))
    return tuple(outcomes)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the controller warns of to itself: a story is about that, and expects it."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def judge_outcome(outcome: Outcome) -> str:
    """Return `failed`, `skipped` or `passed`; what was skipped half-way can have failed before."""
    if outcome.failed:
        return FAILED
    return SKIPPED if outcome.skipped else PASSED


def scenarios_document(
    names: Sequence[str], progress: Progress, *, live: bool, faults: tuple[str, ...] = ()
) -> Document:
    """Tell the scenarios that are asked for and return what came of them.

    Raises what `choose_scenarios`, `tell_model` and `tell_live` raise.
    """
    start = time.monotonic()
    scenarios = choose_scenarios(names)
    outcomes = tell_live(scenarios, faults, progress) if live else tell_model(scenarios, progress)
    became = Counter(judge_outcome(outcome) for outcome in outcomes)
    verdict = VIOLATED if became[FAILED] else HOLDS if became[PASSED] else VACUOUS
    counts = {
        "scenarios": len(outcomes),
        **{name: became[name] for name in (PASSED, FAILED, SKIPPED)},
        "transactions": sum(outcome.transactions for outcome in outcomes),
        "raises": sum(sum(outcome.raises.values()) for outcome in outcomes),
    }
    body = {
        "told_to": "controller" if live else "model",
        "faults": list(faults),
        "passed": [name_scenario(o.scenario) for o in outcomes if judge_outcome(o) == PASSED],
        "skipped": _group_skipped(outcomes),
        "failures": [_describe(outcome) for outcome in outcomes if outcome.failed],
    }
    return Document("scenarios", verdict, time.monotonic() - start, counts, body=body)


def _group_skipped(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Return the reasons, the most frequent first, each with the scenarios it holds for."""
    reasons: dict[str, list[str]] = {}
    for outcome in outcomes:
        if judge_outcome(outcome) == SKIPPED:
            reasons.setdefault(outcome.skipped, []).append(name_scenario(outcome.scenario))
    ordered = sorted(reasons.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [
        {"reason": reason, "count": len(names), "scenarios": names} for reason, names in ordered
    ]


def _describe(outcome: Outcome) -> dict[str, Any]:
    return {
        "scenario": name_scenario(outcome.scenario),
        "clauses": list(outcome.scenario.clauses),
        "difference": outcome.difference,
        "violations": [violation.as_dict() for violation in outcome.violations],
    }


def render_scenarios(document: Document, form: str) -> str:
    """Return the verdict and the sums, the differences, and the reasons for what was skipped."""
    body, counts = document.body, document.counts
    sums = display.say_counts(counts)
    told = f"told to the {body['told_to']} in {document.seconds:.1f} s"
    lines = [display.paint(f"{document.verdict.upper()}, {told}: {sums}")]
    for failure in body["failures"]:
        lines.append(f"{failure['scenario']}:")
        lines += [f"  {line}" for line in failure["difference"].splitlines()]
        lines += [
            f"  {v['clause']} at zxid {v['zxid']}: {v['reason']}; expected {v['expected']}"
            for v in failure["violations"]
        ]
    if body["skipped"]:
        rows = [[entry["reason"], entry["count"]] for entry in body["skipped"]]
        lines.append(display.render_table("Skipped", ["reason", "scenarios"], rows, form))
    return "\n".join(lines)
