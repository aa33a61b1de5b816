"""What a run keeps beside its log is read as it was written, and what is none of it is refused."""

import json
from pathlib import Path

import pytest

from reassure_conformance.cli import run_command
from reassure_conformance.gate.evidence import BadRun
from reassure_conformance.gate.rests import (
    FORGOTTEN,
    MISSED,
    QUIESCENT,
    RESTS,
    NotingJudge,
    Rest,
    RestsFile,
    read_rests,
)
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Create, committed
from reassure_zookeeper.txnlog_writer import write_log

READINGS = get_profile("kip-236")
HEAD = json.dumps({"profile": "kip-236", "readings": {}, "capabilities": []})
MOMENT = json.dumps({"zxid": 7, "chroot": "/a", "moment": QUIESCENT})


def test_moments_are_kept_as_the_judge_is_told_of_them(tmp_path: Path) -> None:
    """Each of the three kinds, in order, each with the last transaction before it."""
    judge = NotingJudge("kip-236", READINGS)
    judge.quiesce("/before")
    judge.file = RestsFile(tmp_path, "kip-236", READINGS, {"log", "kill"})
    judge.feed(committed(Create("/a"), zxid=5))
    judge.quiesce("/a")
    judge.feed(committed(Create("/a/b"), zxid=6))
    judge.miss_controller("/a")
    judge.forget("/a")
    rests = read_rests(tmp_path)
    assert rests is not None
    assert (rests.profile, sorted(rests.capabilities)) == ("kip-236", ["kill", "log"])
    assert rests.readings == READINGS.as_dict()
    kinds = ((5, QUIESCENT), (6, MISSED), (6, FORGOTTEN))
    assert rests.moments == tuple(Rest(zxid, "/a", moment) for zxid, moment in kinds)


def test_line_that_a_killed_run_left_undone_does_not_count(tmp_path: Path) -> None:
    """It has no end; what stands before it counts."""
    (tmp_path / RESTS).write_text(f"{HEAD}\n{MOMENT}\n{MOMENT[:20]}", encoding="utf-8")
    rests = read_rests(tmp_path)
    assert rests is not None
    assert rests.moments == (Rest(7, "/a", QUIESCENT),)


def test_run_without_the_file_has_no_moments(tmp_path: Path) -> None:
    """Such are the directories that runs made before."""
    assert read_rests(tmp_path) is None


def _alter(**changes: object) -> str:
    return json.dumps({**json.loads(MOMENT), **changes})


BAD = {
    "empty": ([], 1, "a line about the run"),
    "no head": ([MOMENT], 1, "profile, readings, capabilities"),
    "no profile": ([HEAD.replace("kip-236", "kip-0")], 1, "no profile 'kip-0'"),
    "a reading": ([HEAD.replace('"readings": {}', '"readings": {"a": "b"}')], 1, "no reading 'a'"),
    "no JSON": ([HEAD, MOMENT, "{"], 3, "not JSON"),
    "deep": ([HEAD, "[" * 100_000], 2, "not JSON"),
    "no object": ([HEAD, "[]"], 2, "an object with zxid, chroot, moment"),
    "a name": ([HEAD, _alter(more=1)], 2, "an object with zxid"),
    "a kind": ([HEAD, _alter(zxid="7")], 2, "zxid is no int"),
    "no number": ([HEAD, _alter(zxid=True)], 2, "zxid is no int"),
    "a moment": ([HEAD, _alter(moment="tired")], 2, "moment is 'tired', expected 'quiescent' or"),
    "order": ([HEAD, MOMENT, _alter(zxid=6)], 3, "smaller than that of the line before"),
}
"""By what is wrong with a file: its lines, where, and what is said."""


@pytest.mark.parametrize("wrong", BAD)
def test_bad_file_is_refused_with_its_line(tmp_path: Path, wrong: str) -> None:
    """The message has file, line, and what was expected."""
    lines, line, said = BAD[wrong]
    (tmp_path / RESTS).write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")
    with pytest.raises(BadRun) as caught:
        read_rests(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / RESTS}:{line}: ")
    assert said in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """As any other file that is none."""
    (tmp_path / RESTS).write_bytes(b"\xff\xfe\n")
    with pytest.raises(BadRun, match=f"{RESTS}:1: cannot be read"):
        read_rests(tmp_path)


@pytest.mark.parametrize(("lines", "line"), [((MOMENT, "{"), 3), ((MOMENT,), 2)])
def test_audit_refuses_a_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: tuple[str, ...], line: int
) -> None:
    """Exit code 65 for what cannot be read, and for a moment that lies beyond the log."""
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    (tmp_path / "zookeeper").mkdir()
    write_log(tmp_path / "zookeeper", [committed(Create("/brokers/ids"), zxid=1)])
    text = "".join(f"{each}\n" for each in (HEAD, *lines))
    (tmp_path / RESTS).write_text(text, encoding="utf-8")
    assert run_command(["audit", str(tmp_path)]) == 65
    assert f"{RESTS}:{line}: " in capsys.readouterr().err.replace("\n", "")
