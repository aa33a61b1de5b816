"""The verbs `diff` and `compare`: two things that should be alike, and two results."""

from pathlib import Path

import click

from reassure_conformance.cli.options import complete, emit, format_option


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
    """Show where two things go apart, the smallest instance first.

    OLD and NEW are two rules of your own (module:function) or one and a profile; two profiles, with
    readings (kip-236,drop.slice=exclusive); or two implementations, as connectables or as
    directories of runs in which they were driven. Exits with 1 where they differ.
    """
    from tempfile import TemporaryDirectory

    from reassure_conformance.answers.differing import Asked, diff_document, render_diff

    asked = Asked(factor, scope, states, stories)
    with TemporaryDirectory(prefix="reassure-diff-") as folder:
        document = diff_document(old, new, asked, Path(folder))
    return emit(document, form, lambda: render_diff(document, form))


@click.command()
@click.argument("before", metavar="RUN_A", type=click.Path(exists=True, path_type=Path))
@click.argument("after", metavar="RUN_B", type=click.Path(exists=True, path_type=Path))
@format_option
def compare(before: Path, after: Path, form: str) -> int:
    """Put two results side by side, and show only what changed.

    RUN_A and RUN_B are directories of runs, or what a verb printed as JSON. Exits with 1 where
    something is violated that was not, 2 where it became uncertain, 3 where it is no longer put to
    the test, and else with 0.
    """
    from reassure_conformance.answers.differing import compare_document, render_comparison

    document = compare_document(before, after)
    return emit(document, form, lambda: render_comparison(document, form))
