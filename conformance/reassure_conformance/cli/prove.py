"""The verb `prove`: theorems about the model's own functions."""

import click

from reassure_conformance.cli.options import Progress, complete, emit, format_option


@click.command()
@click.argument("names", nargs=-1, metavar="[THEOREM]...", shell_complete=complete("theorem"))
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 7),
    default=4,
    show_default=True,
    help="The longest list of replicas that is tried, with --code 3 at most.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Processor time for one theorem.",
)
@click.option("--thorough", is_flag=True, help="Go as far as is bearable; takes minutes.")
@click.option("--list", "listed", is_flag=True, help="List the theorems; prove nothing.")
@click.option("--explain", "explained", is_flag=True, help="Say in words what a theorem needs.")
@click.option("--code", metavar="MODULE:FUNCTION", help="Hold your own rule against the theorems.")
@click.option(
    "--profile", default="kip-236", show_default=True, help="With --code: whose theorems."
)
@click.option(
    "--assume",
    "assume",
    multiple=True,
    metavar="NAME",
    help="With --code: a precondition that you accept, or all; repeat it for more.",
)
@click.option("--fresh", is_flag=True, help="Prove anew what was proved of the same code before.")
@click.option("--second-opinion", is_flag=True, help="Ask cvc5 the same questions again.")
@click.option("--sweep", "swept", is_flag=True, help="Ask again under each other reading.")
@format_option
def prove(
    names: tuple[str, ...],
    replication_factor: int,
    timeout_s: float,
    thorough: bool,
    listed: bool,
    explained: bool,
    code: str | None,
    profile: str,
    assume: tuple[str, ...],
    fresh: bool,
    second_opinion: bool,
    swept: bool,
    form: str,
) -> int:
    """Prove theorems about the model, or about a rule of your own."""
    from reassure_conformance.answers import proving
    from reassure_proofs.engine.statement import THOROUGH

    factor = THOROUGH if thorough else replication_factor
    timeout_s = max(timeout_s, 600.0) if thorough else timeout_s
    if explained and not names:
        raise click.UsageError("--explain needs the name of a theorem; see `reassure prove --list`")
    if assume and code is None:
        raise click.UsageError("--assume is about a rule of your own; name it with --code")
    with Progress() as progress:
        if listed:
            document, text = proving.list_document()
        elif explained:
            document, text = proving.explain_document(names, factor, timeout_s)
        elif swept:
            document, text = proving.sweep_document(names, timeout_s, progress, thorough=thorough)
        else:
            asked = proving.Question(
                names, factor, timeout_s, code, profile, assume, fresh, second_opinion
            )
            document, text = proving.prove_document(asked, progress, form)
    return emit(document, form, lambda: text)
