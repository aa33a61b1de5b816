"""The verb `check`: the gate."""

from pathlib import Path
from typing import Any

import click

from reassure_conformance.cli.options import (
    ProgressLine,
    emit_run,
    format_option,
    make_settings,
    rules_options,
    run_options,
    strict_option,
    verbose_option,
    world_option,
)


@click.command()
@click.option("--quick", is_flag=True, help="A fifth of the examples; under half a minute.")
@click.option("--examples", type=click.IntRange(min=0), help="How many examples to generate.")
@world_option
@strict_option
@rules_options()
@run_options()
@verbose_option
@format_option
def check(
    quick: bool, examples: int | None, verbose: bool, form: str, out: Path | None, **options: Any
) -> int:
    """Run the gate: proofs, exploration, the bundled controller.

    The controller is driven on an embedded ZooKeeper; with --world virtual the test cases are told
    there too.
    """
    from dataclasses import replace

    from reassure_conformance.answers import checking as gate
    from reassure_conformance.gate.running import make_directory

    settings = make_settings(options)
    if quick:
        settings = gate.make_quick(settings)
    if examples is not None:
        settings = replace(settings, examples=examples, steps_min=0)
    directory = make_directory(out, settings.seed)
    with ProgressLine() as progress:
        result = gate.check(settings, directory, progress)
    return emit_run(result.as_document(), form, directory, verbose=verbose)
