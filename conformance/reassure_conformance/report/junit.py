"""A result as JUnit XML: a suite for each kind of thing that was asked, a test for each of them."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final
from xml.etree import ElementTree as Xml

from reassure_conformance.report.cases import (
    ADVISED,
    FAILED,
    OPEN,
    SKIPPED,
    Case,
    Result,
    describe_clause,
)
from reassure_conformance.report.qualified import MUTANTS, read_report

_ELEMENTS: Final = {FAILED: "failure", OPEN: "error", SKIPPED: "skipped"}


def render_junit(result: Result) -> str:
    """Return the XML: UNKNOWN becomes `<error>`, a warning passes and is told.

    A clause has the time of the steps that put it to the test. One step puts several, so that the
    suite of clauses has the time of the run, which is less than their sum.
    """
    report = read_report(result)
    cases = report.cases
    about = [("verdict", report.headline), *(("note", note) for note in report.notes)]
    about += [(name, str(result["counts"][name])) for name in MUTANTS if name in result["counts"]]
    if result["seed"] is not None:
        about.append(("seed", str(result["seed"])))
    root = Xml.Element(
        "testsuites", {"name": f"reassure {result['verb']}", **_count(cases, result["seconds"])}
    )
    for group, members in groupby(cases, key=lambda case: case.group):
        suite = list(members)
        branch = Xml.SubElement(
            root, "testsuite", {"name": group, **_count(suite, _time(group, result))}
        )
        properties = Xml.SubElement(branch, "properties")
        for name, value in about:
            Xml.SubElement(properties, "property", name=name, value=_clean(value))
        for case in suite:
            _add(branch, f"reassure.{result['verb'].replace(' ', '.')}.{group}", case)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _time(group: str, result: Result) -> float | None:
    """Return the seconds that a whole suite took, None where its cases took them one by one."""
    return result["seconds"] if group == "clauses" else None


def _count(cases: Sequence[Case], seconds: float | None) -> dict[str, str]:
    total = sum(case.seconds for case in cases) if seconds is None else seconds
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(outcomes.count(FAILED)),
        "errors": str(outcomes.count(OPEN)),
        "skipped": str(outcomes.count(SKIPPED)),
        "time": f"{total:.3f}",
    }


def _add(suite: Xml.Element, where: str, case: Case) -> None:
    element = Xml.SubElement(
        suite, "testcase", classname=where, name=case.name, time=f"{case.seconds:.3f}"
    )
    details = "\n".join(filter(None, (describe_clause(case.name), *case.details)))
    if case.outcome in _ELEMENTS:
        said = Xml.SubElement(element, _ELEMENTS[case.outcome], message=_clean(case.message))
        said.text = None if case.outcome == SKIPPED else _clean(details) or None
    elif case.outcome == ADVISED:
        Xml.SubElement(element, "system-out").text = _clean(f"warning: {case.message}")


def _clean(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
