"""The verb `explore`: every state within a scope."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reassure_conformance.cli.options import (
    Progress,
    check_rules,
    choose_seed,
    complete,
    emit,
    emit_table,
    format_option,
    is_given,
    parse_readings,
    rules_options,
)

if TYPE_CHECKING:
    from reassure_conformance.answers.exploring import Subject


@click.command()
@click.option(
    "--scope",
    default="small",
    show_default=True,
    metavar="NAME",
    help="See --list.",
    shell_complete=complete("scope"),
)
@click.option(
    "--model", metavar="MODULE:FUNCTION", help="A model of your own; or ./FILE.py:FUNCTION."
)
@click.option("--list", "listed", is_flag=True, help="List the scopes.")
@click.option("--sweep", is_flag=True, help="Settle each reading otherwise: what does it change?")
@click.option(
    "--engine",
    default="derived",
    show_default=True,
    metavar="derived|plain",
    help="The fast one, or the model as it stands.",
)
@click.option("--keep-going", is_flag=True, help="Go on after the first violation.")
@click.option("--minimise-faults", is_flag=True, help="Prefer stories with fewer faults.")
@click.option("--liveness", is_flag=True, help="Check as well that fair runs settle.")
@click.option("--symmetry", is_flag=True, help="Let brokers and partitions change places.")
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many work on one exploration.",
)
@click.option("--states", type=click.IntRange(1), help="Stop after so many states.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Stop after so long.")
@click.option("--memory-mib", type=click.IntRange(1), help="Stop at so much memory for states.")
@click.option(
    "--directory", type=click.Path(path_type=Path), help="Keep states here, and go on after a stop."
)
@click.option("--learn-anew", is_flag=True, help="Use nothing that earlier runs have learned.")
@click.option("--walks", type=click.IntRange(1), help="Take random walks; no exploration.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the walks.")
@click.option("--page", type=click.Path(path_type=Path), help="Write a page to step through.")
@click.option("--graph", type=click.Path(path_type=Path), help="Draw the states, alike by fields.")
@click.option(
    "--fields",
    default="flight,drop_due,completing",
    show_default="flight,drop_due,completing, of a scope of KIP-236",
    help="By which of them states are drawn as one.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Directory for report and stories.")
@rules_options("what the scope is about")
@format_option
def explore(
    listed: bool,
    sweep: bool,
    form: str,
    out: Path | None,
    **options: Any,
) -> int:
    """Visit every state that a model can reach, and check each.

    A scope of ours, without --profile under the one that it is about (see --list), or a model of
    your own.
    """
    from reassure_conformance.answers import exploring

    if listed:
        return emit_table("explore", *exploring.list_scopes(), form)
    subject = _choose_subject(options)
    places = (options["page"], options["graph"], out)
    exploring.check_options(options, subject, places)
    if sweep:
        return emit_table("explore", *exploring.run_sweep(subject), form)
    if options["walks"] is not None:
        document, words = exploring.run_walks(options, subject, choose_seed(options["seed"]))
        return emit(document, form, lambda: words)
    with Progress() as progress:
        exploration = exploring.run_explore(options, subject, progress)
    exploring.write_pictures(options, subject, exploration)
    if out is not None:
        exploring.write_stories(exploration, out)
    for place in filter(None, places):
        click.echo(f"wrote {place}", err=True)
    return emit(exploring.make_document(exploration), form, exploration.render)


def _choose_subject(options: dict[str, Any]) -> "Subject":
    """Return the scope, or the model from elsewhere, that the options name."""
    from reassure_conformance.answers import exploring

    reference = options.pop("model")
    if reference is not None:
        given = [name for name in click.get_current_context().params if is_given(name)]
        return exploring.choose_model(reference, given)
    readings = parse_readings(options["readings"])
    scope = options["scope"]
    profile = options["profile"] if is_given("profile") else exploring.choose_profile(scope)
    check_rules(profile, readings)
    return exploring.choose_scope(scope, profile, readings)
