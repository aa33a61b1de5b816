"""The verb `audit`: transaction logs, judged."""

from collections.abc import Sequence
from pathlib import Path

import click

from reassure_conformance.cli.options import (
    check_rules,
    emit,
    format_option,
    is_given,
    parse_readings,
    rules_options,
    strict_option,
    verbose_option,
)


@click.command()
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
@click.option(
    "--parquet",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where Spark leaves what its stages came to, as tables to be queried.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes judge, without Spark (one for each core, for large logs).",
)
@click.option(
    "--facts",
    is_flag=True,
    help="Tell besides of reassignments, replication, elections and controllers, over time.",
)
@click.option(
    "--members",
    type=click.Choice(["auto", "one", "apart"]),
    default="auto",
    show_default=True,
    help="Which paths are members of one ensemble, whose logs are one history: those that have "
    "logged the same, all, or none.",
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
@strict_option
@rules_options("what the log tells")
@verbose_option
@format_option
def audit(
    paths: tuple[Path, ...],
    spark: str | None,
    parquet: Path | None,
    jobs: int | None,
    facts: bool,
    members: str,
    at_rest: bool,
    min_insync_replicas: int,
    grace: float | None,
    strict: bool,
    profile: str,
    readings: Sequence[str],
    verbose: bool,
    form: str,
) -> int:
    """Judge transaction logs: files, or directories of them, of a run or of any cluster."""
    from reassure_conformance.answers.auditing import audit_document, render_audit
    from reassure_judge.doubt import GRACE_MS
    from reassure_spec.rooms import judge_of

    if parquet is not None and spark is None:
        raise click.UsageError("--parquet says what Spark leaves: add --spark")
    chosen = parse_readings(readings)
    check_rules(profile, chosen, judge_of(profile))
    document = audit_document(
        paths,
        profile,
        chosen,
        spark,
        at_rest=at_rest,
        min_insync_replicas=min_insync_replicas,
        grace_ms=GRACE_MS if grace is None else round(grace * 1000),
        strict=strict,
        recognise=not is_given("profile"),
        jobs=jobs,
        facts=facts,
        members=members,
        parquet=parquet,
    )
    return emit(document, form, lambda: render_audit(document, form, verbose=verbose))
