"""The command line: `reassure VERB`.

This module imports click and little else; every verb imports what it needs when it is called, so
that help is quick and nothing starts a solver or Spark that does not need one.

Exit codes, for every verb: 0 holds, 1 violated, 2 unknown, 3 vacuous or stale, 64 usage, 65 bad
data, 69 implementation or server unavailable, 70 internal error, 78 bad configuration. A crashed
run is never 0 and never 1.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from reassure_conformance.report import (
    EXIT_USAGE,
    HOLDS,
    INTERRUPTED,
    UNKNOWN,
    VACUOUS,
    VIOLATED,
    Document,
    Unavailable,
)

_TELLS_ONLY: Final = frozenset({"-h", "--help", "--version"})
"""Options that only tell something; nothing is run."""
SHELL_PROFILES: Final = ("kip-236", "kip-236-amended")

Command = TypeVar("Command", bound=Callable[..., Any])

EPILOG: Final = (
    "Exit codes: 0 holds, 1 violated, 2 unknown, 3 vacuous or stale, 64 usage, 65 bad data, "
    "69 unavailable, 70 internal error, 78 bad configuration."
)


def _format_option(command: Command) -> Command:
    return click.option(
        "--format",
        "form",
        type=click.Choice(["pretty", "json", "markdown"]),
        default="pretty",
        show_default=True,
        help="How the result is printed; json is one document.",
    )(command)


def _rules_options(command: Command) -> Command:
    command = click.option(
        "--reading",
        "readings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Settle a disputed point otherwise than the profile does; may be repeated.",
    )(command)
    return click.option(
        "--profile",
        default="kip-236",
        show_default=True,
        metavar="NAME",
        help=f"Version of the rules: {', '.join(SHELL_PROFILES)}.",
    )(command)


def _strict_option(command: Command) -> Command:
    return click.option(
        "--strict", is_flag=True, help="Let a SHOULD bind like a MUST: not followed is violated."
    )(command)


def _run_options(command: Command) -> Command:
    for option in (
        click.option("--out", type=click.Path(path_type=Path), help="Directory of the run."),
        click.option("--seed", type=click.IntRange(min=0), help="Repeat the run with this seed."),
        click.option(
            "--failures",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Folder of saved failures: told first, and new ones are added.",
        ),
        click.option(
            "--require",
            type=click.Choice(["declared", "all"]),
            default="declared",
            show_default=True,
            help="Which clauses must be put to the test: all, or those that what the "
            "implementation declares allows.",
        ),
        click.option(
            "--hang-after",
            "hang_s",
            type=click.FloatRange(0, min_open=True),
            default=120.0,
            show_default=True,
            metavar="SECONDS",
            help="How long one step may take before the implementation counts as dead.",
        ),
    ):
        command = option(command)
    return command


def _parse_readings(readings: Sequence[str]) -> dict[str, str]:
    chosen = {}
    for text in readings:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--reading {text!r}: write it as NAME=VALUE")
        chosen[name] = value
    return chosen


def _check_rules(profile: str, readings: Mapping[str, str], *rooms: str) -> None:
    """Complain of what there is not; raise RefusedReading for what a room does not carry out."""
    from reassure_spec.readings import UnknownReading
    from reassure_spec.rooms import choose_readings

    try:
        for room in rooms or ("model",):
            choose_readings(room, profile, readings)
    except UnknownReading as error:
        raise click.UsageError(str(error)) from error


def _is_given(option: str) -> bool:
    """Whether somebody chose the value of an option."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


def _choose_seed(seed: int | None) -> int:
    import secrets

    chosen = secrets.randbelow(2**32) if seed is None else seed
    click.echo(f"seed: {chosen}", err=True)
    return chosen


def _emit(document: Document, form: str, render: Callable[[], str]) -> int:
    """Print the result in the form asked for and return the exit code."""
    _say(document.as_json() if form == "json" else render().rstrip("\n"))
    return document.get_exit_code()


def _emit_table(
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
    from reassure_conformance import display

    records = [dict(zip(columns, row, strict=True)) for row in rows]
    verdict = HOLDS if rows else VACUOUS
    document = Document(verb, verdict, 0.0, counts or {name: len(rows)}, body={name: records})
    return _emit(document, form, lambda: display.render_table(title, columns, rows, form))


def _say(text: str) -> None:
    """Hand over what the verb has to say."""
    (click.get_current_context().obj or click.echo)(text)


class _Progress:
    """A line on a terminal that says what is going on; nothing anywhere else."""

    def __init__(self) -> None:
        self._status: Any = None
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("starting")
            self._status.start()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._status is not None:
            self._status.update(f"{what} {done}/{total}" if total else what)

    def stop(self) -> None:
        """Clear the line."""
        if self._status is not None:
            self._status.stop()


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="reassure", prog_name="reassure")
def cli() -> None:
    """Hold a partition reassignment implementation to an executable reference model."""


# -- check and run


def _settings(options: Mapping[str, Any], connectable: str | None = None) -> Any:
    from reassure_conformance.run import BUNDLED, Settings
    from reassure_judge.judge import check_judged

    readings = _parse_readings(options["readings"])
    _check_rules(options["profile"], readings)
    check_judged(options["profile"])
    driven = ["controller"] if connectable in (None, BUNDLED) else []
    _check_rules(options["profile"], readings, "judge", *driven)
    return Settings(
        seed=_choose_seed(options["seed"]),
        profile=options["profile"],
        readings=readings,
        failures=str(options["failures"] or ""),
        strict=options.get("strict", False),
        require_all=options["require"] == "all",
        hang_s=options["hang_s"],
    )


def _emit_run(document: Document, form: str, directory: Path) -> int:
    """Write the report of a run, print it, and return the exit code."""
    from reassure_conformance import display

    document.write(directory)
    report = document.as_dict()
    return _emit(
        document, form, lambda: display.render_run(report, form, _diagram(report, directory))
    )


def _diagram(report: Mapping[str, Any], directory: Path) -> list[str]:
    if not report["violations"]:
        return []
    from reassure_conformance.evidence import draw_diagram, read_json
    from reassure_zookeeper.txnlog import read_logs

    failure = read_json(directory / "failure.json")
    transactions = list(read_logs(directory / "log"))
    return list(draw_diagram(failure["steps"], transactions, failure["chroot"]))


@cli.command()
@click.option("--quick", is_flag=True, help="A fifth of the examples; under half a minute.")
@click.option("--examples", type=click.IntRange(min=0), help="How many examples to generate.")
@_strict_option
@_rules_options
@_run_options
@_format_option
def check(quick: bool, examples: int | None, form: str, out: Path | None, **options: Any) -> int:
    """Run the gate: proofs, exploration, the bundled controller on an embedded ZooKeeper."""
    from dataclasses import replace

    from reassure_conformance import check as gate
    from reassure_conformance.run import make_directory

    settings = _settings(options)
    if quick:
        settings = gate.make_quick(settings)
    if examples is not None:
        settings = replace(settings, examples=examples, steps_min=0)
    directory = make_directory(out, settings.seed)
    progress = _Progress()
    try:
        result = gate.check(settings, directory, progress)
    finally:
        progress.stop()
    return _emit_run(result.as_document(), form, directory)


@cli.command()
@click.option(
    "-i",
    "--implementation",
    "connectable",
    metavar="CONNECTABLE",
    help="direct:package.module:Adapter; without it, the bundled controller.",
)
@click.option("--fault", "faults", multiple=True, help="Plant a fault in the bundled controller.")
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
@click.option("--no-stories", is_flag=True, help="Leave out the stories that come with it.")
@_strict_option
@_rules_options
@_run_options
@_format_option
def run(
    connectable: str | None,
    faults: tuple[str, ...],
    no_stories: bool,
    form: str,
    out: Path | None,
    **options: Any,
) -> int:
    """Drive an implementation and judge what it wrote.

    CONNECTABLE names it: direct:package.module:Class?option=value. The default is the bundled
    controller.
    """
    from dataclasses import replace

    from reassure_conformance import run as conformance

    settings = replace(
        _settings(options, connectable),
        connectable=connectable or conformance.BUNDLED,
        faults=faults,
        examples=options["examples"],
        steps_min=options["steps_min"],
        with_stories=not no_stories,
    )
    directory = conformance.make_directory(out, settings.seed)
    progress = _Progress()
    try:
        result = conformance.run(settings, directory, progress)
    finally:
        progress.stop()
    return _emit_run(result.as_document(), form, directory)


@cli.command()
@click.argument("directory", metavar="RUN", type=click.Path(exists=True, path_type=Path))
@_format_option
def replay(directory: Path, form: str) -> int:
    """Repeat the failure of a run: tell its story again, and judge its log again."""
    from reassure_conformance.replay import replay as again

    outcome = again(directory)
    document = outcome.as_document()
    return _emit(document, form, lambda: "\n".join(outcome.describe()))


@cli.command()
@click.argument("names", nargs=-1, metavar="[FAULT]...")
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="How many examples to generate for each fault, at most.",
)
@_rules_options
@_run_options
@_format_option
def faults(
    names: tuple[str, ...], examples: int, form: str, out: Path | None, **options: Any
) -> int:
    """Plant each known fault in the bundled controller and show what catches it."""
    import time
    from dataclasses import replace

    from reassure_conformance import display, faultmatrix
    from reassure_conformance.bundled import list_faults
    from reassure_conformance.run import make_directory

    known = list_faults()
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise click.UsageError(f"no fault {', '.join(unknown)}; there are: {', '.join(known)}")
    settings = replace(_settings(options), examples=examples, steps_min=0, seconds_max=60.0)
    directory = make_directory(out, settings.seed)
    progress, chosen, start = _Progress(), names or tuple(known), time.monotonic()
    done: list[faultmatrix.Kill] = []

    def tell(kill: faultmatrix.Kill) -> None:
        done.append(kill)
        progress(f"{kill.fault}: {kill.outcome}", len(done), len(chosen))

    try:
        kills = faultmatrix.run_matrix(chosen, settings, directory, tell)
    finally:
        progress.stop()
    document = Document(
        "faults",
        faultmatrix.matrix_verdict(kills),
        time.monotonic() - start,
        faultmatrix.matrix_counts(kills),
        seed=settings.seed,
        profile=settings.profile,
        readings=settings.readings,
        body={"matrix": [kill.as_dict() for kill in kills], "directory": str(directory)},
    )
    document.write(directory)

    def render() -> str:
        columns = ["fault", "outcome", "by clause", "expected", "steps", "seconds"]
        rows = [
            [
                kill.fault,
                kill.outcome,
                kill.clause,
                "yes" if kill.expected else "no",
                len(kill.story),
                round(kill.seconds, 1),
            ]
            for kill in kills
        ]
        table = display.render_table("Kill matrix", columns, rows, form)
        counts = ", ".join(f"{name} {value}" for name, value in document.counts.items())
        return f"{table}{document.verdict.upper()} in {document.seconds:.1f} s: {counts}"

    return _emit(document, form, render)


# -- prove and audit


def _explain_theorems(
    names: tuple[str, ...], replication_factor: int, timeout_s: float, form: str
) -> int:
    """Print the named theorems in words."""
    from reassure_proofs.explain import explain

    if not names:
        raise click.UsageError("--explain needs the name of a theorem; see `reassure prove --list`")
    told = {name: explain(name, replication_factor, timeout_s) for name in names}
    document = Document("prove", HOLDS, None, {"theorems": len(told)}, body={"explained": told})
    return _emit(document, form, lambda: "\n\n".join(told.values()))


def _prove_code(code: str, replication_factor: int, profile: str, timeout_s: float) -> list[Any]:
    """Return what comes of a reviewer's own rule."""
    from reassure_proofs.candidate import CandidateError, prove_candidate

    try:
        return prove_candidate(code, replication_factor, profile, timeout_s)
    except CandidateError as error:
        raise click.UsageError(str(error)) from error


def _sweep_or_replay(
    names: tuple[str, ...], thorough: bool, timeout_s: float, form: str, *, swept: bool
) -> int:
    """Sweep the readings, or replay the counterexamples of left-out hypotheses."""
    from reassure_conformance import proving

    progress = _Progress()
    try:
        if swept:
            document, text = proving.sweep_document(names, timeout_s, progress, thorough=thorough)
        else:
            document, text = proving.replay_document(names, timeout_s, progress, form)
    finally:
        progress.stop()
    return _emit(document, form, lambda: f"{text}\n{document.verdict.upper()}")


def _ask_again(
    names: tuple[str, ...], replication_factor: int, timeout_s: float, progress: "_Progress"
) -> dict[str, Any]:
    """Return what another solver says to every question."""
    from reassure_proofs.opinion import SOLVER, ask_all, has_second_solver, to_json
    from reassure_proofs.smt import make_scripts

    if not has_second_solver():
        raise Unavailable(f"{SOLVER} is not installed: no second opinion. Install the extra dev.")
    scripts = make_scripts(list(names) or None, replication_factor, timeout_s)
    return to_json(ask_all(scripts, timeout_s, lambda done: progress("second opinion", done, 0)))


def _join_opinions(verdict: str, opinions: Mapping[str, Any]) -> str:
    """Return the verdict where another solver was asked as well, who may differ or not know."""
    if verdict != HOLDS or not opinions:
        return verdict
    told = opinions["second_opinion"]
    return VIOLATED if told["differs"] else UNKNOWN if told["unknown"] else HOLDS


@cli.command()
@click.argument("names", nargs=-1, metavar="[THEOREM]...")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 7),
    default=4,
    show_default=True,
    help="The longest list of replicas that is tried.",
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
@click.option("--second-opinion", is_flag=True, help="Ask cvc5 the same questions again.")
@click.option("--sweep", "swept", is_flag=True, help="Ask again under each other reading.")
@click.option(
    "--replay", "replayed", is_flag=True, help="Replay what each hypothesis is needed for."
)
@_format_option
def prove(
    names: tuple[str, ...],
    replication_factor: int,
    timeout_s: float,
    thorough: bool,
    listed: bool,
    explained: bool,
    code: str | None,
    profile: str,
    second_opinion: bool,
    swept: bool,
    replayed: bool,
    form: str,
) -> int:
    """Prove the theorems about the model's own functions, or about a rule of your own."""
    import time

    from reassure_conformance import proving
    from reassure_proofs.runner import prove_all, to_json
    from reassure_proofs.statement import THOROUGH

    if listed:
        listing, lines = proving.list_document()
        return _emit(listing, form, lambda: lines)
    factor = THOROUGH if thorough else replication_factor
    timeout_s = max(timeout_s, 600.0) if thorough else timeout_s
    if explained:
        return _explain_theorems(names, factor, timeout_s, form)
    if swept or replayed:
        return _sweep_or_replay(names, thorough, timeout_s, form, swept=swept)
    progress, start = _Progress(), time.monotonic()
    opinions: dict[str, Any] = {}
    try:
        if code is not None:
            results = _prove_code(code, min(factor, 3), profile, timeout_s)
        else:
            results = prove_all(
                list(names) or None,
                factor,
                lambda done, total: progress("proofs", done, total),
                timeout_s,
                tier="full",
            )
        if second_opinion:
            opinions = _ask_again(names, factor, timeout_s, progress)
    finally:
        progress.stop()
    body = {**to_json(results), **opinions}
    profiles = sorted({theorem["profile"] for theorem in body["theorems"]})
    document = Document(
        "prove",
        _join_opinions(body.pop("verdict"), opinions),
        time.monotonic() - start,
        body.pop("counts"),
        profile=profiles[0] if len(profiles) == 1 else None,
        body=body,
    )

    def render() -> str:
        lines = proving.render_theorems(body["theorems"], form)
        if opinions:
            told = opinions["second_opinion"]
            numbers = ", ".join(f"{told[name]} {name}" for name in ("agrees", "differs", "unknown"))
            lines.append(f"{told['solver']} on {told['scripts']} questions: {numbers}")
        return "\n".join([*lines, f"{document.verdict.upper()} in {document.seconds:.1f} s"])

    return _emit(document, form, render)


@cli.command()
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
@_rules_options
@_format_option
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
    from reassure_conformance import exploring

    if listed:
        return _emit_table("explore", *exploring.list_scopes(), form)
    if not _is_given("profile"):
        options["profile"] = exploring.choose_profile(options["scope"])
    options["readings"] = _parse_readings(options["readings"])
    _check_rules(options["profile"], options["readings"])
    places = (options["page"], options["graph"], out)
    exploring.check_options(options, places, controller=controller)
    if sweep:
        return _emit_table("explore", *exploring.run_sweep(options), form)
    if options["walks"] is not None:
        document, words = exploring.run_walks(options, _choose_seed(options["seed"]))
        return _emit(document, form, lambda: words)
    progress = _Progress()
    try:
        exploration = exploring.run_explore(options, progress)
    finally:
        progress.stop()
    exploring.write_pictures(options, exploration)
    if out is not None:
        exploring.write_stories(exploration, out)
    for place in filter(None, places):
        click.echo(f"wrote {place}", err=True)
    if not controller:
        return _emit(exploring.make_document(exploration), form, exploration.render)
    progress = _Progress()
    try:
        outcomes = exploring.run_on_controller(exploring.make_scenarios(exploration), progress)
    finally:
        progress.stop()
    document = exploring.make_document(exploration, outcomes)
    words = f"{exploration.render()}\n{exploring.render_outcomes(outcomes)}"
    return _emit(document, form, lambda: words)


@cli.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH...",
)
@click.option(
    "--spark", is_flag=False, flag_value="local[*]", metavar="[MASTER]", help="Judge on Spark."
)
@click.option("--at-rest", is_flag=True, help="Take the end of the logs for a moment of rest.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long a change may be news to a controller (30).",
)
@click.option(
    "--min-insync-replicas",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="What the brokers' own files say, which are not in ZooKeeper; settings there come first.",
)
@_strict_option
@_rules_options
@_format_option
def audit(
    paths: tuple[Path, ...],
    spark: str | None,
    at_rest: bool,
    min_insync_replicas: int,
    grace: float | None,
    strict: bool,
    profile: str,
    readings: Sequence[str],
    form: str,
) -> int:
    """Judge transaction logs: files, or directories of them, of a run or of any cluster."""
    from reassure_conformance.auditing import audit_document, render_audit
    from reassure_judge.doubt import GRACE_MS

    chosen = _parse_readings(readings)
    _check_rules(profile, chosen, "judge")
    document = audit_document(
        paths,
        profile,
        chosen,
        spark,
        at_rest=at_rest,
        min_insync_replicas=min_insync_replicas,
        grace_ms=GRACE_MS if grace is None else round(grace * 1000),
        strict=strict,
        recognise=not _is_given("profile"),
    )
    return _emit(document, form, lambda: render_audit(document, form))


# -- explain and spec


@cli.command()
@click.argument("what", metavar="CLAUSE|RUN")
@_format_option
def explain(what: str, form: str) -> int:
    """Explain a clause, or what went wrong in a run."""
    from reassure_conformance import display
    from reassure_conformance.matrix import find_places
    from reassure_spec.clauses import load_clauses

    if what in load_clauses():
        lines = list(display.describe_clause(what, find_places(what)))
    elif (Path(what) / "report.json").exists():
        from reassure_conformance.evidence import read_json

        report = read_json(Path(what) / "report.json")
        diagram = _diagram(report, Path(what))
        lines = list(display.describe_violation(report, Path(what), diagram))
        lines = lines or [f"{what}: {report['verdict']}, nothing was violated"]
    else:
        raise click.UsageError(
            f"{what!r} is neither a clause (`reassure spec list`) nor the directory of a run"
        )
    lines = display.fence(lines, form)
    document = Document("explain", HOLDS, None, {"lines": len(lines)}, body={"text": lines})
    return _emit(document, form, lambda: "\n".join(lines))


@cli.group()
def spec() -> None:
    """Look things up in the spec: clauses, readings, findings, the matrix."""


def _spec_verb(
    name: str, title: str, columns: list[str], rows: list[list[Any]], form: str, **counts: int
) -> int:
    return _emit_table(f"spec {name}", name, title, columns, rows, form, **counts)


@spec.command("list")
@click.option("--profile", metavar="NAME", help="Only the clauses of this profile.")
@_format_option
def spec_list(profile: str | None, form: str) -> int:
    """List the clauses."""
    from reassure_spec.clauses import clauses_of_profile, load_clauses

    if profile is not None:
        _check_rules(profile, {})
    clauses = clauses_of_profile(profile) if profile else tuple(load_clauses().values())
    rows = [[c.id, c.level, c.sentence, ", ".join(c.profiles)] for c in clauses]
    columns = ["id", "level", "sentence", "profiles"]
    return _spec_verb("list", "Clauses", columns, rows, form, clauses=len(rows))


@spec.command("readings")
@_format_option
def spec_readings(form: str) -> int:
    """List the readings: the disputed points and how each can be settled."""
    from reassure_spec.readings import READINGS

    rows: list[list[Any]] = [[r.name, ", ".join(r.values), r.why, r.source] for r in READINGS]
    columns = ["name", "values", "why", "source"]
    return _spec_verb("readings", "Readings", columns, rows, form, readings=len(rows))


@spec.command("findings")
@_format_option
def spec_findings(form: str) -> int:
    """Show what holds under which reading, and the findings: where a document does not hold."""
    from reassure_conformance.findings_table import findings_document, render_findings

    document = findings_document()
    return _emit(document, form, lambda: render_findings(document, form))


@spec.command("matrix")
@_format_option
def spec_matrix(form: str) -> int:
    """Show where each clause is carried out, judged, proved, told and planted against."""
    from reassure_conformance.matrix import COLUMNS, MANY, make_matrix

    rows = make_matrix(None if form == "json" else MANY)
    return _spec_verb("matrix", "Matrix", list(COLUMNS), rows, form, clauses=len(rows))


@spec.command("coverage")
@click.option(
    "--seeds",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the documents; without it, REASSURE_SEEDS or ../shared/seeds.",
)
@_format_option
def spec_coverage(seeds: Path | None, form: str) -> int:
    """Show which clauses say what each sentence of the documents says."""
    from reassure_conformance.catalogue import coverage_document, render_coverage

    document = coverage_document(seeds)
    return _emit(document, form, lambda: render_coverage(document, form))


@spec.command("diff")
@click.argument("first", metavar="PROFILE")
@click.argument("second", metavar="PROFILE")
@_format_option
def spec_diff(first: str, second: str, form: str) -> int:
    """Show in which readings and clauses two profiles differ."""
    from reassure_conformance.catalogue import diff_document, render_diff

    document = diff_document(first, second)
    return _emit(document, form, lambda: render_diff(document, form))


@cli.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to write scenarios.jsonl and manifest.json into.",
)
@_format_option
def vectors(out: Path, form: str) -> int:
    """Export the scenarios as JSON lines for other implementations."""
    from reassure_conformance.catalogue import render_vectors, vectors_document

    document = vectors_document(out)
    return _emit(document, form, lambda: render_vectors(document, form))


@cli.command()
@click.argument("names", nargs=-1, metavar="[AREA|AREA/NAME|PATH]...")
@click.option("--live", is_flag=True, help="Tell them to the bundled controller on ZooKeeper.")
@click.option("--fault", "faults", multiple=True, help="With --live: plant a fault in it.")
@_format_option
def scenarios(names: tuple[str, ...], live: bool, faults: tuple[str, ...], form: str) -> int:
    """Tell the scenarios of the spec to the model, or to the real controller.

    What the controller cannot be told is skipped, and counted by reason.
    """
    from reassure_conformance.live.report import render_scenarios, scenarios_document

    if faults and not live:
        raise click.UsageError("--fault is planted in the controller: give --live as well")
    progress = _Progress()
    try:
        document = scenarios_document(names, progress, live=live, faults=faults)
    finally:
        progress.stop()
    return _emit(document, form, lambda: render_scenarios(document, form))


# -- the way in and out


def run_command(
    arguments: Sequence[str] | None = None, say: Callable[[str], None] = click.echo
) -> int:
    """Run one command line in this process and return its exit code; nothing is raised.

    What it has to say is given to `say`: with `--format json` one document, whatever happens.
    """
    from reassure_conformance import failing

    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = cli.main(args=given, prog_name="reassure", standalone_mode=False, obj=say)
    except click.ClickException as error:
        error.show()
        failing.say_error(given, EXIT_USAGE, error, say)
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt) as error:
        # Click takes what ended too early for a user who has left.
        if isinstance(error.__cause__, EOFError):
            return failing.report_error(given, error.__cause__, say)
        failing.report_interrupt(given, INTERRUPTED, error, say)
        return INTERRUPTED
    except BaseException as error:
        return failing.report_error(given, error, say)
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """Run the command line of this process."""
    from reassure_conformance import failing
    from reassure_conformance.supervise import supervise

    arguments = sys.argv[1:]
    if not arguments or _TELLS_ONLY & set(arguments):
        sys.exit(run_command(arguments))
    text, code = supervise(arguments, run_command, partial(failing.explain_end, arguments))
    sys.exit(failing.print_last(text, code))
