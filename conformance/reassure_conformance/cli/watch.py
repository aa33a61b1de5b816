"""The verb `watch`: transaction logs, judged as a server writes them."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import click

from reassure_conformance.cli.failing import NOBODY_READS, forget_output
from reassure_conformance.cli.options import (
    check_rules,
    emit,
    facts_option,
    get_say,
    is_given,
    judging_options,
    parse_readings,
    spark_option,
    verbose_option,
)

if TYPE_CHECKING:
    from reassure_conformance.answers.watching import Outlet

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the alerts are kept, each once, and what it takes to go on after an end.",
)
@spark_option("Judge on Spark.")
@click.option(
    "--for",
    "for_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End after so long (goes on until it is interrupted).",
)
@click.option("--until-caught-up", is_flag=True, help="End once all that is there is judged.")
@facts_option
@judging_options
@verbose_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["pretty", "json"]),
    default="pretty",
    show_default=True,
    help="How alerts are printed; json is a line for each, and the document as the last line.",
)
def watch(
    paths: tuple[Path, ...],
    checkpoint: Path | None,
    spark: str | None,
    for_s: float | None,
    until_caught_up: bool,
    facts: bool,
    grace_ms: int,
    min_insync_replicas: int,
    strict: bool,
    profile: str,
    readings: Sequence[str],
    verbose: bool,
    form: str,
) -> int:
    """Judge transaction logs while a server writes them, and tell each violation once."""
    from reassure_conformance.answers.auditing import render_audit
    from reassure_conformance.answers.watching import Asked, watch_document
    from reassure_pipeline.watch_loop import Ending
    from reassure_pipeline.watched import Options
    from reassure_spec.rooms import judge_of

    chosen = parse_readings(readings)
    check_rules(profile, chosen, judge_of(profile))
    until = inf if for_s is None else time.monotonic() + for_s
    asked = Asked(
        paths,
        Ending(Event(), until, until_caught_up),
        profile,
        chosen,
        named=is_given("profile"),
        options=Options(strict, min_insync_replicas, grace_ms, facts),
        checkpoint=checkpoint,
        spark=spark,
    )
    try:
        with _stopping(asked.ending.stop), _open_outlet(form) as outlet:
            document = watch_document(asked, outlet)
        return emit(document, form, lambda: render_audit(document, form, verbose=verbose))
    except BrokenPipeError:
        forget_output()
        return NOBODY_READS


@contextmanager
def _stopping(stop: Event) -> Iterator[None]:
    """Let an interrupt end the watch in order; a second one ends it at once."""

    def end(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _open_outlet(form: str) -> Iterator["Outlet"]:
    """Yield who is told: a reader of lines, or somebody at a terminal, who sees how it stands."""
    from reassure_conformance.answers.watching import Outlet, alert_line, describe_alert

    say = get_say()

    def warn(text: str) -> None:
        click.echo(text, err=True)

    if form == "json":
        yield Outlet(lambda alert, again: say(alert_line(alert, repeated=again)), warn)
        return

    def describe(alert: Any, again: bool) -> str:
        return "\n".join(describe_alert(alert, repeated=again))

    if not sys.stdout.isatty():
        yield Outlet(lambda alert, again: say(describe(alert, again)), warn)
        return
    with _live() as (print_above, show):
        yield Outlet(lambda alert, again: print_above(describe(alert, again)), print_above, show)


@contextmanager
def _live() -> Iterator[tuple[Callable[[str], None], Callable[[Any], None]]]:
    """Yield what prints above the lines that show how it stands, and what renews these."""
    from rich.live import Live

    from reassure_conformance.report.display import paint
    from reassure_conformance.report.watch_view import render_status

    with Live(auto_refresh=False, transient=True) as live:

        def show(status: Any) -> None:
            live.update(render_status(status), refresh=True)

        def print_above(text: str) -> None:
            from rich.text import Text

            live.console.print(Text.from_ansi(paint(text)))

        yield print_above, show
