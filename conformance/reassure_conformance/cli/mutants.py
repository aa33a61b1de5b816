"""The verb `mutants`: planted faults, and what catches them."""

from pathlib import Path
from typing import Any

import click

from reassure_conformance.cli.options import (
    Progress,
    check_planted,
    complete,
    emit,
    format_option,
    make_settings,
    rules_options,
    run_options,
    verbose_option,
)
from reassure_spec.profiles import DEFAULT_PROFILE


@click.command()
@click.argument("names", nargs=-1, metavar="[FAULT]...", shell_complete=complete("fault"))
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="How many examples to generate for each fault, at most.",
)
@click.option(
    "--no-stories", is_flag=True, help="Leave out the stories that come with it: draw alone."
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="At how many seeds, one after another, each fault is planted; it must be killed at each.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many are planted at a time, each in a process of its own.",
)
@rules_options(f"{DEFAULT_PROFILE}, or the one that a fault is of")
@run_options()
@verbose_option
@format_option
def mutants(
    names: tuple[str, ...],
    examples: int,
    no_stories: bool,
    seeds: int,
    workers: int,
    verbose: bool,
    form: str,
    out: Path | None,
    **options: Any,
) -> int:
    """Plant each known fault, and show what catches it.

    It is planted in the bundled controller or brokers. Listed are those that are named, or else
    what is not as expected.
    """
    from dataclasses import replace

    from reassure_conformance.gate.faultmatrix import matrix_document, render_matrix
    from reassure_conformance.gate.running import make_directory
    from reassure_conformance.mutants import load_mutants

    check_planted(None, names)
    settings = replace(
        make_settings(options),
        examples=examples,
        with_stories=not no_stories,
        steps_min=0,
        seconds_max=60.0,
    )
    directory = make_directory(out, settings.seed)
    with Progress() as progress:
        document = matrix_document(
            names or tuple(load_mutants()),
            settings,
            directory,
            progress,
            seeds=seeds,
            workers=workers,
        )
    return emit(
        document, form, lambda: render_matrix(document, form, verbose=verbose or bool(names))
    )
