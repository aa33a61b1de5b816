"""The verbs `spec ...`: clauses, readings, findings and the matrix, looked up."""

from pathlib import Path
from typing import Any

import click

from reassure_conformance.cli.options import check_rules, complete, emit, emit_table, format_option
from reassure_spec.errors import BadUsage


@click.group()
def spec() -> None:
    """Look up clauses, readings, findings and the matrix."""


def _spec_verb(
    name: str, title: str, columns: list[str], rows: list[list[Any]], form: str, **counts: int
) -> int:
    return emit_table(f"spec {name}", name, title, columns, rows, form, **counts)


@spec.command("list")
@click.option("--profile", metavar="NAME", help="Only the clauses of this profile.")
@format_option
def spec_list(profile: str | None, form: str) -> int:
    """List the clauses."""
    from reassure_spec.clauses import clauses_of_profile, load_clauses

    if profile is not None:
        check_rules(profile, {})
    clauses = clauses_of_profile(profile) if profile else tuple(load_clauses().values())
    rows = [[c.id, c.level, c.sentence, ", ".join(c.profiles)] for c in clauses]
    columns = ["id", "level", "sentence", "profiles"]
    return _spec_verb("list", "Clauses", columns, rows, form, clauses=len(rows))


@spec.command("readings")
@format_option
def spec_readings(form: str) -> int:
    """List the readings: disputed sentences, and the values that each can be read as."""
    from reassure_spec.readings import READINGS

    rows: list[list[Any]] = [[r.name, ", ".join(r.values), r.why, r.source] for r in READINGS]
    columns = ["name", "values", "why", "source"]
    return _spec_verb("readings", "Readings", columns, rows, form, readings=len(rows))


@spec.command("machines")
@format_option
def spec_machines(form: str) -> int:
    """List the protocols: the actions and the invariants of each."""
    from reassure_model.machine import find_machines
    from reassure_spec.profiles import list_profiles

    rows: list[list[Any]] = [
        [
            machine.name,
            machine.summary,
            ", ".join(list_profiles(machine.name)),
            ", ".join(act.verb for act in machine.acts),
            ", ".join(each.clause for each in machine.properties),
            ", ".join(goal.name for goal in machine.goals),
        ]
        for machine in find_machines().values()
    ]
    columns = ["name", "summary", "profiles", "actions", "properties", "goals"]
    return _spec_verb("machines", "Machines", columns, rows, form, machines=len(rows))


@spec.command("findings")
@format_option
def spec_findings(form: str) -> int:
    """Show what holds under which reading, and the findings: problems of the documents."""
    from reassure_conformance.answers.findings_table import findings_document, render_findings

    document = findings_document()
    return emit(document, form, lambda: render_findings(document, form))


@spec.command("matrix")
@format_option
def spec_matrix(form: str) -> int:
    """Show which code, proofs, scenarios and mutants belong to each clause."""
    from reassure_conformance.answers.clause_matrix import COLUMNS, MANY, make_matrix

    rows = make_matrix(None if form == "json" else MANY)
    return _spec_verb("matrix", "Matrix", list(COLUMNS), rows, form, clauses=len(rows))


@spec.command("coverage")
@click.option(
    "--seeds",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the documents (default: REASSURE_SEEDS, or ../shared/seeds).",
)
@format_option
def spec_coverage(seeds: Path | None, form: str) -> int:
    """Show which clauses cover each sentence of the documents."""
    from reassure_conformance.answers.spec_tables import coverage_document, render_coverage

    document = coverage_document(seeds)
    return emit(document, form, lambda: render_coverage(document, form))


@spec.command("diff")
@click.argument("first", metavar="PROFILE", shell_complete=complete("profile"))
@click.argument("second", metavar="PROFILE", shell_complete=complete("profile"))
@format_option
def spec_diff(first: str, second: str, form: str) -> int:
    """Show in which readings and clauses two profiles differ."""
    from reassure_conformance.answers.spec_tables import diff_document, render_diff

    document = diff_document(first, second)
    return emit(document, form, lambda: render_diff(document, form))


@spec.command("schema")
@click.argument("name")
def spec_schema(name: str) -> int:
    """Print a JSON Schema: of a znode or an observation, of a program's messages, of a result.

    NAME is that of a znode's content (docs/protocol.md), `observation`, `questions` or `answers`
    for the messages between the gate and a program, `alert` for what `audit --follow` reports, or
    `result` for the document that every verb prints with --format json.
    """
    import json

    from reassure_conformance.adapter.wire import answer_schema, request_schema
    from reassure_conformance.report.document import alert_schema, result_schema
    from reassure_spec.schemas import SCHEMAS, load_schema

    own = {
        "questions": request_schema,
        "answers": answer_schema,
        "alert": alert_schema,
        "result": result_schema,
    }
    if name not in (*own, *SCHEMAS):
        raise BadUsage(f"no schema {name!r}; choose one of: {', '.join((*own, *SCHEMAS))}")
    click.echo(json.dumps(own[name]() if name in own else load_schema(name), indent=2))
    return 0
