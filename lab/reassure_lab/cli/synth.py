"""The verb `synth`: a transaction log of any size, made by the model, with faults planted in it."""

import re
from pathlib import Path
from typing import Final

import click

from reassure_conformance.cli.options import emit, format_option

_UNITS: Final = {"": 1, "k": 1_000, "M": 1_000_000}


class Count(click.ParamType[int]):
    """A number, in thousands with `k` and in millions with `M`."""

    name = "count"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the number."""
        match = re.fullmatch(r"([0-9]+)([kM]?)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a number like 200000, 200k or 10M", param, ctx)
        return int(match[1]) * _UNITS[match[2]]


@click.command()
@click.option("--transactions", type=Count(), default="200k", show_default=True)
@click.option("--partitions", type=Count(), default="1k", show_default=True)
@click.option("--faults", type=Count(), default="20", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--hot",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Fraction of the steps that concern one hot partition.",
)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@format_option
def synth(
    transactions: int,
    partitions: int,
    faults: int,
    seed: int,
    hot: float,
    directory: Path,
    form: str,
) -> int:
    """Write a synthetic log of a cluster into DIR, and the faults planted in it into truth.json."""
    from reassure_lab.answers.synthesising import render_synth, synth_document

    document = synth_document(directory, transactions, partitions, faults, seed, hot)
    return emit(document, form, lambda: render_synth(document, form))
