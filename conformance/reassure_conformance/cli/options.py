"""What verbs share: their options, how these are understood, and how results are printed."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import click
from click.core import ParameterSource

from reassure_conformance.report.document import HOLDS, VACUOUS, Document
from reassure_spec.profiles import DEFAULT_PROFILE, PROTOCOLS

Command = TypeVar("Command", bound=Callable[..., Any])


def complete(*kinds: str) -> Callable[..., Any]:
    """Return what completes names of these kinds in a shell, of every kind where none is given."""

    def find(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from reassure_conformance.answers.explaining import complete_name

        found = [
            CompletionItem(name, help=kind) for name, kind in complete_name(incomplete, *kinds)
        ]
        return found or [CompletionItem(incomplete, type="file")]

    return find


def count_option(
    name: str, words: str, default: int | None = None, *, least: int = 1, most: int | None = None
) -> Callable[[Command], Command]:
    """Return what adds a number, of which the default is shown where there is one."""
    kind = click.IntRange(least, most)
    return click.option(
        name, type=kind, default=default, show_default=default is not None, help=words
    )


def seconds_option(
    *names: str, words: str, default: float | None = None, show: bool | str = True
) -> Callable[[Command], Command]:
    """Return what adds a time of more than nothing, of which the default is shown if so said."""
    return click.option(
        *names,
        type=click.FloatRange(0, min_open=True),
        default=default,
        show_default=default is not None and show,
        metavar="SECONDS",
        help=words,
    )


def folder_option(name: str, words: str, *, exists: bool = False) -> Callable[[Command], Command]:
    """Return what adds a folder."""
    kind = click.Path(exists=exists, file_okay=False, path_type=Path)
    return click.option(name, type=kind, metavar="DIR", help=words)


def format_option(command: Command) -> Command:
    """Add how the result is printed."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["pretty", "json", "markdown"]),
        default="pretty",
        show_default=True,
        help="How the result is printed; json is one document.",
    )(command)


def verbose_option(command: Command) -> Command:
    """Add whether what holds is listed as well."""
    return click.option(
        "-v", "--verbose", is_flag=True, help="List everything, not only what needs attention."
    )(command)


def rules_options(usual: str = DEFAULT_PROFILE) -> Callable[[Command], Command]:
    """Return what adds the profile and the readings.

    `usual` says which profile counts where none is named, if that is not always the same.
    """

    def add(command: Command) -> Command:
        command = click.option(
            "--reading",
            "readings",
            multiple=True,
            metavar="NAME=VALUE",
            shell_complete=complete("reading"),
            help="Choose another reading of a disputed sentence than the profile; may be repeated.",
        )(command)
        return click.option(
            "--profile",
            default=DEFAULT_PROFILE,
            show_default=True if usual == DEFAULT_PROFILE else usual,
            metavar="NAME",
            help=f"Version of the rules: {', '.join(PROTOCOLS)}.",
            shell_complete=complete("profile"),
        )(command)

    return add


DECLARED: Final = f"{DEFAULT_PROFILE}, or the one that the adapter declares"
"""Which profile counts where an implementation is driven and none is named."""


def strict_option(command: Command) -> Command:
    """Add whether a SHOULD binds."""
    return click.option(
        "--strict", is_flag=True, help="Treat a SHOULD like a MUST: a warning becomes a violation."
    )(command)


def world_option(command: Command) -> Command:
    """Add in what world an implementation is driven."""
    return click.option(
        "--world",
        type=click.Choice(["real", "virtual"]),
        default="real",
        show_default=True,
        help="Drive it on an embedded ZooKeeper, or in a virtual world, where a seed is a run.",
    )(command)


def facts_option(command: Command) -> Command:
    """Add whether it is told what was under way, and when."""
    return click.option(
        "--facts",
        is_flag=True,
        help="Also report reassignments, replication, elections and controllers over time.",
    )(command)


def spark_option(words: str) -> Callable[[Command], Command]:
    """Return what adds whether Spark is used, and which; all cores of this machine if not said."""
    return click.option(
        "--spark", is_flag=False, flag_value="local[*]", metavar="[MASTER]", help=words
    )


def judging_options(command: Command) -> Command:
    """Add how logs are judged: what may be news, what is not in ZooKeeper, level and rules."""
    command = rules_options("recognised from the log")(command)
    command = strict_option(command)
    command = click.option(
        "--min-insync-replicas",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="The value in the brokers' own configuration files, which ZooKeeper does not hold; "
        "settings in ZooKeeper come first.",
    )(command)
    return click.option(
        "--grace",
        "grace_ms",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        callback=_choose_grace_ms,
        help="How long a controller may take to notice a change (30).",
    )(command)


def _choose_grace_ms(_: click.Context, __: click.Parameter, seconds: float | None) -> int:
    from reassure_judge.doubt import GRACE_MS

    return GRACE_MS if seconds is None else round(seconds * 1000)


def run_options(patience: bool | str = True) -> Callable[[Command], Command]:
    """Return what adds the options of every verb that drives an implementation.

    `patience` says how long a step may take where nobody says, if that is not always the same.
    """
    options = (
        click.option("--out", type=click.Path(path_type=Path), help="Directory of the run."),
        click.option("--seed", type=click.IntRange(min=0), help="Repeat the run with this seed."),
        folder_option(
            "--failures", "Saved failures: run first, and new ones are added.", exists=True
        ),
        click.option(
            "--require",
            type=click.Choice(["declared", "all"]),
            default="declared",
            show_default=True,
            help="Which clauses must be exercised: all, or those that the declared capabilities "
            "allow.",
        ),
        seconds_option(
            "--hang-after",
            "hang_s",
            words="How long one step may take before the implementation counts as dead.",
            default=120.0,
            show=patience,
        ),
    )

    def add(command: Command) -> Command:
        for option in options:
            command = option(command)
        return command

    return add


def parse_readings(readings: Sequence[str]) -> dict[str, str]:
    """Return the readings that were chosen, by name."""
    chosen = {}
    for text in readings:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--reading {text!r}: write it as NAME=VALUE")
        chosen[name] = value
    return chosen


def check_rules(profile: str, readings: Mapping[str, str], *rooms: str) -> None:
    """Complain of what there is not; raise RefusedReading for what a room does not carry out."""
    from reassure_spec.readings import UnknownReading
    from reassure_spec.rooms import choose_readings

    try:
        for room in rooms or ("model",):
            choose_readings(room, profile, readings)
    except UnknownReading as error:
        raise click.UsageError(str(error)) from error


def is_given(option: str) -> bool:
    """Whether somebody chose the value of an option."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


def refuse_given(names: Collection[str], why: str) -> None:
    """Raise UsageError for an option of these names that somebody chose; `why` says why not."""
    for each in click.get_current_context().command.params:
        if each.name in names and is_given(each.name):
            raise click.UsageError(f"{max(each.opts, key=len)} {why}")


def choose_seed(seed: int | None) -> int:
    """Return the seed that was given or a fresh one, and say it."""
    import secrets

    chosen = secrets.randbelow(2**32) if seed is None else seed
    click.echo(f"seed: {chosen}", err=True)
    return chosen


def make_settings(
    options: Mapping[str, Any], *, drawn: bool = True, replicates: bool = False
) -> Any:
    """Return the `Settings` of a run, checked against what is judged and driven.

    Nothing is drawn for single test cases; `replicates` says whether the verb drives the bundled
    brokers as well. Raises UnknownFault for a mutant that the bundled implementation does not have.
    """
    from reassure_conformance.adapter.world import REAL_WORLD, VIRTUAL_WORLD
    from reassure_conformance.gate.run_settings import BUNDLED, REPLICATION, Settings
    from reassure_conformance.mutants import check_faults
    from reassure_spec.rooms import judge_of

    readings, profile = parse_readings(options["readings"]), options["profile"]
    connectable, faults = options.get("connectable") or BUNDLED, options.get("faults", ())
    if profile == REPLICATION and connectable == BUNDLED and replicates:
        check_rules(profile, readings)
        check_rules(profile, readings, judge_of(profile))
    else:
        _check_driven(profile, readings, connectable)
    if connectable == BUNDLED:
        check_faults(faults)
    world = options.get("world", REAL_WORLD)
    if world == VIRTUAL_WORLD and not connectable.startswith("direct:"):
        raise click.UsageError(
            "--world virtual has no server: it is for the bundled controller and brokers, or a "
            "class named by direct: that takes `world` (docs/adapter.md)"
        )
    return Settings(
        seed=choose_seed(options["seed"]) if drawn else 0,
        connectable=connectable,
        profile=profile,
        readings=readings,
        faults=faults,
        failures=str(options["failures"] or "") if drawn else "",
        strict=options.get("strict", False),
        require_all=drawn and options["require"] == "all",
        hang_s=options["hang_s"],
        world=world,
    )


def _check_driven(profile: str, readings: Mapping[str, str], connectable: str) -> None:
    """Complain of rules that nobody drives or judges by, or the bundled controller does not do."""
    from reassure_conformance.gate.run_settings import BUNDLED
    from reassure_judge.protocols import check_driven
    from reassure_spec.rooms import controller_of, gate_of

    check_rules(profile, readings)
    check_driven(profile)
    acting = [controller_of(profile)] if connectable == BUNDLED else []
    check_rules(profile, readings, gate_of(profile), *acting)


def emit(document: Document, form: str, render: Callable[[], str]) -> int:
    """Print the result in the form asked for and return the exit code."""
    get_say()(document.as_json() if form == "json" else render().rstrip("\n"))
    return document.get_exit_code()


def emit_table(
    verb: str,
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    form: str,
    **counts: int,
) -> int:
    """Print a list, in JSON as records under its name, and return the exit code.

    A list that has nothing in it is vacuous.
    """
    from reassure_conformance.report import display

    records = [dict(zip(columns, row, strict=True)) for row in rows]
    verdict = HOLDS if rows else VACUOUS
    document = Document(verb, verdict, 0.0, counts or {name: len(rows)}, body={name: records})
    return emit(document, form, lambda: display.render_table(title, columns, rows, form))


def emit_run(document: Document, form: str, directory: Path, *, verbose: bool) -> int:
    """Write the report of a run, print it, and return the exit code."""
    from reassure_conformance.report import terminal

    document.write(directory)
    result = document.as_dict()
    return emit(document, form, lambda: terminal.render_run(result, form, verbose=verbose))


def get_say() -> Callable[[str], None]:
    """Return what takes what the verb has to say, in whatever thread."""
    found: Callable[[str], None] = click.get_current_context().obj or click.echo
    return found


class ProgressLine:
    """A line on a terminal that says what is going on while it is entered; nothing elsewhere."""

    def __init__(self) -> None:
        self._status: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("starting")
            self._status.start()
        return self

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say how far it is."""
        if self._status is not None:
            self._status.update(f"{what} {done}/{total}" if total else what)

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
