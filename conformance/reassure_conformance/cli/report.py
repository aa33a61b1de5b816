"""The verb `report`: what a run left behind, as a page or for another program."""

from importlib import import_module
from pathlib import Path
from typing import Final

import click

FORMS: Final = {
    "html": "page.render_page",
    "junit": "junit.render_junit",
    "markdown": "summary.render_summary",
    "sarif": "sarif.render_sarif",
    "badge": "badge.render_badge",
}
"""By form, the module of the report folder and the function in it that makes the text."""


@click.command()
@click.argument("source", metavar="RUN|RESULT.json", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMS)),
    default="html",
    show_default=True,
    help="A page; or for CI: test results, a job summary, code scanning, a badge.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write into."
)
def report(source: Path, form: str, output: Path | None) -> int:
    """Make a page, or a report for CI, from a result.

    The result is the directory of a run, or a file of what a verb printed as JSON. The exit code
    says only whether the report was made; the verdict is in the report.
    """
    from reassure_conformance.report.document import read_result, write_text

    module, _, function = FORMS[form].partition(".")
    render = getattr(import_module(f"reassure_conformance.report.{module}"), function)
    text: str = render(read_result(source))
    if output is None:
        (click.get_current_context().obj or click.echo)(text.rstrip("\n"))
    else:
        write_text(output, text)
        click.echo(f"wrote {output}", err=True)
    return 0
