"""The verb `diff`: two results, or two things that should be alike."""

from pathlib import Path

import click

from reassure_conformance.cli.options import (
    complete,
    count_option,
    emit,
    format_option,
    refuse_given,
)


@click.command()
@click.argument("old", metavar="OLD", shell_complete=complete("profile"))
@click.argument("new", metavar="NEW", shell_complete=complete("profile"))
@click.option(
    "--replication-factor",
    "factor",
    type=click.IntRange(1, 5),
    default=3,
    show_default=True,
    help="For rules: the longest list of replicas to try.",
)
@click.option(
    "--scope",
    help="For profiles: the scope whose states are compared; see `reassure explore --list`.",
    shell_complete=complete("scope"),
)
@count_option("--states", "For profiles: compare at most this many states.", 5_000)
@click.option(
    "--story",
    "stories",
    multiple=True,
    metavar="NAME",
    help="For implementations: run only this test case; may be repeated.",
    shell_complete=complete("story"),
)
@format_option
def diff(
    old: str,
    new: str,
    factor: int,
    scope: str | None,
    states: int,
    stories: tuple[str, ...],
    form: str,
) -> int:
    """Show how two results, implementations, models or rules differ.

    OLD and NEW are two results, each the directory of a run or what a verb printed as JSON: only
    what changed is shown. Exits with 1 if something is violated now that was not before, 2 if
    something became uncertain, 3 if something is no longer exercised, and otherwise with 0.

    Or they are two rules of your own (module:function), or one rule and a profile; two profiles,
    with readings (PROFILE,READING=VALUE); or two implementations, each as an argument of
    `test -i` or as the directory of a run that drove it (for two runs: add --story). The smallest
    difference comes first. Exits with 1 if they differ.
    """
    from tempfile import TemporaryDirectory

    from reassure_conformance.answers import differing

    if not stories and differing.are_results(old, new):
        refuse_given(("factor", "scope", "states"), "has no meaning for two results: leave it out")
        compared = differing.compare_document(Path(old), Path(new))
        return emit(compared, form, lambda: differing.render_comparison(compared, form))
    asked = differing.DiffOptions(factor, scope, states, stories)
    with TemporaryDirectory(prefix="reassure-diff-") as folder:
        document = differing.diff_document(old, new, asked, Path(folder))
    return emit(document, form, lambda: differing.render_diff(document, form))
