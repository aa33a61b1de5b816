"""What `spec coverage`, `spec diff` and `scenarios --export` answer."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, VACUOUS, VIOLATED, Document
from reassure_spec.clauses import clauses_of_profile, load_clauses
from reassure_spec.coverage import check_coverage, find_seeds
from reassure_spec.readings import READINGS, get_profile

NO_DOCUMENTS: Final = (
    "not compared with the documents: name their folder with --seeds or REASSURE_SEEDS"
)


def coverage_document(folder: Path | None) -> Document:
    """Hold the map from the documents to the clauses against both; vacuous without documents.

    `folder` holds the documents; None for the place where they are looked for. Raises BadCoverage.
    """
    start = time.perf_counter()
    seeds = find_seeds(folder)
    coverage = check_coverage(seeds)
    records = [asdict(entry) for entry in coverage.entries]
    problems = [
        {"kind": p.kind, "document": p.document, "hash": p.where, "reason": p.reason}
        for p in coverage.problems
    ]
    checked = HOLDS if coverage.documents_checked else VACUOUS
    return Document(
        "spec coverage",
        VIOLATED if problems else checked,
        time.perf_counter() - start,
        coverage.count(),
        body={
            "documents_checked": coverage.documents_checked,
            "problems": problems,
            "coverage": records,
        },
    )


def render_coverage(document: Document, form: str) -> str:
    """Return the map as a table, with what is wrong under it."""
    columns = ["document", "at", "begins", "clauses", "why"]
    rows: list[list[Any]] = [
        [
            r["document"],
            f"{r['line']}:{r['column']}",
            r["begins"],
            ", ".join(r["clauses"]) or "(no requirement)",
            r["why"],
        ]
        for r in document.body["coverage"]
    ]
    counts, checked = document.counts, document.body["documents_checked"]
    told = sum(bool(record["clauses"]) for record in document.body["coverage"])
    against = f"compared with {checked} documents" if checked else NO_DOCUMENTS
    lines = [display.render_table("Coverage", columns, rows, form)]
    lines += [f"{p['kind']}: {p['document']}: {p['reason']}" for p in document.body["problems"]]
    lines.append(
        f"{counts['accounted']} of {counts['sentences']} sentences accounted for, {told} by "
        f"{counts['clauses']} clauses; {counts['scenarios']} scenarios; {against}"
    )
    return "\n".join(lines)


def diff_document(first: str, second: str) -> Document:
    """Compare two profiles: readings that differ, clauses that only one of them has.

    Raises UnknownReading for a profile that does not exist.
    """
    start = time.perf_counter()
    before, after = get_profile(first).as_dict(), get_profile(second).as_dict()
    readings = [
        {"reading": r.name, first: before[r.name], second: after[r.name], "why": r.why}
        for r in READINGS
        if before[r.name] != after[r.name]
    ]
    ids = {name: {c.id for c in clauses_of_profile(name)} for name in (first, second)}
    only = [
        {"clause": clause.id, "profile": name, "sentence": clause.sentence}
        for name, other in ((first, second), (second, first))
        for clause in load_clauses().values()
        if clause.id in ids[name] - ids[other]
    ]
    changed = _find_changed_meaning(ids[first] & ids[second], [str(r["reading"]) for r in readings])
    counts = {
        "readings": len(readings),
        "clauses_only_first": len(ids[first] - ids[second]),
        "clauses_only_second": len(ids[second] - ids[first]),
        "clauses_changed": len(changed),
        "clauses_common": len(ids[first] & ids[second]),
    }
    return Document(
        "spec diff",
        HOLDS,
        time.perf_counter() - start,
        counts,
        body={
            "profiles": [first, second],
            "readings_changed": readings,
            "clauses_only": only,
            "clauses_changed": changed,
        },
    )


def _find_changed_meaning(common: set[str], readings: list[str]) -> list[dict[str, str]]:
    """Return the clauses of both profiles whose source names a reading that differs."""
    return [
        {"clause": clause.id, "reading": name, "sentence": clause.sentence}
        for clause in load_clauses().values()
        for name in readings
        if clause.id in common and name in clause.source
    ]


def render_diff(document: Document, form: str) -> str:
    """Return the differences as tables."""
    first, second = document.body["profiles"]
    readings = [[r["reading"], r[first], r[second]] for r in document.body["readings_changed"]]
    only = [[c["profile"], c["clause"], c["sentence"]] for c in document.body["clauses_only"]]
    changed = [[c["reading"], c["clause"], c["sentence"]] for c in document.body["clauses_changed"]]
    tables = (
        ("Readings that differ", ["reading", first, second], readings),
        ("Clauses that a reading changes", ["reading", "clause", "sentence"], changed),
        ("Clauses of one profile only", ["profile", "clause", "sentence"], only),
    )
    return (
        "\n".join(
            display.render_table(title, columns, rows, form)
            for title, columns, rows in tables
            if rows
        )
        or f"{first} and {second} do not differ"
    )


def vectors_document(out: Path) -> Document:
    """Export the scenarios as vectors. Raises ScenarioError, OSError."""
    from reassure_conformance.scenarios.json_lines import export_vectors

    start = time.perf_counter()
    manifest = export_vectors(out)
    counts = {
        "vectors": sum(file["vectors"] for file in manifest["files"]),
        "clauses": len(manifest["clauses"]),
    }
    body = {"out": str(out), "manifest": manifest}
    verdict = HOLDS if counts["vectors"] else VACUOUS
    return Document("vectors", verdict, time.perf_counter() - start, counts, body=body)


def render_vectors(document: Document, form: str) -> str:
    """Return what was written, by area."""
    rows: list[list[Any]] = [[a, n] for a, n in document.body["manifest"]["areas"].items()]
    table = display.render_table("Vectors", ["area", "vectors"], rows, form)
    return f"{table}\n{document.counts['vectors']} vectors in {document.body['out']}"
