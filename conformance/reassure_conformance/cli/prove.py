"""The verb `prove`: theorems about the model's own functions."""

import click

from reassure_conformance.cli.options import (
    ProgressLine,
    complete,
    count_option,
    emit,
    format_option,
    seconds_option,
)
from reassure_spec.profiles import DEFAULT_PROFILE


@click.command()
@click.argument("names", nargs=-1, metavar="[THEOREM]...", shell_complete=complete("theorem"))
@count_option(
    "--replication-factor", "The longest list of replicas to try; with --code at most 3.", 4, most=7
)
@seconds_option("--timeout", "timeout_s", words="Processor time for one theorem.", default=60.0)
@click.option(
    "--thorough",
    is_flag=True,
    help="Try the largest replication factor that is feasible; takes minutes.",
)
@click.option("--list", "listed", is_flag=True, help="List the theorems; prove nothing.")
@click.option(
    "--explain", "explained", is_flag=True, help="Say in words what a theorem assumes and claims."
)
@click.option(
    "--code", metavar="MODULE:FUNCTION", help="Check a rule of your own against the theorems."
)
@click.option(
    "--profile",
    default=DEFAULT_PROFILE,
    show_default=True,
    help="With --code: use the theorems of this profile.",
)
@click.option(
    "--assume",
    "assume",
    multiple=True,
    metavar="NAME",
    help="With --code: assume this precondition, or all of them; may be repeated.",
)
@click.option("--fresh", is_flag=True, help="Do not use cached proofs of the same code.")
@click.option("--second-opinion", is_flag=True, help="Ask cvc5 the same questions.")
@click.option(
    "--sweep", "swept", is_flag=True, help="Prove again with every other value of each reading."
)
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
        raise click.UsageError("--assume is for a rule of your own: add --code")
    with ProgressLine() as progress:
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
