"""The verb `tell`: one story is told to an implementation, and judged step by step."""

from typing import Any

import click

from reassure_conformance.cli.options import (
    DECLARED,
    complete,
    driving_options,
    emit,
    format_option,
    make_driving,
    rules_options,
    strict_option,
)


@click.command()
@click.argument("story", metavar="STORY", shell_complete=complete("story"))
@strict_option
@rules_options(DECLARED)
@driving_options(hang_s=30.0)
@format_option
def tell(story: str, form: str, **options: Any) -> int:
    """Tell one story to an implementation, and show what the judge says at each step.

    STORY is the name of one that comes with the package, or a file; docs/stories.md says how to
    write one. Without -i it is told to the bundled controller.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from reassure_conformance.answers.stories import render_telling, tell_document
    from reassure_conformance.report.display import get_width

    settings = make_driving(options)
    with TemporaryDirectory(prefix="reassure-tell-") as folder:
        document = tell_document(settings, story, Path(folder))
    width = get_width() if form == "pretty" else None
    return emit(document, form, lambda: render_telling(document.as_dict(), width))
