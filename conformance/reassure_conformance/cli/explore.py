"""The verb `explore`: every state within a scope."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reassure_conformance.cli.options import (
    ProgressLine,
    check_rules,
    complete,
    count_option,
    emit,
    emit_table,
    format_option,
    is_given,
    parse_readings,
    rules_options,
    seconds_option,
)

if TYPE_CHECKING:
    from reassure_conformance.answers.exploring import Explored


@click.command()
@click.option(
    "--scope",
    default="small",
    show_default=True,
    metavar="NAME",
    help="The scope to explore; see --list.",
    shell_complete=complete("scope"),
)
@click.option(
    "--model", metavar="MODULE:FUNCTION", help="A model of your own; or ./FILE.py:FUNCTION."
)
@click.option("--list", "listed", is_flag=True, help="List the scopes.")
@click.option(
    "--sweep", is_flag=True, help="Try every other value of each reading, and show what it changes."
)
@click.option(
    "--engine",
    default="derived",
    show_default=True,
    metavar="derived|plain",
    help="The fast engine, or the model executed as it is written.",
)
@click.option("--keep-going", is_flag=True, help="Continue after the first violation.")
@click.option(
    "--minimise-faults", is_flag=True, help="Prefer traces with fewer crashes and other faults."
)
@click.option("--liveness", is_flag=True, help="Also check what every fair run must come to.")
@click.option(
    "--symmetry",
    is_flag=True,
    help="Treat states as equal if only names of brokers or partitions differ.",
)
@count_option("--threads", "How many threads explore.", 1)
@count_option("--states", "Stop after this many states.")
@seconds_option("--seconds", words="Stop after this time.")
@count_option("--memory-mib", "Stop when states take this much memory.")
@click.option(
    "--learn-anew", is_flag=True, help="Do not use what earlier runs kept about this model."
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --model: hold this history, JSON lines, against the model instead.",
)
@click.option(
    "--unlogged",
    multiple=True,
    metavar="ACTION",
    help="With --trace: may happen without a line; may be repeated.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Directory for the report and the traces."
)
@rules_options("that of the scope")
@format_option
def explore(
    listed: bool,
    sweep: bool,
    form: str,
    out: Path | None,
    **options: Any,
) -> int:
    """Visit every state that a model can reach, and check each.

    The model is a scope that comes with reassure (--scope), or one of your own (--model).
    """
    from reassure_conformance.answers import exploring

    if listed:
        return emit_table("explore", *exploring.list_scopes(), form)
    trace, unlogged = options.pop("trace"), options.pop("unlogged")
    subject = _choose_subject(options)
    if trace is not None or unlogged:
        found = exploring.run_validation(subject, trace, unlogged, options, _list_given())
        return emit(exploring.make_validation_document(found, trace), form, found.render)
    exploring.check_options(options, subject, out)
    if sweep:
        return emit_table("explore", *exploring.run_sweep(subject), form)
    with ProgressLine() as progress:
        exploration = exploring.run_explore(options, subject, progress)
    if out is not None:
        exploring.write_stories(exploration, out)
        click.echo(f"wrote {out}", err=True)
    return emit(exploring.make_document(exploration), form, exploration.render)


def _choose_subject(options: dict[str, Any]) -> "Explored":
    """Return the scope, or the model from elsewhere, that the options name."""
    from reassure_conformance.answers import exploring

    reference = options.pop("model")
    if reference is not None:
        return exploring.choose_model(reference, _list_given())
    readings = parse_readings(options["readings"])
    scope = options["scope"]
    profile = options["profile"] if is_given("profile") else exploring.choose_profile(scope)
    check_rules(profile, readings)
    return exploring.choose_scope(scope, profile, readings)


def _list_given() -> list[str]:
    """Return the options that somebody chose."""
    return [name for name in click.get_current_context().params if is_given(name)]
