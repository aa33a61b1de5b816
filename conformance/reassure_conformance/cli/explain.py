"""The verb `explain`: a clause, a finding, or what went wrong in a run."""

from difflib import get_close_matches
from pathlib import Path

import click

from reassure_conformance.cli.options import emit, format_option
from reassure_conformance.report.document import HOLDS, RESULT, Document


@click.command()
@click.argument("what", metavar="CLAUSE|FINDING|RUN")
@format_option
def explain(what: str, form: str) -> int:
    """Explain a clause, a finding, or what went wrong in a run."""
    from reassure_conformance.answers.places import describe_finding, find_places, find_shown
    from reassure_conformance.report import display
    from reassure_spec.clauses import load_clauses
    from reassure_spec.findings import FINDINGS

    findings = {finding.id: finding for finding in FINDINGS}

    if what in load_clauses():
        lines = list(display.describe_clause(what, find_places(what)))
    elif what in findings:
        finding = findings[what]
        facts = describe_finding(finding, find_shown().get(what, ()))
        lines = [f"{what}  {finding.title}", f"  {finding.statement}", ""]
        lines += [f"  {title}: {text}" for title, text in facts.items()]
    elif (Path(what) / RESULT).exists():
        from reassure_conformance.gate.evidence import read_json

        report = read_json(Path(what) / RESULT)
        lines = list(display.describe_violation(report))
        lines = lines or [f"{what}: {report['verdict']}, nothing was violated"]
    else:
        near = get_close_matches(what, [*load_clauses(), *findings], n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise click.UsageError(
            f"{what!r} is neither a clause (`reassure spec list`), nor a finding "
            f"(`reassure spec findings`), nor the directory of a run.{hint}"
        )
    lines = display.fence(lines, form)
    document = Document("explain", HOLDS, None, {"lines": len(lines)}, body={"text": lines})
    return emit(document, form, lambda: "\n".join(lines))
