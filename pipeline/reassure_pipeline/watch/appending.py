"""Tables beside a watch: an audit of the same logs, from time to time, in a process of its own.

A watch tells at once, and keeps the first finding of each kind. Rows are what an audit makes of the
same files, so audits make them, and each judges what is new since the one before: batch and watch
have one mechanism, and no alert waits for it. There is one once the watch has judged something,
soon after an alert, rarely where there is none, and one at the end.
"""

import signal
import time
from collections.abc import Callable
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

from reassure_pipeline.audit.archive_tasks import UNFIT
from reassure_spec.errors import BadConfiguration

ALERT_S: Final = 60.0
"""How long after an audit began the next one does at least, where something was told since."""
_QUIET_S: Final = 3600.0
"""The same where nothing was."""
_COST: Final = 20
"""How many times longer than an audit took it is until the next one."""

Audit = Callable[[], Exception | None]
"""Appends what is new; answers why not all of it is written. Another process is given it."""


class Appending:
    """Has audits append what a watch follows, one at a time."""

    def __init__(self, audit: Audit, say: Callable[[str], None]) -> None:
        """Begin; `say` is told why an audit did not write all."""
        self.problems: tuple[str, ...] = ()
        """Why the last one did not."""
        self._audit = audit
        self._say = say
        self._running: tuple[Any, Connection] | None = None
        """The process, and where its answer comes from."""
        self._begun, self._took = -inf, 0.0
        self._written = 0, 0
        """How many transactions were judged, and alerts told, when the last audit began."""

    def look(self, judged: int, told: int) -> None:
        """Begin an audit, where one is due: so many transactions are judged, and alerts told."""
        if self._running is not None:
            if not self._running[1].poll():
                return
            self._end()
        alerts = told > self._written[1]
        rest = max(ALERT_S if alerts else _QUIET_S, _COST * self._took)
        if judged > self._written[0] and time.monotonic() >= self._begun + rest:
            self._begin(judged, told)

    def finish(self, judged: int, told: int) -> None:
        """Wait until all that was judged is in the tables, or it is known why it is not."""
        if self._running is not None:
            self._end()
        if self._begun < 0 or self.problems or (judged, told) != self._written:
            self._begin(judged, told)
            self._end()

    def _begin(self, judged: int, told: int) -> None:
        self._begun, self._written = time.monotonic(), (judged, told)
        # Forked, it could not write where this process has read tables.
        context = get_context("spawn")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_do, args=(self._audit, there), daemon=True)
        process.start()
        there.close()
        self._running = process, here

    def _end(self) -> None:
        assert self._running is not None, "it has begun"
        (process, answer), self._running = self._running, None
        try:
            problem = answer.recv()
        except EOFError:
            process.join()
            problem = f"the process that writes them ended with {process.exitcode}"
        process.join()
        self._took = time.monotonic() - self._begun
        before, self.problems = self.problems, ()
        if problem is not None:
            self.problems = (f"not all is in the tables, audit again with --tables: {problem}",)
            if self.problems != before:
                self._say(*self.problems)


def _do(audit: Audit, answer: Connection) -> None:
    """Audit in a process that ends by itself: an interrupt is for whoever waits for it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        problem = audit()
    except (*UNFIT, BadConfiguration) as error:
        problem = error
    answer.send(None if problem is None else str(problem))
