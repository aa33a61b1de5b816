"""The verb `diff`: two results, or two things that should be alike."""

from pathlib import Path

import click

from reassure_conformance.cli.options import complete, emit, format_option, refuse_given


@click.command()
@click.argument("old", metavar="OLD", shell_complete=complete("profile"))
@click.argument("new", metavar="NEW", shell_complete=complete("profile"))
@click.option(
    "--replication-factor",
    "factor",
    type=click.IntRange(1, 5),
    default=3,
    show_default=True,
    help="Of rules: the longest list of replicas that is tried.",
)
@click.option(
    "--scope",
    help="Of profiles: whose states are looked at; see `reassure explore --list`.",
    shell_complete=complete("scope"),
)
@click.option(
    "--states",
    type=click.IntRange(min=1),
    default=5_000,
    show_default=True,
    help="Of profiles: how many states, at most.",
)
@click.option(
    "--story",
    "stories",
    multiple=True,
    metavar="NAME",
    help="Of implementations: tell only this story; may be repeated.",
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
    what changed is shown. Exits with 1 where something is violated that was not, 2 where it became
    uncertain, 3 where it is no longer put to the test, and else with 0.

    Or they are two rules of your own (module:function) or one and a profile; two profiles, with
    readings (kip-236,drop.slice=exclusive); or two implementations, as connectables or as
    directories of runs in which they were driven (of two runs: with --story). The smallest
    instance comes first. Exits with 1 where they differ.
    """
    from tempfile import TemporaryDirectory

    from reassure_conformance.answers import differing

    if not stories and differing.are_results(old, new):
        refuse_given(("factor", "scope", "states"), "is not about results: leave it out")
        compared = differing.compare_document(Path(old), Path(new))
        return emit(compared, form, lambda: differing.render_comparison(compared, form))
    asked = differing.Asked(factor, scope, states, stories)
    with TemporaryDirectory(prefix="reassure-diff-") as folder:
        document = differing.diff_document(old, new, asked, Path(folder))
    return emit(document, form, lambda: differing.render_diff(document, form))
