"""Implementations that do not behave: whatever they do, it is a result of its own, never green."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.adapter import (
    CAPABILITIES,
    AdapterDied,
    BadConnectable,
    Description,
    Reply,
)
from reassure_conformance.gate import harness as harness_module
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.harness import Harness

CALLS = {
    "start_broker": s.Return(2),
    "stop_broker": s.Die(2),
    "change_isr": s.Join(2, ("orders", 0)),
    "hold": s.Hold(0),
    "resume": s.Resume(),
    "kill_controller": s.Kill(),
    "elect": s.Elect(),
    "expire_session": s.Expire(),
    "cut_connection": s.Cut(),
    "lose_write": s.Lose(0, done=True),
    "shut_down_broker": s.ShutDown(2),
}
"""By method of an adapter, the step that calls it."""
SILENT = ("start", "stop", "close")
"""Methods whose answer is not looked at."""


class Unshowable(Exception):
    """An error that cannot even be shown."""

    def __str__(self) -> str:
        raise ValueError("no")


def _raise(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


def _recurse() -> object:
    return _recurse()


FAULTS: Mapping[str, Callable[[], object]] = {
    "raises": lambda: 1 // 0,
    "exits": lambda: sys.exit(0),
    "leaves": _raise(GeneratorExit()),
    "ends": _raise(StopIteration()),
    "recurses": _recurse,
    "hides": _raise(Unshowable()),
    "answers nothing": lambda: None,
    "answers rubbish": lambda: "ok",
    "answers a class": lambda: Reply,
}


class Faulty:
    """An adapter that misbehaves in one method, and does nothing in the others."""

    def __init__(self, method: str, fault: Callable[[], object]) -> None:
        self._method = method
        self._fault = fault

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name == "settle_soon":  # it can tell when it rests
            raise AttributeError(name)

        def call(*args: object, **kwargs: object) -> object:
            if name == self._method:
                return self._fault()
            return {"settle": True, "take_messages": []}.get(name, Reply.OK)

        return call

    def describe(self) -> Any:
        """Describe an implementation that can do everything."""
        if self._method == "describe":
            return self._fault()
        return Description("faulty", "1", "Python", "kip-236", {}, frozenset(CAPABILITIES))


def _live(harness: Harness, method: str) -> None:
    """Call every method of the adapter."""
    example = harness.begin((1, 2, 3))
    if method in CALLS:
        harness.perform(example, CALLS[method])
    harness.heal(example)
    harness.end(example)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("method", "fault"),
    [
        (method, fault)
        for method in ("describe", "start", "settle", "take_messages", "stop", "close", *CALLS)
        for fault in FAULTS
        if not (method in SILENT and fault.startswith("answers"))
    ],
)
def test_fault_in_any_method_is_the_adapters_death(
    method: str,
    fault: str,
    make_harness: Callable[[Any], Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a method raises or answers, the run ends as died, with the call and the line."""
    monkeypatch.setattr(harness_module, "why_not", lambda step, now: "")
    adapter: Any = Faulty(method, FAULTS[fault])
    try:
        harness = make_harness(adapter)
        _live(harness, method)
        harness.close()
        died = harness.died
    except AdapterDied as error:
        died = error
    assert died is not None
    assert (str(CALLS[method]) if method in CALLS else method) == died.call
    assert "Traceback of the implementation" in died.trace
    if not fault.startswith("answers"):
        assert f"{Path(__file__).name}" in died.trace
        assert ".py:" in str(died)


AMISS = "expected|describes|declares|speaks"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"profile": "kip-1"}, AMISS),
        ({"profile": None}, AMISS),
        ({"readings": {"drop.slice": "sideways"}}, AMISS),
        ({"readings": None}, AMISS),
        ({"capabilities": ["kill"]}, AMISS),
        ({"capabilities": frozenset({"teleport"})}, "teleport"),
        ({"name": 7}, AMISS),
        ({"adapter_version": "1"}, AMISS),
        ({"adapter_version": 3}, "version 3"),
    ],
)
def test_description_of_another_kind_is_refused(
    changes: dict[str, Any], complaint: str, make_harness: Callable[[Any], Harness]
) -> None:
    """A description that says what cannot be is refused with what was expected."""
    fields: dict[str, Any] = {"name": "x", "version": "1", "language": "C", "profile": "kip-236"}
    adapter = Faulty("describe", lambda: Description(**{**fields, **changes}))
    with pytest.raises(BadConnectable, match=complaint):
        make_harness(adapter)


def test_interrupt_is_nobodys_death(make_harness: Callable[[Any], Harness]) -> None:
    """An interrupt that happens to come while the adapter works stays an interrupt."""

    def interrupt() -> object:
        raise KeyboardInterrupt

    harness = make_harness(Faulty("start", interrupt))
    with pytest.raises(KeyboardInterrupt):
        harness.begin((1, 2))


PROGRAM = """
    import os, signal, sys, time
    from dataclasses import replace
    from reassure_conformance.adapter.bundled import Bundled

    HOW = os.environ.get("HOW")

    def misbehave(how):
        match how:
            case "exit": sys.exit(0)
            case "_exit-0": os._exit(0)
            case "_exit-1": os._exit(1)
            case "kill": os.kill(os.getpid(), signal.SIGKILL)
            case "crash": os.kill(os.getpid(), signal.SIGSEGV)
            case "fork": os.fork() and os._exit(0)
            case "close": os.closerange(3, 500)
            case "hang":
                print("hangs", file=sys.stderr)
                time.sleep(600)
            case "deaf":
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                print("hangs", file=sys.stderr)
                while True:
                    try: time.sleep(600)
                    except BaseException: pass

    if os.environ.get("AT") == "import":
        misbehave(os.environ["HOW"])

    class Program(Bundled):
        def __init__(self, **settings):
            super().__init__(**settings)
            if os.environ.get("AT") == "made":
                misbehave(os.environ["HOW"])
            if os.environ.get("HOW") == "noise":
                print("noise")
                os.write(1, b"more noise\\n")
                os.system("echo noise of a child")

        def settle(self, timeout_s):
            if os.environ.get("AT") == "settle":
                misbehave(os.environ["HOW"])
            return os.environ.get("HOW") != "restless" and super().settle(timeout_s)

        def describe(self):
            told = super().describe()
            return replace(told, capabilities=frozenset()) if HOW == "unable" else told
"""


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start `reassure test` on an implementation that misbehaves: at a place, in some way."""
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))

    def run(at: str, how: str, *arguments: str) -> subprocess.Popen[str]:
        paths = os.pathsep.join([str(tmp_path), *sys.path])
        connectable = ["test", "-i", "direct:program:Program", "--out", str(tmp_path / "run")]
        # What takes long to import is there before anybody looks how long a step takes.
        code = "import reassure_conformance.adapter.bundled as _, reassure_conformance.cli as cli"
        # Who runs the tests in the background ignores interrupts, and so would what they start.
        heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        program = [sys.executable, "-c", f"{heed}; {code}; cli.main()"]
        return subprocess.Popen(
            [*program, *connectable, "--examples", "0", "--format", "json", *arguments],
            env={**os.environ, "AT": at, "HOW": how, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


def _finish(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    """Return exit code, the only document, and what stood on standard error."""
    out, err = process.communicate(timeout=120)
    return process.returncode, json.loads(out), err


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("at", "how", "words"),
    [
        ("import", "exit", "sys.exit(0)"),
        ("import", "_exit-0", "exit code 0 in the import of program"),
        ("made", "_exit-1", "exit code 1 in Program(...)"),
        ("made", "kill", "SIGKILL in Program(...)"),
        ("made", "crash", "SIGSEGV in Program(...)"),
        ("made", "fork", "exit code 0 in Program(...)"),
        ("made", "close", ""),
        ("settle", "exit", "sys.exit(0)"),
        ("settle", "_exit-0", "exit code 0 in settle"),
    ],
)
def test_process_that_ends_without_a_verdict_is_not_green(
    start: Callable[..., subprocess.Popen[str]], at: str, how: str, words: str
) -> None:
    """However an implementation ends our process, the result is 69, one document, with the call."""
    code, document, _ = _finish(start(at, how))
    assert (code, document["exit_code"], document["verdict"]) == (69, 69, "unknown")
    said = document["error"]["message"] if "error" in document else document["died"]
    assert words in said


def test_implementation_that_hangs_is_shown(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    """A call that does not return ends the run as died, with the line at which it stands."""
    code, document, err = _finish(start("made", "hang", "--hang-after", "2"))
    assert code == 69
    assert "made no progress for 2 s in Program(...)" in document["error"]["message"]
    assert "in misbehave" in document["error"]["traceback"]
    assert "in misbehave" in err


def test_noise_of_an_implementation_is_in_no_document(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    """What an implementation prints goes to standard error; the document stays whole and green."""
    code, document, err = _finish(start("", "noise"))
    assert (code, document["verdict"]) == (0, "holds")
    assert err.count("noise") == 3


def test_implementation_that_never_rests_is_taught(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Where settle() answers False for ever, the text says what it has to answer, and when."""
    process = start("", "restless", "--no-stories", "--examples", "3", "--format", "pretty")
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "settle() answered False. It must answer True as soon as" in out
    assert (tmp_path / "run" / "unsettled-1.txt").exists()


@pytest.mark.parametrize(
    ("how", "number"),
    [("hang", signal.SIGINT), pytest.param("deaf", signal.SIGTERM, marks=pytest.mark.slow)],
)
def test_interrupt_is_an_interrupt(
    start: Callable[..., subprocess.Popen[str]], how: str, number: signal.Signals
) -> None:
    """Neither a pass nor a violation nor a death: also where the implementation does not listen."""
    process = start("settle", how)
    assert process.stderr is not None
    while not (line := process.stderr.readline()).endswith("hangs\n"):
        assert line, "the run ended before the implementation hung"
    process.send_signal(number)
    code, document, _ = _finish(process)
    assert code == document["exit_code"] == 128 + number
    assert document["error"]["message"] == "interrupted"


def test_worker_heeds_interrupts_in_a_background_job() -> None:
    """Where its keeper ignores interrupts, as a shell has its jobs do, a worker does not."""
    program = """
        import signal
        from reassure_conformance.supervise import supervise
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        def work(arguments, say):
            say(str(signal.getsignal(signal.SIGINT) is signal.default_int_handler))
            return 0
        print(supervise([], work, lambda code, lost: "")[0])
        print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == ["True", "True"]


@pytest.mark.slow
@pytest.mark.parametrize("require", ["declared", "all"])
def test_what_is_not_declared_is_not_asked(
    start: Callable[..., subprocess.Popen[str]], require: str
) -> None:
    """A correct implementation that can do nothing extra holds, and is told what was not asked.

    Unless every clause is required: then it is vacuous.
    """
    code, document, _ = _finish(start("", "unable", "--require", require))
    if require == "all":
        assert (code, document["verdict"], document["not_asked"]) == (3, "vacuous", {})
        assert len(document["not_exercised"]) >= 10
        return
    assert (code, document["verdict"], document["not_exercised"]) == (0, "holds", [])
    assert document["not_asked"]["child.foreign-removed"] == ["kill"]
    assert document["lacking"]["kill"] == ["child.foreign-removed"]
    assert "topic.delete.waits-for-brokers" in document["lacking"]["deletion and brokers"]
    assert document["counts"]["clauses_required"] == document["counts"]["clauses_exercised"]
