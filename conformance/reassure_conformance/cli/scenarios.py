"""The verb `scenarios`: stories told to the model, or to a real controller."""

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
@click.option("--live", is_flag=True, help="Tell them to the bundled controller on ZooKeeper.")
@click.option("--fault", "faults", multiple=True, help="With --live: plant a fault in it.")
@click.option(
    "--export", is_flag=True, help="Write all scenarios as JSON lines, for use from any language."
)
@folder_option("--out", "With --export: write scenarios.jsonl and manifest.json here.")
@format_option
def scenarios(
    names: tuple[str, ...],
    checked: bool,
    live: bool,
    faults: tuple[str, ...],
    export: bool,
    out: Path | None,
    form: str,
) -> int:
    """Tell the scenarios of the spec to the model or a controller.

    What the controller cannot be told is skipped, and counted by reason. With --check files are
    read, of scenarios and of stories, and everything that is wrong with their form is said.
    """
    from reassure_conformance.answers.scenario_table import (
        check_files,
        render_scenarios,
        scenarios_document,
    )

    if export:
        from reassure_conformance.answers.spec_tables import render_vectors, vectors_document

        refuse_given(
            ("checked", "live", "faults"), "cannot be used with --export: leave out one of the two"
        )
        if names:
            raise click.UsageError("--export writes all scenarios: leave out the names")
        if out is None:
            raise click.UsageError("--export needs a place to write to: add --out DIR")
        document = vectors_document(out)
        return emit(document, form, lambda: render_vectors(document, form))
    if out is not None:
        raise click.UsageError("--out is for --export: add it")
    if checked:
        if live or not names:
            raise click.UsageError("--check reads files: name them, and leave out --live")
        document = check_files(names)
        return emit(document, form, lambda: f"{document.counts['files']} files are well formed")

    if faults and not live:
        raise click.UsageError("--fault is planted in the controller: give --live as well")
    with ProgressLine() as progress:
        document = scenarios_document(names, progress, live=live, faults=faults)
    return emit(document, form, lambda: render_scenarios(document, form))
