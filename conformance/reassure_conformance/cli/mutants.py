"""The verb `mutants`: known mistakes, and what catches them."""

from pathlib import Path
from typing import Any

import click

from reassure_conformance.cli.options import (
    ProgressLine,
    complete,
    count_option,
    emit,
    format_option,
    make_settings,
    rules_options,
    run_options,
    verbose_option,
)
from reassure_spec.profiles import DEFAULT_PROFILE


@click.command()
@click.argument("names", nargs=-1, metavar="[MUTANT]...", shell_complete=complete("fault"))
@count_option("--examples", "Generate at most this many examples for each mutant.", 200, least=0)
@click.option(
    "--no-stories",
    is_flag=True,
    help="Leave out the test cases that come with reassure: only generate.",
)
@count_option(
    "--seeds", "Try each mutant with this many seeds; it must be killed with every one.", 1
)
@count_option("--workers", "How many mutants to try at a time, each in its own process.", 1)
@rules_options(f"{DEFAULT_PROFILE}, or that of the mutant")
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
    """Apply each mutant, and show what kills it.

    A mutant is a known mistake in the bundled controller or brokers. The mutants that you name are
    listed; without names, only those whose result is not as expected.
    """
    from dataclasses import replace

    from reassure_conformance.gate.faultmatrix import matrix_document, render_matrix
    from reassure_conformance.gate.running import make_directory
    from reassure_conformance.mutants import check_faults, load_mutants

    check_faults(names)
    settings = replace(
        make_settings(options),
        examples=examples,
        with_stories=not no_stories,
        steps_min=0,
        seconds_max=60.0,
    )
    directory = make_directory(out, settings.seed)
    with ProgressLine() as progress:
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
