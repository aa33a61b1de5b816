"""The verb `explain`: whatever a report names, or what went wrong in a run."""

import click

from reassure_conformance.cli.options import complete, emit, format_option


@click.command()
@click.argument("what", metavar="NAME|RUN", shell_complete=complete())
@format_option
def explain(what: str, form: str) -> int:
    """Explain a name that a report uses, or what went wrong in a run.

    NAME is that of a clause, a finding, a theorem, a reading, a mutant, a profile, a scope,
    a test case, a scenario (AREA/NAME) or a capability; RUN is the directory of a run.
    """
    from reassure_conformance.answers.explaining import explain_document
    from reassure_conformance.report import display

    document = explain_document(what, display.get_width() if form == "pretty" else None)
    return emit(document, form, lambda: "\n".join(display.fence(document.body["text"], form)))
