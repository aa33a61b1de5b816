"""The verb `replay`: the failure of a run, once more."""

from pathlib import Path

import click

from reassure_conformance.cli.options import emit, format_option


@click.command()
@click.argument("directory", metavar="RUN", type=click.Path(exists=True, path_type=Path))
@format_option
def replay(directory: Path, form: str) -> int:
    """Repeat the failure of a run: tell its story again, and judge its log again."""
    from reassure_conformance.answers.replaying import replay as again

    outcome = again(directory)
    document = outcome.as_document()
    return emit(document, form, lambda: "\n".join(outcome.describe()))
