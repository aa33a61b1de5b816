"""The verb `audit`: whatever logs there are, judged by the pipeline, in the common document.

The document says nothing of time, so that it is the same, byte for byte, whichever engine made it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reassure_conformance.report import Document


def find_place(path: Path) -> Path:
    """Return where the logs are: in the directory of a run, its server's own files."""
    server = path / "zookeeper"
    return server if (path / "run.json").is_file() and server.is_dir() else path


def audit_document(
    paths: Sequence[Path],
    profile: str,
    readings: Mapping[str, str],
    spark: str | None,
    *,
    at_rest: bool = False,
    strict: bool = False,
) -> Document:
    """Judge the logs, on Spark where a master is given, and return the document.

    With `at_rest` what a controller owes at the end of a history is judged too; with `strict` a
    SHOULD binds like a MUST.
    Raises the log reader's own errors for damaged or missing logs.
    """
    from reassure_pipeline.audit import audit_local, audit_spark
    from reassure_spec.readings import get_profile, override_readings

    chosen = override_readings(get_profile(profile), readings)
    places = [find_place(path) for path in paths]
    if spark is None:
        report = audit_local(places, profile, chosen, at_rest=at_rest)
    else:
        report = audit_spark(places, profile, chosen, spark, at_rest=at_rest)
    body = dict((report.strictly() if strict else report).as_json_dict())
    verdict = str(body.pop("verdict", "violated" if body.get("violations") else "holds"))
    counts = body.pop("counts", {})
    for name in ("verb", "version", "exit_code", "seconds", "seed", "profile", "readings"):
        body.pop(name, None)
    return Document(
        "audit",
        verdict,
        None,
        counts,
        profile=profile,
        readings=chosen.as_dict(),
        body=body,
    )


def render_audit(document: Document, form: str) -> str:
    """Return the tables for people: clauses, and the first violations with their evidence."""
    from reassure_conformance import display

    report = document.as_dict()
    parts = []
    if report.get("clauses"):
        columns = ["clause", "level", "verdict", "exercised"]
        rows = display.clause_rows(report["clauses"])
        parts.append(display.render_table("Clauses", columns, rows, form))
    violations = report.get("violations", [])
    for violation in violations[:20]:
        parts += [
            f"VIOLATED {violation['clause']} at zxid {violation['zxid']}: {violation['path']}",
            f"  before   {violation['before'] or '(nothing)'}",
            f"  after    {violation['after'] or '(nothing)'}",
            f"  allowed  {violation['expected']}",
        ]
    if len(violations) > 20:
        parts.append(f"... and {len(violations) - 20} more; --format json lists them all")
    parts += display.describe_not_followed(report.get("not_followed", []))
    for finding in report.get("unsettled", [])[:20]:
        parts.append(f"UNKNOWN {finding['clause']} at zxid {finding['zxid']}: {finding['path']}")
    parts += [line for archive in report.get("archives", []) for line in _describe(archive)]
    sums = ", ".join(f"{name} {value}" for name, value in report["counts"].items())
    parts.append(f"{document.verdict.upper()}: {sums}")
    return "\n".join(parts)


def _describe(archive: Mapping[str, Any]) -> list[str]:
    """Return what should be known of one archive before its verdict is relied on."""
    lines = []
    if archive["partial"]:
        lines.append(f"{archive['path']}: begins in the middle; what came before is not known")
    lines += [f"{archive['path']}: transactions are missing: {hole}" for hole in archive["holes"]]
    if archive["torn_tail"]:
        lines.append(f"{archive['path']}: the last record was not finished: {archive['torn_tail']}")
    return lines
