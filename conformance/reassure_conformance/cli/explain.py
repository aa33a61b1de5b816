"""The verb `explain`: a clause, or what went wrong in a run."""

from pathlib import Path

import click

from reassure_conformance.cli.options import emit, format_option, make_diagram
from reassure_conformance.report.document import HOLDS, Document


@click.command()
@click.argument("what", metavar="CLAUSE|RUN")
@format_option
def explain(what: str, form: str) -> int:
    """Explain a clause, or what went wrong in a run."""
    from reassure_conformance.answers.places import find_places
    from reassure_conformance.report import display
    from reassure_spec.clauses import load_clauses

    if what in load_clauses():
        lines = list(display.describe_clause(what, find_places(what)))
    elif (Path(what) / "report.json").exists():
        from reassure_conformance.gate.evidence import read_json

        report = read_json(Path(what) / "report.json")
        diagram = make_diagram(report, Path(what))
        lines = list(display.describe_violation(report, Path(what), diagram))
        lines = lines or [f"{what}: {report['verdict']}, nothing was violated"]
    else:
        raise click.UsageError(
            f"{what!r} is neither a clause (`reassure spec list`) nor the directory of a run"
        )
    lines = display.fence(lines, form)
    document = Document("explain", HOLDS, None, {"lines": len(lines)}, body={"text": lines})
    return emit(document, form, lambda: "\n".join(lines))
