"""What a result says, once for all reports: the qualified verdict, and what it rests on.

`read_report` makes a `ResultReport` of a result document. The terminal, the page, Markdown, JUnit
and SARIF render one: they differ in form and detail, and none says of the verdict more or less than
the others.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from reassure_conformance.report.cases import (
    FAILED,
    Case,
    Result,
    is_cut_short,
    list_cases,
    list_records,
    name_skipped,
    say_seconds,
)
from reassure_conformance.report.document import NOT_DISCRIMINATED
from reassure_conformance.report.own_faults import say_own_fault
from reassure_spec.findings import findings_that_break

MUTANTS: Final = ("mutants_killed", "mutants")
"""The counts of a score."""
SURVIVORS_SHOWN: Final = 5
"""How many mutants that survive are told in full."""
_NAMED: Final = 5
"""How many clauses of a kind are named."""


@dataclass(frozen=True, slots=True)
class Warned:
    """A clause that is only advice and was not followed."""

    clause: str
    times: int
    first: Mapping[str, Any]
    """The first violation of it."""
    findings: tuple[str, ...] = ()
    """The findings by which the document itself does not follow it under the result's readings."""


@dataclass(frozen=True)
class ResultReport:
    """What a result says."""

    result: Result = field(repr=False)
    verdict: str
    scope: str
    """For what the verdict is, and but for what: "" for all that there is."""
    skipped: Mapping[str, tuple[str, ...]]
    """By what the implementation does not declare, the clauses that were skipped for it."""
    notes: tuple[str, ...]
    """What keeps the verdict from saying more, a sentence each."""
    warnings: tuple[Warned, ...]
    repeat: str
    """The command that repeats a failure or a death, "" where there is none."""

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """All that was asked, each with what came of it and how long it took."""
        return list_cases(self.result)

    @cached_property
    def headline(self) -> str:
        """The verdict in one line: for what, how long, how much was covered, what was skipped."""
        seconds = self.result["seconds"]
        took = "" if seconds is None else f" in {say_seconds(seconds)}"
        if self.result.get("world") == "virtual":
            took += ", in" if self.result["verb"] == "check" else " of"
            took += " the virtual world"
        covered = f": {self.coverage}" if self.coverage else ""
        skipped = ", ".join(
            f"{need} ({len(clauses)} clause{'s' if len(clauses) > 1 else ''})"
            for need, clauses in self.skipped.items()
        )
        left = f"; skipped: {skipped}" if skipped else ""
        return f"{self.verdict.upper()}{self.scope}{took}{covered}{left}"

    @property
    def coverage(self) -> str:
        """How many clauses were covered and mutants killed, "" where that is not counted."""
        counts, said = self.result["counts"], []
        if "clauses_required" in counts:
            covered = f"{counts['clauses_exercised']} of {counts['clauses_required']}"
            said.append(f"{covered} clauses covered")
        if counts.get("mutants"):
            killed = f"{counts['mutants_killed']} of {counts['mutants']} mutants killed"
            unable = [f"{count} cannot be without {need}" for need, count in self.unable.items()]
            said.append(f"{killed} ({', '.join(unable)})" if unable else killed)
        return ", ".join(said)

    @property
    def unable(self) -> Mapping[str, int]:
        """By what the implementation does not declare, how many mutants that keeps alive."""
        survivors = self.result.get("survivors", ())
        needs = Counter(" and ".join(each["needs"]) for each in survivors if each["needs"])
        return dict(sorted(needs.items()))

    @property
    def failures(self) -> tuple[Case, ...]:
        """The cases that have to be told first: what failed, and an implementation that died."""
        return tuple(case for case in self.cases if case.outcome == FAILED or case.is_death)


def read_report(result: Result) -> ResultReport:
    """Return what a result says."""
    return ResultReport(
        result,
        result["verdict"],
        _describe_scope(result),
        {need: tuple(clauses) for need, clauses in name_skipped(result).items()},
        tuple(_list_notes(result)),
        tuple(list_warnings(result)),
        name_repeat(result),
    )


def _describe_scope(result: Result) -> str:
    """Return for what a verdict is, where an implementation does not declare all that there is.

    >>> about = {"capabilities": ["brokers", "isr"]}
    >>> _describe_scope({"implementation": about, "lacking": {"kill": ["a.b"]}})
    ' for brokers, isr'
    """
    known = [f"{one['name']} ({one['reason']})" for one in result.get("known", ()) if one["seen"]]
    but = f" except known failures: {', '.join(known)}" if known else ""
    if not name_skipped(result):
        return but
    able = ", ".join(result["implementation"]["capabilities"]) or "clauses that need no capability"
    return f"{but} for {able}"


def _list_notes(result: Result) -> Iterator[str]:
    """Yield what keeps a verdict from holding, or was left out of it, and what to do about it."""
    yield from map(say_own_fault, result.get("findings", ()))
    if result.get("unsettled") and isinstance(result["unsettled"], int):
        yield (
            f"The cluster was not quiescent {result['unsettled']} times, though no process was "
            "held: settle() answered False. It must answer True as soon as a controller is active "
            "and has handled everything that was written before the call; only then are pending "
            "writes judged. The steps are in unsettled-N.txt in the directory of the run; see "
            "docs/adapter.md."
        )
    yield from _list_missing(result)
    for situation in result.get("situations", ()):
        if situation["reached"] == 0 and not is_cut_short(result):
            needed = ", ".join(situation["clauses"])
            name, sentence = situation["name"], situation["sentence"]
            yield f"Coverage goal missed: {name}: {sentence} (for {needed})"
    for clause, reason in result.get("not_claimed", {}).items():
        yield f"Not claimed: {clause}: {reason}"
    yield from _list_survivors(result)
    yield from _list_theorems(result)
    if result.get("stale"):
        yield "Saved failures that pass now: " + ", ".join(result["stale"])
    for need in result.get("needs", ()):
        yield f"Needed: {need}"


def _list_missing(result: Result) -> Iterator[str]:
    """Yield the clauses that make a verdict vacuous, and what to do about them."""
    missing = result.get("not_exercised", ())
    if missing and is_cut_short(result):
        yield f"Required, but not exercised before the run ended: {len(missing)} clauses."
        return
    alike = {c["id"] for c in result.get("clauses", ()) if c["verdict"] == NOT_DISCRIMINATED}
    if never := [clause for clause in missing if clause not in alike]:
        yield (
            f"Required, but never exercised: {_name(never)}; more examples may "
            "(--until covered), or a test case that brings it about (docs/stories.md)"
        )
    if found := [clause for clause in missing if clause in alike]:
        told = next(m for m in result["survivors"] if m["clause"] == found[0] and not m["needs"])
        yield (
            f"Exercised, not discriminated: {_name(found)}: where it came up, whoever gets it "
            f"wrong does the same; {_say_case(told)} tells them apart, and more examples may"
        )


def _name(clauses: Sequence[str]) -> str:
    """Return the names of some clauses, those of many in part."""
    more = len(clauses) - _NAMED
    return ", ".join(clauses[:_NAMED]) + (f" and {more} others" if more > 0 else "")


def _list_survivors(result: Result) -> Iterator[str]:
    """Yield the mistakes that the run would not have caught, a few of them, with what would."""
    if result.get("not_scored"):
        yield f"Mutants of the rules are not scored: {result['not_scored']}."
    survivors = [each for each in result.get("survivors", ()) if not each["needs"]]
    for each in survivors[:SURVIVORS_SHOWN]:
        yield (
            f"Would not have been caught: {each['sentence']} ({each['clause']}); "
            f"{_say_case(each)} does"
        )
    if len(survivors) > SURVIVORS_SHOWN:
        more = len(survivors) - SURVIVORS_SHOWN
        yield f"And {more} other mutants survive; survivors in result.json lists all."


def _say_case(survivor: Mapping[str, Any]) -> str:
    """Return the command that runs the test case that kills a mutant, or the test case."""
    if survivor["case"] is None:
        return f"the test case {'; '.join(survivor['steps'])}"
    return f"`reassure test --case {survivor['case']}`"


def _list_theorems(result: Result) -> Iterator[str]:
    """Yield the theorems that keep a verdict from holding, those of one reason together."""
    found: dict[str, list[str]] = {}
    for each in list_records(result, "theorems"):
        outcome = each.get("outcome", "holds")
        if outcome not in ("holds", "finding"):
            why = f": {each['reason']}" if each.get("reason") else ""
            found.setdefault(f"{outcome}{why}", []).append(each["name"])
    for said, names in found.items():
        more = f"; try `reassure prove {names[0]}`" if len(names) == 1 else ""
        yield f"Theorems {', '.join(names)}: {said}{more}"


def list_warnings(result: Result) -> Iterator[Warned]:
    """Yield the advice that was not followed, each clause once, with how often and where first.

    What a watch no longer lists is counted with the others.
    """
    besides = result.get("not_listed", {}).get("not_followed", {})
    found: dict[str, list[Mapping[str, Any]]] = {}
    for violation in result.get("not_followed", ()):
        found.setdefault(violation["clause"], []).append(violation)
    for clause, violations in found.items():
        readings = result.get("readings") or {}
        known = tuple(each.id for each in findings_that_break(clause, readings, readings))
        yield Warned(clause, len(violations) + besides.get(clause, 0), violations[0], known)


def name_repeat(result: Result) -> str:
    """Return the command that repeats what a result tells, "" where there is none."""
    if "repeat" in result:
        return str(result["repeat"])
    directory = result.get("directory")
    told = result.get("story") or result.get("died_after")
    return f"reassure test --replay {directory}" if directory and told else ""
