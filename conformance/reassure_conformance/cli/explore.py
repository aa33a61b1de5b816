"""The verb `explore`: every state within a scope."""

from pathlib import Path
from typing import Any

import click

from reassure_conformance.cli.options import (
    Progress,
    check_rules,
    choose_seed,
    emit,
    emit_table,
    format_option,
    is_given,
    parse_readings,
    rules_options,
)


@click.command()
@click.option("--scope", default="small", show_default=True, metavar="NAME", help="See --list.")
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
@click.option("--walks", type=click.IntRange(1), help="Take random walks; no exploration.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the walks.")
@click.option("--page", type=click.Path(path_type=Path), help="Write a page to step through.")
@click.option("--graph", type=click.Path(path_type=Path), help="Draw the states, alike by fields.")
@click.option(
    "--fields",
    default="flight,drop_due,completing",
    show_default=True,
    help="By which of them states are drawn as one.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Directory for report and stories.")
@click.option("--controller", is_flag=True, help="Tell what is found to the bundled controller.")
@rules_options
@format_option
def explore(
    listed: bool,
    sweep: bool,
    form: str,
    out: Path | None,
    controller: bool,
    **options: Any,
) -> int:
    """Visit every state that the model can reach within a scope, and check each.

    Without --profile the scope's own counts; --list says which.
    """
    from reassure_conformance.answers import exploring

    if listed:
        return emit_table("explore", *exploring.list_scopes(), form)
    if not is_given("profile"):
        options["profile"] = exploring.choose_profile(options["scope"])
    options["readings"] = parse_readings(options["readings"])
    check_rules(options["profile"], options["readings"])
    places = (options["page"], options["graph"], out)
    exploring.check_options(options, places, controller=controller)
    if sweep:
        return emit_table("explore", *exploring.run_sweep(options), form)
    if options["walks"] is not None:
        document, words = exploring.run_walks(options, choose_seed(options["seed"]))
        return emit(document, form, lambda: words)
    with Progress() as progress:
        exploration = exploring.run_explore(options, progress)
    exploring.write_pictures(options, exploration)
    if out is not None:
        exploring.write_stories(exploration, out)
    for place in filter(None, places):
        click.echo(f"wrote {place}", err=True)
    if not controller:
        return emit(exploring.make_document(exploration), form, exploration.render)
    with Progress() as progress:
        outcomes = exploring.run_on_controller(exploring.make_scenarios(exploration), progress)
    document = exploring.make_document(exploration, outcomes)
    words = f"{exploration.render()}\n{exploring.render_outcomes(outcomes)}"
    return emit(document, form, lambda: words)
