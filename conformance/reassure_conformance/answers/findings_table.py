"""The table of guarantees and the register of findings.

Findings that a scenario shows are checked by telling the scenario to the model: `shown` where it
runs as written, under the readings it names.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reassure_conformance.answers.clause_matrix import find_shown
from reassure_conformance.answers.guarantees import COLUMNS, compute_guarantees
from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, VIOLATED, Document
from reassure_conformance.scenarios.scenario import (
    compare,
    find_scenario,
    read_scenario,
    run_scenario,
)
from reassure_proofs.engine.counterexamples import AREA
from reassure_spec.findings import FINDINGS


def check_finding(shown: Sequence[str]) -> str:
    """Say what becomes of a finding that these show (`clause_matrix.find_shown`).

    `shown` where every scenario among them runs as written, `differs` where one does not; where
    there is none, what else shows it, `words` where nothing does.
    """
    kinds = [each.partition(" ") for each in shown]
    # What a theorem or a small world finds is a scenario that is called like it.
    names = [name if kind == "scenario" else f"{AREA}/{name}" for kind, _, name in kinds]
    files = [file for name in names if (file := find_scenario(name)).is_file()]
    if not files:
        return kinds[0][0] if kinds else "words"
    told = map(read_scenario, files)
    return "differs" if any(compare(each, run_scenario(each)) for each in told) else "shown"


def findings_document() -> Document:
    """Return the guarantees and the register of findings. Raises ScenarioError."""
    start = time.perf_counter()
    guarantees = compute_guarantees()
    records = []
    for finding in FINDINGS:
        shown = find_shown().get(finding.id, ())
        record = {name: _flat(value) for name, value in asdict(finding).items()}
        records.append({**record, "shown_by": ", ".join(shown), "status": check_finding(shown)})
    status = [record["status"] for record in records]
    counts = {
        "findings": len(records),
        "shown": status.count("shown"),
        "guarantees": len(guarantees),
        "violated": sum(1 for each in guarantees if each.counterexample),
    }
    body = {
        "guarantees": [dict(zip(COLUMNS, each.as_row(), strict=True)) for each in guarantees],
        "findings": records,
    }
    verdict = VIOLATED if "differs" in status else HOLDS
    return Document("spec findings", verdict, time.perf_counter() - start, counts, body=body)


def _flat(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, tuple) else value


def render_findings(document: Document, form: str) -> str:
    """Return both as tables; what holds takes one line for all that hold under a reading."""
    holding: dict[str, list[str]] = {}
    rows: list[list[str]] = []
    for record in document.body["guarantees"]:
        if record["verdict"] == HOLDS:
            holding.setdefault(f"{record['under']} ({record['within']})", []).append(
                record["guarantee"]
            )
        else:
            rows.append([record[name] for name in COLUMNS if name not in ("verdict", "within")])
    held = [[under, ", ".join(clauses)] for under, clauses in holding.items()]
    shown = ("id", "title", "readings", "instance", "status", "shown_by")
    findings = [[record[name] for name in shown] for record in document.body["findings"]]
    broken = [name for name in COLUMNS if name not in ("verdict", "within")]
    return "\n".join(
        (
            display.render_table("What holds", ["under (within)", "guarantees"], held, form),
            display.render_table("What does not", broken, rows, form),
            display.render_table("Findings", list(shown), findings, form),
        )
    )
