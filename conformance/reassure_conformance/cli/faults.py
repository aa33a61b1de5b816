"""The verb `faults`: planted faults, and what catches them."""

from pathlib import Path
from typing import Any

import click

from reassure_conformance.cli.options import (
    Progress,
    emit,
    format_option,
    make_settings,
    rules_options,
    run_options,
)
from reassure_conformance.report.document import Document


@click.command()
@click.argument("names", nargs=-1, metavar="[FAULT]...")
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="How many examples to generate for each fault, at most.",
)
@rules_options
@run_options
@format_option
def faults(
    names: tuple[str, ...], examples: int, form: str, out: Path | None, **options: Any
) -> int:
    """Plant each known fault in the bundled controller and show what catches it."""
    import time
    from dataclasses import replace

    from reassure_conformance.adapter.bundled import list_faults
    from reassure_conformance.gate import faultmatrix
    from reassure_conformance.gate.running import make_directory
    from reassure_conformance.report import display

    known = list_faults()
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise click.UsageError(f"no fault {', '.join(unknown)}; there are: {', '.join(known)}")
    settings = replace(make_settings(options), examples=examples, steps_min=0, seconds_max=60.0)
    directory = make_directory(out, settings.seed)
    chosen, start = names or tuple(known), time.monotonic()
    done: list[faultmatrix.Kill] = []
    with Progress() as progress:

        def tell(kill: faultmatrix.Kill) -> None:
            done.append(kill)
            progress(f"{kill.fault}: {kill.outcome}", len(done), len(chosen))

        kills = faultmatrix.run_matrix(chosen, settings, directory, tell)
    document = Document(
        "faults",
        faultmatrix.matrix_verdict(kills),
        time.monotonic() - start,
        faultmatrix.matrix_counts(kills),
        seed=settings.seed,
        profile=settings.profile,
        readings=settings.readings,
        body={"matrix": [kill.as_dict() for kill in kills], "directory": str(directory)},
    )
    document.write(directory)

    def render() -> str:
        columns = ["fault", "outcome", "by clause", "expected", "steps", "seconds"]
        rows = [
            [
                kill.fault,
                kill.outcome,
                kill.clause,
                "yes" if kill.expected else "no",
                len(kill.story),
                round(kill.seconds, 1),
            ]
            for kill in kills
        ]
        table = display.render_table("Kill matrix", columns, rows, form)
        counts = ", ".join(f"{name} {value}" for name, value in document.counts.items())
        return f"{table}{document.verdict.upper()} in {document.seconds:.1f} s: {counts}"

    return emit(document, form, render)
