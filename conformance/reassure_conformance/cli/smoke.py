"""The verb `smoke`: is an implementation ready to be put to the test, and if not, why."""

from typing import Any

import click

from reassure_conformance.cli.options import (
    DECLARED,
    driving_options,
    emit,
    format_option,
    make_driving,
    rules_options,
    strict_option,
)


@click.command()
@strict_option
@rules_options(DECLARED)
@driving_options(hang_s=5.0)
@format_option
def smoke(form: str, **options: Any) -> int:
    """Shake hands with an implementation, tell it three stories, and say what is amiss.

    What is amiss is said in one line: what was seen, what was expected, what to do.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from reassure_conformance.answers.smoking import render_smoke, smoke_document
    from reassure_conformance.report.display import get_width

    settings = make_driving(options)
    with TemporaryDirectory(prefix="reassure-smoke-") as folder:
        document = smoke_document(settings, Path(folder))
    width = get_width() if form == "pretty" else None
    return emit(document, form, lambda: render_smoke(document.as_dict(), width))
