"""Runs a verb in a process of its own, and sees to it that a verdict comes out of it.

What is put to the test may be a Python object in our process, and so may do anything to it: call
`sys.exit` or `os._exit`, print, ignore an interrupt, hold on for ever, crash the interpreter. So
the command forks. The *worker* carries out the verb and hands over what it says and its exit code;
only the *keeper*, who runs nothing of anybody's, prints and exits. Without a verdict handed over
there is none: the result is then of its own class, "implementation not available".

What the worker's process prints by itself goes to standard error, so that standard output holds
what the verb said and nothing else. An interrupt ends in `INTERRUPTED`, whatever the worker makes
of it.
"""

import contextlib
import faulthandler
import io
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Final, Protocol

import click

from reassure_conformance.report.document import DIED, INTERRUPTED, write_text
from reassure_spec.errors import Unavailable

GRACE_S: Final = 10.0
"""How long a worker may take to end once it has said its last, or was told to stop."""
HANG_S: Final = 120.0
"""How long one step of an implementation may take before it counts as dead."""
_LOOK_S: Final = 0.1


class Work(Protocol):
    """What a worker does: it says texts and answers the exit code."""

    def __call__(self, arguments: Sequence[str], say: Callable[[str], None]) -> int:
        """Carry out the command line."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What is known of a worker that ended without a verdict."""

    reason: str
    """What became of it, in words."""
    call: str
    """The call of the implementation in which it was last, "" where there was none."""
    trace: str
    """Where its threads were, "" where nobody could tell."""
    story: tuple[str, ...] = ()
    """The steps that it had begun, the last one included."""
    directory: str = ""
    """The directory of the run, in which the story stands, "" for none."""

    def __str__(self) -> str:
        where = f" in {self.call}" if self.call else ""
        return f"no verdict was reached: the process {self.reason}{where}"


@dataclass(slots=True)
class _Voice:
    """The worker's way to its keeper."""

    pid: int
    pipe: Connection
    lock: threading.Lock

    def send(self, kind: str, content: Any) -> None:
        if os.getpid() == self.pid:  # a fork of the worker has no say
            with self.lock:
                self.pipe.send((kind, content))


_voice: _Voice | None = None


def note_call(call: str) -> None:
    """Tell the keeper which call of the implementation is being made; alone, do nothing."""
    if _voice is not None:
        _voice.send("call", call)


def note_alive() -> None:
    """Tell the keeper that all is well."""
    if _voice is not None:
        _voice.send("alive", None)


def note_story(directory: str, text: str, steps: tuple[str, ...]) -> None:
    """Tell the keeper what is being carried out in a run, for it to keep should the worker die."""
    if _voice is not None:
        _voice.send("story", (directory, text, steps))


def note_limit(seconds: float | None) -> None:
    """Tell the keeper that silence for so long is death from now on; None: silence is fine."""
    if _voice is not None:
        _voice.send("limit", seconds)


def supervise(
    arguments: Sequence[str], work: Work, explain: Callable[[int, Lost | None], str]
) -> tuple[str, int]:
    """Carry out the command line in a worker; return what it said and the exit code.

    `explain` makes the text for a worker that handed over no verdict, and for an interrupt, where
    it is given None; it is given the exit code.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as trace:
        reader, writer = Pipe(duplex=False)
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            reader.close()
            os.close(theirs)
            _be_worker(arguments, work, writer, ours, trace)
        writer.close()
        os.close(ours)
        keeper = _Keeper(pid, reader, trace)
        try:
            return keeper.keep(explain)
        finally:
            os.close(theirs)
            reader.close()


def _be_worker(
    arguments: Sequence[str], work: Work, pipe: Connection, lifeline: int, trace: IO[str]
) -> None:
    """Carry out the command line and exit; never returns."""
    global _voice
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Of a job in the background a shell ignores interrupts, and so would whoever inherits that; the
    # keeper alone interrupts a worker, which has a session of its own, and it means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout = _Aside(is_terminal=sys.stdout.isatty(), encoding=sys.stdout.encoding)
    faulthandler.enable(trace)
    threading.Thread(target=_follow, args=(lifeline,), daemon=True).start()
    voice = _voice = _Voice(os.getpid(), pipe, threading.Lock())
    code = work(arguments, lambda text: voice.send("said", text))
    voice.send("done", code)
    sys.exit(code)


class _Aside(io.TextIOWrapper):
    """Standard output that goes to standard error, and still knows for what a verb writes."""

    def __init__(self, *, is_terminal: bool, encoding: str) -> None:
        os.dup2(2, 1)
        raw = os.fdopen(1, "wb", closefd=False)
        super().__init__(raw, encoding=encoding, errors="backslashreplace", line_buffering=True)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Whether what the verb says goes to a terminal."""
        return self._is_terminal


def _follow(lifeline: int) -> None:
    """End with the keeper, which may be killed without warning."""
    os.read(lifeline, 1)
    os._exit(INTERRUPTED)


class _Stopped(BaseException):
    """The keeper was told to stop by a signal."""


class _Keeper:
    """Listens to a worker until it has ended."""

    def __init__(self, pid: int, pipe: Connection, trace: IO[str]) -> None:
        self._pid = pid
        self._pipe = pipe
        self._trace = trace
        self._said: list[str] = []
        self._code: int | None = None
        self._call = ""
        self._story: tuple[str, str, tuple[str, ...]] = ("", "", ())
        self._limit: float | None = None
        self._heard = time.monotonic()
        self._status: int | None = None

    def keep(self, explain: Callable[[int, Lost | None], str]) -> tuple[str, int]:
        """Return what the worker said and the exit code."""
        before = {s: signal.signal(s, self._stop) for s in (signal.SIGTERM, signal.SIGHUP)}
        try:
            lost = self._listen()
        except (KeyboardInterrupt, _Stopped) as cause:
            code = cause.args[0] if isinstance(cause, _Stopped) else INTERRUPTED
            self._interrupt()
            return explain(code, None), code
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if lost is not None:
            code = Unavailable.exit_code
            return explain(code, lost), code
        assert self._code is not None
        return "\n".join(self._said), self._code

    def _stop(self, number: int, frame: object) -> None:
        raise _Stopped(128 + number)

    def _listen(self) -> Lost | None:
        while self._code is None:
            try:
                if self._pipe.poll(_LOOK_S):
                    self._hear(*self._pipe.recv())
                    continue
            except (EOFError, OSError):
                return self._lose(self._describe_end(self._end(GRACE_S)))
            if self._limit is not None and time.monotonic() - self._heard > self._limit:
                reason = f"made no progress for {self._limit:g} s"
                os.kill(self._pid, signal.SIGABRT)  # shows where its threads are
                self._end(GRACE_S)
                return self._lose(reason)
            status = self._wait()
            if status is not None and not self._pipe.poll(0):
                return self._lose(self._describe_end(status))
        self._end(GRACE_S)
        return None

    def _hear(self, kind: str, content: Any) -> None:
        self._heard = time.monotonic()
        match kind:
            case "said":
                self._said.append(content)
            case "done":
                self._code = content
            case "call":
                self._call = content
            case "story":
                self._story = content
            case "limit":
                self._limit = content
                if content is None:
                    self._story = ("", "", ())

    def _lose(self, reason: str) -> Lost:
        self._kill()
        self._trace.seek(0)
        directory, text, steps = self._story
        if directory:
            write_text(Path(directory, DIED), text)
        return Lost(reason, self._call, self._trace.read(), steps, directory)

    def _interrupt(self) -> None:
        """Let the worker tidy up, unless the patience of whoever interrupts is at an end."""
        try:
            os.kill(self._pid, signal.SIGINT)
            self._end(GRACE_S)
        except (KeyboardInterrupt, ProcessLookupError, _Stopped):
            click.echo("ended without cleaning up", err=True)
        self._kill()

    def _wait(self) -> int | None:
        """Return the worker's status once it has ended."""
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status

    def _end(self, seconds: float) -> int:
        """Wait for the worker to end, then make it; what it still says is of no interest."""
        until = time.monotonic() + seconds
        while (status := self._wait()) is None:
            if time.monotonic() > until:
                self._kill()
            time.sleep(0.005)
        return status

    def _kill(self) -> None:
        """Kill the worker and all that it started in its session."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self._pid, signal.SIGKILL)
        while self._wait() is None:
            time.sleep(0.005)

    @staticmethod
    def _describe_end(status: int) -> str:
        if os.WIFSIGNALED(status):
            return f"was killed by {signal.Signals(os.WTERMSIG(status)).name}"
        return f"ended by itself with exit code {os.WEXITSTATUS(status)}"
