"""Adapters that are programs, in any language: `exec:./program --flags`.

The program is started once for a run. It is asked by lines of JSON on its standard input and
answers each with one on its standard output, in turn (`reassure_conformance.adapter.wire`); what it
writes to standard error is shown and otherwise its own. It ends when its input ends.

An answer that is none, an error that it tells, and its own end are raised as ProgramFault, so that
the run ends as died: neither a violation nor a pass.
"""

import inspect
import json
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, Final, cast

import jsonschema

from reassure_conformance.adapter import Adapter, BadConnectable, ProgramFault
from reassure_conformance.adapter.wire import (
    answer_schema,
    find_method,
    list_calls,
    read_answer,
)

_LAST_LINES: Final = 30
"""How much of what a program said is told when it has died."""
_END_S: Final = 5.0
"""How long a program may take to end once its input has."""
_SHOWN: Final = 200
"""How much of a line is shown that is no answer."""


class Program:
    """A program as an adapter: every call of the interface is a message, and waits for its answer.

    `command` is as a shell would read it, without a shell. Raises BadConnectable where nothing can
    be started.
    """

    def __init__(self, command: str, *, profile: str, readings: Mapping[str, str]) -> None:
        self._rules = {"profile": profile, "readings": dict(readings)}
        self._asked = 0
        self._schemas = answer_schema()["$defs"]
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
            raise BadConnectable(
                f"exec:{command} cannot be started: {error}; write exec: and a command line, such "
                "as exec:./program"
            ) from error
        self._said: deque[str] = deque(maxlen=_LAST_LINES)
        self._listener = Thread(target=self._listen, name="program's stderr", daemon=True)
        self._listener.start()

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
        assert process.stdout is not None
        self._asked += 1
        message = {"id": self._asked, "call": call, "arguments": arguments}
        try:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise self._fault(f"it {self._wait()} instead of answering")
        answer = self._parse(call, line)
        if "error" in answer:
            raise self._fault(f"it cannot go on: {answer['error']}")
        return read_answer(call, answer["answer"])

    def _parse(self, call: str, line: str) -> dict[str, Any]:
        shown = line.strip()[:_SHOWN]
        try:
            answer = json.loads(line)
        except json.JSONDecodeError as error:
            raise self._fault(
                f"it wrote {shown!r} to standard output, where only answers go: {error}; what "
                "people are to read belongs on standard error"
            ) from error
        problem = jsonschema.Draft202012Validator(self._schemas[call])
        worst = jsonschema.exceptions.best_match(problem.iter_errors(answer))
        if worst is not None:
            raise self._fault(f"it answered {shown}, which is no answer to {call}: {worst.message}")
        if answer["id"] != self._asked:
            raise self._fault(f"it answered {answer['id']} when {self._asked} was asked")
        return cast("dict[str, Any]", answer)

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
        assert process.stdout is not None
        try:
            process.stdin.close()
            process.wait(_END_S)
        except BrokenPipeError:
            pass
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise self._fault(f"it did not end {_END_S:g} s after its input had") from None
        finally:
            process.stdout.close()
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


def open_program(command: str, *, profile: str, readings: Mapping[str, str]) -> Adapter:
    """Start a program and return it as an adapter. Raises BadConnectable."""
    return cast("Adapter", Program(command, profile=profile, readings=readings))
