"""Adapters that are programs: their messages, their mistakes, and verdicts as of a Python one."""

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reassure_conformance.adapter import AdapterDied, BadConnectable, calling, open_adapter
from reassure_conformance.adapter.program import Program
from reassure_conformance.adapter.wire import answer_schema, list_calls, request_schema
from reassure_conformance.cli import run_command
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_spec.schemas import load_schema

SERVED = (
    f"{sys.executable} -m reassure_conformance.adapter.answering "
    "direct:reassure_conformance.adapter.bundled:Bundled"
)
ABOUT = {
    "name": "toy",
    "version": "1",
    "language": "none",
    "profile": "kip-236",
    "adapter_version": 1,
}
ANSWERS = {"describe": ABOUT, "settle": True, "take_messages": []}
TOY = """
import json, os, sys, time
answers = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    sys.stderr.write("asked for " + asked["call"] + "\\n")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a") as file:
            file.write(line)
    said = answers[asked["call"]]
    if isinstance(said, str) and said.startswith("!"):
        exec(said[1:])
    else:
        print(json.dumps({"id": asked["id"], "answer": said}), flush=True)
"""


@pytest.fixture
def make_toy(tmp_path: Path) -> Iterator[Any]:
    """Start a program that answers as it is told; "!code" is carried out instead."""
    script = tmp_path / "toy.py"
    script.write_text(TOY, encoding="utf-8")
    made: list[Program] = []

    def make(**answers: Any) -> Program:
        known = {call.name: ANSWERS.get(call.name) for call in list_calls()}
        for call in list_calls():
            if "enum" in call.answer:
                known[call.name] = "ok"
        (tmp_path / "asked").touch()
        command = [sys.executable, str(script), json.dumps({**known, **answers})]
        command.append(str(tmp_path / "asked"))
        made.append(Program(shlex.join(command), profile="kip-236", readings={}, answer_s=3.0))
        return made[-1]

    yield make
    for one in made:
        one._process.kill()
        one.end()


def test_schemas_are_schemas() -> None:
    """Both documents are valid JSON Schemas, and every call has one in each."""
    for schema in (request_schema(), answer_schema()):
        jsonschema.Draft202012Validator.check_schema(schema)
    names = {call.name for call in list_calls()}
    assert set(answer_schema()["$defs"]) == names
    asked = {one["properties"]["call"]["const"] for one in request_schema()["oneOf"]}
    assert asked == names


def test_every_call_is_a_message_of_the_schema(make_toy: Any, tmp_path: Path) -> None:
    """Each method sends the message that the schema describes, and returns what comes back."""
    program = make_toy()
    given: dict[str, Any] = {"string": "x", "integer": 1, "number": 1.5, "boolean": True}
    for call in list_calls():
        if call.name != "close":
            own = {} if call.name == "describe" else call.parameters
            values = {name: given.get(kind["type"], (1, 2)) for name, kind in own.items()}
            getattr(program, call.name)(**values)
    program.close()
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text("utf-8").splitlines()]
    assert {one["call"] for one in asked} == {call.name for call in list_calls()}
    check = jsonschema.Draft202012Validator(request_schema())
    for one in asked:
        check.validate(one)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("maybe", "no valid answer to elect: .*maybe"),
        ({"ok": True}, "no valid answer to elect"),
        ("!print('hello', flush=True)", "wrote 'hello' to standard output, which is not JSON"),
        (
            "!print(json.dumps({'id': 7, 'answer': 'ok'}), flush=True)",
            "answered 7 when 1 was asked",
        ),
        ("!sys.exit(3)", "ended with exit code 3 instead of answering"),
        ("!os.kill(os.getpid(), 9)", "died of signal 9 instead of answering"),
        ("!os.close(1); time.sleep(60)", "closed its standard output"),
        ("!time.sleep(60)", "has not answered elect for 3 s; .*; flush standard output"),
        ("!print(end='x', flush=True); time.sleep(60)", "has not answered elect for 3 s"),
        (
            "!print(json.dumps({'id': 1, 'error': 'no leader'}), flush=True)",
            "cannot go on: no leader",
        ),
    ],
)
def test_mistake_of_a_program_is_named(
    make_toy: Any, said: Any, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no answer ends the run as died, with what it was and the program's last words."""
    monkeypatch.setattr("reassure_conformance.adapter.program._END_S", 1.0)
    program = make_toy(elect=said)
    with pytest.raises(AdapterDied, match=complaint) as died, calling("elect"):
        program.elect()
    assert died.value.call == "elect"
    if "ended with" in complaint or "died of" in complaint:
        assert "asked for elect" in died.value.trace


@pytest.mark.parametrize("command", ["", "./no-such-program", "'unbalanced"])
def test_program_that_cannot_be_started_is_refused(command: str) -> None:
    """A command line that starts nothing is a bad configuration, with what to write instead."""
    with pytest.raises(BadConnectable, match="cannot be started"):
        open_adapter(f"exec:{command}", profile="kip-236", readings={})


def test_faults_are_not_planted_in_programs() -> None:
    """A fault of the bundled controller cannot be asked of a program."""
    with pytest.raises(BadConnectable, match="--fault is for the bundled controller"):
        open_adapter("exec:cat", profile="kip-236", readings={}, faults=("leader-dropped",))


@pytest.mark.slow
def test_program_has_the_verdicts_of_the_adapter_that_it_serves(tmp_path: Path) -> None:
    """The bundled controller behind a pipe is judged as it is in this process.

    Which of the rarer clauses a real ZooKeeper's moments bring up may differ.
    """
    found = {}
    for name, connectable in (("program", f"exec:{SERVED}"), ("direct", "")):
        settings = Settings(1, examples=20, steps_min=0, with_stories=False)
        if connectable:
            settings = replace(settings, connectable=connectable)
        (tmp_path / name).mkdir()
        result = run(settings, tmp_path / name)
        assert (result.died, result.failure) == ("", None)
        found[name] = {c.id: c.verdict for c in result.clauses if c.exercised}
    common = found["program"].keys() & found["direct"].keys()
    assert len(common) > 20
    assert all(found["program"][clause] == found["direct"][clause] for clause in common)


@pytest.mark.parametrize("name", ["questions", "answers", "reassignment"])
def test_schema_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb prints one schema and nothing else; a name there is not gets those there are."""
    assert run_command(["spec", "schema", name]) == 0
    own = {"questions": request_schema, "answers": answer_schema}
    schema = own[name]() if name in own else load_schema(name)
    assert json.loads(capsys.readouterr().out) == schema
    assert run_command(["spec", "schema", name + "s"]) == 64
    assert "questions" in capsys.readouterr().err
