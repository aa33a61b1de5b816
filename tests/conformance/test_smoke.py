"""`test --smoke` and `test --case`: each mistake is named in a line, each step is shown."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.answers.case_run import find_story, render_telling, tell_document
from reassure_conformance.answers.smoking import render_smoke, smoke_document
from reassure_conformance.gate.run_settings import BUNDLED, Settings
from reassure_conformance.report.document import Document
from reassure_spec.words import ScenarioError

ABOUT = {
    "name": "toy",
    "version": "1",
    "language": "none",
    "profile": "kip-236",
    "adapter_version": 1,
}
TOY = """#!{python}
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    about = {about}
    if asked["call"] == {call!r}:
        {code}
    said = {{"describe": about, "settle": True}}.get(asked["call"])
    print(json.dumps({{"id": asked["id"], "answer": said}}), flush=True)
{after}
"""
ADAPTERS = """
from dataclasses import replace

from kazoo.client import KazooClient
from reassure_conformance.adapter import Reply
from reassure_conformance.adapter.bundled import Bundled


class Nobody(Bundled):
    def start(self, hosts, chroot, brokers):
        pass


class Restless(Bundled):
    def settle(self, timeout_s):
        super().settle(timeout_s)
        return False


class Outside(Bundled):
    def start(self, hosts, chroot, brokers):
        client = KazooClient(hosts)
        client.start()
        client.ensure_path("/controller_epoch")
        client.stop()
        client.close()
        super().start(hosts, chroot, brokers)


class Refuses(Bundled):
    def change_isr(self, broker, topic, partition, *, joins):
        return Reply.REFUSED


class Bare(Bundled):
    def describe(self):
        return replace(super().describe(), capabilities=frozenset())
"""


def _smoke(connectable: str, folder: Path, **settings: Any) -> Document:
    made = Settings(0, connectable=connectable, hang_s=settings.pop("hang_s", 20.0), **settings)
    return smoke_document(made, folder)


def _is_diagnosis(line: str) -> bool:
    """Whether a line says what was seen, what was expected and what to do."""
    seen, _, rest = line.partition("; expected ")
    return bool(seen) and "; " in rest and "\n" not in line


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("call", "code", "after", "complaint", "exit_code"),
    [
        ("describe", "sys.exit(3)", "", "ended with exit code 3 instead of answering describe", 69),
        ("start", "sys.exit('no port')", "", "its last line was: no port", 69),
        (
            "describe",
            "print('hello')",
            "",
            "wrote 'hello' to standard output, which is not JSON",
            69,
        ),
        ("describe", "asked['id'] = 7", "", "answered 7 when 1 was asked", 69),
        (
            "describe",
            "about['adapter_version'] = 9",
            "",
            "9 is not one of [1, 2] at answer.adapter_ver",
            69,
        ),
        ("describe", "about['capabilities'] = ['fly']", "", "'fly' is not one of", 69),
        ("describe", "about['profile'] = 'kip-235'", "", "kip-235", 78),
        ("describe", "time.sleep(99)", "", "has not answered describe for 3 s", 69),
        ("describe", "pass", "", "there is no /example-00001/brokers/ids/1, ", 69),
        ("start", "pass", "time.sleep(99)", "there is no /example-00001/brokers/ids/1, ", 69),
    ],
)
def test_mistake_of_a_program_is_diagnosed(
    call: str, code: str, after: str, complaint: str, exit_code: int, tmp_path: Path
) -> None:
    """What a program does wrong is said in one line: what was seen, expected, and is to be done."""
    toy = tmp_path / "toy"
    text = TOY.format(python=sys.executable, about=ABOUT, call=call, code=code, after=after)
    toy.write_text(text, encoding="utf-8")
    toy.chmod(0o755)
    document = _smoke(f"exec:{shlex.quote(str(toy))}", tmp_path, hang_s=3.0)
    assert complaint in document.body["amiss"]
    assert _is_diagnosis(document.body["amiss"])
    assert document.get_exit_code() == exit_code


@pytest.mark.parametrize(
    ("make", "complaint", "advice"),
    [
        (lambda file: None, "No such file", "name it by its path"),
        (lambda file: file.write_text("#!/bin/sh\n"), "Permission denied", "chmod +x"),
        (
            lambda file: (file.write_text("print()\n"), file.chmod(0o755)),
            "Exec format error",
            "let its first line be #!",
        ),
    ],
)
def test_program_that_cannot_be_started_is_diagnosed(
    make: Any, complaint: str, advice: str, tmp_path: Path
) -> None:
    """A program that is absent, may not be run or is none is named, with what to do."""
    make(tmp_path / "toy")
    document = _smoke(f"exec:{shlex.quote(str(tmp_path / 'toy'))}", tmp_path)
    assert complaint in document.body["amiss"]
    assert advice in document.body["amiss"]
    assert _is_diagnosis(document.body["amiss"])
    assert document.get_exit_code() == 78


@pytest.fixture
def mistaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the connectables of the adapters above begin with."""
    (tmp_path / "mistaken.py").write_text(ADAPTERS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "direct:mistaken:"


@pytest.mark.parametrize(
    ("adapter", "complaint", "exit_code"),
    [
        ("Nobody", "was answered, and there is no", 69),
        ("Restless", "settle answered false after `start` in start", 2),
        ("Outside", "/controller_epoch was written, which is outside the chroot", 69),
        ("Refuses", "message.leader-able is violated in a-move", 1),
    ],
)
def test_mistake_of_an_adapter_is_diagnosed(
    adapter: str, complaint: str, exit_code: int, mistaken: str, tmp_path: Path
) -> None:
    """What an adapter leaves out or does elsewhere is seen in ZooKeeper, and said in one line."""
    document = _smoke(f"{mistaken}{adapter}", tmp_path)
    assert complaint in document.body["amiss"]
    assert _is_diagnosis(document.body["amiss"])
    assert document.get_exit_code() == exit_code


def test_what_declares_nothing_is_told_what_there_is(mistaken: str, tmp_path: Path) -> None:
    """Where few stories need nothing more, these are told, and it is said what would allow more."""
    document = _smoke(f"{mistaken}Bare", tmp_path)
    assert (document.verdict, document.body["amiss"]) == ("holds", "")
    assert [stage["stage"] for stage in document.body["stages"]][2:] == [
        "kills-request-delete-child-first",
        "malformed-requests",
    ]
    assert document.body["lacking"].startswith(
        "2 test cases can run with the declared capabilities; declare"
    )
    _, few, *_ = render_smoke(document.as_dict()).splitlines()
    assert few.startswith("NOTE 2 test cases")


def test_broken_clause_is_diagnosed(tmp_path: Path) -> None:
    """A controller that breaks a clause is told which, where, and what would be right."""
    document = _smoke(BUNDLED, tmp_path, faults=("delete-request-before-child",))
    assert "request.delete.child-first is violated in a-move" in document.body["amiss"]
    assert _is_diagnosis(document.body["amiss"])
    assert document.get_exit_code() == 1


def test_sound_implementation_passes(tmp_path: Path) -> None:
    """The bundled controller goes through the handshake, the start and three stories."""
    document = _smoke(BUNDLED, tmp_path)
    assert (document.verdict, document.body["amiss"]) == ("holds", "")
    assert document.body["lacking"] == ""
    stages = [stage["stage"] for stage in document.body["stages"]]
    assert stages == ["handshake", "start", "a-move", "leader-dies", "failover-keeps-top"]


@pytest.mark.parametrize("profile", ["kip-236-legacy", "kafka-42", "kip-46"])
def test_every_profile_has_its_stories(profile: str, tmp_path: Path) -> None:
    """Under each profile that is driven three stories are told, and put clauses to the test."""
    document = _smoke(BUNDLED, tmp_path, profile=profile)
    assert (document.verdict, document.body["amiss"]) == ("holds", "")


def test_story_is_told_step_by_step(tmp_path: Path) -> None:
    """Each step of a story shows what was written and which clauses that put to the test."""
    document = tell_document(Settings(0), "a-move", tmp_path)
    told = document.body["told"]
    assert document.verdict == "holds"
    assert [each["step"] for each in told[1:-1]] == [
        "create orders with 1,2",
        "request orders-0 to 1,3",
        "3 joins orders-0",
    ]
    assert "partition.new.brought-online" in told[1]["exercised"]
    assert any("top 2 target [1, 3]" in write for write in told[2]["writes"])
    assert "complete.carried-out" in told[3]["exercised"]


def test_story_of_a_file_shows_what_it_violates(tmp_path: Path) -> None:
    """A story of one's own is told until a clause is broken, and the step shows it."""
    story = tmp_path / "own.txt"
    story.write_text("world cluster brokers=1,2\n\ncreate t with 1\nrequest t-0 to 2\n")
    settings = Settings(0, faults=("delete-request-before-child",))
    document = tell_document(settings, str(story), tmp_path)
    assert document.verdict == "violated"
    shown = render_telling(document.as_dict())
    assert "2. request t-0 to 2\n" in shown
    assert "VIOLATED request.delete.child-first" in shown
    assert len(document.body["told"]) == 3
    places = [shown.index(text) for text in ("VIOLATED in ", "\nVIOLATED request.delete", "\n0. ")]
    assert places == sorted(places)
    assert places[0] == 0
    narrow = render_telling(document.as_dict(), 60)
    beside = [line for line in narrow.splitlines() if not line.startswith("  ")]
    assert max(map(len, beside)) <= 60
    assert max(map(len, shown.splitlines())) > 60, "without a terminal a row stays on its line"


def test_smoke_says_the_verdict_first() -> None:
    """The verdict comes first, then what is amiss, then the stages; they fit a narrow terminal."""
    stages = [{"stage": "handshake", "said": "my controller 0.1 " * 9, "seconds": 0.25}]
    report = {
        "verdict": "unknown",
        "seconds": 1.0,
        "counts": {"clauses_exercised": 0},
        "lacking": "",
        "amiss": "nobody is there; expected a controller; start one",
        "traceback": "",
        "stages": stages,
    }
    first, _, amiss, _, stage = render_smoke(report).splitlines()
    assert first == "UNKNOWN in 1.0 s: 0 clauses covered"
    assert amiss.startswith("PROBLEM nobody is there")
    assert stage.startswith("handshake    0.2 s  my controller")
    assert max(map(len, render_smoke(report, 50).splitlines())) <= 50


def test_story_that_there_is_not_gets_the_nearest() -> None:
    """A name that no story has is bad data, and those that are like it are named."""
    with pytest.raises(ScenarioError, match=r"no test case or file 'a-mov'.*a-move"):
        find_story("a-mov", "kip-236")
    assert find_story("a-move.txt", "kip-236").name == "a-move"
