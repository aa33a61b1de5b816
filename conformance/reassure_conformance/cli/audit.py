"""The verb `audit`: transaction logs, judged, also as a server writes them."""

import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reassure_conformance.cli.options import (
    ProgressLine,
    check_rules,
    emit,
    facts_option,
    folder_option,
    format_option,
    is_given,
    judging_options,
    parse_readings,
    refuse_given,
    spark_option,
    verbose_option,
)

if TYPE_CHECKING:
    from reassure_pipeline.archives.archive import Since
    from reassure_pipeline.audit.jobs import AuditBudget

_SECONDS: Final = {"s": 1, "min": 60, "h": 3600}
_THOUSANDS: Final = {"": 1, "k": 1_000, "M": 1_000_000}


class Begin(click.ParamType["Since"]):
    """A zxid, decimal or as ZooKeeper writes it, or a time."""

    name = "begin"

    def convert(self, value: Any, param: Any, ctx: Any) -> "Since":
        """Return from when on."""
        from reassure_pipeline.archives.archive import Since

        if not isinstance(value, str):
            return Since(*value)
        if re.fullmatch(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}", value):
            return Since(zxid=int(value, 0 if value.startswith("0x") else 10))
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is not a zxid like 0x1000000a3 or a time like 2026-01-31T12:00",
                param,
                ctx,
            )
        time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return Since(time_ms=round(time.timestamp() * 1000))


class Spending(click.ParamType["AuditBudget"]):
    """Seconds, minutes or hours, or a number of transactions."""

    name = "spending"

    def convert(self, value: Any, param: Any, ctx: Any) -> "AuditBudget":
        """Return what may be spent."""
        from reassure_pipeline.audit.jobs import AuditBudget

        if not isinstance(value, str):
            return AuditBudget(*value)
        match = re.fullmatch(r"([0-9]{1,12})(s|min|h|k|M)?", value)
        if match is None or not int(match[1]):
            self.fail(
                f"{value!r} is not a time like 90s, 15min, 2h or a number like 500k", param, ctx
            )
        number, unit = int(match[1]), match[2] or ""
        if unit in _SECONDS:
            return AuditBudget(seconds=number * _SECONDS[unit])
        return AuditBudget(transactions=number * _THOUSANDS[unit])


_ONCE: Final = ("spark", "jobs", "members", "since", "budget", "resume", "at_rest")
_FOLLOWING: Final = ("checkpoint", "for_s", "until_caught_up")
"""Options of an audit of what is there, and of one that goes on."""


def _read_chroots(
    context: click.Context, parameter: click.Parameter, chroots: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Return the chroots as the judge has them, "" for the root; None for all clusters."""
    for chroot in chroots:
        if not chroot.startswith("/") or "//" in chroot:
            raise click.BadParameter(f"{chroot!r} is no path of a znode like /kafka", context)
    return tuple(dict.fromkeys(chroot.rstrip("/") for chroot in chroots)) or None


def _check_there(
    context: click.Context, parameter: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Refuse paths that are not there, unless somebody may write them yet."""
    from reassure_pipeline.archives.remote_logs import find_uri

    there = click.Path(exists=not context.params["follow"], readable=False)
    for path in paths:
        if find_uri(path) is None:
            there.convert(path, parameter, context)
        elif context.params["follow"]:
            raise click.UsageError(f"{find_uri(path)}: --follow reads files of this machine")
    return paths


@click.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="PATH...",
    callback=_check_there,
)
@click.option(
    "--follow",
    is_flag=True,
    is_eager=True,
    help="Keep judging while a server writes them, and report each violation once; with --format "
    "json one line for each, and the document as the last line.",
)
@folder_option(
    "--checkpoint",
    "With --follow: keep alerts here, each once, and the state from which to resume.",
)
@click.option(
    "--for",
    "for_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="With --follow: stop after this time (by default: when interrupted).",
)
@click.option(
    "--until-caught-up",
    is_flag=True,
    help="With --follow: stop once everything written so far is judged.",
)
@spark_option("Judge on Spark.")
@folder_option(
    "--tables",
    "Append what each archive came to, and all findings, to Delta tables in DIR, each once, and "
    "judge only what is new there; with --follow after alerts, each hour, and at the end.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes judge, without Spark (default for large logs: one for each core).",
)
@facts_option
@click.option(
    "--members",
    type=click.Choice(["auto", "one", "apart"]),
    default="auto",
    show_default=True,
    help="Which paths are members of one ensemble and so have one history: auto, those that "
    "logged the same transactions; one, all; apart, none.",
)
@click.option(
    "--since",
    type=Begin(),
    metavar="ZXID|TIME",
    help="Start at this transaction, or at this time of the server's clock (UTC).",
)
@click.option(
    "--chroot",
    "chroots",
    multiple=True,
    metavar="PATH",
    callback=_read_chroots,
    help="Judge the cluster below this znode, / for the root; may be repeated (default: every "
    "cluster in the log, each by its own profile).",
)
@click.option(
    "--budget",
    type=Spending(),
    metavar="SECONDS|TRANSACTIONS",
    help="Stop, with a verdict on what was read, after this time (90s, 15min, 2h) or this many "
    "transactions (500k, 10M).",
)
@folder_option("--resume", "Keep checkpoints in DIR, and resume from those that are there.")
@click.option(
    "--at-rest",
    is_flag=True,
    help="The cluster was quiescent where the logs end: judge obligations there.",
)
@judging_options
@verbose_option
@format_option
def audit(
    paths: tuple[Path, ...],
    follow: bool,
    profile: str,
    readings: tuple[str, ...],
    verbose: bool,
    form: str,
    **options: Any,
) -> int:
    """Judge transaction logs, of a run or of any cluster.

    PATH is a file, or a directory of files; without --follow also a URI of a folder, such as
    s3://BUCKET/FOLDER. With --follow it may appear later.
    """
    from reassure_conformance.answers.auditing import audit_document, render_audit
    from reassure_pipeline.audit.jobs import NO_BUDGET
    from reassure_spec.rooms import judge_of

    if follow:
        refuse_given(_ONCE, "cannot be used with --follow: leave out one of the two")
        if form == "markdown":
            raise click.UsageError("--follow prints while it runs: use --format pretty or json")
    else:
        refuse_given(_FOLLOWING, "is for --follow: add it")
    chosen = parse_readings(readings)
    check_rules(profile, chosen, judge_of(profile))
    if follow:
        from reassure_conformance.cli.follow import follow as go_on

        return go_on(paths, chosen, form, {**options, "profile": profile, "verbose": verbose})
    for name in _FOLLOWING:
        del options[name]
    options["budget"] = options["budget"] or NO_BUDGET
    with ProgressLine() as progress:
        document = audit_document(
            paths,
            profile,
            chosen,
            options.pop("spark"),
            recognise=not is_given("profile"),
            say=partial(click.echo, err=True),
            progress=progress,
            **options,
        )
    return emit(document, form, lambda: render_audit(document, form, verbose=verbose))
