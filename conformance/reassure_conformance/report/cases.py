"""What a result document holds, as cases: what every report for another program is made from.

A case is one thing that was asked, whatever the verb: a clause, a theorem, an invariant, a planted
fault, a scenario, a promise. `list_cases` is the one place that knows the verbs apart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reassure_conformance.report.display import describe_record, show_text
from reassure_conformance.report.document import NOT_DISCRIMINATED, VIOLATED
from reassure_spec.clauses import load_clauses

Result = Mapping[str, Any]
"""A document, as `result.schema.json` has it."""

PASSED: Final = "passed"
FAILED: Final = "failed"
ADVISED: Final = "advised"
"""Advice was not followed: no failure, and worth a warning."""
OPEN: Final = "open"
"""Nobody can say, or a required clause was not put to the test."""
SKIPPED: Final = "skipped"

WORDS: Final = {
    FAILED: "violated",
    OPEN: "not settled",
    ADVISED: "warning",
    PASSED: "holds",
    SKIPPED: "skipped",
}
"""What outcomes are called, in the order in which they are offered as filters."""

_OF_CLAUSES: Final = {
    "holds": PASSED,
    "violated": FAILED,
    "not followed": ADVISED,
    "unknown": OPEN,
    "not exercised": SKIPPED,
    NOT_DISCRIMINATED: SKIPPED,
}
_OF_THEOREMS: Final = {"holds": PASSED, "finding": PASSED, "violated": FAILED}
_OF_FAULTS: Final = {"killed": PASSED, "survived": FAILED}


DIED: Final = "adapter-died"
"""The case of an implementation that could not go on."""
_DEATHS: Final = ("verb", "implementation")
"""The groups of what ended a verb before its verdict."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that was asked, and what came of it."""

    group: str
    """What kind of thing it is."""
    name: str
    outcome: str
    """`PASSED`, `FAILED`, `ADVISED`, `OPEN` or `SKIPPED`."""
    message: str = ""
    """What is wrong, or why there is no answer, in a line."""
    details: tuple[str, ...] = ()
    """The evidence, as lines."""
    seconds: float = 0.0
    """How long it took: of a clause, the steps that put it to the test."""
    record: Mapping[str, Any] | None = None
    """The violation, where there is one."""

    @property
    def is_death(self) -> bool:
        """Whether an implementation died, or the verb came to no verdict."""
        return self.group in _DEATHS


def list_cases(result: Result) -> tuple[Case, ...]:
    """Return all that a document says was asked, in its order."""
    return tuple(_iterate(result))


def name_skipped(result: Result) -> Mapping[str, list[str]]:
    """Return the clauses that were skipped, by what the implementation would have to declare.

    The words say whether any one of several capabilities is enough, or all are needed.
    """
    lacking: Mapping[str, list[str]] = result.get("lacking") or {}
    return lacking if isinstance(lacking, Mapping) else {}


def find_needs(result: Result) -> Mapping[str, str]:
    """Return by clause that was skipped what it needs, in the same words.

    >>> find_needs({"lacking": {"deletion and brokers": ["a.b"], "kill": ["c.d"]}})
    {'a.b': 'deletion and brokers', 'c.d': 'kill'}
    """
    return {each: need for need, clauses in name_skipped(result).items() for each in clauses}


def is_cut_short(result: Result) -> bool:
    """Whether a violation or a death ended a run before it came to all that it was to cover."""
    return result["verdict"] == VIOLATED or bool(result.get("died"))


def say_seconds(seconds: float) -> str:
    """Return how long something took.

    >>> say_seconds(1.26)
    '1.3 s'
    """
    return f"{seconds:.1f} s"


def describe_clause(clause_id: str) -> str:
    """Return the sentence of a clause, "" for what is none."""
    clause = load_clauses().get(clause_id)
    return "" if clause is None else clause.sentence


def _iterate(result: Result) -> Iterator[Case]:
    if "error" in result:
        error = result["error"]
        yield Case(
            "verb", result["verb"] or "reassure", OPEN, f"{error['class']}: {error['message']}"
        )
    if result.get("died"):
        yield Case("implementation", DIED, OPEN, result["died"], tuple(describe_death(result)))
    yield from _iterate_clauses(result)
    yield from _iterate_violations(result)
    yield from map(_make_theorem, list_records(result, "theorems"))
    yield from map(_make_kill, list_records(result, "matrix") if result["verb"] == "faults" else ())
    yield from _iterate_scenarios(result)
    for breach in list_records(result, "breaches"):
        yield Case("promises", breach["promise"], FAILED, breach["what"])
    for what in list_records(result, "unknown"):
        yield Case("promises", "unknown", OPEN, str(what))
    if "exploration" in result:
        yield from _iterate(result["exploration"])


def list_records(result: Result, name: str) -> list[Any]:
    """Return a list of a document; of some verbs it is a number, or not there."""
    found = result.get(name)
    return found if isinstance(found, list) else []


def _iterate_clauses(result: Result) -> Iterator[Case]:
    missing, needs = result.get("not_exercised", ()), find_needs(result)
    seconds = result.get("clause_seconds", {})
    records = [*list_records(result, "violations"), *list_records(result, "not_followed")]
    for clause in list_records(result, "clauses"):
        name, outcome, message = clause["id"], _OF_CLAUSES[clause["verdict"]], ""
        record = next((each for each in records if each["clause"] == name), None)
        details: tuple[str, ...] = ()
        if record is not None:
            message, details = record["reason"], tuple(describe_record(record))
            if name == result.get("clause"):
                story = enumerate(result["story"], start=1)
                details = (*(f"  {number}. {step}" for number, step in story), *details)
        elif (other := _find_beside(name, records)) is not None:
            message = f"violated by the write that violates {other['clause']}"
            details = tuple(describe_record(other))
        elif name in needs:
            outcome, message = SKIPPED, f"skipped; needs {needs[name]}"
        elif name in missing and is_cut_short(result):
            outcome, message = SKIPPED, "not reached before the run ended"
        elif clause["verdict"] == NOT_DISCRIMINATED:
            outcome = OPEN if name in missing else SKIPPED
            message = "exercised, not discriminated: every mutant that violates it survives"
        elif name in missing:
            outcome, message = OPEN, "required, but not covered"
        elif outcome == OPEN:
            message = f"{clause['undecided']} times undecided"
        elif outcome == SKIPPED:
            message = "not exercised"
        took = seconds.get(name, 0.0)
        yield Case("clauses", name, outcome, message, details, took, record)


def describe_death(result: Result) -> Iterator[str]:
    """Yield the story in which an implementation died, its step, and its last words."""
    steps = result.get("died_after", ())
    if steps:
        yield f"It died in the last of these {len(steps)} steps:"
        yield from (f"  {number}. {step}" for number, step in enumerate(steps, start=1))
    elif "died_after" in result:
        yield "It died before the first step of a test case."
    if result.get("traceback"):
        yield "Its last output:"
        yield from (f"  {show_text(line)}" for line in result["traceback"].splitlines())


def _find_beside(clause_id: str, records: list[Any]) -> Any:
    """Return a violation of another clause whose write breaks this one as well."""
    return next((each for each in records if clause_id in each.get("besides", ())), None)


def _iterate_violations(result: Result) -> Iterator[Case]:
    """Yield the violations of a document without a table of clauses."""
    if "clauses" in result:
        return
    for violation in list_records(result, "violations"):
        if "story" in violation:
            story = (f"  {each['action'] or 'start'}" for each in violation["story"])
            yield Case("invariants", violation["clause"], FAILED, violation["reason"], tuple(story))
        else:
            lines = tuple(describe_record(violation))
            name, reason = violation["clause"], violation["reason"]
            yield Case("clauses", name, FAILED, reason, lines, record=violation)
    goals = result.get("goals")
    for goal, depth in goals.items() if isinstance(goals, Mapping) else ():
        if depth is None:
            yield Case("goals", goal, OPEN, "never reached")
        else:
            yield Case("goals", goal, PASSED)


def _make_theorem(theorem: Mapping[str, Any]) -> Case:
    outcome = theorem.get("outcome")
    if outcome is None:
        return Case("theorems", theorem["name"], SKIPPED, "listed only")
    message = "" if outcome == "holds" else f"{outcome}: {theorem.get('reason') or ''}"
    seconds = float(theorem.get("seconds") or 0.0)
    found = _OF_THEOREMS.get(outcome, OPEN)
    return Case("theorems", theorem["name"], found, message, seconds=seconds)


def _make_kill(kill: Mapping[str, Any]) -> Case:
    story = tuple(f"  {number}. {step}" for number, step in enumerate(kill["story"], start=1))
    outcome = _OF_FAULTS.get(kill["outcome"], OPEN)
    message = "" if outcome == PASSED else kill["why"] or "no clause was violated"
    return Case("faults", kill["fault"], outcome, message, story, kill["seconds"])


def _iterate_scenarios(result: Result) -> Iterator[Case]:
    if result["verb"] != "scenarios" or "failures" not in result:
        return
    for failure in result["failures"]:
        lines = tuple(failure["difference"].splitlines())
        yield Case("scenarios", failure["scenario"], FAILED, "the answers differ", lines)
    for entry in result["skipped"]:
        for name in entry["scenarios"]:
            yield Case("scenarios", name, SKIPPED, entry["reason"])
    for name in result["passed"]:
        yield Case("scenarios", name, PASSED)
