"""Adapters that are programs, in any language: `exec:./program --flags`.

The program is started once for a run. It is asked by lines of JSON on its standard input and
answers each with one on its standard output, in turn (`reassure_conformance.adapter.wire`); what it
writes to standard error is shown and otherwise its own. It ends when its input ends.

An answer that is none or does not come, an error that it tells, and its own end are raised as
ProgramFault, so that the run ends as died: neither a violation nor a pass. Each says what was seen,
what was expected, and what to do.
"""

import errno
import inspect
import json
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, cast

import jsonschema

from reassure_conformance.adapter import Adapter, BadConnectable, ProgramFault
from reassure_conformance.adapter.wire import (
    answer_schema,
    find_method,
    list_calls,
    read_answer,
    request_schema,
)
from reassure_conformance.supervise import HANG_S, note_alive

_LAST_LINES: Final = 1000
"""How many lines of what a program said last are told when it has died."""
_END_S: Final = 5.0
"""How long a program may take to end once its input has."""
_SHOWN: Final = 200
"""How much of a line is shown that is no answer."""
_LOOK_S: Final = 1.0
"""How often a sign of life is given while an answer is waited for."""
_ADVICE: Final[Mapping[int, str]] = {
    errno.ENOENT: "build it, or name it by its path, such as exec:./program",
    errno.EACCES: "allow it by chmod +x, or name what runs it, such as exec:python3 program.py",
    errno.ENOEXEC: "let its first line be #! and what runs it, or name that, such as "
    "exec:python3 program.py",
}
"""What to do about a program that the system does not start, by the error's number."""


class Program:
    """A program as an adapter: every call of the interface is a message, and waits for its answer.

    `command` is as a shell would read it, without a shell; `answer_s` is how long each answer may
    take, besides what the call itself gives it. Raises BadConnectable where nothing can be started.
    """

    def __init__(
        self,
        command: str,
        *,
        profile: str,
        readings: Mapping[str, str],
        answer_s: float = HANG_S,
    ) -> None:
        self._rules = {"profile": profile, "readings": dict(readings)}
        self._answer_s = answer_s
        self._asked = 0
        self._schemas = answer_schema()["$defs"]
        self._questions = jsonschema.Draft202012Validator(request_schema())
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except (OSError, ValueError, IndexError) as error:
            advice = _ADVICE.get(getattr(error, "errno", 0), "write exec:./program --flags")
            raise BadConnectable(
                f"exec:{command} cannot be started: {error}; expected a command line that starts a "
                f"program; {advice}"
            ) from error
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._reader = Thread(target=self._read, name="program's stdout", daemon=True)
        self._reader.start()
        self._said: deque[str] = deque(maxlen=_LAST_LINES)
        self._listener = Thread(target=self._listen, name="program's stderr", daemon=True)
        self._listener.start()

    def _read(self) -> None:
        """Hand on every line of standard output, and at its end an empty one."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._said.append(line)
                sys.stderr.write(line)

    def ask(self, call: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer to a call. Raises ProgramFault."""
        process = self._process
        assert process.stdin is not None
        self._asked += 1
        message = {"id": self._asked, "call": call, "arguments": arguments}
        text = json.dumps(message)
        self._questions.validate(json.loads(text))
        try:
            process.stdin.write(text + "\n")
            process.stdin.flush()
            line = self._await(call, self._answer_s + arguments.get("timeout_s", 0.0))
        except BrokenPipeError:
            line = ""
        if not line:
            raise self._fault(
                f"it {self._wait()} instead of answering {call}; expected an answer to each line "
                f"of standard input until that ends; {self._point_at_last_words()}"
            )
        answer = self._parse(call, line)
        if "error" in answer:
            raise self._fault(f"it cannot go on: {answer['error']}")
        return read_answer(call, answer["answer"])

    def _await(self, call: str, patience_s: float) -> str:
        """Return the next line of standard output, "" where there are no more."""
        until = time.monotonic() + patience_s
        while (left := until - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=min(left, _LOOK_S))
            except Empty:
                note_alive()
                continue
            if not line:
                self._lines.put(line)
            return line
        self._process.kill()
        self._process.wait()
        raise self._fault(
            f"it has not answered {call} for {patience_s:g} s; expected one whole line of "
            "standard output, with its newline; flush standard output after each answer"
        )

    def _parse(self, call: str, line: str) -> dict[str, Any]:
        shown = line.strip()[:_SHOWN]
        try:
            answer = json.loads(line)
        except json.JSONDecodeError as error:
            raise self._fault(
                f"it wrote {shown!r} to standard output, which is not JSON ({error}); expected "
                f"the answer to {call}, on one line; write log messages to standard error"
            ) from error
        problem = jsonschema.Draft202012Validator(self._schemas[call])
        worst = jsonschema.exceptions.best_match(problem.iter_errors(answer))
        if worst is not None:
            place = "".join(f".{part}" for part in worst.absolute_path)
            raise self._fault(
                f"it answered {shown}, which is no valid answer to {call}: {worst.message}"
                f"{f' at {place[1:]}' if place else ''}; expected what `reassure spec schema "
                f"answers` says of {call}; correct the answer"
            )
        if answer["id"] != self._asked:
            raise self._fault(
                f"it answered {answer['id']} when {self._asked} was asked; expected the id of the "
                "question; answer each question once, in order"
            )
        return cast("dict[str, Any]", answer)

    def _point_at_last_words(self) -> str:
        if not self._said:
            return "it wrote nothing to standard error: let it write there why it ends"
        return f"its last line was: {self._said[-1].strip()}"

    def _wait(self) -> str:
        """Give the program time to end; return in words how it did, or that it did not."""
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return "closed its standard output"
        self._listener.join(_END_S)
        return f"ended with exit code {status}" if status >= 0 else f"died of signal {-status}"

    def _fault(self, message: str) -> ProgramFault:
        return ProgramFault(message, "".join(self._said))

    def end(self) -> None:
        """Let the program end. Raises ProgramFault where it has to be made to."""
        process = self._process
        assert process.stdin is not None
        try:
            process.stdin.close()
            process.wait(_END_S)
        except BrokenPipeError:
            pass
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise self._fault(
                f"it still ran {_END_S:g} s after the end of its input; expected it to end with "
                "that input; leave the loop that reads, and stop what you started"
            ) from None
        finally:
            self._reader.join(_END_S)
            self._listener.join(_END_S)

    def describe(self) -> Any:
        """Ask what the implementation is, and tell it by which rules it will be judged."""
        return self.ask("describe", self._rules)

    def close(self) -> None:
        """Say that it is over, and see the program end. Raises ProgramFault."""
        try:
            if self._process.poll() is None:
                self.ask("close", {})
        finally:
            self.end()


def _forward(call: str) -> Callable[..., Any]:
    """Return the method that sends a call on with its arguments by name."""
    signature = inspect.signature(find_method(call))

    def method(self: Program, *args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        del given["self"]
        return self.ask(call, given)

    method.__name__ = call
    return method


for _call in list_calls():
    if not hasattr(Program, _call.name):
        setattr(Program, _call.name, _forward(_call.name))


def open_program(
    command: str, *, profile: str, readings: Mapping[str, str], answer_s: float
) -> Adapter:
    """Start a program and return it as an adapter. Raises BadConnectable."""
    program = Program(command, profile=profile, readings=readings, answer_s=answer_s)
    return cast("Adapter", program)
