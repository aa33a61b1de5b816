"""A result as SARIF 2.1.0, for what shows findings beside code: a rule for each clause."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import quote

from reassure_conformance.report.cases import (
    ADVISED,
    FAILED,
    OPEN,
    Case,
    Result,
    describe_clause,
)
from reassure_conformance.report.qualified import read_report
from reassure_spec.clauses import load_clauses

_ROOT: Final = "%SRCROOT%"
"""What paths are relative to, as GitHub and others have it."""
_LEVELS: Final = {FAILED: "error", OPEN: "warning", ADVISED: "note"}
_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render_sarif(result: Result) -> str:
    """Return the log as JSON: what failed, what nobody can say, and advice not followed.

    A violation's artifact is its line of observations, the archive that shows it, or the story of
    the run that repeats it; where none is known it has its znode alone.
    """
    report = read_report(result)
    cases = [case for case in report.cases if case.outcome in _LEVELS]
    told = [("note", report.headline), *(("warning", note) for note in report.notes)]
    names = list(dict.fromkeys(case.name for case in cases))
    run = {
        "tool": {
            "driver": {
                "name": "reassure",
                "version": result["version"],
                "rules": [_make_rule(name) for name in names],
            }
        },
        "automationDetails": {"id": f"reassure/{result['verb'].replace(' ', '-')}/"},
        "invocations": [
            {
                "executionSuccessful": "error" not in result,
                "exitCode": result["exit_code"],
                "toolExecutionNotifications": [
                    {"level": level, "message": {"text": text}} for level, text in told
                ],
            }
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_make_finding(case, result, names.index(case.name)) for case in cases],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.headline, "counts": result["counts"]},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _make_rule(name: str) -> dict[str, Any]:
    clause = load_clauses().get(name)
    if clause is None:
        return {"id": name}
    return {
        "id": name,
        "shortDescription": {"text": clause.sentence},
        "fullDescription": {"text": clause.why},
        "help": {"text": f"{clause.sentence}\n\n{clause.why}\n\nSource: {clause.source}"},
        "properties": {"level": clause.level, "tags": [clause.chapter]},
    }


def _make_finding(case: Case, result: Result, rule: int) -> dict[str, Any]:
    words = case.message or describe_clause(case.name) or case.name
    finding: dict[str, Any] = {
        "ruleId": case.name,
        "ruleIndex": rule,
        "level": _LEVELS[case.outcome],
        "message": {"text": words},
        "partialFingerprints": {"reassure/v1": f"{result['verb']}/{case.group}/{case.name}"},
    }
    if case.record is not None:
        finding["locations"] = [_locate(case.record, result.get("directory"))]
        if case.name == result.get("clause") and result["story"]:
            finding["codeFlows"] = [_make_flow(result["story"])]
    return finding


def _locate(record: Mapping[str, Any], directory: str | None) -> dict[str, Any]:
    partition = f"{record['topic']}-{record['partition']}" if record["topic"] else "the cluster"
    place = record.get("path") or partition
    location: dict[str, Any] = {
        "logicalLocations": [{"name": partition, "fullyQualifiedName": place, "kind": "resource"}]
    }
    story = None if directory is None else str(PurePath(directory, "failure.txt"))
    artifact = record.get("file") or record.get("archive") or story
    if artifact:
        location["physicalLocation"] = {
            "artifactLocation": _find_artifact(Path(artifact)),
            "region": {"startLine": max(1, record.get("line", 1))},
        }
    return location


def _find_artifact(path: Path) -> dict[str, str]:
    """Return where a file is: below the root of the repository, or else by its whole path.

    Paths are those of the current directory, as in the result; the root is the nearest folder above
    it that Git keeps, or that directory itself.
    """
    here = Path.cwd()
    root = next((each for each in (here, *here.parents) if (each / ".git").exists()), here)
    whole = Path(os.path.normpath(here / path))
    if whole.is_relative_to(root):
        return {"uri": quote(whole.relative_to(root).as_posix()), "uriBaseId": _ROOT}
    return {"uri": whole.as_uri()}


def _make_flow(story: Iterable[str]) -> dict[str, Any]:
    steps = [{"location": {"message": {"text": step}}} for step in story]
    return {"threadFlows": [{"locations": steps}]}
