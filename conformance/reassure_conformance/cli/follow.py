"""What `audit --follow` does: transaction logs, judged as a server writes them."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import click

from reassure_conformance.cli.failing import NOBODY_READS, forget_output
from reassure_conformance.cli.options import emit, get_say, is_given

if TYPE_CHECKING:
    from reassure_conformance.answers.watching import Outlet

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def follow(
    paths: tuple[Path, ...], chosen: Mapping[str, str], form: str, options: Mapping[str, Any]
) -> int:
    """Judge logs while a server writes them, tell each violation once, return the exit code.

    `chosen` are the readings, `options` those of the verb.
    """
    from reassure_conformance.answers.auditing import render_audit
    from reassure_conformance.answers.watching import WatchRequest, watch_document
    from reassure_pipeline.audit.passes import Options
    from reassure_pipeline.watch.loop import Ending

    for_s = options["for_s"]
    until = inf if for_s is None else time.monotonic() + for_s
    names = "min_insync_replicas", "grace_ms", "facts", "strict", "chroots"
    asked = WatchRequest(
        paths,
        Ending(Event(), until, options["until_caught_up"]),
        options["profile"],
        chosen,
        named=is_given("profile"),
        options=Options(**{name: options[name] for name in names}),
        checkpoint=options["checkpoint"],
        tables=options["tables"],
    )
    try:
        with _stopping(asked.ending.stop), _open_outlet(form) as outlet:
            document = watch_document(asked, outlet)
        return emit(
            document, form, lambda: render_audit(document, form, verbose=options["verbose"])
        )
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
