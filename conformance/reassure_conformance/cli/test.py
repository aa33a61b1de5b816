"""The verb `test`: an implementation is driven, and what it wrote is judged."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from reassure_conformance.cli.options import (
    DECLARED,
    ProgressLine,
    complete,
    count_option,
    emit,
    emit_run,
    format_option,
    is_given,
    make_settings,
    refuse_given,
    rules_options,
    run_options,
    seconds_option,
    strict_option,
    verbose_option,
    world_option,
)

_DRIVING: Final = frozenset(
    {"connectable", "faults", "hang_s", "strict", "profile", "readings", "form", "world"}
)
_MODES: Final = {"smoke": _DRIVING, "case": _DRIVING, "replay": frozenset({"form"})}
"""By mode, which other options it takes. Without a mode all are taken."""
_PATIENCE_S: Final = {"smoke": 5.0, "case": 30.0}
"""By mode, how long one answer may take if that is not said."""


@click.command()
@click.argument("stray", nargs=-1, metavar="")
@click.option(
    "--smoke",
    is_flag=True,
    help="Check in seconds that it can be driven, and show the first problem.",
)
@click.option(
    "--case",
    metavar="NAME|FILE",
    help="Run one test case, by name or from a file, and show the verdicts at each step.",
    shell_complete=complete("story"),
)
@click.option(
    "--replay",
    metavar="RUN",
    type=click.Path(exists=True, path_type=Path),
    help="Repeat the failure of a run: run its test case again, and judge its log again.",
)
@click.option(
    "-i",
    "--implementation",
    "connectable",
    metavar="TARGET",
    help="exec:./program, direct:package.module:Adapter, zk:host:port/chroot or kafka:VERSION "
    "(default: the bundled controller).",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    help="Apply a mutant to the bundled controller; see `reassure mutants`.",
    shell_complete=complete("fault"),
)
@count_option("--examples", "How many examples to generate, after the test cases.", 300, least=0)
@click.option(
    "--steps",
    "steps_min",
    type=click.IntRange(min=0),
    default=0,
    help="Generate examples until they have this many steps.",
)
@click.option(
    "--until",
    type=click.Choice(["covered", "failed"]),
    help="Generate examples until every clause is exercised that can be and no more mutants of the "
    "rules are killed, or until something "
    "fails, whatever --examples says; --seconds is the limit.",
)
@seconds_option(
    "--seconds", "seconds_max", words="Generate examples for at most this time.", default=600.0
)
@count_option(
    "--workers", "How many processes share the run, each with its own ZooKeeper and seed.", 1
)
@world_option
@click.option("--stop-at", type=click.Path(), default="", hidden=True)
@click.option(
    "--no-stories", is_flag=True, help="Leave out the test cases that come with reassure."
)
@count_option(
    "--stories",
    "Run at most so many of the test cases, some of each kind that can be carried out whole.",
)
@click.option(
    "--known",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of known failures, one a line: failing or flaky, a clause or test case, and why. "
    "They do not count; if a failing one passes, the exit code is 3.",
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

    TARGET may have settings: direct:package.module:Class?option=value. The default is the bundled
    controller; under the profile of replication (see `reassure spec machines`) it is the bundled
    brokers with their logs, which are judged by what they observe.

    --smoke, --case and --replay do less, and write no directory. docs/stories.md says how to write
    a test case.

    With --workers each process has a directory worker-N below that of the run; a failure is
    repeated from there. With --failures each failure is saved, and run first next time.
    """
    for word in stray:
        raise click.UsageError(
            f"{word!r} needs an option: --case {word} (test case) or -i {word} (implementation)"
        )
    given = {"smoke": smoke or None, "case": case, "replay": replay}
    modes = [name for name, value in given.items() if value is not None]
    if not modes:
        return _run(**options)
    mode = modes[0]
    if len(modes) > 1:
        raise click.UsageError(f"--{mode} and --{modes[1]} cannot be used together: choose one")
    unfit = click.get_current_context().params.keys() - {mode} - _MODES[mode]
    refuse_given(unfit, f"cannot be used with --{mode}: leave out one of the two")
    if replay is not None:
        from reassure_conformance.answers.replaying import replay as repeat

        document, lines = repeat(replay)
        return emit(document, options["form"], lambda: "\n".join(lines))
    if not is_given("hang_s"):
        options["hang_s"] = _PATIENCE_S[mode]
    return _tell(case, **options)


def _tell(case: str | None, form: str, **options: Any) -> int:
    """Tell one story, or without one what shows whether an implementation is ready."""
    from reassure_conformance.answers.case_run import render_telling, tell_document
    from reassure_conformance.answers.smoking import render_smoke, smoke_document
    from reassure_conformance.report.display import get_width

    settings = make_settings(options, drawn=False)
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
    no_stories: bool,
    stories: int | None,
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
    from reassure_conformance.gate.run_settings import REPLICATION

    if known is not None and options["profile"] == REPLICATION:
        raise click.UsageError("--known is for controllers: leave it out for brokers with logs")
    settings = replace(
        make_settings(options, replicates=True),
        examples=options["examples"],
        steps_min=options["steps_min"],
        with_stories=not no_stories,
        stories_max=stories or 0,
        known=read_known(known) if known is not None else (),
        until=options["until"] or "",
        seconds_max=options["seconds_max"],
        stop_at=options["stop_at"],
    )
    if workers > 1 and settings.connectable.startswith("zk:"):
        raise click.UsageError(
            "--workers starts controllers; zk: names a running one: leave it out"
        )
    if workers > 1 and settings.known:
        raise click.UsageError("--known is for one process: leave out --workers")
    directory = conformance.make_directory(out, settings.seed)
    with ProgressLine() as progress:
        if workers > 1:
            from reassure_conformance.answers.workers import run_together

            document = run_together(settings, workers, directory, progress)
        else:
            document = conformance.run(settings, directory, progress).as_document()
    return emit_run(document, form, directory, verbose=verbose)
