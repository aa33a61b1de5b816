"""The verb `scenarios`: stories told to the model."""

from pathlib import Path

import click

from reassure_conformance.cli.options import (
    ProgressLine,
    complete,
    emit,
    folder_option,
    format_option,
    refuse_given,
)


@click.command()
@click.argument(
    "names", nargs=-1, metavar="[AREA|AREA/NAME|PATH]...", shell_complete=complete("scenario")
)
@click.option("--check", "checked", is_flag=True, help="Check the syntax of files; run nothing.")
@click.option(
    "--export", is_flag=True, help="Write all scenarios as JSON lines, for use from any language."
)
@folder_option("--out", "With --export: write scenarios.jsonl and manifest.json here.")
@format_option
def scenarios(
    names: tuple[str, ...],
    checked: bool,
    export: bool,
    out: Path | None,
    form: str,
) -> int:
    """Tell the scenarios of the spec to the model.

    With --check files are read, of scenarios and of stories, and everything that is wrong with
    their form is said.
    """
    from reassure_conformance.answers.scenario_table import (
        check_files,
        render_scenarios,
        scenarios_document,
    )

    if export:
        from reassure_conformance.answers.spec_tables import render_vectors, vectors_document

        refuse_given(("checked",), "cannot be used with --export: leave out one of the two")
        if names:
            raise click.UsageError("--export writes all scenarios: leave out the names")
        if out is None:
            raise click.UsageError("--export needs a place to write to: add --out DIR")
        document = vectors_document(out)
        return emit(document, form, lambda: render_vectors(document, form))
    if out is not None:
        raise click.UsageError("--out is for --export: add it")
    if checked:
        if not names:
            raise click.UsageError("--check reads files: name them")
        document = check_files(names)
        return emit(document, form, lambda: f"{document.counts['files']} files are well formed")
    with ProgressLine() as progress:
        document = scenarios_document(names, progress)
    return emit(document, form, lambda: render_scenarios(document))
