"""The verb `test`: an implementation is driven, and what it wrote is judged."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from reassure_conformance.cli.options import (
    DECLARED,
    Progress,
    check_planted,
    complete,
    emit,
    emit_run,
    format_option,
    is_given,
    make_driving,
    make_settings,
    refuse_given,
    rules_options,
    run_options,
    strict_option,
    verbose_option,
)

if TYPE_CHECKING:
    from reassure_conformance.gate.run_settings import Settings
    from reassure_conformance.report.document import Document

_DRIVING: Final = frozenset(
    {"connectable", "faults", "hang_s", "strict", "profile", "readings", "form"}
)
_MODES: Final = {"smoke": _DRIVING, "case": _DRIVING, "replay": frozenset({"form"})}
"""By mode, which other options it takes. Without a mode all are taken."""
_PATIENCE_S: Final = {"smoke": 5.0, "case": 30.0}
"""By mode, how long one answer may take if that is not said."""


@click.command()
@click.argument("stray", nargs=-1, metavar="")
@click.option("--smoke", is_flag=True, help="Say in seconds what keeps it from being driven.")
@click.option(
    "--case",
    metavar="NAME|FILE",
    help="Tell one story, of ours or of a file, and show what the judge says at each step.",
    shell_complete=complete("story"),
)
@click.option(
    "--replay",
    metavar="RUN",
    type=click.Path(exists=True, path_type=Path),
    help="Repeat the failure of a run: tell its story again, and judge its log again.",
)
@click.option(
    "-i",
    "--implementation",
    "connectable",
    metavar="CONNECTABLE",
    help="exec:./program, direct:package.module:Adapter or zk:host:port/chroot; without it, the "
    "bundled controller.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    help="Plant a fault in the bundled controller.",
    shell_complete=complete("fault"),
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=300,
    show_default=True,
    help="How many examples to generate, after the stories.",
)
@click.option(
    "--steps",
    "steps_min",
    type=click.IntRange(min=0),
    default=0,
    help="Go on until there are so many.",
)
@click.option(
    "--until",
    type=click.Choice(["covered", "failed"]),
    help="Go on, whatever number of examples that takes, until every clause that can be put to "
    "the test was, or until something fails; --seconds bounds it.",
)
@click.option(
    "--seconds",
    "seconds_max",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    help="How long examples are generated at most.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many processes share the run, each with a ZooKeeper and a seed of its own.",
)
@click.option(
    "--campaign",
    type=click.IntRange(1),
    metavar="RUNS",
    help="Carry out so many whole runs, each with a seed of its own, --workers at a time; one "
    "result of all.",
)
@click.option(
    "--within",
    "within_s",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    default=3600.0,
    show_default=True,
    help="When no more runs of a campaign are begun.",
)
@click.option("--stop-at", type=click.Path(), default="", hidden=True)
@click.option("--no-stories", is_flag=True, help="Leave out the stories that come with it.")
@click.option(
    "--known",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of known failures: lines of failing or flaky, a clause or story, and why. They do "
    "not count; one that was to fail and did not ends with 3.",
)
@strict_option
@rules_options(DECLARED)
@run_options("120, with --smoke 5, with --case 30")
@verbose_option
@format_option
def test(
    stray: tuple[str, ...], smoke: bool, case: str | None, replay: Path | None, **options: Any
) -> int:
    """Drive an implementation and judge what it wrote.

    CONNECTABLE names it: direct:package.module:Class?option=value. The default is the bundled
    controller. With --profile kafka-4485 the bundled brokers are driven, with their logs, and
    judged by what they observe.

    --smoke, --case and --replay do less, and keep nothing. docs/stories.md says how to write a
    story.

    With --workers each process has a directory worker-N below that of the run, with --campaign
    each run has one, and what one of them finds is repeated from there. With --failures what fails
    is kept, and told first next time.
    """
    for word in stray:
        raise click.UsageError(
            f"{word!r}: a story is told by --case {word}, an implementation driven by -i {word}"
        )
    given = {"smoke": smoke or None, "case": case, "replay": replay}
    modes = [name for name, value in given.items() if value is not None]
    if not modes:
        return _run(**options)
    mode = modes[0]
    if len(modes) > 1:
        raise click.UsageError(f"--{mode} and --{modes[1]} are two things to do: choose one")
    unfit = click.get_current_context().params.keys() - {mode} - _MODES[mode]
    refuse_given(unfit, f"does not fit --{mode}: leave out one of the two")
    if replay is not None:
        from reassure_conformance.answers.replaying import replay as repeat

        outcome = repeat(replay)
        return emit(outcome.as_document(), options["form"], lambda: "\n".join(outcome.describe()))
    if not is_given("hang_s"):
        options["hang_s"] = _PATIENCE_S[mode]
    return _tell(case, **options)


def _tell(case: str | None, form: str, **options: Any) -> int:
    """Tell one story, or without one what shows whether an implementation is ready."""
    from reassure_conformance.answers.smoking import render_smoke, smoke_document
    from reassure_conformance.answers.stories import render_telling, tell_document
    from reassure_conformance.report.display import get_width

    settings = make_driving(options)
    with TemporaryDirectory(prefix="reassure-test-") as folder:
        document = (
            smoke_document(settings, Path(folder))
            if case is None
            else tell_document(settings, case, Path(folder))
        )
    render = render_smoke if case is None else render_telling
    width = get_width() if form == "pretty" else None
    return emit(document, form, lambda: render(document.as_dict(), width))


def _run(
    connectable: str | None,
    faults: tuple[str, ...],
    no_stories: bool,
    known: Path | None,
    workers: int,
    verbose: bool,
    form: str,
    out: Path | None,
    **options: Any,
) -> int:
    """Drive it with stories and examples, and keep the directory of the run."""
    from dataclasses import replace

    from reassure_conformance.gate import running as conformance
    from reassure_conformance.gate.known import read_known
    from reassure_conformance.gate.run_settings import BUNDLED, REPLICATION

    if known is not None and options["profile"] == REPLICATION:
        raise click.UsageError("--known is for controllers; brokers with logs have no such list")
    check_planted(connectable, faults)
    settings = replace(
        make_settings(options, connectable, replicates=True),
        connectable=connectable or BUNDLED,
        faults=faults,
        examples=options["examples"],
        steps_min=options["steps_min"],
        with_stories=not no_stories,
        known=read_known(known) if known is not None else (),
        until=options["until"] or "",
        seconds_max=options["seconds_max"],
        stop_at=options["stop_at"],
    )
    sharing = workers > 1 or options["campaign"] is not None
    _check_sharing(settings, options, sharing=sharing)
    directory = conformance.make_directory(out, settings.seed)
    if options["campaign"] is not None:
        document = _run_campaign(settings, directory, workers, options)
        return emit_run(document, form, directory, verbose=verbose)
    with Progress() as progress:
        if workers > 1:
            from reassure_conformance.answers.workers import run_together

            document = run_together(settings, workers, directory, progress)
        else:
            document = conformance.run(settings, directory, progress).as_document()
    return emit_run(document, form, directory, verbose=verbose)


def _check_sharing(settings: "Settings", options: dict[str, Any], *, sharing: bool) -> None:
    """Refuse what cannot be shared, or makes no sense without a campaign. Raises UsageError."""
    if sharing and settings.connectable.startswith("zk:"):
        raise click.UsageError(
            "--workers and --campaign need a controller each; zk: names one that runs"
        )
    if sharing and settings.known:
        raise click.UsageError("--known is for one process: leave out --workers and --campaign")
    if options["campaign"] is None and is_given("within_s"):
        raise click.UsageError("--within is for a campaign: say with --campaign how many")


def _run_campaign(
    settings: "Settings", directory: Path, workers: int, options: dict[str, Any]
) -> "Document":
    """Carry out a campaign."""
    from reassure_conformance.answers import campaigning

    with Progress() as progress, campaigning.spread_here(workers) as carry:
        progress("runs of a campaign", 0, options["campaign"])
        return campaigning.run_campaign(
            settings, options["campaign"], directory, options["within_s"], carry
        )
