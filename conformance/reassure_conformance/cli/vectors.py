"""The verb `vectors`: the scenarios for implementations in any language."""

from pathlib import Path

import click

from reassure_conformance.cli.options import emit, format_option


@click.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to write scenarios.jsonl and manifest.json into.",
)
@format_option
def vectors(out: Path, form: str) -> int:
    """Export the scenarios as JSON lines for other implementations."""
    from reassure_conformance.answers.looking_up import render_vectors, vectors_document

    document = vectors_document(out)
    return emit(document, form, lambda: render_vectors(document, form))
